// SPDX-License-Identifier: MIT OR Apache-2.0
/* The layouts that src/ spells out by hand are pinned here; sizes are handed out. */
#include "luc_bets.h"
#include "luc_decision.h"
#include "luc_pid.h"
#include "luc_returns.h"

const luc_s64 luc_shim_record_bytes[] = {
	sizeof(struct luc_params), sizeof(struct luc_input), sizeof(struct luc_state),
	sizeof(struct luc_output), sizeof(struct luc_decision),
};
const luc_s64 luc_shim_returns_bytes = sizeof(struct luc_returns);

_Static_assert(_Alignof(struct luc_returns) <= 8, "Returns is kept in u64");
_Static_assert(LUC_STEP_OPEN == 0 && LUC_STEP_POLL == 1 && LUC_STEP_CLOSE == 2 &&
	       LUC_STEP_COPYOUT == 3 && LUC_STEP_NR == 4, "enum Step");
_Static_assert(LUC_TRIAL_OFF == 0 && LUC_TRIAL_FREE == 1 && LUC_TRIAL_HELD == 2 &&
	       LUC_TRIAL_STAY_FREE == 3 && LUC_TRIAL_STAY_HELD == 4, "enum TrialPhase");
_Static_assert(sizeof(enum luc_step) == 4, "Rust passes a step as u32");

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
_Static_assert(sizeof(struct luc_bets) == 6 * 8, "Bets");
OFFSET(luc_bets, pairs, 0);
OFFSET(luc_bets, sum, 1);
OFFSET(luc_bets, squares, 2);
OFFSET(luc_bets, wide_squares, 3);
OFFSET(luc_bets, certificate, 4);
OFFSET(luc_bets, harm, 5);
_Static_assert(sizeof(enum luc_bets_verdict) == 4 && LUC_BETS_OPEN == 0 &&
	       LUC_BETS_CERTIFIED == 1 && LUC_BETS_REFUTED == 2, "BetsVerdict");
_Static_assert(LUC_BETS_LIMIT_PPM == -10050 && LUC_BETS_WON_PPM == 4605171, "Bets");
