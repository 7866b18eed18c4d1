// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Does holding commits pay? Estimated per wait, and measured when in doubt.
 *
 * The estimate. A task that joined a held batch would have been served by the
 * next commit, two commit times from open; now it is served after the wait and
 * one commit. Those who were here lose the wait, and so do those who come too
 * late: the commit that they have to sit out ends later. When the gains exceed
 * the losses there is nothing to discuss. The estimate is too dark, though,
 * where a wait merges two convoys of threads for good: its cost is paid once,
 * its gain comes back with every commit. And no estimate sees how a commit
 * gets shorter because the threads that compete with it for the CPU wait.
 *
 * The measurement. DOUBTS_MAX waits in a row that the estimate calls a loss
 * start a trial: WARM + WINDOW commits unheld, then as many held, the first
 * WARM of each not counted while the convoys re-form. What is compared is the
 * rate of sync calls (of sync events, where calls are not seen), which is the
 * throughput of threads that do one thing after the other. Holding stays unless
 * not holding was faster by more than MARGIN_PERMILLE: equal rates mean that
 * arrivals do not depend on us, and then fewer commits are cheaper. The verdict
 * holds for STAY_MIN commits, twice as long each time it is confirmed, up to
 * STAY_MAX: being wrong costs at most two windows in so many commits, so LUC
 * converges to the better of itself and stock. A pause in the middle of a
 * window says nothing about either side and starts the window again.
 *
 * A wait for which nobody came at all needs no trial: the next batches of its
 * kind pass unheld, one, then two, four, up to SKIP_MAX, until a wait brings
 * somebody. There are two kinds. A fresh batch is opened by the event that asked
 * for it; a stale one sat through the commit before. After a burst of requests
 * the last batch is stale and nobody will come, while the first one of the next
 * burst is fresh and everybody will: one must not learn from the other.
 *
 * Urgency comes in spells: a journal that is too small for its load is short of
 * space at nearly every commit, and the tasks that a commit would be held for
 * queue behind a checkpoint. So an urgent commit lets the next URGED_SKIP pass.
 */
#include "luc_trial.h"
#include "luc_math.h"

#define DOUBTS_MAX 3LL
#define WARM 6LL
#define WINDOW 12LL
#define MARGIN_PERMILLE 1010LL
#define STAY_MIN 256LL
#define STAY_MAX 16384LL
#define SKIP_MAX 64LL
#define URGED_SKIP 4LL
#define PAUSES 8LL		/* commit times without a commit are a pause */

static int in_trial(const struct luc_state *s)
{
	return s->trial_phase == LUC_TRIAL_FREE ||
	       s->trial_phase == LUC_TRIAL_HELD;
}

static void begin_window(struct luc_state *s, enum luc_trial_phase phase)
{
	s->trial_phase = phase;
	s->trial_left = WARM + WINDOW;
	s->trial_calls = 0;
	s->trial_begin_ns = 0;
}

static void begin_stay(struct luc_state *s, enum luc_trial_phase phase)
{
	if (s->trial_winner == phase)
		s->trial_stay = luc_min(luc_mul(luc_max(s->trial_stay, STAY_MIN), 2),
					STAY_MAX);
	else
		s->trial_stay = STAY_MIN;
	s->trial_winner = phase;
	s->trial_phase = phase;
	s->trial_left = s->trial_stay;
	s->doubts = 0;
	s->fresh_skip = 0;
	s->stale_skip = 0;
}

static luc_s64 *skip_of(struct luc_state *s)
{
	return s->stale ? &s->stale_skip : &s->fresh_skip;
}

static luc_s64 *skip_next_of(struct luc_state *s)
{
	return s->stale ? &s->stale_skip_next : &s->fresh_skip_next;
}

int luc_trial_allows(struct luc_state *s)
{
	luc_s64 *skip = skip_of(s);

	if (s->trial_phase == LUC_TRIAL_FREE || s->trial_phase == LUC_TRIAL_STAY_FREE)
		return 0;
	if (s->trial_phase == LUC_TRIAL_HELD)
		return 1;
	if (*skip <= 0)
		return 1;
	(*skip)--;
	return 0;
}

