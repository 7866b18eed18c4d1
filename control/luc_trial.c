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
 * The measurement. A trial is rounds of WARM + WINDOW commits unheld, then as many
 * held, the first WARM of each not counted while the convoys re-form. It begins
 * after DOUBTS_MAX waits in a row that the estimate calls a loss, and after PROOF
 * waits without a pause whatever the estimate says: one that calls each wait a gain
 * can be wrong, too, as where syncs that come too late find their data committed. A
 * burst begins anew after each pause, and nothing that came before misleads there,
 * unless it has such syncs.
 *
 * Two gains are compared, and summed up over the rounds. Of throughput: the mean of
 * the rates of sync calls (of sync events, where calls are not seen) and of operations
 * that change metadata. It includes what LUC does to the processor, and where threads
 * do one thing after the other it is all that they notice. Of waiting: the time that
 * calls waited for their commit to start and end, per call, as a commit that is not
 * held may be over before a call needs it. It is what those lose whose rate does not
 * depend on us.
 *
 * Throughput decides where it differs: calls that wait longer for a commit may wait
 * less for a processor, and calls that wait less for a commit may come less often.
 * varmail with 64 threads on 4ms:32 waits less per call where it is held, by 4 to 37 %
 * in eleven rounds, and makes up to 12 % fewer. Where throughput is equal waiting decides.
 *
 * Unheld means stock: copy-out rests, too (copyout_auto.c). Tasks that a commit
 * blocks leave it together, which is a batch of its own kind; copies break it up.
 * So the two halves are not judged apart, except where each burst begins anew: there
 * copies cost later commits nothing, and a burst without them blocks its writers.
 *
 * One round is noisy: a window holds few turns of each thread. Gains of rounds are
 * summed up until a sum is beyond SURE_PERMILLE, or for ROUNDS_MAX rounds: a large
 * difference is found in one round, a small one gets many, and being unsure about a
 * small one costs little. A loss needs less proof, as stock is the safe answer. The
 * verdict holds for STAY_CLEAR commits, STAY_MIN if LUC won by little, twice as long
 * each time it is confirmed, up to STAY_MAX; so LUC converges to the better of itself
 * and stock.
 *
 * Work that comes in bursts has pauses. A window with a pause in it is counted from
 * pause to pause, whole bursts, and its throughput is compared twice: with the pauses
 * left out of its time, and with them. The lesser gain counts. Without them, as a load
 * that works by the clock gets no more done in all. With them, as a load that alternates
 * between syncs and other work may do both at once on stock: oltp with 16 threads on
 * 4ms:32, held, makes 40 % more calls between pauses that stock does not have, and 3 to
 * 20 % fewer in all. How long a pause is may be chance, too. Holding is therefore given
 * the difference between the trial's longest pause and its shortest: of six pauses of
 * random length in each window that is a standard deviation of their sums' difference,
 * of pauses that are equal it is nothing.
 *
 * Holding that shows to be slower by HOPELESS_PERMILLE is given up before its window
 * is over.
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

/*
 * Measured: rounds of varmail with 64 threads on 4ms:32, one processor, 6.12.95. In
 * five runs, eleven rounds, throughput gained -135 to +101 permille, -37 on average,
 * standard deviation 92. The other constants were chosen, not measured.
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
#define SKIP_MAX 64LL		/* batches: 1.6 % of them waste a wait where nobody comes */
#define URGED_SKIP 4LL		/* commits: urgency comes in spells, see above */
#define PAUSES 4LL		/* commit times without a request; bursts each 60 ms of commits of 8 leave 6 */
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
	s->trial_writes = 0;
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
	/* As it would be without a doubt, so that this is what is measured. */
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

int luc_trial_allows(struct luc_state *s)
{
	luc_s64 *skip = skip_of(s);

	if (is_free(s))
		return 0;
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
		nobody_came(s);
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

/* How long this window has been, without its pauses. */
static luc_s64 window_ns(const struct luc_state *s, luc_s64 now_ns)
{
	return luc_max(luc_sub(now_ns, s->trial_begin_ns), 1);
}

/* So many of something in this window, per second between pauses, thousandths. */
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
 * By how much this window, held, had more throughput than the one before it, where so
 * much of each window's time counts.
 */
static luc_s64 rate_gain_permille(const struct luc_state *s, luc_s64 now_ns,
				  luc_s64 held_permille, luc_s64 free_permille)
{
	luc_s64 calls = luc_mul(window_rate(s, s->trial_calls, now_ns), held_permille);
	luc_s64 writes = luc_mul(window_rate(s, s->trial_writes, now_ns), held_permille);
	luc_s64 free_writes = luc_mul(s->trial_free_writes_milli, free_permille);
	luc_s64 by_calls =
		permille_more(calls, luc_mul(s->trial_free_milli, free_permille));

	if (!writes && !free_writes)
		return by_calls;
	return (by_calls + permille_more(writes, free_writes)) / 2;
}

/* Between pauses. */
static luc_s64 busy_gain_permille(const struct luc_state *s, luc_s64 now_ns)
{
	return rate_gain_permille(s, now_ns, 1, 1);
}

/* With pauses, but for what may be their chance. */
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

/* Is holding the worse one, the better one, or is that open (0)? */
static int verdict(const struct luc_state *s)
{
	luc_s64 rate = s->trial_gain_permille;
	luc_s64 wait = s->trial_wait_gain_permille;

	if (rate <= -LOSS_PERMILLE)
		return -1;
	if (rate >= SURE_PERMILLE)
		return 1;
	if (wait <= -SURE_PERMILLE && rate <= SURE_PERMILLE / 3)
		return -1;
	return 0;
}

/* Fewer commits are the cheaper ones: holding that gains nothing may stay. */
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
		s->trial_free_writes_milli = window_rate(s, s->trial_writes, now_ns);
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

/* How long the events of a batch wait, until it was closed and for its commit. */
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
		/* Nothing stays formed over a pause: no need to warm up. */
		s->trial_bursts = 1;
		s->trial_left = BURSTS_MAX;
		begin_counting(s, c->now_ns);
		return;
	}
	s->trial_left = luc_sub(s->trial_left, 1);
	if (!s->trial_bursts && s->trial_left >= WINDOW) {
		/* Still forming; counting begins with the close after this. */
		begin_counting(s, c->now_ns);
		return;
	}
	if (paused)
		leave_out(s, pause_ns);
	s->trial_calls = luc_add(s->trial_calls, luc_max(c->done, 0));
	s->trial_writes = luc_add(s->trial_writes, luc_max(c->writes, 0));
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
			/* The commit of the batch before was under way at first. */
			window_closed(s, c, paused ? luc_sub(quiet_ns, commit_ns) : 0);
		return;
	}
	s->trial_left = luc_sub(s->trial_left, 1);
	if (s->trial_left <= 0) {
		/* The verdict is old: a new one, at once if it was against us. */
		if (s->trial_phase == LUC_TRIAL_STAY_FREE) {
			begin_trial(s);
		} else {
			s->trial_phase = LUC_TRIAL_OFF;
			s->trial_left = s->trial_stay;
		}
	}
}
