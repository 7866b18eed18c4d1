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
 * last commit to the request of this one, and W the time that this one is held. With two
 * convoys a turn takes 2 C. With one convoy it takes z + W + C. So holding pays if z + W
 * < C, for any number of tasks. Only half of z counts, because two convoys incur part of
 * it, too: tasks wait for processors, and for space in the log. An idle journal, z >= C,
 * is no bottleneck: there a hold may take up to C, and section 5 weighs it. But nothing is
 * held there if processors are the bottleneck. Tasks that all wait for one commit leave
 * them idle, and this costs more than shorter waits win.
 *
 * 3. Which tasks to wait for. luc_returns.h knows the tasks that the last two commits
 * released and that are not back, and the tasks inside a sync call that are still
 * writing their data. The set point r of section 5.3.1 is the number of waiting and
 * expected tasks. A hold ends
 *
 *	setpoint	when no task is expected any more,
 *	idle		when none came for an eighth of C, or for 100 us if that is longer,
 *			as a timer may be that late; never while a task is inside a sync
 *			call: that task is only writing its data,
 *	limit		at the bound of section 2, less an eighth of C: the journal's
 *			thread itself has to wake up and to find a processor,
 *	urgent		when something cannot wait.
 *
 * A commit is not held at all if the expected tasks, at the average arrival gap, would
 * come too late for that bound. That happens where processors rather than the journal are
 * the bottleneck: tasks trickle in, and two convoys use disk and processors at once. The
 * gap is learned from held batches and from the arrivals during the previous commit. Two
 * tasks teach it nothing while no batch is held, so a gap that forbids a hold decays by a
 * 64th each time.
 *
 * 4. Unannounced tasks. The first sync events after a pause have no history. A commit of
 * such events is held for C/32, a millisecond at most. It is not held if the task that
 * asks for it is the one that synced last, because a lone stream stays alone, nor if as
 * many tasks wait as the last commit had, because they are probably the same tasks.
 *
 * 5. Debt. A hold is a bet. With n tasks waiting at its start, m that came and k that
 * stayed away, it cost W for each of n + k, and saved C for each of m. The difference,
 * divided by n + m + k, is the hold's loss per task. It is added to a debt, and no
 * commit is held that can win less than 16 times the debt: a win is C for each of the
 * expected tasks. So a small debt forbids a hold for one task of many, but not one for
 * many. A 256th of the time that the journal is in use pays off the debt, so holds in
 * vain cost at most a 256th of the time, on any disk and at any commit rate. A gain
 * gives credit, up to one C, which pays for an occasional hold in vain. No debt exceeds
 * one C either: a change of load or disk is soon forgotten. A hold that ends late is
 * charged at most its bound. The excess is the scheduler's fault, and one such delay
 * would forbid hundreds of good holds.
 *
 * 6. Trial. The account cannot see what holding does to processors and to work between
 * sync calls. luc_trial.c compares holding with stock, and forbids it where stock wins.
 *
 * 7. Worked example. Commits take 4 ms, four tasks return 0.1 ms apart. The hold of the
 * 1st commit waits for three tasks, and all come. In the 2nd one task stays away: 0.5 ms
 * (an eighth of C) after the last arrival, the batch looks idle.
 *
 *	commit	n	r	wake_ns - open_ns	closed	d	lost by task	debt_ns
 *	1	1	4	500000			setpoint	4	-2925000	-2925000
 *	2	1	4	500000			idle	3	-1650000	-4000000
 *
 * Row 1: held for 0.3 ms, lost (1 * 0.3 - 3 * 4) / 4 ms. Row 2: held for 0.7 ms, lost ((1
 * + 1) * 0.7 - 2 * 4) / 4 ms; credit is capped at one C.
 */
#include "luc_controllers.h"
#include "luc_hold.h"
#include "luc_trial.h"

/*
 * Shifts are powers of two of a commit's time. The arena's results are flat within a
 * factor of two.
 */
#define MARGIN_SHIFT 3		/* of the bound: between 0.7 C and 1.2 C nothing changes */
#define UNUSED_SHIFT 1		/* all of it loses on 4 MiB journals, none of it loses p99 */
#define IDLE_SHIFT 3		/* a sixteenth loses bursts, a quarter loses p99 */
#define IDLE_MIN_NS 100000LL	/* twice the slack that the kernel gives timers */
#define PROBE_SHIFT 5		/* the largest that loses in no cell of single sync calls */
#define PROBE_MAX_NS 1000000LL	/* the documents' fixed delay for Metarates (4.6) */
#define PRICE_SHIFT 8		/* below the one per cent that LUC may lose */
#define DEBT_SHIFT 4		/* with 5 a property test of luc-sim fails in one case of 1700 */
#define BUSY_PERMILLE 750LL	/* from 750 to 950 gains stay; at 950 it prevents fewer losses */
#define GAP_EVENTS_MIN 3LL	/* two say nothing about a third */
#define GAP_SHIFT 2
#define SPAN_SHIFT 1		/* more than chance adds to the span of a steady pace */
#define GAP_FORGET_SHIFT 6	/* chosen: from 4 to 8 nothing changes */

