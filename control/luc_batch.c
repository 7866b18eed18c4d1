// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to start a journal commit.
 *
 * jbd2 runs one commit at a time. A sync event (fsync, fdatasync, O_SYNC) that
 * arrives after a commit has locked its transaction waits for the rest of that
 * commit and for all of the next one. Holding a requested commit back a little
 * lets more sync events share it; holding it too long costs every task that
 * already waits. This file decides how long.
 *
 * Words and units. d: sync events that one commit serves. r: the set point,
 * the d to aim for. Times are ns, gains and events inside the controller are
 * thousandths ("milli"), all in 64 bits, all sums and products saturating.
 *
 * The loop (section 5.3.1). Per commit e = r - d, and
 *
 *	u = Kp e + Ki sum(e) + Kd (e - e_prev)
 *
 * is by how many sync events the next batch should grow. The plant model is
 * d(t+1) = d(t) + c u(t+1), an integrator, so u is a change and the actuator
 * must integrate it:
 *
 *	hold(t+1) = hold(t) + gap u(t+1)
 *
 * where hold is how long a commit may be held and gap is the measured average
 * time between two arrivals while a batch is open. Waiting gap longer yields
 * about one more arrival, whatever the CPU speed, so c is about 1 by
 * construction and the published gains stay valid from 1 ms gaps down to
 * microseconds without any tuning.
 *
 * The set point. A fixed r is a knob. Otherwise r = d(now) + expected, where
 * expected counts tasks released by the last two commits and not back yet
 * (luc_returns.c), and tasks inside a sync call. A lone sync stream has
 * expected = 0: no wait at all.
 *
 * Closing. A held batch closes at once when d reaches r, after an idle timeout
 * without arrivals (unless a task is inside a sync call: then it is only
 * writing its data), when its time is used up, or when something cannot wait.
 * The time is hold, bounded by the average commit time C: a task that joins
 * saves up to a whole commit, so waiting longer than that for somebody who may
 * come cannot pay. For somebody who is sure to come it can. While n tasks wait
 * and k are inside sync calls, waiting costs n W and saves up to k C, and the
 * data that the k write keeps the disk busy, which the commit needs too: the
 * bound is C (1 + k/n), but 4 C at most, for the first of many pays for all.
 *
 * Doubt. Whether holding pays is estimated after every wait and measured when
 * the estimate says no: luc_trial.c. An unknown commit time means no wait; a
 * pause of PAUSE_NS forgets sums and slopes, because errors from before a
 * pause say nothing about what comes after.
 */
#include "luc_batch.h"
#include "luc_math.h"
#include "luc_pid.h"
#include "luc_trial.h"

#define MILLI 1000LL
#define PAUSE_NS LUC_NS_PER_S
#define GAP_SHIFT 2		/* a new gap counts for a quarter */
#define STEP_SHIFT 3		/* a new step length for an eighth */
#define SURE_LIMITS 4		/* no certainty is worth more than so many */
#define STALE_SHIFT 3		/* older than an eighth of a commit is stale */

void luc_state_init(struct luc_state *state)
{
	*state = (struct luc_state){
		.hold_ns = -1,
		.fresh_skip_next = 1,
		.stale_skip_next = 1,
	};
}

#define KNOB_DEFAULT(name, kind, min, max, dflt, help) .name = (dflt),

void luc_params_init(struct luc_params *params)
{
	*params = (struct luc_params){ LUC_KNOBS(KNOB_DEFAULT) };
}

static luc_s64 us_to_ns(luc_s64 us)
{
	return luc_mul(luc_max(us, 0), LUC_NS_PER_US);
}

static int batches_by_pid(const struct luc_params *p)
{
	return p->policy == LUC_POLICY_PID || p->policy == LUC_POLICY_LUC;
}

static luc_s64 limit_of(const struct luc_params *p, const struct luc_input *in)
{
	luc_s64 most = us_to_ns(p->delay_limit_us);
	luc_s64 avg = luc_max(in->commit_avg_ns, 0);
	luc_s64 here = luc_max(in->events, 1);
	luc_s64 sure = luc_max(in->syncing_events, 0);
	luc_s64 limit;

	if (p->policy == LUC_POLICY_STATIC)
		return most;
	limit = luc_mul(avg, p->delay_limit_percent) / 100;
	if (sure)
		limit = luc_min(luc_add(limit, luc_mul(limit, sure) / here),
				luc_mul(limit, SURE_LIMITS));
	return luc_clamp(limit, 0, most);
}

/* The limit found at OPEN; an administrator may have lowered the knob since. */
static luc_s64 bound_of(const struct luc_params *p, const struct luc_state *s)
{
	return luc_clamp(s->bound_ns, 0, us_to_ns(p->delay_limit_us));
}

