// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copy-out exactly as published (section 5.3.2).
 *
 * Copying starts once more than a threshold share of a commit's writes was delayed, 5%
 * by default. It stops after four commits in a row without a delayed write. While copies
 * are written no write is delayed, so every run is clean and copying stops after four
 * commits, whatever the load: it oscillates. The documents count write calls; this
 * counts journal handles, operations that change metadata. Other writes cannot be
 * delayed, and counting them needs a hook in every write. So the share is larger than
 * theirs, never smaller.
 */
#include "luc_controllers.h"

int luc_copyout_published_step(const struct luc_params *params, struct luc_state *state,
			       const struct luc_input *in)
{
	if (luc_copyout_over_threshold(params, in->writes_delayed, in->handles)) {
		state->copy_phase = LUC_COPY_ON;
		state->copy_clean = 0;
	} else if (state->copy_phase == LUC_COPY_ON) {
		state->copy_clean = in->writes_delayed > 0 ? 0 : luc_add(state->copy_clean, 1);
		if (state->copy_clean >= luc_max(params->copyout_clean_runs, 1))
			state->copy_phase = LUC_COPY_OFF;
	} else {
		/* Another controller may have left it as STOPPED. */
		state->copy_phase = LUC_COPY_OFF;
	}
	return state->copy_phase == LUC_COPY_ON;
}
