/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef LUC_COPYOUT_H
#define LUC_COPYOUT_H

#include "../abi/luc_decision.h"

/*
 * One step per commit: in->writes, in->writes_delayed, in->writes_delay_ns,
 * in->writes_saved, in->copy_ns and in->commit_events of the commit that ended;
 * out->copy tells whether the next one copies out.
 */
void luc_copyout_step(const struct luc_params *params, struct luc_state *state,
		      const struct luc_input *in, struct luc_output *out);

/* Nothing to decide: a step would change no state and answer "do not copy". */
static inline int luc_copyout_idle(const struct luc_state *state,
				   const struct luc_input *in)
{
	return state->copy_active == LUC_COPY_OFF && state->copy_pause <= 0 &&
	       !state->copy_delay_ns && !in->urgent &&
	       in->writes_delayed <= 0 && in->writes_delay_ns <= 0 &&
	       in->writes_saved <= 0 && in->copy_ns <= 0;
}

#endif
