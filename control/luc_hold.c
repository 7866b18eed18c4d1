// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "luc_hold.h"
#include "luc_controllers.h"
#include "luc_pid.h"

#define MILLI 1000LL
#define GAP_SHIFT 2		/* the weight of a new gap, a quarter: chosen, not measured */

void luc_hold_learn_gap(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 came = luc_sub(in->events, s->opened_events);
	luc_s64 span = luc_min(luc_sub(in->last_event_ns, s->open_ns), s->wait_ns);

	if (came > 0 && span > 0)
		s->gap_ns = luc_average(s->gap_ns, luc_max(span / came, 1), GAP_SHIFT);
}

luc_s64 luc_hold_limit(const struct luc_params *p, const struct luc_state *s)
{
	return luc_clamp(s->limit_ns, 0, luc_us_to_ns(p->delay_limit_us));
}

void luc_hold_move(const struct luc_params *p, struct luc_state *s,
		   const struct luc_input *in, struct luc_output *out,
		   luc_s64 now_hold_ns, luc_s64 limit_ns, luc_s64 gap_ns, int saturated)
{
	const struct luc_pid_gains gains = {
		p->kp_milli, p->ki_milli, p->kd_milli,
	};
	struct luc_pid_state pid = {
		s->integral_milli, s->error_milli, s->error_known,
	};
	struct luc_pid_terms t;

	out->e_milli = luc_mul(luc_sub(s->setpoint_now_events, in->events), MILLI);
	t = luc_pid_step(&gains, &pid, out->e_milli, out->dt_milli, saturated);
	s->integral_milli = pid.integral_milli;
	s->error_milli = pid.error_milli;
	s->error_known = pid.error_known;

	out->p_milli = t.p_milli;
	out->i_milli = t.i_milli;
	out->d_milli = t.d_milli;
	out->u_milli = t.u_milli;
	out->u_ns = luc_mul(t.u_milli, gap_ns) / MILLI;
	/* Without a gap or a limit the actuator cannot move. */
	if (gap_ns && limit_ns)
		s->hold_ns = luc_clamp(luc_add(now_hold_ns, out->u_ns), 0, limit_ns);
}
