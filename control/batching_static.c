// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * A fixed idle time (delayJC, section 4.6).
 *
 * A commit is held until no sync event has come for static_idle_us. Each sync event
 * restarts the timer, at most static_resets_max times, "to avoid starvation". The
 * documents settled on 1 ms for Metarates and 16 ms for IOzone, and do not give their
 * number of resets.
 */
#include "luc_controllers.h"

void luc_batching_static_open(const struct luc_params *params, struct luc_state *state,
			      const struct luc_input *in)
{
	state->limit_ns = luc_us_to_ns(params->delay_limit_us);
	state->idle_ns = luc_us_to_ns(params->static_idle_us);
	state->wait_ns = state->limit_ns;
}

luc_s64 luc_batching_static_poll(const struct luc_params *params,
				 struct luc_state *state, const struct luc_input *in)
{
	luc_s64 came = luc_came(state, in);

	if (came && state->resets < params->static_resets_max) {
		state->resets = luc_add(state->resets, came);
		state->seen_event_ns = in->last_event_ns;
	}
	return luc_add(luc_max(state->seen_event_ns, state->open_ns), state->idle_ns);
}

void luc_batching_static_close(const struct luc_params *params, struct luc_state *state,
			       const struct luc_input *in, struct luc_output *out)
{
}

luc_s64 luc_batching_static_complete(const struct luc_params *params,
				     const struct luc_state *state)
{
	return LUC_S64_MAX;
}

LUC_NEVER_PASSES(luc_batching_static_pass)
