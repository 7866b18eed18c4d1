/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interface of the controllers. params names the active one; only luc_control.c
 * reads that.
 */
#ifndef LUC_CONTROL_H
#define LUC_CONTROL_H

#include "../abi/luc_decision.h"

/* The state of controllers that have seen nothing yet. */
void luc_state_init(struct luc_state *state);

/* Defaults of the knob table. */
void luc_params_init(struct luc_params *params);

/*
 * One step. Reads params and in, updates state, fills out completely. Any values
 * are accepted; none makes it overflow or wait beyond delay_limit_us.
 *
 * OPEN    a commit was requested. out->reason HOLD: wait until out->wake_ns or
 *	   until luc_complete_events() tasks wait for it, then POLL. Anything else: CLOSE
 *	   and commit.
 * POLL    the held commit is rechecked; same answers.
 * CLOSE   the batch is closed with in->events sync events; learn from it.
 * COPYOUT in->handles, in->writes_delayed and in->buffers_spared of the commit that
 *	   ended; out->copy tells what the next one writes as copies.
 */
void luc_control_step(enum luc_step step, const struct luc_params *params,
		      struct luc_state *state, const struct luc_input *in,
		      struct luc_output *out);

/*
 * OPEN and CLOSE in one, for a commit that is not held and whose steps are not
 * recorded. Returns 1 if OPEN would answer NOW; state is then as after OPEN and CLOSE
 * with this input. Returns 0 otherwise, or if that is not cheap to know, and leaves
 * state as it was.
 */
int luc_control_pass(const struct luc_params *params, struct luc_state *state,
		     const struct luc_input *in);

/*
 * The number of sync events at which a held batch is worth a POLL before wake_ns;
 * LUC_S64_MAX if none is.
 */
luc_s64 luc_complete_events(const struct luc_params *params,
			    const struct luc_state *state);

/* Whether a COPYOUT step would change no state and answer "do not copy". */
int luc_copyout_is_idle(const struct luc_params *params, const struct luc_state *state,
			const struct luc_input *in);

#endif
