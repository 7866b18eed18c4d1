// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Is holding commits worse than stock? An A/B trial measures, bets decide.
 *
 * 1. Why. The rule of batching_returns.c knows what a hold costs and gains the tasks
 * that wait for the journal. It does not see what holding does to processors, to data
 * being written, or to work between sync calls. So LUC measures.
 *
 * 2. A pair. Two windows of commits, one held and one free, which means unheld as on
 * stock. A coin toss decides which comes first (luc_coin()): a load that grows or drifts
 * is as likely to favour one as the other. The first WARM commits of each do not count,
 * because convoys re-form. The first window ends after WINDOW commits. The second one
 * ends after the same time: LUC makes fewer commits, and of two windows of unequal
 * length the shorter is noisier. If the load paused in the first one or the clock
 * jumped, the second would last as long: after WINDOW_MAX commits LUC drops the pair.
 * A minimum length of windows does not help: with 20 ms, simulated verdicts on effects of
 * 10 % came 2 to 10 times as late at 4,000 and 10,000 commits a second, and short
 * windows share disturbances that outlast them.
 *
 * 3. What is compared. Throughput: journal handles, operations that change metadata, per
 * second. Sync calls would not measure it: where tasks share files, a call that finds
 * its data committed waits for nothing, and holding turns such calls into waits. Nor may
 * the result depend on a task that keeps syncing a clean file. Waiting: the time that a
 * sync event waited for its commit to start and to end. A load driven by the clock shows
 * its gain only in waiting.
 *
 * 4. Verdict. Each comparison goes to a bet (luc_bets.c): a verdict is false with a
 * chance of one per cent, however often one looks. LUC wins if throughput is certified.
 * Otherwise stock wins if throughput or waiting is refuted. LUC also wins if waiting is
 * certified, at least EQUAL_PAIRS pairs put throughput at the limit or above, and
 * nothing speaks against it. A verdict holds for STAY times as long as it took,
 * STAY_MAX_NS at most, and twice as long each time it is confirmed.
 *
 * 5. The price of measuring. A free window loses what holding gains. So a pair is
 * followed by a rest of two pair lengths for each per cent that holding was found to
 * gain: measuring then costs about a quarter of a per cent, whatever the gain. Where
 * nothing was gained there is nothing to lose, and pairs follow each other until there
 * is a verdict. The first pair comes after PROOF holds, so a short run has no trial at
 * all.
 *
 * 6. Observing. While LUC only observes, nothing is held: a window would compare stock
 * with stock. A window under way restarts with the next commit that LUC steers.
 */
#include "luc_trial.h"
#include "luc_bets.h"
#include "luc_math.h"

/* Chosen, except those that name a measurement. */
#define PROOF 512LL		/* holds: then the first pair costs a run 2 % at most */
#define WARM 6LL		/* commits: each of two convoys has had three turns */
#define WINDOW 12LL		/* commits: six turns of each of two convoys */
#define WINDOW_MAX 96LL	/* commits: holding saves every second one, not seven of eight */
#define REST_MAX 64LL		/* pair lengths, reached at a gain of a third */
#define EQUAL_PAIRS 16LL
#define EQUAL_PPM 10000LL	/* a per cent, like the limit of the bets */
#define AGAINST_PPM 1100000LL	/* ln 3: odds of three to one */
#define STAY 32LL		/* a trial costs a losing load half of a 32nd of its loss */
#define STAY_DOUBLINGS 4LL
#define STAY_MAX_NS (300 * LUC_NS_PER_S)

void luc_trial_init(struct luc_state *s)
{
	s->trial_left = PROOF;
}

int luc_trial_allows(const struct luc_state *s)
{
	return s->trial_phase != LUC_TRIAL_FREE && s->trial_phase != LUC_TRIAL_STAY_FREE;
}

static void begin_window(struct luc_state *s, enum luc_trial_phase phase)
{
	s->trial_phase = phase;
	s->trial_left = WARM;
}

