// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to start a journal commit: LUC's own controller.
 *
 * 1. Plant. jbd2 runs one commit at a time. A sync event (fsync, fdatasync, O_SYNC)
 * that arrives after a commit has locked its transaction waits for the rest of that
 * commit and for all of the next one. So tasks that sync in a loop split into two
 * convoys, and each turn of a task takes two commits. A commit that is held until the
 * tasks are back serves all of them at once.
 *
 * 2. What holding costs. Let C be the time of a commit, z the time from the end of the
 * last commit to the request of this one, and W the time that this one is held. With
 * two convoys a turn takes 2 C. With one convoy it takes z + W + C. So holding pays if
 * z + W < C, whatever the number of tasks. Half of z counts, as two convoys have their
 * share of it, too: tasks wait for processors, and for space in the log. An idle journal,
 * z >= C, is no bottleneck: there a hold may take up to C, and section 5 weighs it.
 *
 * 3. Whom to wait for. luc_returns.h knows the tasks that the last two commits released
 * and that are not back, and the tasks inside a sync call that still write their data.
 * The set point r of section 5.3.1 is what waits plus what is expected. A hold ends
 *
 *	setpoint	when no task is expected any more,
 *	idle		when none came for an eighth of C, but not within 100 us, in
 *			which a timer may be late; unless a task is inside a sync call:
 *			that task only writes its data,
 *	limit		at the bound of section 2, less an eighth of C: the journal's
 *			thread itself has to wake up and to find a processor,
 *	urgent		when something cannot wait.
 *
 * A commit is not held at all if the expected tasks, at the average arrival gap, would
 * be too late for that bound. This is so where processors and not the journal are the
 * bottleneck: tasks trickle in, and two convoys use disk and processors at once. The
 * gap is learned from held batches and from the arrivals behind a commit under way. Two
 * tasks teach it nothing while no batch is held, so a gap that forbids a hold is
 * forgotten, a 64th each time.
 *
 * 4. Tasks that nothing announces. The first sync events after a pause have no past. A
 * commit of such events is held for C/32, a millisecond at most. It is not held if the
 * task that asks for it is the one that synced last, as a lone stream stays alone, nor if
 * as many tasks wait as the last commit had, as they are the same tasks.
 *
 * 5. Debt. A hold is a bet. Of n tasks that waited, m that came and k that stayed away
 * it cost W for n + k, and saved C for m. The difference, divided by n + m + k, is what
 * the hold lost by task. It is added to a debt, and no commit is held that can win less
 * than 16 times the debt: C for each of the tasks that are expected. So a small debt
 * forbids a hold for one task of many, and not one for many. A debt is paid off by a
 * 256th of the time that the journal is in use, so that holds in vain cost a 256th at
 * most, on any disk and at any number of commits a second. A gain gives credit, up to
 * one C, which pays for a hold in vain among good ones. No debt exceeds one C either:
 * a change of load or disk is soon forgotten. A hold that ends behind its bound costs no
 * more than the bound. What is above is the fault of the processors' scheduler, and one
 * such delay would forbid hundreds of good holds.
 *
 * 6. Doubt. The account cannot see what holding does to processors and to work between
 * sync calls. luc_trial.c compares holding with stock, and forbids it where stock wins.
 *
 * 7. Worked example. Commits take 4 ms, four tasks return 0.1 ms apart. The hold of the
 * 1st commit waits for three tasks, and all come. In the 2nd one task stays away: 0.5 ms
 * behind the last arrival, an eighth of C, the batch looks idle.
 *
 *	commit	n	r	wake_ns - open_ns	closed	d	lost by task	debt_ns
 *	1	1	4	500000			setpoint	4	-2925000	-2925000
 *	2	1	4	500000			idle	3	-1650000	-4000000
 *
 * Row 1: held for 0.3 ms, lost (1 * 0.3 - 3 * 4) / 4 ms. Row 2: held for 0.7 ms, lost
 * ((1 + 1) * 0.7 - 2 * 4) / 4 ms; credit ends at one C.
 */