static luc_s64 commit_of(const struct luc_input *in)
{
	return luc_max(in->commit_avg_ns, 0);
}

static luc_s64 expected_of(const struct luc_input *in)
{
	return luc_max(in->expected_events, 0);
}

/* Pays off by the time since the last request; a pause counts as two commits at most. */
static void pay_off(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 commit = commit_of(in);
	luc_s64 used = luc_clamp(luc_sub(in->now_ns, s->paid_ns), 0, luc_mul(commit, 2));

	s->paid_ns = in->now_ns;
	if (s->debt_ns > 0)
		s->debt_ns = luc_clamp(luc_sub(s->debt_ns, used >> PRICE_SHIFT), 0, commit);
}

/*
 * Learns the gap between the events that gathered during the last commit. Only the sum of
 * their times is known, so assume a steady pace: then the first came as long before their
 * mean as the last came after it. If that is long before the commit started, most came at
 * once and one came late: then count from the commit's start to the mean instead.
 */
static void learn_gathered(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 quiet_ns = luc_max(luc_sub(in->now_ns, in->last_event_ns), 0);
	luc_s64 passed_ns = luc_sub(in->now_ns, s->closed_ns);
	luc_s64 mean_ns, span_ns;

	if (in->events < GAP_EVENTS_MIN)
		return;
	mean_ns = luc_max(in->events_wait_ns, 0) / in->events;
	span_ns = luc_mul(luc_sub(mean_ns, quiet_ns), 2);
	if (s->closed_ns && luc_sub(span_ns, passed_ns) > passed_ns >> SPAN_SHIFT)
		span_ns = luc_mul(luc_sub(passed_ns, mean_ns), 2);
	span_ns = luc_max(span_ns, 0);
	s->gap_ns = luc_average(s->gap_ns, luc_max(span_ns / (in->events - 1), 1), GAP_SHIFT);
}

static void look(struct luc_state *s, const struct luc_input *in)
{
	pay_off(s, in);
	learn_gathered(s, in);
	s->probing = expected_of(in) <= 0;
}

/* z of section 2; 0 if unknown, as before the first commit. */
static luc_s64 unused_of(const struct luc_state *s, const struct luc_input *in)
{
	luc_s64 unused = luc_sub(luc_sub(in->now_ns, s->closed_ns), commit_of(in));

	return s->closed_ns ? luc_max(unused, 0) : 0;
}

/* The bound of section 2. */
static luc_s64 limit_of(const struct luc_state *s, const struct luc_input *in)
{
	luc_s64 commit = commit_of(in);
	luc_s64 limit = commit - (commit >> MARGIN_SHIFT);
	luc_s64 unused = unused_of(s, in);

	if (unused < commit)
		limit -= unused >> UNUSED_SHIFT;
	return luc_max(limit, 0);
}

static luc_s64 idle_of(const struct luc_state *s, luc_s64 commit)
{
	if (s->probing)
		return luc_min(commit >> PROBE_SHIFT, PROBE_MAX_NS);
	return luc_max(commit >> IDLE_SHIFT, IDLE_MIN_NS);
}

/* The processors are the bottleneck, and the journal is not. */
static int is_computing(const struct luc_state *s, const struct luc_input *in)
{
	return in->busy_permille >= BUSY_PERMILLE && unused_of(s, in) >= commit_of(in);
}

/*
 * Whether the debt forbids a hold. The possible win is counted per task, as the debt is.
 */
static int is_in_debt(const struct luc_state *s, const struct luc_input *in)
{
	luc_s64 won = luc_mul(commit_of(in), expected_of(in)) / luc_max(s->setpoint_now_events, 1);

	return s->debt_ns > won >> DEBT_SHIFT;
}

/* All tasks of the last batch came back: no other is likely to come. */
static int is_last_batch(const struct luc_state *s, const struct luc_input *in)
{
	return in->events > 1 && in->events == s->seen_events;
}

/* Such commits are not held, whatever the debt and the bound. */
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
	if (is_never_held(s, in) || is_computing(s, in) || is_in_debt(s, in) ||
	    !luc_trial_allows(s))
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
	/* The idle time begins after the last task that is inside a sync call. */
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

/*
 * Charges the hold. A commit that was only observed was not held: it costs and teaches
 * nothing.
 */
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

/* Records this batch, for comparison with the next one. */
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