static void begin_pair(struct luc_state *s)
{
	int held_first = luc_coin((luc_u64)s->trial_pairs);

	s->trial_pairs = luc_add(s->trial_pairs, 1);
	s->trial_is_second = 0;
	begin_window(s, held_first ? LUC_TRIAL_HELD : LUC_TRIAL_FREE);
}

static void rest(struct luc_state *s, luc_s64 holds)
{
	s->trial_phase = LUC_TRIAL_OFF;
	s->trial_left = holds;
}

static struct luc_bets rate_of(const struct luc_state *s)
{
	return (struct luc_bets){ s->rate_pairs, s->rate_sum, s->rate_squares,
				  s->rate_wide_squares, s->rate_certificate, s->rate_harm };
}

static struct luc_bets wait_of(const struct luc_state *s)
{
	return (struct luc_bets){ s->wait_pairs, s->wait_sum, s->wait_squares,
				  s->wait_wide_squares, s->wait_certificate, s->wait_harm };
}

static void keep(struct luc_state *s, const struct luc_bets *rate, const struct luc_bets *wait)
{
	s->rate_pairs = rate->pairs;
	s->rate_sum = rate->sum;
	s->rate_squares = rate->squares;
	s->rate_wide_squares = rate->wide_squares;
	s->rate_certificate = rate->certificate;
	s->rate_harm = rate->harm;
	s->wait_pairs = wait->pairs;
	s->wait_sum = wait->sum;
	s->wait_squares = wait->squares;
	s->wait_wide_squares = wait->wide_squares;
	s->wait_certificate = wait->certificate;
	s->wait_harm = wait->harm;
}

static void begin_trial(struct luc_state *s, luc_s64 now_ns)
{
	const struct luc_bets none = { 0 };

	keep(s, &none, &none);
	s->trial_since_ns = now_ns;
	begin_pair(s);
}

static void stay(struct luc_state *s, enum luc_trial_phase phase, luc_s64 now_ns)
{
	luc_s64 took_ns = luc_max(luc_sub(now_ns, s->trial_since_ns), 0);
	luc_s64 least_ns = luc_mul(took_ns, STAY);

	if (s->trial_winner == phase)
		least_ns = luc_max(least_ns, luc_mul(s->trial_stay_ns, 2));
	s->trial_stay_ns = luc_clamp(least_ns, 0, STAY_MAX_NS);
	s->trial_winner = phase;
	s->trial_phase = phase;
	s->trial_until_ns = luc_add(now_ns, s->trial_stay_ns);
}

/* ln(a / b) of two counts over equal times; 0 if both are 0. */
static luc_s64 ln_of(luc_s64 a, luc_s64 b)
{
	return a > 0 || b > 0 ? luc_ln_ratio_ppm(a, b) : 0;
}

/* Passes the pair to the bets: the second window has just ended. */
static void hear_pair(struct luc_state *s, luc_s64 ns, struct luc_bets *rate,
		      struct luc_bets *wait)
{
	luc_s64 longer = luc_ln_ratio_ppm(ns, s->trial_first_ns);
	luc_s64 events = ln_of(s->trial_events, s->trial_first_events);
	luc_s64 handles = ln_of(s->trial_handles, s->trial_first_handles);
	luc_s64 waits = ln_of(s->trial_first_wait_ns, s->trial_wait_ns);
	luc_s64 sign = s->trial_phase == LUC_TRIAL_HELD ? 1 : -1;

	luc_bets_hear(rate, sign * (handles - longer));
	luc_bets_hear(wait, sign * (waits + events));
}

static int is_against(const struct luc_bets *rate)
{
	return rate->harm >= AGAINST_PPM;
}

/* The phase that the bets lead to; LUC_TRIAL_OFF: none yet. */
static enum luc_trial_phase verdict(const struct luc_bets *rate, const struct luc_bets *wait)
{
	enum luc_bets_verdict of_rate = luc_bets_verdict(rate);
	enum luc_bets_verdict of_wait = luc_bets_verdict(wait);

