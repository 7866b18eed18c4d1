// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to copy metadata out: LUC's own controller.
 *
 * 1. Plant. While a commit writes a metadata buffer, an operation that must change
 * the buffer sleeps. A commit that writes a frozen copy costs one page copy per
 * buffer, and no operation sleeps.
 *
 * 2. Law (section 5.3.2). Copy-out starts once more than a threshold share of a
 * commit's operations was delayed. It stops after a number of clean runs, commits in
 * a row without a delay.
 *
 * 3. Evidence. While copies are written no operation is delayed: a count of delays
 * alone reads "clean", stops after the clean runs, lets writers block and starts
 * over. So buffers that an operation changed while only their copy was being written
 * (buffers_spared) count as delays. And if copying starts again soon after a stop, the
 * clean runs asked for double, up to 2^BACKOFF_MAX times (knob copyout_adapt). They
 * halve again each time a stop proves right for as long as it took to decide.
 *
 * 4. Cost. Copies make the commit longer for every task that waits for it. Where
 * disks are fast and commits small that can be far more than the delays: saves are
 * counted by buffer, and a writer that passes by a copy often goes on to wait for
 * the next commit. So copy-out is on only while the average sleep that a commit
 * without copies costs its operations exceeds the time spent copying times the sync
 * events that waited for it (knob copyout_adapt). The cost is known once copying was
 * tried. Each further delay lowers it a little, so that a changed load is tried again.
 *
 * 5. Space. Writers that pass by a copy make the same blocks part of the next
 * transaction. A checkpoint then cannot free them and has to force more commits. So
 * a commit that finds the journal short of space pauses copy-out for PAUSE commits.
 * Other urgent waits do not: beside 20 syncfs in 1 s (6.12, 1ms:8, 8 writers) a load
 * copied 2,659 buffers, 835 while these paused it too.
 *
 * 6. Worked example. 100 operations a commit, of which 8 sleep 2 ms each: 80 permille
 * are more than 50, and copy-out starts. 60 copies take 60 us while 4 tasks wait: a
 * cost of 0.24 ms, less than the average delay of 16 / 32 = 0.5 ms. Four clean runs
 * stop it. The next delay comes at once: too early, 4 << 1 runs are asked for now.
 *
 *	commit	delayed	saved	copy_us	delay_ns	cost_ns	clean	backoff	copy next
 *	1	8	0	0	500000	0	0	0	1
 *	2	0	9	60	500000	240000	0	0	1
 *	3	0	0	60	500000	240000	1	0	1
 *	4	0	0	60	500000	240000	2	0	1
 *	5	0	0	60	500000	240000	3	0	1
 *	6	0	0	60	500000	240000	0	0	0
 *	7	8	0	0	984375	239063	0	1	1
 */
#include "luc_controllers.h"

/* Chosen, not measured. */
#define BACKOFF_MAX 12LL	/* doublings: 4 clean runs become 16,384, minutes of commits */
#define PAUSE 32LL		/* commits: want of space comes in spells */
#define DELAY_SHIFT 5		/* a commit's delays count for a thirty-second */
#define COST_SHIFT 2		/* a commit's copying for a quarter */
#define FORGET_SHIFT 8		/* a commit with delays takes a 256th: half after 177 */

static luc_s64 clean_runs_wanted(const struct luc_params *p,
				 const struct luc_state *s)
{
	luc_s64 runs = luc_max(p->copyout_clean_runs, 1);
	luc_s64 backoff = luc_clamp(s->copy_backoff, 0, BACKOFF_MAX);

	return p->copyout_adapt ? luc_mul(runs, 1LL << backoff) : runs;
}

/* From nothing, and back to nothing: a load without delays is at rest. */
static luc_s64 fading_average(luc_s64 average, luc_s64 sample)
{
	luc_s64 less = luc_add(average, (1LL << DELAY_SHIFT) - 1) >> DELAY_SHIFT;

	return luc_add(luc_sub(average, less), sample >> DELAY_SHIFT);
}

/* Learns what the commit that ended cost: by its copies, or by delays without them. */
static void learn_cost(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 copy_ns = luc_max(in->copy_ns, 0);
	luc_s64 delay_ns = luc_max(in->writes_delay_ns, 0);

	if (copy_ns) {
		copy_ns = luc_mul(copy_ns, luc_max(in->commit_events, 1));
		s->copy_cost_ns = luc_average(s->copy_cost_ns, copy_ns, COST_SHIFT);
	} else if (s->copy_phase != LUC_COPY_ON) {
		s->copy_delay_ns = fading_average(s->copy_delay_ns, delay_ns);
		if (delay_ns)
			s->copy_cost_ns -= s->copy_cost_ns >> FORGET_SHIFT;
	}
}

static int pays(const struct luc_params *p, const struct luc_state *s)
{
	return !p->copyout_adapt || !s->copy_cost_ns ||
	       s->copy_delay_ns > s->copy_cost_ns;
}

static void start(const struct luc_params *p, struct luc_state *s, int too_early)
{
	if (p->copyout_adapt && too_early)
		s->copy_backoff = luc_clamp(luc_add(s->copy_backoff, 1), 0, BACKOFF_MAX);
	s->copy_phase = LUC_COPY_ON;
	s->copy_clean = 0;
}

int luc_copyout_auto_step(const struct luc_params *params, struct luc_state *state,
			  const struct luc_input *in)
{
	luc_s64 hurt = luc_add(luc_max(in->writes_delayed, 0),
			       luc_max(in->buffers_spared, 0));
	luc_s64 wanted = clean_runs_wanted(params, state);
	int stopped_before = state->copy_phase == LUC_COPY_STOPPED;

	learn_cost(state, in);
	if (state->copy_phase == LUC_COPY_ON && !pays(params, state)) {
		state->copy_phase = LUC_COPY_OFF;
		state->copy_clean = 0;
		state->copy_backoff = 0;
	} else if (state->copy_phase == LUC_COPY_ON) {
		state->copy_clean = hurt ? 0 : luc_add(state->copy_clean, 1);
		if (state->copy_clean >= wanted) {
			state->copy_phase = LUC_COPY_STOPPED;
			state->copy_clean = 0;
		}
	} else if (luc_copyout_over_threshold(params, hurt, in->handles) && pays(params, state)) {
		start(params, state, stopped_before);
	} else if (stopped_before) {
		state->copy_clean = luc_add(state->copy_clean, 1);
		if (state->copy_clean >= wanted) {
			state->copy_clean = 0;
			state->copy_backoff = luc_max(luc_sub(state->copy_backoff, 1), 0);
			if (!state->copy_backoff)
				state->copy_phase = LUC_COPY_OFF;
		}
	}
	if (in->space_short)
		state->copy_pause = PAUSE;
	else if (state->copy_pause > 0)
		state->copy_pause--;
	return state->copy_phase == LUC_COPY_ON && state->copy_pause <= 0;
}
