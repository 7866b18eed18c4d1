// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Does holding commits pay? Estimated per wait, and measured by an A/B trial.
 *
 * 1. Estimate. A task that joins a held batch is served after the wait and one commit.
 * Without the hold the next commit had served it, two commit times from open. Tasks that
 * were here lose the wait, and so do tasks that come too late: the commit that they
 * sit out ends later. If gains exceed losses the wait paid. The estimate is too dark
 * where a wait merges two convoys for good: the cost is paid once, the gain comes back
 * with every commit. And no estimate sees a commit get shorter because the threads
 * that compete with it for the processor wait.
 *
 * 2. Trial. Rounds of WARM + WINDOW commits unheld, then as many held. The first WARM
 * of each do not count: the convoys re-form. A trial begins after DOUBTS_MAX waits in
 * a row that the estimate calls a loss. It also begins after PROOF waits without a
 * pause: an estimate that calls each wait a gain can be wrong, too, as where syncs
 * that come too late find their data committed. A pause puts off this second reason,
 * as a burst begins anew after it, unless it had such syncs.
 *
 * 3. Gains. Two are compared and summed up over the rounds. Throughput: the mean of the
 * rates of sync calls (of sync events, where calls are not seen) and of operations that
 * change metadata. Throughput includes what LUC does to the processor. Waiting: the
 * time that calls waited for their commit to start and end, per call, as an unheld
 * commit may be over before a call needs it. Calls whose rate does not depend on the
 * journal lose by waiting alone.
 *
 * 4. Verdict. Throughput decides where it differs: calls that wait longer for a commit
 * may wait less for a processor, and calls that wait less may come less often. varmail
 * with 64 threads on 4ms:32 waits less per call where it is held, by 4 to 37 % in eleven
 * rounds, and makes up to 12 % fewer. Where throughput is equal, waiting decides.
 * One round is noisy, as a window holds few turns of each thread. So gains are summed up
 * until a sum is beyond its bound, or for ROUNDS_MAX rounds: one round finds a large
 * difference, a small one gets many, and doubt about a small one costs little. A loss
 * needs less proof than a gain: stock is the safe answer. The verdict holds for
 * STAY_CLEAR commits, STAY_MIN if LUC won by little, twice as long each time it is
 * confirmed, up to STAY_MAX. Holding that shows to be slower by HOPELESS_PERMILLE is
 * given up within its window.
 *
 * 5. Unheld means stock: copy-out rests, too (copyout_auto.c). Tasks that a commit
 * blocks leave it together, a batch of its own kind that copies break up. So the two
 * halves of LUC are judged together, except where each burst begins anew: copies cost
 * later commits nothing there, and a burst without copies blocks its writers.
 *
 * 6. Bursts have pauses between them. A window with a pause is counted from pause to
 * pause, whole bursts, and its throughput is compared twice: without the pauses in its
 * time, and with them. The lesser gain counts. Without: a load that works by the clock
 * gets no more done in all. With: a load that alternates between syncs and other work
 * may do both at once on stock. oltp with 16 threads on 4ms:32, held, makes 40 % more
 * calls between pauses that stock does not have, and 3 to 20 % fewer in all. How long a
 * pause is may be chance. So holding is given the difference between the trial's longest
 * and shortest pause: of six pauses of random length in each window that is a standard
 * deviation of their sums' difference, of equal pauses nothing.
 *
 * 7. Bans. A wait that brought no task needs no trial: the next batches of its kind pass
 * unheld, one, then two, four, up to SKIP_MAX, until a wait brings a task. There are two
 * kinds. The event that asked for a fresh batch opened it; a stale batch sat through the
 * commit before. After a burst the last batch is stale and no task will come; the first
 * batch of the next burst is fresh and all tasks will. Neither may learn from the other.
 * Urgency comes in spells: a journal too small for its load is short of space at nearly
 * every commit, and the tasks that a hold would wait for queue behind a checkpoint. So
 * an urgent commit lets the next URGED_SKIP pass.
 *
 * 8. Observing. While LUC only observes, nothing is held and nothing copied: a window
 * would compare stock with stock, and a wait that was not waited brings no task and
 * would ban the next. So the trial rests: no ban is set or used up, no verdict ages, and
 * a window under way begins anew with the next commit that LUC steers.
 *
 * 9. Worked example. 64 tasks in two convoys. Unheld: 32 calls each 2 ms, a wait of 2 ms
 * a call. Held: 64 calls each 4.5 ms, a wait of 1.5 ms. Of 18 + 18 commits 12 + 12 count:
 *
 *	free	384 calls in 24 ms	16000 a second	wait 2000000 ns
 *	held	768 calls in 54 ms	14222 a second	wait 1500000 ns
 *	gain	throughput -125 permille, waiting 333 permille
 *
 * 14222 is less than 16000 by 125 permille of 14222, beyond LOSS_PERMILLE: after one
 * round stock has won, for 512 commits, although each call waited less.
 */