#include "luc_controllers.h"
#include "luc_hold.h"
#include "luc_trial.h"

/* Shifts are powers of two of a commit's time. The arena is flat within a factor of two. */
#define MARGIN_SHIFT 3		/* of the bound: between 0.7 C and 1.2 C nothing changes */
#define UNUSED_SHIFT 1		/* all of it loses 4 MiB journals, nothing of it loses p99 */
#define IDLE_SHIFT 3		/* a sixteenth loses bursts, a quarter loses p99 */
#define IDLE_MIN_NS 100000LL	/* twice the slack that the kernel gives timers */
#define PROBE_SHIFT 5		/* the largest that loses no cell of single sync calls */
#define PROBE_MAX_NS 1000000LL	/* the documents' fixed delay for Metarates (4.6) */
#define PRICE_SHIFT 8		/* below the one per cent that may be lost */
#define DEBT_SHIFT 4		/* a property of luc-sim fails in one case of 1700 with 5 */
#define GAP_EVENTS_MIN 3LL	/* two tell nothing about a third */
#define GAP_SHIFT 2
#define GAP_FORGET_SHIFT 6	/* chosen: from 4 to 8 nothing changes */

static luc_s64 commit_of(const struct luc_input *in)
{
	return luc_max(in->commit_avg_ns, 0);
}

static luc_s64 expected_of(const struct luc_input *in)
{
	return luc_max(in->expected_events, 0);
}

/* By the time since the last request; of a pause only two commits count. */
static void pay_off(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 commit = commit_of(in);
	luc_s64 used = luc_clamp(luc_sub(in->now_ns, s->paid_ns), 0, luc_mul(commit, 2));

	s->paid_ns = in->now_ns;
	if (s->debt_ns > 0)
		s->debt_ns = luc_clamp(luc_sub(s->debt_ns, used >> PRICE_SHIFT), 0, commit);
}

/*
 * The gap between the events that gathered behind the last commit. As their times are
 * only known summed up, they are taken to have come at a steady pace: then the first
 * came as long before their mean as the last came after it.
 */
static void learn_gathered(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 quiet_ns = luc_max(luc_sub(in->now_ns, in->last_event_ns), 0);
	luc_s64 mean_ns, span_ns;

	if (in->events < GAP_EVENTS_MIN)
		return;
	mean_ns = luc_max(in->events_wait_ns, 0) / in->events;
	span_ns = luc_mul(luc_max(luc_sub(mean_ns, quiet_ns), 0), 2);
	s->gap_ns = luc_average(s->gap_ns, luc_max(span_ns / (in->events - 1), 1), GAP_SHIFT);
}

static void look(struct luc_state *s, const struct luc_input *in)
{
	pay_off(s, in);
	learn_gathered(s, in);
	s->probing = expected_of(in) <= 0;
}

/* The bound of section 2. */
static luc_s64 limit_of(const struct luc_state *s, const struct luc_input *in)
{
	luc_s64 commit = commit_of(in);
	luc_s64 limit = commit - (commit >> MARGIN_SHIFT);
	luc_s64 unused = luc_sub(luc_sub(in->now_ns, s->closed_ns), commit);

	if (s->closed_ns && unused > 0 && unused < commit)
		limit -= unused >> UNUSED_SHIFT;
	return luc_max(limit, 0);
}

static luc_s64 idle_of(const struct luc_state *s, luc_s64 commit)
{
	if (s->probing)
		return luc_min(commit >> PROBE_SHIFT, PROBE_MAX_NS);
	return luc_max(commit >> IDLE_SHIFT, IDLE_MIN_NS);
}

/* Whether the debt forbids a hold: what that can win is counted by task, as the debt is. */
static int is_in_debt(const struct luc_state *s, const struct luc_input *in)
{
	luc_s64 won = luc_mul(commit_of(in), expected_of(in)) / luc_max(s->setpoint_now_events, 1);

	return s->debt_ns > won >> DEBT_SHIFT;
}

