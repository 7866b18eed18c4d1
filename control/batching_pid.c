// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to start a journal commit: LUC's own controller.
 *
 * 1. Plant. jbd2 runs one commit at a time. A sync event (fsync, fdatasync, O_SYNC)
 * that arrives after a commit has locked its transaction waits for the rest of that
 * commit and for all of the next one. A requested commit that is held a little
 * serves more sync events. A commit that is held too long costs every task that
 * waits for it already. The model of section 5.3.1 is d(t+1) = d(t) + c u(t+1).
 *
 * 2. Units. d: sync events that one commit serves. r: the set point, the d to aim
 * for. Times are ns. Gains and events inside the controller are thousandths
 * ("milli"). All are 64 bits wide; all sums and products saturate.
 *
 * 3. Set point. The knob setpoint_events fixes r. At 0, r = d(now) + expected:
 * tasks that the last two commits released and that are not back yet, and tasks
 * inside a sync call (luc_returns.h). A lone sync stream has expected = 0 and is
 * never held.
 *
 * 4. Law (section 5.3.1). Per commit e = r - d, and
 *
 *	u = Kp e + Ki sum(e) + Kd (e - e_prev)
 *
 * is by how many sync events the next batch should grow. The plant integrates, so
 * u is a change and the actuator integrates it:
 *
 *	hold(t+1) = hold(t) + gap u(t+1)
 *
 * hold is how long a commit may be held. gap is the measured average time between
 * two arrivals while a batch is open. One gap more brings about one arrival more at
 * any processor speed. So c is about 1 by construction, and the published gains
 * hold from gaps of 1 ms down to microseconds.
 *
 * 5. Closing a batch. A held batch closes
 *
 *	setpoint	when d reaches r,
 *	idle		after idle_timeout_us without an arrival, unless a task is
 *			inside a sync call: that task only writes its data,
 *	limit		when its time is up,
 *	urgent		when something cannot wait.
 *
 * Its time is hold, bounded by the average commit time C: a task that joins saves a
 * whole commit at most, so a longer wait for a task that may come cannot pay. A
 * longer wait for a task that is sure to come can. While n tasks wait and k are
 * inside sync calls, a wait of W costs n W and saves up to k C. The k also keep the
 * disk busy with data that the commit needs too. So the bound is C (1 + k/n), but
 * 4 C at most: the first of many tasks would pay for all.
 *
 * 6. Doubt. luc_trial.c estimates after every wait whether it paid, and measures
 * holding against stock; both rest while LUC only observes. Where the commit time is
 * unknown nothing is held. A pause of PAUSE_NS forgets sums and slopes: errors from
 * before it predict nothing.
 *
 * 7. Worked example. Commits take 4 ms, four tasks return 0.1 ms apart, defaults.
 * In the 2nd commit a new task comes while the journal's thread wakes up. In the 3rd
 * a task stays away: 1 ms after the last arrival the batch looks idle. Its error is
 * summed, as hold is below its bound of 4 ms.
 *
 *	commit	r	wake_ns - open_ns	closed	d	e	P	I	D	u	hold_ns
 *	1	4	1000000	setpoint	4	0.000	0.000	0.000	0.000	0.000	4000000
 *	2	4	1000000	setpoint	5	-1.000	-0.800	-0.250	-0.250	-1.300	3870000
 *	3	4	1000000	idle	3	1.000	0.800	0.034	0.440	1.274	3997400
 *
 * Row 2: u = -1.3 events, gap = 0.1 ms, so hold falls by 0.13 ms. Row 3: the step is
 * 1.136 average ones long, so I = 0.25 (-1 + 1.136) and D = 0.25 (1 + 1) / 1.136.
 *
 * 8. Output. What the tracepoint prints for the CLOSE of row 3 (in one line, and with
 * the fields that are 0 here):
 *
 *	luc_decision: dev=254:0 tid=9 step=2 batching=2 copyout=2 mode=1
 *	kp_milli=800 ki_milli=250 kd_milli=250 idle_timeout_us=1000
 *	delay_limit_us=50000 delay_limit_percent=100 static_idle_us=1000
 *	static_resets_max=1000 age_limit_us=15000 copyout_threshold_permille=50
 *	copyout_clean_runs=4 copyout_buffers_max=2048 copyout_adapt=1
 *	now_ns=1009800000 events=3 events_wait_ns=3300000 expected_events=1
 *	last_event_ns=1008800000 commit_avg_ns=4000000 open_ns=1008600000
 *	setpoint_now_events=4 limit_ns=4000000 wait_ns=3870000 idle_ns=1000000
 *	seen_events=3 seen_event_ns=1008800000 opened_events=1 hold_ns=3870000
 *	gap_ns=100000 step_ns=4400000 closed_ns=1004700000 fresh_skip_next=1
 *	stale_skip_next=1 trial_left=22 integral_milli=-1000 error_milli=-1000
 *	error_known=1 reason=1 e_milli=1000 dt_milli=1136 p_milli=800 i_milli=34
 *	d_milli=440 u_milli=1274 u_ns=127400
 */