#include "luc_trial.h"
#include "luc_math.h"

/*
 * Noise, measured: varmail with 64 threads on 4ms:32, one processor, 6.12.95. In five
 * runs, eleven rounds, throughput gained -135 to +101 permille, -37 on average, with a
 * standard deviation of 92. Constants that name no measurement are chosen.
 */
#define DOUBTS_MAX 3LL		/* waits in a row: one or two may be chance */
#define WARM 6LL		/* commits: each of two convoys has come round three times */
#define WINDOW 12LL		/* commits: six turns of each of two convoys */
#define PROOF 24LL		/* waits: holding has run for two windows before it is tried */
#define SURE_PERMILLE 150LL	/* a gain: 1.6 standard deviations of a round */
#define LOSS_PERMILLE 100LL	/* a loss: 1.1, as stock is the safe answer */
#define ROUNDS_MAX 8LL		/* the mean of so many is good to 92 / sqrt(8) = 33 permille */
#define GAIN_MAX_PERMILLE 10000LL	/* keeps sums of eight far from overflow */
#define HOPELESS_PERMILLE 1000LL	/* half the throughput, or twice the wait */
#define HOPELESS_WINDOW 3LL	/* commits: so much is no chance after three */
#define STAY_MIN 64LL		/* commits: under two rounds; little was won, look again */
#define STAY_CLEAR 512LL	/* commits: 18 held ones in a retrial are 3.5 % of these */
#define STAY_MAX 16384LL	/* commits: minutes, after which a load may be another */
#define SKIP_MAX 64LL		/* batches: 1.6 % of them waste a wait that brings no task */
#define URGED_SKIP 4LL		/* commits: urgency comes in spells, see 7 */
#define PAUSES 4LL		/* commit times: bursts of 4 on 4ms:1 make 1.51 of stock, 1.38 with 8 */
#define BURSTS_MAX 48LL		/* commits: four windows, within which a pause comes */

void luc_trial_init(struct luc_state *s)
{
	s->trial_left = PROOF;
	s->fresh_skip_next = 1;
	s->stale_skip_next = 1;
}

static int in_trial(const struct luc_state *s)
{
	return s->trial_phase == LUC_TRIAL_FREE ||
	       s->trial_phase == LUC_TRIAL_HELD;
}

static void begin_counting(struct luc_state *s, luc_s64 now_ns)
{
	s->trial_calls = 0;
	s->trial_handles = 0;
	s->trial_begin_ns = now_ns;
	s->trial_wait_ns = 0;
	s->trial_pause_ns = 0;
}

static void begin_window(struct luc_state *s, enum luc_trial_phase phase)
{
	s->trial_phase = phase;
	s->trial_left = WARM + WINDOW;
	s->trial_bursts = 0;
	begin_counting(s, 0);
	/* Measure holding as it is without bans. */
	s->fresh_skip = 0;
	s->stale_skip = 0;
}

