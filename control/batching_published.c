// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The PID controller exactly as published (section 5.3.1), for comparison.
 *
 *   set point	fixed by the knob setpoint_events; the documents set half the
 *		number of threads. With 0 it aims at no events and holds nothing.
 *   law	u = Kp e + Ki sum(e) + Kd (e - e_prev) with e = r - d once per
 *		commit, however long that took (dt is one); nothing stops the sum.
 *   timeout	"1 ms": a request that comes within the timeout lets the wait go on
 *		until the controlled time is over, whatever comes then; without one
 *		the batch closes. The knob idle_timeout_us.
 *   no		early close at the set point, trial, or limit other than
 *		delay_limit_us, so the loop sees negative errors, too.
 *
 * The documents do not say how an output in sync events becomes a time. Here a sync
 * event counts as an average arrival gap or, while none is known, as the timeout.
 */
#include "luc_controllers.h"
#include "luc_hold.h"

#define STEP_MILLI 1000LL	/* every commit is one step */

void luc_batching_published_open(const struct luc_params *params,
				 struct luc_state *state, const struct luc_input *in)
{
	state->setpoint_now_events = luc_max(params->setpoint_events, 0);
	state->limit_ns = luc_us_to_ns(params->delay_limit_us);
	state->idle_ns = luc_us_to_ns(params->idle_timeout_us);
	state->wait_ns = luc_clamp(state->hold_ns, 0, state->limit_ns);
}

luc_s64 luc_batching_published_poll(const struct luc_params *params,
				    struct luc_state *state,
				    const struct luc_input *in)
{
	if (in->events > state->opened_events)
		return LUC_S64_MAX;
	return luc_add(state->open_ns, state->idle_ns);
}

void luc_batching_published_close(const struct luc_params *params,
				  struct luc_state *state, const struct luc_input *in,
				  struct luc_output *out)
{
	luc_s64 limit_ns = luc_hold_limit(params, state);

	luc_hold_learn_gap(state, in);
	out->dt_milli = STEP_MILLI;
	luc_hold_move(params, state, in, out, luc_clamp(state->hold_ns, 0, limit_ns), limit_ns,
		      state->gap_ns ? state->gap_ns : luc_us_to_ns(params->idle_timeout_us), 0);
}

luc_s64 luc_batching_published_complete(const struct luc_params *params,
					const struct luc_state *state)
{
	return LUC_S64_MAX;
}

LUC_NEVER_PASSES(luc_batching_published_pass)