static luc_s64 target_of(const struct luc_params *p, const struct luc_input *in)
{
	if (p->setpoint_events > 0)
		return p->setpoint_events;
	return luc_add(in->events, luc_max(in->expected_events, 0));
}

static luc_s64 wake_time(const struct luc_params *p, const struct luc_state *s,
			 const struct luc_input *in)
{
	luc_s64 idle_from = luc_max(s->seen_event_ns, s->open_ns);
	luc_s64 until = luc_add(s->open_ns, s->wait_ns);

	/* Who writes data before asking for a commit is quiet but not idle. */
	if (batches_by_pid(p) && in->syncing_events > 0)
		return until;
	return luc_min(luc_add(idle_from, s->idle_ns), until);
}

static void hold(const struct luc_params *p, const struct luc_state *s,
		 const struct luc_input *in, struct luc_output *out)
{
	out->reason = LUC_REASON_HOLD;
	out->wake_ns = wake_time(p, s, in);
}

static void open_static(const struct luc_params *p, struct luc_state *s)
{
	s->target_events = 0;
	s->idle_ns = us_to_ns(p->static_idle_us);
	s->wait_ns = us_to_ns(p->delay_limit_us);
}

static void open_pid(const struct luc_params *p, struct luc_state *s,
		     const struct luc_input *in, luc_s64 limit_ns)
{
	luc_s64 age_ns = luc_sub(in->now_ns, in->last_event_ns);

	s->stale = age_ns > luc_max(in->commit_avg_ns, 0) >> STALE_SHIFT;
	s->target_events = target_of(p, in);
	s->idle_ns = us_to_ns(p->idle_timeout_us);
	s->wait_ns = s->hold_ns < 0 ? limit_ns : luc_min(s->hold_ns, limit_ns);
}

/* Everybody is here whom a controller by set point would wait for. */
static int complete_at_open(const struct luc_params *p, struct luc_state *s,
			    const struct luc_input *in)
{
	if (!batches_by_pid(p) || in->urgent)
		return 0;
	s->target_events = target_of(p, in);
	return in->events >= s->target_events;
}

static void step_open(const struct luc_params *p, struct luc_state *s,
		      const struct luc_input *in, struct luc_output *out)
{
	s->open_ns = in->now_ns;
	s->opened_events = in->events;
	s->target_events = 0;
	s->bound_ns = 0;
	s->wait_ns = 0;
	if (complete_at_open(p, s, in)) {
		out->reason = LUC_REASON_NOW;
		return;
	}
	s->bound_ns = limit_of(p, in);
	out->limit_ns = s->bound_ns;
	s->seen_events = in->events;
	s->seen_event_ns = in->last_event_ns;
	s->resets = 0;
	s->stale = 0;
	s->idle_ns = 0;

	if (p->policy == LUC_POLICY_STATIC)
		open_static(p, s);
	else if (batches_by_pid(p))
		open_pid(p, s, in, out->limit_ns);

	if (in->urgent) {
		out->reason = LUC_REASON_URGENT;
		luc_trial_urged(s);
	} else if (!s->wait_ns || !s->idle_ns) {
		out->reason = LUC_REASON_NOW;
	} else if (batches_by_pid(p) && !luc_trial_allows(s)) {
		out->reason = LUC_REASON_NOW;
	} else {
		hold(p, s, in, out);
		return;
	}
	/* Not held: the time allowed is nobody's business at CLOSE. */
	s->wait_ns = 0;
}

/* Arrivals restart the idle timer; policy static restarts it only so often. */
static void note_arrivals(const struct luc_params *p, struct luc_state *s,
			  const struct luc_input *in)
{
	luc_s64 came = luc_sub(in->events, s->seen_events);

	if (came <= 0)
		return;
	s->seen_events = in->events;
	if (p->policy == LUC_POLICY_STATIC && s->resets >= p->static_resets_max)
		return;
	s->resets = luc_add(s->resets, came);
	s->seen_event_ns = in->last_event_ns;
}

static void step_poll(const struct luc_params *p, struct luc_state *s,
		      const struct luc_input *in, struct luc_output *out)
{
	out->limit_ns = bound_of(p, s);
	s->wait_ns = luc_min(s->wait_ns, us_to_ns(p->delay_limit_us));
	note_arrivals(p, s, in);

	if (in->urgent) {
		out->reason = LUC_REASON_URGENT;
		luc_trial_urged(s);
	} else if (luc_batch_met(p, s, in->events)) {
		out->reason = LUC_REASON_SETPOINT;
	} else if (in->now_ns >= luc_add(s->open_ns, s->wait_ns)) {
		out->reason = LUC_REASON_LIMIT;
	} else if (in->now_ns >= wake_time(p, s, in)) {
		out->reason = LUC_REASON_IDLE;
	} else {
		hold(p, s, in, out);
	}
}