static void begin_trial(struct luc_state *s)
{
	s->trial_rounds = 0;
	s->trial_gain_permille = 0;
	s->trial_wait_gain_permille = 0;
	s->trial_pause_min_ns = LUC_S64_MAX;
	s->trial_pause_max_ns = 0;
	begin_window(s, LUC_TRIAL_FREE);
}

static void begin_stay(struct luc_state *s, enum luc_trial_phase phase, luc_s64 least)
{
	if (s->trial_winner == phase)
		s->trial_stay = luc_clamp(luc_mul(s->trial_stay, 2), least, STAY_MAX);
	else
		s->trial_stay = least;
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

static int is_free(const struct luc_state *s)
{
	return s->trial_phase == LUC_TRIAL_FREE || s->trial_phase == LUC_TRIAL_STAY_FREE;
}

int luc_trial_forbids_copies(const struct luc_state *s)
{
	return is_free(s) && !s->bursts_anew;
}

int luc_trial_would_allow(const struct luc_state *s)
{
	return !is_free(s) && (s->stale ? s->stale_skip : s->fresh_skip) <= 0;
}

int luc_trial_allows(struct luc_state *s)
{
	luc_s64 *skip = skip_of(s);

	if (luc_trial_would_allow(s))
		return 1;
	if (!is_free(s))
		(*skip)--;
	return 0;
}

void luc_trial_rested(struct luc_state *s)
{
	if (in_trial(s))
		begin_window(s, (enum luc_trial_phase)s->trial_phase);
}

static void no_task_came(struct luc_state *s)
{
	luc_s64 skip = luc_clamp(*skip_next_of(s), 1, SKIP_MAX);

	*skip_of(s) = skip;
	*skip_next_of(s) = luc_min(luc_mul(skip, 2), SKIP_MAX);
}

void luc_trial_paused(struct luc_state *s)
{
	s->trial_left = luc_max(s->trial_left, PROOF);
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
		no_task_came(s);
		return;
	}
	*skip_next_of(s) = 1;
	if (s->trial_phase != LUC_TRIAL_OFF)
		return;
	s->doubts = saved >= lost ? 0 : luc_add(s->doubts, 1);
	s->trial_left = luc_sub(s->trial_left, 1);
	if (s->doubts >= DOUBTS_MAX || s->trial_left <= 0)
		begin_trial(s);
}

/* Length of this window without its pauses. */
static luc_s64 window_ns(const struct luc_state *s, luc_s64 now_ns)
{
	return luc_max(luc_sub(now_ns, s->trial_begin_ns), 1);
}

/* count, of this window, per second between pauses, in thousandths. */
static luc_s64 window_rate(const struct luc_state *s, luc_s64 count, luc_s64 now_ns)
{
	return luc_mul(count, 1000 * LUC_NS_PER_S) / window_ns(s, now_ns);
}

/* The share of a window that is between pauses, thousandths. */
static luc_s64 busy_permille(luc_s64 busy_ns, luc_s64 pause_ns)
{
	luc_s64 all_ns = luc_add(busy_ns, luc_max(pause_ns, 0));

	return luc_clamp(busy_ns / luc_max(all_ns / 1000, 1), 1, 1000);
}

/* How long a sync call waited for its commit, on average. */
static luc_s64 window_wait_ns(const struct luc_state *s)
{
	return s->trial_wait_ns / luc_max(s->trial_calls, 1);
}

/* By how much a is more than b; less is as far below 0 as more is above. */
static luc_s64 permille_more(luc_s64 a, luc_s64 b)
{
	luc_s64 permille = luc_mul(luc_sub(a, b), 1000) / luc_max(luc_min(a, b), 1);

	return luc_clamp(permille, -GAIN_MAX_PERMILLE, GAIN_MAX_PERMILLE);
}

/*
 * By how much this held window had more throughput than the unheld one before it. Of
 * each window's time, the share given counts.
 */
