/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The PID law alone: gains, state and terms; its only unit is events. */
#ifndef LUC_PID_H
#define LUC_PID_H

#include "../abi/luc_types.h"

struct luc_pid_gains {
	luc_s64 kp_milli;
	luc_s64 ki_milli;
	luc_s64 kd_milli;
};

struct luc_pid_state {
	luc_s64 integral_milli;	/* sum of e dt, within +-LUC_PID_E_MAX_MILLI */
	luc_s64 error_milli;	/* e of the last step */
	luc_s64 error_known;	/* 0 before the first step and after a reset */
};

struct luc_pid_terms {
	luc_s64 p_milli;
	luc_s64 i_milli;
	luc_s64 d_milli;
	luc_s64 u_milli;	/* their sum */
};

/* Bounds errors and their sums: a million events, the bound of setpoint_events. */
#define LUC_PID_E_MAX_MILLI 1000000000LL
/*
 * A step counts as at least a quarter and at most four average steps: chosen, not
 * measured.
 */
#define LUC_PID_DT_MIN_MILLI 250LL
#define LUC_PID_DT_MAX_MILLI 4000LL

/*
 * One step. e_milli: error r - d in thousandths of an event, any value. dt_milli:
 * length of this step in thousandths of an average step, any value. saturated:
 * sign of the bound at which the actuator was during the step (-1, 0, 1); an error
 * that would push further that way is not integrated.
 */
struct luc_pid_terms luc_pid_step(const struct luc_pid_gains *gains,
				  struct luc_pid_state *state,
				  luc_s64 e_milli, luc_s64 dt_milli,
				  int saturated);

#endif
