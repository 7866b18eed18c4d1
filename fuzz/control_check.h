/* SPDX-License-Identifier: GPL-2.0-only */
/* Bounds of the controllers' steps, written from headers and essays, not from code. */
#ifndef LUC_FUZZ_CONTROL_CHECK_H
#define LUC_FUZZ_CONTROL_CHECK_H

#include "../control/luc_control.h"
#include "../control/luc_bets.h"
#include "../control/luc_pid.h"
#include "harness.h"

static inline int within(luc_s64 value, wide min, wide max)
{
	return value >= min && value <= max;
}

static inline int by_returns(const struct luc_params *p)
{
	return p->batching == LUC_BATCHING_RETURNS;
}

/* The knob delay_limit_us: nothing is held for longer. */
static inline wide knob_limit_ns(const struct luc_params *p)
{
	wide limit = (wide)(p->delay_limit_us > 0 ? p->delay_limit_us : 0) * LUC_NS_PER_US;

	return limit > INT64_MAX ? INT64_MAX : limit;
}

/* The longest that a commit may be held; by LUC's own controller for an average commit. */
static inline wide hold_limit_ns(const struct luc_params *p, const struct luc_input *in)
{
	wide commit = in->commit_avg_ns > 0 ? in->commit_avg_ns : 0;

	if (!by_returns(p))
		return knob_limit_ns(p);
	return commit < knob_limit_ns(p) ? commit : knob_limit_ns(p);
}

/* LUC's own controller: every task that the batch waited for is here. */
static inline int is_complete(const struct luc_params *p, const struct luc_state *s,
			      const struct luc_input *in)
{
	return by_returns(p) && !s->probing && in->syncing_events <= 0 &&
	       in->expected_events <= 0;
}

/* The earlier of two bounds on the end of a hold. */
static inline wide hold_end_ns(const struct luc_state *s, luc_s64 wait_ns,
			       const struct luc_params *p)
{
	wide wait = wait_ns < knob_limit_ns(p) ? wait_ns : knob_limit_ns(p);
	wide end = s->open_ns + wait;

	return end > INT64_MAX ? INT64_MAX : end < INT64_MIN ? INT64_MIN : end;
}

/* For any parameters, state and input. */
static inline void check_answer(enum luc_step step, const struct luc_params *p,
				const struct luc_state *before,
				const struct luc_state *after,
				const struct luc_input *in,
				const struct luc_output *out)
{
	int held = out->reason == LUC_REASON_HOLD;
	struct luc_state mixed;

	must(within(out->reason, 0, LUC_REASON_NR - 1));
	must(within(out->copy, 0, LUC_COPY_NR - 1));
	must(held || !out->wake_ns);
	if (step == LUC_STEP_OPEN || step == LUC_STEP_POLL)
		must((out->reason == LUC_REASON_URGENT) == !!in->urgent);
	switch (step) {
	case LUC_STEP_OPEN:
		must(!held || out->wake_ns <= hold_end_ns(after, after->wait_ns, p));
		must(!held || (p->batching != LUC_BATCHING_OFF &&
			       within(p->batching, 0, LUC_BATCHING_NR - 1)));
		must(held == (after->wait_ns != 0));
		must(within(after->wait_ns, 0, knob_limit_ns(p)));
		break;
	case LUC_STEP_POLL:
		must(!held || in->now_ns < out->wake_ns);
		must(!held || out->wake_ns <= hold_end_ns(before, before->wait_ns, p));
		must(in->urgent || !by_returns(p) ||
		     is_complete(p, before, in) == (out->reason == LUC_REASON_SETPOINT));
		must(out->reason != LUC_REASON_SETPOINT ||
		     in->events >= luc_complete_events(p, after));
		break;
	case LUC_STEP_CLOSE:
		must(out->reason == LUC_REASON_NOW);
		must(before->hold_ns < -1 || after->hold_ns >= -1);
		must(before->hold_ns > knob_limit_ns(p) || after->hold_ns <= knob_limit_ns(p));
		must(after->integral_milli == before->integral_milli ||
		     within(after->integral_milli, -LUC_PID_E_MAX_MILLI, LUC_PID_E_MAX_MILLI));
		break;
	default:
		must(!out->copy || after->copy_left_commits > 0);
		if (luc_copyout_is_idle(p, before, in))
			must(!out->copy && !memcmp(before, after, sizeof(*after)));
	}
	/* Two controllers in one struct: neither touches the other's part. */
	mixed = *after;
	mixed.copy_left_commits = before->copy_left_commits;
	must(!memcmp(&mixed, step == LUC_STEP_COPYOUT ? before : after, sizeof(mixed)));
}

/* A state that began with luc_state_init(), under knobs in bounds. */
static inline void check_state(const struct luc_state *s)
{
	must(s->wait_ns >= 0 && s->limit_ns >= 0 && s->idle_ns >= 0 && s->resets >= 0);
	must(within(s->hold_ns, -1, 1000000 * LUC_NS_PER_US));
	must(within(s->wait_ns, 0, 1000000 * LUC_NS_PER_US));
	must(s->gap_ns >= 0);
	must(within(s->probing, 0, 1));
	must(within(s->trial_phase, LUC_TRIAL_OFF, LUC_TRIAL_STAY_HELD));
	must(s->trial_left >= 0 && s->trial_pairs >= 0);
	must((s->trial_phase != LUC_TRIAL_FREE && s->trial_phase != LUC_TRIAL_HELD) ||
	     s->trial_left <= 6);
	must(within(s->trial_is_second, 0, 1));
	must(s->trial_commits >= 0 && s->trial_events >= 0 && s->trial_handles >= 0);
	must(s->trial_wait_ns >= 0);
	must(s->trial_first_events >= 0 && s->trial_first_handles >= 0);
	must(s->trial_first_wait_ns >= 0 && s->trial_first_ns >= 0);
	must(within(s->trial_stay_ns, 0, 300 * (wide)LUC_NS_PER_S));
	must(s->trial_winner == LUC_TRIAL_OFF || s->trial_winner == LUC_TRIAL_STAY_FREE ||
	     s->trial_winner == LUC_TRIAL_STAY_HELD);
	must(within(s->rate_pairs, 0, LUC_BETS_PAIRS_MAX) && s->rate_wide_squares >= 0);
	must(within(s->wait_pairs, 0, LUC_BETS_PAIRS_MAX) && s->wait_wide_squares >= 0);
	must(within(s->integral_milli, -LUC_PID_E_MAX_MILLI, LUC_PID_E_MAX_MILLI));
	must(within(s->error_milli, -LUC_PID_E_MAX_MILLI, LUC_PID_E_MAX_MILLI));
	must(within(s->error_known, 0, 1));
	must(within(s->copy_left_commits, 0, 1000000));
}

/* The terms of the law cannot exceed what the largest error gives. */
static inline void check_terms(const struct luc_params *p, const struct luc_output *out)
{
	wide p_max = (wide)p->kp_milli * LUC_PID_E_MAX_MILLI / 1000;
	wide i_max = (wide)p->ki_milli * LUC_PID_E_MAX_MILLI / 1000;
	wide d_max = (wide)p->kd_milli * 2 * LUC_PID_E_MAX_MILLI / LUC_PID_DT_MIN_MILLI;

	must(within(out->p_milli, -p_max, p_max));
	must(within(out->i_milli, -i_max, i_max));
	must(within(out->d_milli, -d_max, d_max));
	must(out->u_milli == (wide)out->p_milli + out->i_milli + out->d_milli);
	must(!out->p_milli || (out->p_milli > 0) == (out->e_milli > 0));
}

#endif
