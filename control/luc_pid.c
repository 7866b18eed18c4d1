// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * PID law in integer thousandths.
 *
 *	u = Kp e + Ki sum(e dt) + Kd (e - e_prev) / dt
 *
 * The plant integrates: d(t+1) = d(t) + c u(t+1), where d is the number of sync
 * events that one journal commit serves. With c = 1 and the published gains, Kp = 0.8,
 * Ki = 0.25 and Kd = 0.25, the closed loop of section 5.3.1,
 *
 *	(c(Kp+Ki+Kd)+1) z^2 - (c(Kp+2Kd)+2) z + (cKd+1)
 *
 * has its poles at modulus 0.737: an error dies out to a tenth in eight commits.
 *
 * Journal commits do not come at regular intervals, so dt is an argument. Its unit is
 * the average step, because the gains are per commit. It is bounded: a step far from
 * average says little about its neighbours, and a long pause must make neither the
 * integral jump nor the derivative vanish.
 *
 * Windup: the caller says at which bound the actuator was. While it is there, errors
 * that push against that bound are not summed, so the controller leaves the bound as
 * soon as the error changes sign.
 */
#include "luc_pid.h"
#include "luc_math.h"

#define MILLI 1000LL

static int pushes_into(int saturated, luc_s64 e_milli)
{
	return (saturated > 0 && e_milli > 0) || (saturated < 0 && e_milli < 0);
}

struct luc_pid_terms luc_pid_step(const struct luc_pid_gains *gains,
				  struct luc_pid_state *state,
				  luc_s64 e_milli, luc_s64 dt_milli,
				  int saturated)
{
	struct luc_pid_terms t = { 0 };
	luc_s64 e = luc_clamp(e_milli, -LUC_PID_E_MAX_MILLI, LUC_PID_E_MAX_MILLI);
	luc_s64 dt = luc_clamp(dt_milli, LUC_PID_DT_MIN_MILLI, LUC_PID_DT_MAX_MILLI);

	if (!pushes_into(saturated, e)) {
		luc_s64 sum = luc_add(state->integral_milli, e * dt / MILLI);

		state->integral_milli = luc_clamp(sum, -LUC_PID_E_MAX_MILLI,
						  LUC_PID_E_MAX_MILLI);
	}

	t.p_milli = luc_mul(gains->kp_milli, e) / MILLI;
	t.i_milli = luc_mul(gains->ki_milli, state->integral_milli) / MILLI;
	if (state->error_known) {
		luc_s64 slope = luc_sub(e, state->error_milli);

		/* dt is at least LUC_PID_DT_MIN_MILLI: no division by zero. */
		t.d_milli = luc_mul(gains->kd_milli, slope) / dt;
	}
	t.u_milli = luc_add(luc_add(t.p_milli, t.i_milli), t.d_milli);

	state->error_milli = e;
	state->error_known = 1;
	return t;
}
