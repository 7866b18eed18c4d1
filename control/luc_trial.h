/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Measures whether to hold: see the essay in luc_trial.c. */
#ifndef LUC_TRIAL_H
#define LUC_TRIAL_H

#include "../abi/luc_decision.h"

/* Nothing has been measured yet. */
void luc_trial_init(struct luc_state *state);

/* May commits be held now? */
int luc_trial_allows(const struct luc_state *state);

/* A batch closed; state->wait_ns tells whether it was held. Any values. */
void luc_trial_closed(const struct luc_params *params, struct luc_state *state,
		      const struct luc_input *in);

#endif