static void nobody_came(struct luc_state *s)
{
	luc_s64 skip = luc_clamp(*skip_next_of(s), 1, SKIP_MAX);

	*skip_of(s) = skip;
	*skip_next_of(s) = luc_min(luc_mul(skip, 2), SKIP_MAX);
}

void luc_trial_urged(struct luc_state *s)
{
	s->fresh_skip = luc_max(s->fresh_skip, URGED_SKIP);
	s->stale_skip = luc_max(s->stale_skip, URGED_SKIP);
}

void luc_trial_waited(struct luc_state *s, luc_s64 opened, luc_s64 came,
		      luc_s64 late, luc_s64 waited_ns, luc_s64 commit_ns)
{
	luc_s64 gain_ns = luc_max(luc_sub(commit_ns, waited_ns), 0);
	luc_s64 saved = luc_mul(luc_max(came, 0), gain_ns);
	luc_s64 losers = luc_add(luc_max(opened, 1), luc_max(late, 0));
	luc_s64 lost = luc_mul(losers, luc_max(waited_ns, 0));

	if (came <= 0) {
		nobody_came(s);
		return;
	}
	*skip_next_of(s) = 1;
	if (s->trial_phase != LUC_TRIAL_OFF)
		return;
	if (saved >= lost) {
		s->doubts = 0;
		return;
	}
	s->doubts = luc_add(s->doubts, 1);
	if (s->doubts >= DOUBTS_MAX)
		begin_window(s, LUC_TRIAL_FREE);
}

/* Sync calls per second, thousandths. */
static luc_s64 window_rate(const struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 ns = luc_max(luc_sub(now_ns, s->trial_begin_ns), 1);

	return luc_mul(s->trial_calls, 1000 * LUC_NS_PER_S) / ns;
}

static void end_window(struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 rate = window_rate(s, now_ns);

	if (s->trial_phase == LUC_TRIAL_FREE) {
		s->trial_free_milli = rate;
		begin_window(s, LUC_TRIAL_HELD);
	} else if (luc_mul(s->trial_free_milli, 1000) >
		   luc_mul(rate, MARGIN_PERMILLE)) {
		begin_stay(s, LUC_TRIAL_STAY_FREE);
	} else {
		begin_stay(s, LUC_TRIAL_STAY_HELD);
	}
}

static void window_closed(struct luc_state *s, luc_s64 done, luc_s64 now_ns)
{
	s->trial_left = luc_sub(s->trial_left, 1);
	if (s->trial_left >= WINDOW) {
		/* Still forming; counting begins with the close after this. */
		s->trial_begin_ns = now_ns;
		return;
	}
	s->trial_calls = luc_add(s->trial_calls, luc_max(done, 0));
	if (s->trial_left <= 0)
		end_window(s, now_ns);
}

void luc_trial_closed(struct luc_state *s, luc_s64 done, luc_s64 now_ns,
		      luc_s64 commit_ns)
{
	luc_s64 since = luc_sub(now_ns, s->closed_ns);
	luc_s64 pause = luc_mul(luc_max(commit_ns, 1), PAUSES);

	if (s->trial_phase == LUC_TRIAL_OFF)
		return;
	if (in_trial(s)) {
		if (!s->closed_ns || since > pause || since < 0)
			begin_window(s, (enum luc_trial_phase)s->trial_phase);
		else
			window_closed(s, done, now_ns);
		return;
	}
	s->trial_left = luc_sub(s->trial_left, 1);
	if (s->trial_left <= 0) {
		/* The verdict is old: a new one, at once if it was against us. */
		if (s->trial_phase == LUC_TRIAL_STAY_FREE)
			begin_window(s, LUC_TRIAL_FREE);
		else
			s->trial_phase = LUC_TRIAL_OFF;
	}
}