static void learn_gap(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 came = luc_sub(in->events, s->opened_events);
	luc_s64 span = luc_sub(in->last_event_ns, s->open_ns);

	if (came > 0 && span > 0)
		s->gap_ns = luc_average(s->gap_ns, luc_max(span / came, 1), GAP_SHIFT);
}

static luc_s64 step_length(struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 dt = luc_sub(now_ns, s->closed_ns);
	luc_s64 dt_milli = MILLI;

	if (!s->closed_ns || dt <= 0 || dt > PAUSE_NS) {
		s->error_known = 0;
		s->integral_milli = 0;
	} else {
		s->step_ns = luc_average(s->step_ns, dt, STEP_SHIFT);
		dt_milli = luc_mul(dt, MILLI) / luc_max(s->step_ns, 1);
	}
	s->closed_ns = now_ns;
	return dt_milli;
}

static void control(const struct luc_params *p, struct luc_state *s,
		    const struct luc_input *in, struct luc_output *out)
{
	const struct luc_pid_gains gains = {
		p->kp_milli, p->ki_milli, p->kd_milli,
	};
	struct luc_pid_state pid = {
		s->integral_milli, s->error_milli, s->error_known,
	};
	struct luc_pid_terms t;
	luc_s64 now_hold = s->hold_ns < 0 ? out->limit_ns :
			   luc_min(s->hold_ns, out->limit_ns);
	int saturated = now_hold >= out->limit_ns ? 1 : now_hold <= 0 ? -1 : 0;

	out->e_milli = luc_mul(luc_sub(s->target_events, in->events), MILLI);
	t = luc_pid_step(&gains, &pid, out->e_milli, out->dt_milli, saturated);
	s->integral_milli = pid.integral_milli;
	s->error_milli = pid.error_milli;
	s->error_known = pid.error_known;

	out->p_milli = t.p_milli;
	out->i_milli = t.i_milli;
	out->d_milli = t.d_milli;
	out->u_milli = t.u_milli;
	out->u_ns = luc_mul(t.u_milli, s->gap_ns) / MILLI;
	/* Without a gap or a limit the actuator cannot move: leave it be. */
	if (s->gap_ns && out->limit_ns)
		s->hold_ns = luc_clamp(luc_add(now_hold, out->u_ns), 0, out->limit_ns);
}

/*
 * A commit of a lone stream: complete when it was opened, and just as large
 * when closed. Error, change and doubt are all nothing, and such commits must
 * cost next to nothing.
 */
static int step_close_lone(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 dt = luc_sub(in->now_ns, s->closed_ns);

	if (s->wait_ns || s->trial_phase != LUC_TRIAL_OFF ||
	    in->events != s->target_events || !s->closed_ns ||
	    dt <= 0 || dt > PAUSE_NS)
		return 0;
	s->step_ns = luc_average(s->step_ns, dt, STEP_SHIFT);
	s->closed_ns = in->now_ns;
	s->error_milli = 0;
	return 1;
}

/*
 * What got done since the last close. Calls tell more than events: one that
 * finds its data committed already needs no commit, and was served as well.
 */
static luc_s64 progress(const struct luc_state *s, const struct luc_input *in)
{
	return in->calls ? luc_sub(in->calls, s->seen_calls) : in->events;
}

static void step_close(const struct luc_params *p, struct luc_state *s,
		       const struct luc_input *in, struct luc_output *out)
{
	luc_s64 came = luc_sub(in->events, s->opened_events);
	luc_s64 waited_ns = luc_sub(in->now_ns, s->open_ns);
	const struct luc_closed closed = {
		.now_ns = in->now_ns,
		.done = progress(s, in),
		.events = in->events,
		.events_wait_ns = in->events_wait_ns,
		.commit_ns = in->commit_avg_ns,
	};

	out->reason = LUC_REASON_NOW;
	if (!batches_by_pid(p) || step_close_lone(s, in))
		return;
	out->limit_ns = bound_of(p, s);
	luc_trial_closed(s, &closed);
	s->seen_calls = in->calls;
	out->dt_milli = step_length(s, in->now_ns);
	learn_gap(s, in);
	if (s->wait_ns > 0 && !in->urgent)
		luc_trial_waited(s, s->opened_events, came, in->expected_events,
				 luc_max(waited_ns, 0), in->commit_avg_ns);
	control(p, s, in, out);
}

void luc_batch_step(enum luc_step step, const struct luc_params *params,
		    struct luc_state *state, const struct luc_input *in,
		    struct luc_output *out)
{
	*out = (struct luc_output){ 0 };
	switch (step) {
	case LUC_STEP_OPEN:
		step_open(params, state, in, out);
		break;
	case LUC_STEP_POLL:
		step_poll(params, state, in, out);
		break;
	default:
		step_close(params, state, in, out);
		break;
	}
}
