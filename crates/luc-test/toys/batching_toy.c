// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller for a test, which adds this file and a row to a copy of the
 * sources and nothing else: each commit is held for 2 ms, or until three sync
 * events wait for it.
 */
#include "luc_controllers.h"

#define HOLD_US 2000
#define ENOUGH_EVENTS 3

void luc_batching_toy_open(const struct luc_params *params, struct luc_state *state,
			   const struct luc_input *in)
{
	state->limit_ns = luc_us_to_ns(HOLD_US);
	if (in->events < ENOUGH_EVENTS)
		state->wait_ns = state->limit_ns;
}

luc_s64 luc_batching_toy_poll(const struct luc_params *params, struct luc_state *state,
			      const struct luc_input *in)
{
	return in->events >= ENOUGH_EVENTS ? LUC_COMPLETE : LUC_S64_MAX;
}

void luc_batching_toy_close(const struct luc_params *params, struct luc_state *state,
			    const struct luc_input *in, struct luc_output *out)
{
}

luc_s64 luc_batching_toy_complete(const struct luc_params *params,
				  const struct luc_state *state)
{
	return ENOUGH_EVENTS;
}

LUC_NEVER_PASSES(luc_batching_toy_pass)