static luc_s64 rate_gain_permille(const struct luc_state *s, luc_s64 now_ns,
				  luc_s64 held_permille, luc_s64 free_permille)
{
	luc_s64 calls = luc_mul(window_rate(s, s->trial_calls, now_ns), held_permille);
	luc_s64 handles = luc_mul(window_rate(s, s->trial_handles, now_ns), held_permille);
	luc_s64 free_handles = luc_mul(s->trial_free_handles_milli, free_permille);
	luc_s64 by_calls =
		permille_more(calls, luc_mul(s->trial_free_milli, free_permille));

	if (!handles && !free_handles)
		return by_calls;
	return (by_calls + permille_more(handles, free_handles)) / 2;
}

/* Between pauses. */
static luc_s64 busy_gain_permille(const struct luc_state *s, luc_s64 now_ns)
{
	return rate_gain_permille(s, now_ns, 1, 1);
}

/* With pauses, less what may be chance in their length. */
static luc_s64 all_gain_permille(const struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 chance_ns =
		luc_max(luc_sub(s->trial_pause_max_ns, s->trial_pause_min_ns), 0);
	luc_s64 pause_ns = luc_sub(s->trial_pause_ns, chance_ns);

	return rate_gain_permille(s, now_ns,
				  busy_permille(window_ns(s, now_ns), pause_ns),
				  s->trial_free_busy_permille);
}

/* By how much less its calls waited. */
static luc_s64 wait_gain_permille(const struct luc_state *s)
{
	return permille_more(s->trial_free_wait_ns, window_wait_ns(s));
}

/* Is holding worse (-1), better (1), or is that open (0)? */
static int verdict(const struct luc_state *s)
{
	luc_s64 rate = s->trial_gain_permille;
	luc_s64 wait = s->trial_wait_gain_permille;

	if (rate <= -LOSS_PERMILLE)
		return -1;
	if (rate >= SURE_PERMILLE)
		return 1;
	/* Up to a third of a sure gain counts as equal: chosen. */
	if (wait <= -SURE_PERMILLE && rate <= SURE_PERMILLE / 3)
		return -1;
	return 0;
}

/* Holding that gains nothing, or loses half a loss, may stay: it makes fewer commits. */
static int better(const struct luc_state *s)
{
	return s->trial_gain_permille >= -LOSS_PERMILLE / 2 &&
	       s->trial_wait_gain_permille >= 0;
}

static void end_round(struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 rate = luc_min(busy_gain_permille(s, now_ns), all_gain_permille(s, now_ns));
	luc_s64 wait = wait_gain_permille(s);
	int sure;

	s->trial_gain_permille = luc_add(s->trial_gain_permille, rate);
	s->trial_wait_gain_permille = luc_add(s->trial_wait_gain_permille, wait);
	s->trial_rounds = luc_add(s->trial_rounds, 1);
	sure = verdict(s);
	if (sure < 0 || (!sure && s->trial_rounds >= ROUNDS_MAX && !better(s)))
		begin_stay(s, LUC_TRIAL_STAY_FREE, STAY_CLEAR);
	else if (sure || s->trial_rounds >= ROUNDS_MAX)
		begin_stay(s, LUC_TRIAL_STAY_HELD,
			   s->trial_rounds == 1 ? STAY_CLEAR : STAY_MIN);
	else
		begin_window(s, LUC_TRIAL_FREE);
}

static void end_window(struct luc_state *s, luc_s64 now_ns)
{
	if (!s->trial_bursts)
		s->bursts_anew = 0;
	if (s->trial_phase == LUC_TRIAL_FREE) {
		s->trial_free_milli = window_rate(s, s->trial_calls, now_ns);
		s->trial_free_handles_milli = window_rate(s, s->trial_handles, now_ns);
		s->trial_free_wait_ns = window_wait_ns(s);
		s->trial_free_busy_permille =
			busy_permille(window_ns(s, now_ns), s->trial_pause_ns);
		begin_window(s, LUC_TRIAL_HELD);
	} else {
		end_round(s, now_ns);
	}
}