	if (of_rate == LUC_BETS_CERTIFIED)
		return LUC_TRIAL_STAY_HELD;
	if (of_rate == LUC_BETS_REFUTED || of_wait == LUC_BETS_REFUTED)
		return LUC_TRIAL_STAY_FREE;
	if (of_wait == LUC_BETS_CERTIFIED && rate->pairs >= EQUAL_PAIRS &&
	    !is_against(rate) && luc_bets_mean_ppm(rate) >= 0)
		return LUC_TRIAL_STAY_HELD;
	return LUC_TRIAL_OFF;
}

/* How many holds to rest for, from the gain that holding was found to have. */
static luc_s64 rest_of(const struct luc_bets *rate, const struct luc_bets *wait)
{
	luc_s64 gain_ppm = luc_max(luc_bets_mean_ppm(rate), luc_bets_mean_ppm(wait));

	if (is_against(rate))
		return 0;
	return luc_clamp(gain_ppm / (EQUAL_PPM / 2), 0, REST_MAX) * 2 * (WARM + WINDOW);
}

static void end_pair(struct luc_state *s, luc_s64 now_ns, luc_s64 ns)
{
	struct luc_bets rate = rate_of(s);
	struct luc_bets wait = wait_of(s);
	enum luc_trial_phase phase;
	luc_s64 holds;

	hear_pair(s, ns, &rate, &wait);
	keep(s, &rate, &wait);
	phase = verdict(&rate, &wait);
	holds = rest_of(&rate, &wait);
	if (phase != LUC_TRIAL_OFF)
		stay(s, phase, now_ns);
	else if (holds)
		rest(s, holds);
	else
		begin_pair(s);
}

static void end_window(struct luc_state *s, luc_s64 now_ns, luc_s64 ns)
{
	if (s->trial_is_second) {
		end_pair(s, now_ns, ns);
		return;
	}
	s->trial_first_events = s->trial_events;
	s->trial_first_handles = s->trial_handles;
	s->trial_first_wait_ns = s->trial_wait_ns;
	s->trial_first_ns = ns;
	s->trial_is_second = 1;
	begin_window(s, s->trial_phase == LUC_TRIAL_HELD ? LUC_TRIAL_FREE : LUC_TRIAL_HELD);
}

static void count(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 events = luc_max(in->events, 0);
	luc_s64 commit_ns = luc_mul(events, luc_max(in->commit_avg_ns, 0));

	s->trial_commits = luc_add(s->trial_commits, 1);
	s->trial_events = luc_add(s->trial_events, events);
	s->trial_handles = luc_add(s->trial_handles, luc_max(in->handles, 0));
	s->trial_wait_ns = luc_add(s->trial_wait_ns,
				   luc_add(luc_max(in->events_wait_ns, 0), commit_ns));
}

static void window_closed(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 ns;

	if (s->trial_left > 0) {
		s->trial_left--;
		s->trial_commits = 0;
		s->trial_events = 0;
		s->trial_handles = 0;
		s->trial_wait_ns = 0;
		s->trial_begin_ns = in->now_ns;
		return;
	}
	count(s, in);
	ns = luc_max(luc_sub(in->now_ns, s->trial_begin_ns), 1);
	if (s->trial_is_second ? ns >= s->trial_first_ns : s->trial_commits >= WINDOW)
		end_window(s, in->now_ns, ns);
	else if (s->trial_commits >= WINDOW_MAX)
		begin_pair(s);
}

void luc_trial_closed(const struct luc_params *params, struct luc_state *s,
		      const struct luc_input *in)
{
	int in_pair = s->trial_phase == LUC_TRIAL_FREE || s->trial_phase == LUC_TRIAL_HELD;

	if (params->mode != LUC_MODE_STEER) {
		if (in_pair)
			begin_window(s, s->trial_phase);
	} else if (in_pair) {
		window_closed(s, in);
	} else if (s->trial_phase == LUC_TRIAL_OFF) {
		if (s->wait_ns <= 0)
			return;
		s->trial_left = luc_sub(s->trial_left, 1);
		if (s->trial_left <= 0 && !s->rate_pairs)
			begin_trial(s, in->now_ns);
		else if (s->trial_left <= 0)
			begin_pair(s);
	} else if (in->now_ns >= s->trial_until_ns) {
		begin_trial(s, in->now_ns);
	}
}