#include "luc_controllers.h"
#include "luc_hold.h"
#include "luc_trial.h"

#define MILLI 1000LL
#define PAUSE_NS LUC_NS_PER_S	/* chosen: 20 holds of delay_limit_us's default */
#define STEP_SHIFT 3		/* a step counts for an eighth: chosen, not measured */
#define SURE_LIMITS 4		/* without: 50 ms for 0.5 ms commits, first of 256 tasks */
#define STALE_SHIFT 3		/* an eighth of a commit: chosen, between a wake-up and a commit */

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

/* The trial judges what LUC did: it rests while LUC only observes. */
static int is_tried(const struct luc_params *p)
{
	return p->mode == LUC_MODE_STEER;
}

static int trial_allows(const struct luc_params *p, struct luc_state *s)
{
	return is_tried(p) ? luc_trial_allows(s) : luc_trial_would_allow(s);
}

static void urged(const struct luc_params *p, struct luc_state *s)
{
	if (is_tried(p))
		luc_trial_urged(s);
}

void luc_batching_pid_open(const struct luc_params *params, struct luc_state *s,
			   const struct luc_input *in)
{
	luc_s64 age_ns = luc_sub(in->now_ns, in->last_event_ns);
	luc_s64 wait_ns;

	s->setpoint_now_events = setpoint_of(params, in);
	/* Every task that a hold could wait for is here. */
	if (!in->urgent && in->events >= s->setpoint_now_events)
		return;
	s->limit_ns = limit_of(params, in);
	s->idle_ns = luc_us_to_ns(params->idle_timeout_us);
	s->stale = age_ns > luc_max(in->commit_avg_ns, 0) >> STALE_SHIFT;
	if (in->urgent) {
		urged(params, s);
		return;
	}
	wait_ns = s->hold_ns < 0 ? s->limit_ns : luc_min(s->hold_ns, s->limit_ns);
	if (wait_ns && s->idle_ns && trial_allows(params, s))
		s->wait_ns = wait_ns;
}

luc_s64 luc_batching_pid_poll(const struct luc_params *params, struct luc_state *s,
			      const struct luc_input *in)
{
	if (luc_came(s, in))
		s->seen_event_ns = in->last_event_ns;
	if (in->urgent)
		urged(params, s);
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
 * The close of a lone stream's commit: as large as when it was opened, and complete
 * then. Error, change and doubt are 0. Returns the length of the step if this is the
 * first one after a pause.
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
 * Progress since the last close. Calls tell more than events: a call that finds its
 * data committed needs no commit, and is served all the same.
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
		.handles = in->handles,
		.events = in->events,
		.events_wait_ns = in->events_wait_ns,
		.commit_ns = in->commit_avg_ns,
	};

	if (is_lone(s, in)) {
		out->dt_milli = learn_lone(s, in);
		return;
	}
	if (is_tried(params))
		luc_trial_closed(s, &closed);
	else
		luc_trial_rested(s);
	s->seen_calls = in->calls;
	out->dt_milli = step_length(s, in->now_ns);
	luc_hold_learn_gap(s, in);
	if (s->wait_ns > 0 && !in->urgent && is_tried(params))
		luc_trial_waited(s, s->opened_events, came, in->expected_events,
				 luc_max(waited_ns, 0), in->commit_avg_ns);
	control(params, s, in, out);
}