/* Tasks that all came back: nobody else is likely to come. */
static int is_last_batch(const struct luc_state *s, const struct luc_input *in)
{
	return in->events > 1 && in->events == s->seen_events;
}

/* No debt and no bound has to be looked at. */
static int is_never_held(const struct luc_state *s, const struct luc_input *in)
{
	return in->urgent || in->events <= 0 ||
	       (expected_of(in) <= 0 && (in->same_task || is_last_batch(s, in)));
}

void luc_batching_returns_open(const struct luc_params *params, struct luc_state *s,
			       const struct luc_input *in)
{
	luc_s64 back_ns;

	look(s, in);
	s->setpoint_now_events = luc_add(in->events, expected_of(in));
	if (is_never_held(s, in) || is_in_debt(s, in) || !luc_trial_allows(s))
		return;
	s->limit_ns = limit_of(s, in);
	s->idle_ns = idle_of(s, commit_of(in));
	back_ns = luc_mul(luc_max(s->gap_ns, 0), expected_of(in));
	if (back_ns > luc_min(s->limit_ns, luc_us_to_ns(params->delay_limit_us)))
		s->gap_ns -= s->gap_ns >> GAP_FORGET_SHIFT;
	else if (s->idle_ns > 0)
		s->wait_ns = s->limit_ns;
}

luc_s64 luc_batching_returns_poll(const struct luc_params *params, struct luc_state *s,
				  const struct luc_input *in)
{
	luc_s64 syncing = luc_max(in->syncing_events, 0);

	if (luc_came(s, in))
		s->seen_event_ns = in->last_event_ns;
	s->setpoint_now_events = luc_add(in->events, expected_of(in));
	/* Behind the last task inside a sync call the idle time begins. */
	s->complete_events = syncing ? luc_add(in->events, syncing) : s->setpoint_now_events;
	if (syncing)
		return LUC_S64_MAX;
	if (!s->probing && expected_of(in) <= 0)
		return LUC_COMPLETE;
	return luc_add(luc_max(s->seen_event_ns, s->open_ns), s->idle_ns);
}

luc_s64 luc_batching_returns_complete(const struct luc_params *params,
				      const struct luc_state *s)
{
	return s->probing ? LUC_S64_MAX : s->complete_events;
}

/* A commit that was only observed was not held: it costs and teaches nothing. */
static void settle(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 commit = commit_of(in);
	luc_s64 away = expected_of(in);
	luc_s64 came = luc_max(luc_sub(in->events, s->opened_events), 0);
	luc_s64 held_ns = luc_clamp(luc_sub(in->now_ns, s->open_ns), 0, s->limit_ns);
	luc_s64 lost = luc_mul(luc_add(luc_max(s->opened_events, 1), away), held_ns);
	luc_s64 all = luc_max(luc_add(in->events, away), 1);

	lost = luc_sub(lost, luc_mul(came, commit)) / all;
	s->debt_ns = luc_clamp(luc_add(s->debt_ns, lost), -commit, commit);
}

/* Notes this batch, with which the next one is compared. */
static void remember(struct luc_state *s, const struct luc_input *in)
{
	s->closed_ns = in->now_ns;
	s->seen_events = in->events;
}

void luc_batching_returns_close(const struct luc_params *params, struct luc_state *s,
				const struct luc_input *in, struct luc_output *out)
{
	luc_trial_closed(params, s, in);
	remember(s, in);
	if (s->wait_ns <= 0)
		return;
	luc_hold_learn_gap(s, in);
	settle(s, in);
}

int luc_batching_returns_pass(const struct luc_params *params, struct luc_state *s,
			      const struct luc_input *in)
{
	if (in->urgent || s->trial_phase != LUC_TRIAL_OFF || !is_never_held(s, in))
		return 0;
	luc_passed(s, in, luc_add(in->events, expected_of(in)));
	look(s, in);
	remember(s, in);
	return 1;
}