static int hopeless(const struct luc_state *s, luc_s64 now_ns)
{
	luc_s64 full = s->trial_bursts ? BURSTS_MAX : WINDOW;

	return s->trial_phase == LUC_TRIAL_HELD &&
	       s->trial_left <= full - HOPELESS_WINDOW &&
	       luc_min(busy_gain_permille(s, now_ns), wait_gain_permille(s)) <=
		       -HOPELESS_PERMILLE;
}

static int window_full(const struct luc_state *s, int paused)
{
	if (s->trial_bursts && !paused)
		return s->trial_left <= 0;
	return s->trial_left <= (s->trial_bursts ? BURSTS_MAX - WINDOW : 0);
}

/* How long the events of a batch wait: until it is closed, and for its commit. */
static luc_s64 waited_for(const struct luc_closed *c)
{
	return luc_add(luc_max(c->events_wait_ns, 0),
		       luc_mul(luc_max(c->events, 0), luc_max(c->commit_ns, 0)));
}

static void leave_out(struct luc_state *s, luc_s64 pause_ns)
{
	s->trial_begin_ns = luc_add(s->trial_begin_ns, pause_ns);
	s->trial_pause_ns = luc_add(s->trial_pause_ns, pause_ns);
	s->trial_pause_min_ns = luc_min(s->trial_pause_min_ns, pause_ns);
	s->trial_pause_max_ns = luc_max(s->trial_pause_max_ns, pause_ns);
}

/* pause_ns: how long nothing was asked for before this batch, 0 if it was no pause. */
static void window_closed(struct luc_state *s, const struct luc_closed *c, luc_s64 pause_ns)
{
	int paused = pause_ns > 0;

	if (paused && !s->trial_bursts) {
		/* No convoy outlives a pause: no need to warm up. */
		s->trial_bursts = 1;
		s->trial_left = BURSTS_MAX;
		begin_counting(s, c->now_ns);
		return;
	}
	s->trial_left = luc_sub(s->trial_left, 1);
	if (!s->trial_bursts && s->trial_left >= WINDOW) {
		/* Convoys still form; counting begins with the next close. */
		begin_counting(s, c->now_ns);
		return;
	}
	if (paused)
		leave_out(s, pause_ns);
	s->trial_calls = luc_add(s->trial_calls, luc_max(c->done, 0));
	s->trial_handles = luc_add(s->trial_handles, luc_max(c->handles, 0));
	s->trial_wait_ns = luc_add(s->trial_wait_ns, waited_for(c));
	if (window_full(s, paused))
		end_window(s, c->now_ns);
	else if (hopeless(s, c->now_ns))
		begin_stay(s, LUC_TRIAL_STAY_FREE, STAY_CLEAR);
}

void luc_trial_closed(struct luc_state *s, const struct luc_closed *c)
{
	luc_s64 commit_ns = luc_max(c->commit_ns, 1);
	luc_s64 quiet_ns = luc_sub(s->open_ns, s->closed_ns);
	int paused = s->closed_ns && quiet_ns > luc_mul(commit_ns, PAUSES);

	if (paused)
		s->bursts_anew = c->unneeded <= 0;
	if (s->trial_phase == LUC_TRIAL_OFF) {
		if (paused && s->bursts_anew)
			luc_trial_paused(s);
		return;
	}
	if (in_trial(s)) {
		if (!s->closed_ns || c->now_ns < s->closed_ns)
			begin_window(s, (enum luc_trial_phase)s->trial_phase);
		else
			/* At first the commit of the batch before was under way. */
			window_closed(s, c, paused ? luc_sub(quiet_ns, commit_ns) : 0);
		return;
	}
	s->trial_left = luc_sub(s->trial_left, 1);
	if (s->trial_left <= 0) {
		/* The verdict is old: try again, at once if stock had won. */
		if (s->trial_phase == LUC_TRIAL_STAY_FREE) {
			begin_trial(s);
		} else {
			s->trial_phase = LUC_TRIAL_OFF;
			s->trial_left = s->trial_stay;
		}
	}
}
