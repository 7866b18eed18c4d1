// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Stock: every commit starts when jbd2 asks for it, and nothing is learned. */
#include "luc_controllers.h"

void luc_batching_off_open(const struct luc_params *params, struct luc_state *state,
			   const struct luc_input *in)
{
}

luc_s64 luc_batching_off_poll(const struct luc_params *params, struct luc_state *state,
			      const struct luc_input *in)
{
	/* This commit was held by another controller, before the knob was changed. */
	return in->now_ns;
}

void luc_batching_off_close(const struct luc_params *params, struct luc_state *state,
			    const struct luc_input *in, struct luc_output *out)
{
}

luc_s64 luc_batching_off_complete(const struct luc_params *params,
				  const struct luc_state *state)
{
	return LUC_S64_MAX;
}

LUC_NEVER_PASSES(luc_batching_off_pass)
