/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* When to start a journal commit: see the essay in luc_batch.c. */
#ifndef LUC_BATCH_H
#define LUC_BATCH_H

#include "../abi/luc_decision.h"

/* Values of a controller that has seen nothing yet. */
void luc_state_init(struct luc_state *state);

/* Defaults of the knob table. */
void luc_params_init(struct luc_params *params);

/*
 * One step of the controller. Reads params and in, updates state, fills out
 * completely. Any values are accepted; none makes it overflow or wait beyond
 * delay_limit_us.
 *
 * OPEN  a commit was requested. out->reason HOLD: wait until out->wake_ns or
 *	 until luc_batch_met(), then POLL. Anything else: CLOSE and commit.
 * POLL  the held commit is looked at again; same answers.
 * CLOSE the batch is closed, in->events is what it got; learn from it.
 */
void luc_batch_step(enum luc_step step, const struct luc_params *params,
		    struct luc_state *state, const struct luc_input *in,
		    struct luc_output *out);

/* Is a held batch complete, so that it is worth a POLL before wake_ns? */
static inline int luc_batch_met(const struct luc_params *params,
				const struct luc_state *state, luc_s64 events)
{
	return params->policy != LUC_POLICY_STATIC &&
	       events >= state->target_events;
}

#endif
