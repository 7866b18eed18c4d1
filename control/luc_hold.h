/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The actuator of the PID controller: it turns sync events into time.
 *
 * The law's output u says by how many sync events the next batch should grow. The
 * time that a commit may be held grows by u average arrival gaps.
 */
#ifndef LUC_HOLD_H
#define LUC_HOLD_H

#include "../abi/luc_decision.h"

/* Learns gap_ns, the average time between sync events of a batch, at CLOSE. */
void luc_hold_learn_gap(struct luc_state *state, const struct luc_input *in);

/*
 * Longest hold that the actuator may reach: the limit found at OPEN, or the knob if
 * an administrator has lowered it since.
 */
luc_s64 luc_hold_limit(const struct luc_params *params, const struct luc_state *state);

/*
 * One step of the law with e = setpoint_now_events - in->events. Sets hold_ns to
 * now_hold_ns plus the law's answer, within 0..limit_ns. Fills out's terms;
 * out->dt_milli is the length of the step. saturated: as in luc_pid_step(). If gap_ns
 * is 0, hold_ns stays as it is.
 */
void luc_hold_move(const struct luc_params *params, struct luc_state *state,
		   const struct luc_input *in, struct luc_output *out,
		   luc_s64 now_hold_ns, luc_s64 limit_ns, luc_s64 gap_ns, int saturated);

#endif
