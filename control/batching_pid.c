// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to start a journal commit: LUC's own controller.
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
#include "luc_controllers.h"
#include "luc_hold.h"
#include "luc_trial.h"

#define MILLI 1000LL
#define PAUSE_NS LUC_NS_PER_S
#define STEP_SHIFT 3		/* a new step length for an eighth */
#define SURE_LIMITS 4		/* no certainty is worth more than so many */
#define STALE_SHIFT 3		/* older than an eighth of a commit is stale */

static luc_s64 limit_of(const struct luc_params *p, const struct luc_input *in)
{
	luc_s64 avg = luc_max(in->commit_avg_ns, 0);
	luc_s64 here = luc_max(in->events, 1);
	luc_s64 sure = luc_max(in->syncing_events, 0);
	luc_s64 limit = luc_mul(avg, p->delay_limit_percent) / 100;

	if (sure)
		limit = luc_min(luc_add(limit, luc_mul(limit, sure) / here),
				luc_mul(limit, SURE_LIMITS));
	return luc_clamp(limit, 0, luc_us_to_ns(p->delay_limit_us));
}

static luc_s64 setpoint_of(const struct luc_params *p, const struct luc_input *in)
{
	if (p->setpoint_events > 0)
		return p->setpoint_events;
	return luc_add(in->events, luc_max(in->expected_events, 0));
}

void luc_batching_pid_open(const struct luc_params *params, struct luc_state *s,
			   const struct luc_input *in)
{
	luc_s64 age_ns = luc_sub(in->now_ns, in->last_event_ns);
	luc_s64 wait_ns;

	s->setpoint_now_events = setpoint_of(params, in);
	/* All are here that a hold could wait for. */
	if (!in->urgent && in->events >= s->setpoint_now_events)
		return;
	s->limit_ns = limit_of(params, in);
	s->idle_ns = luc_us_to_ns(params->idle_timeout_us);
	s->stale = age_ns > luc_max(in->commit_avg_ns, 0) >> STALE_SHIFT;
	if (in->urgent) {
		luc_trial_urged(s);
		return;
	}
	wait_ns = s->hold_ns < 0 ? s->limit_ns : luc_min(s->hold_ns, s->limit_ns);
	if (wait_ns && s->idle_ns && luc_trial_allows(s))
		s->wait_ns = wait_ns;
}

luc_s64 luc_batching_pid_poll(const struct luc_params *params, struct luc_state *s,
			      const struct luc_input *in)
{
	if (luc_came(s, in))
		s->seen_event_ns = in->last_event_ns;
	if (in->urgent)
		luc_trial_urged(s);
	/* A task still flushing data inside fsync() will arrive: ignore the timeout. */
	if (in->syncing_events > 0)
		return LUC_S64_MAX;
	return luc_add(luc_max(s->seen_event_ns, s->open_ns), s->idle_ns);
}

luc_s64 luc_batching_pid_complete(const struct luc_params *params,
				  const struct luc_state *s)
{
	return s->setpoint_now_events;
}

/* Neither the first close nor the first one after a pause. */
static int is_step(const struct luc_state *s, luc_s64 dt)
{
	return s->closed_ns && dt > 0 && dt <= PAUSE_NS;
}

static luc_s64 step_length(struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 dt = luc_sub(now_ns, s->closed_ns);
	luc_s64 dt_milli = MILLI;

	if (!is_step(s, dt)) {
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
	luc_s64 limit_ns = luc_hold_limit(p, s);
	luc_s64 now_hold_ns = s->hold_ns < 0 ? limit_ns : luc_min(s->hold_ns, limit_ns);
	int saturated = now_hold_ns >= limit_ns ? 1 : now_hold_ns <= 0 ? -1 : 0;

	luc_hold_move(p, s, in, out, now_hold_ns, limit_ns, s->gap_ns, saturated);
}

/*
 * The close of a lone stream's commit, which was complete when it was opened, and
 * was just as large when closed: error, change and doubt are all nothing. Returns
 * the length of the step if it is the first one after a pause.
 */
static inline luc_s64 learn_lone(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 now_ns = in->now_ns;
	luc_s64 dt = luc_sub(now_ns, s->closed_ns);
	luc_s64 dt_milli = 0;

	if (is_step(s, dt)) {
		s->step_ns = luc_average(s->step_ns, dt, STEP_SHIFT);
	} else {
		dt_milli = MILLI;
		s->integral_milli = 0;
		s->error_known = 1;
		s->seen_calls = in->calls;
		luc_trial_paused(s);
	}
	s->closed_ns = now_ns;
	s->error_milli = 0;
	return dt_milli;
}

int luc_batching_pid_pass(const struct luc_params *params, struct luc_state *s,
			  const struct luc_input *in)
{
	if (in->urgent || in->expected_events > 0 || params->setpoint_events > 0 ||
	    s->trial_phase != LUC_TRIAL_OFF)
		return 0;
	luc_passed(s, in, in->events);
	learn_lone(s, in);
	return 1;
}

static int is_lone(const struct luc_state *s, const struct luc_input *in)
{
	return !s->wait_ns && s->trial_phase == LUC_TRIAL_OFF &&
	       in->events == s->setpoint_now_events &&
	       (is_step(s, luc_sub(in->now_ns, s->closed_ns)) ||
		(s->limit_ns <= 0 && in->events == s->opened_events));
}

/*
 * Progress since the last close. Calls tell more than events: one that
 * finds its data committed already needs no commit, and was served as well.
 */
static luc_s64 progress(const struct luc_state *s, const struct luc_input *in)
{
	return in->calls ? luc_sub(in->calls, s->seen_calls) : in->events;
}

void luc_batching_pid_close(const struct luc_params *params, struct luc_state *s,
			    const struct luc_input *in, struct luc_output *out)
{
	luc_s64 came = luc_sub(in->events, s->opened_events);
	luc_s64 waited_ns = luc_sub(in->now_ns, s->open_ns);
	const luc_s64 done = progress(s, in);
	const struct luc_closed closed = {
		.now_ns = in->now_ns,
		.done = done,
		.unneeded = luc_sub(luc_sub(done, in->events), in->syncing_events),
		.writes = in->writes,
		.events = in->events,
		.events_wait_ns = in->events_wait_ns,
		.commit_ns = in->commit_avg_ns,
	};

	if (is_lone(s, in)) {
		out->dt_milli = learn_lone(s, in);
		return;
	}
	luc_trial_closed(s, &closed);
	s->seen_calls = in->calls;
	out->dt_milli = step_length(s, in->now_ns);
	luc_hold_learn_gap(s, in);
	if (s->wait_ns > 0 && !in->urgent)
		luc_trial_waited(s, s->opened_events, came, in->expected_events,
				 luc_max(waited_ns, 0), in->commit_avg_ns);
	control(params, s, in, out);
}
