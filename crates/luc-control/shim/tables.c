// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What Rust cannot read from C by itself: the rows of the X-macro tables as
 * arrays, and sizes. The layouts that src/ spells out by hand
 * are pinned here.
 */
#include "luc_counters.h"
#include "luc_decision.h"
#include "luc_control.h"
#include "luc_pid.h"
#include "luc_returns.h"

struct luc_shim_enumerator {
	const char *text;
	const char *help;
	const char *more;	/* a controller's knobs, a policy's settings */
};

struct luc_shim_knob {
	const char *name;
	const char *help;
	luc_s64 kind;	/* 0 enum, 1 bool, 2 int */
	luc_s64 min;
	luc_s64 max;
	luc_s64 dflt;
	const struct luc_shim_enumerator *enumerators;
	luc_s64 enumerators_nr;
};

struct luc_shim_counter {
	const char *name;
	const char *help;
	luc_s64 kind;	/* 0 total, 1 max, 2 gauge */
};

#define ENUMERATOR(name, text, help) { text, help, "" },
#define CONTROLLER(NAME, name, knobs, help) { #name, help, knobs },
#define POLICY(text, settings, help) { text, help, settings },
static const struct luc_shim_enumerator enumerators_batching[] = { LUC_BATCHINGS(CONTROLLER) };
static const struct luc_shim_enumerator enumerators_copyout[] = { LUC_COPYOUTS(CONTROLLER) };
static const struct luc_shim_enumerator policies[] = { LUC_POLICIES(POLICY) };
static const struct luc_shim_enumerator enumerators_mode[] = { LUC_MODES(ENUMERATOR) };

/* A knob of a kind that is none of these does not compile. */
#define KIND_ENUM(name) 0
#define KIND_BOOL(name) 1
#define KIND_INT(name) 2
#define LIST_ENUM(name) enumerators_##name, \
	sizeof(enumerators_##name) / sizeof(enumerators_##name[0])
#define LIST_BOOL(name) 0, 0
#define LIST_INT(name) 0, 0

#define KNOB(name, kind, min, max, dflt, help) \
	{ #name, help, KIND_##kind(name), min, max, dflt, LIST_##kind(name) },
static const struct luc_shim_knob knobs[] = { LUC_KNOBS(KNOB) };

#define KNOB_CHECK(name, kind, min, max, dflt, help) \
	_Static_assert((min) <= (dflt) && (dflt) <= (max), \
		       "default of " #name " is out of its bounds");
LUC_KNOBS(KNOB_CHECK)

#define KIND_TOTAL 0
#define KIND_MAX 1
#define KIND_GAUGE 2
#define COUNTER(name, kind, help) { #name, help, KIND_##kind },
static const struct luc_shim_counter counters[] = { LUC_COUNTERS(COUNTER) };

const struct luc_shim_knob *luc_shim_knobs(luc_s64 *nr)
{
	*nr = LUC_KNOB_NR;
	return knobs;
}

const struct luc_shim_enumerator *luc_shim_policies(luc_s64 *nr)
{
	*nr = sizeof(policies) / sizeof(policies[0]);
	return policies;
}

const struct luc_shim_counter *luc_shim_counters(luc_s64 *nr)
{
	*nr = LUC_COUNTER_NR;
	return counters;
}

/* Sizes in the order of SIZES in src/ffi.rs. */
void luc_shim_sizes(luc_s64 *size)
{
	size[0] = sizeof(struct luc_params);
	size[1] = sizeof(struct luc_input);
	size[2] = sizeof(struct luc_state);
	size[3] = sizeof(struct luc_output);
	size[4] = sizeof(struct luc_decision);
	size[5] = sizeof(struct luc_returns);
	size[6] = LUC_RETURNS_SLOTS;
	size[7] = LUC_RETURNS_COHORTS;
	size[8] = LUC_RETURNS_DEPTH;
}

/* The enums without a table, as src/layout.rs spells them. */
_Static_assert(LUC_STEP_OPEN == 0 && LUC_STEP_POLL == 1 && LUC_STEP_CLOSE == 2 &&
	       LUC_STEP_COPYOUT == 3 && LUC_STEP_NR == 4, "enum Step");
_Static_assert(LUC_COPY_OFF == 0 && LUC_COPY_ON == 1 && LUC_COPY_STOPPED == 2,
	       "enum CopyPhase");
/* Rust passes u32. */
_Static_assert(sizeof(enum luc_step) == 4, "size of enum luc_step");

#define OFFSET(type, field, at) \
	_Static_assert(__builtin_offsetof(struct type, field) == 8 * (at), #type)
_Static_assert(sizeof(struct luc_pid_gains) == 3 * 8, "Gains");
OFFSET(luc_pid_gains, kp_milli, 0);
OFFSET(luc_pid_gains, ki_milli, 1);
OFFSET(luc_pid_gains, kd_milli, 2);
_Static_assert(sizeof(struct luc_pid_state) == 3 * 8, "PidState");
OFFSET(luc_pid_state, integral_milli, 0);
OFFSET(luc_pid_state, error_milli, 1);
OFFSET(luc_pid_state, error_known, 2);
_Static_assert(sizeof(struct luc_pid_terms) == 4 * 8, "PidTerms");
OFFSET(luc_pid_terms, p_milli, 0);
OFFSET(luc_pid_terms, i_milli, 1);
OFFSET(luc_pid_terms, d_milli, 2);
OFFSET(luc_pid_terms, u_milli, 3);
_Static_assert(_Alignof(struct luc_returns) <= 8, "Returns is kept in u64");
