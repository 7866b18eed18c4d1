/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interface of a controller: the functions behind each row of
 * abi/luc_controllers.h. Only luc_control.c calls them.
 *
 * All read params and in, may find any values there and in state, and must not
 * overflow on them. luc_control.c bounds their answers: no controller can hold an
 * urgent commit, or any commit beyond delay_limit_us.
 */
#ifndef LUC_CONTROLLERS_H
#define LUC_CONTROLLERS_H

#include "../abi/luc_decision.h"
#include "luc_math.h"

/*
 * A batching controller.
 *
 * open		a commit was requested. Sets state->wait_ns, the time that it may be
 *		held; 0, as it was before the call, starts it at once. Sets
 *		setpoint_now_events and limit_ns if it has them.
 * poll		the held commit is looked at, first right after open. Returns when
 *		it is to start if no further sync event comes; LUC_S64_MAX: when
 *		wait_ns is over; LUC_COMPLETE: now, as the batch has what it waited for.
 * close	the batch is closed with in->events; learns, and fills out's terms.
 * complete	number of sync events with which the held batch is worth a poll;
 *		LUC_S64_MAX: no number is.
 * pass		a commit was requested. If open would not hold it, and close with
 *		the same input would learn no more than a line or two, changes state
 *		as both would, luc_passed() included, and returns 1. Otherwise
 *		changes nothing and returns 0. Such commits must cost next to
 *		nothing. LUC_NEVER_PASSES leaves everything to open and close.
 */
#define LUC_COMPLETE LUC_S64_MIN

#define LUC_NEVER_PASSES(function) \
	int function(const struct luc_params *params, struct luc_state *state, \
		     const struct luc_input *in) \
	{ \
		return 0; \
	}

#define LUC_DECLARE_BATCHING(NAME, name, knobs, help) \
	void luc_batching_##name##_open(const struct luc_params *params, \
					struct luc_state *state, \
					const struct luc_input *in); \
	luc_s64 luc_batching_##name##_poll(const struct luc_params *params, \
					   struct luc_state *state, \
					   const struct luc_input *in); \
	void luc_batching_##name##_close(const struct luc_params *params, \
					 struct luc_state *state, \
					 const struct luc_input *in, \
					 struct luc_output *out); \
	luc_s64 luc_batching_##name##_complete(const struct luc_params *params, \
					       const struct luc_state *state); \
	int luc_batching_##name##_pass(const struct luc_params *params, \
				       struct luc_state *state, \
				       const struct luc_input *in);
LUC_BATCHINGS(LUC_DECLARE_BATCHING)

/*
 * A copy-out controller: one step per commit. Reads how the commit that ended
 * affected writers, and returns what the next one writes as copies.
 */
#define LUC_DECLARE_COPYOUT(NAME, name, knobs, help) \
	enum luc_copies luc_copyout_##name##_step(const struct luc_params *params, \
						  struct luc_state *state, \
						  const struct luc_input *in);
LUC_COPYOUTS(LUC_DECLARE_COPYOUT)

/* Does what luc_control.c does around an open that holds nothing. */
static inline void luc_passed(struct luc_state *s, const struct luc_input *in,
			      luc_s64 setpoint_events)
{
	s->open_ns = in->now_ns;
	s->opened_events = in->events;
	s->setpoint_now_events = setpoint_events;
	s->limit_ns = 0;
	s->wait_ns = 0;
}

static inline luc_s64 luc_us_to_ns(luc_s64 us)
{
	return luc_mul(luc_max(us, 0), LUC_NS_PER_US);
}

/* Events that came since the last poll, 0 if none. */
static inline luc_s64 luc_came(const struct luc_state *s, const struct luc_input *in)
{
	return luc_max(luc_sub(in->events, s->seen_events), 0);
}

#endif
