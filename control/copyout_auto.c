// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to copy metadata out (section 5.3.2).
 *
 * While a commit writes a metadata buffer, an operation that must change the
 * buffer sleeps. Writing a frozen copy instead costs one page copy per buffer
 * and lets nobody sleep. The heuristic: start copying once more than a
 * threshold share of a commit's operations was delayed, stop after a number of
 * clean runs, commits in a row without a delay.
 *
 * With copies being written no operation is delayed, so a delay count alone
 * would always read "clean", stop after the clean runs, let writers be blocked
 * again and start over. Two things prevent that. Buffers that were changed
 * while only their copy was being written (writes_saved) are evidence that
 * copying is still needed, and count as delays. And if copying has to start
 * again although it was just stopped, the clean runs asked for double, up to
 * 2^BACKOFF_MAX times (knob copyout_adapt): the right number is the
 * workload's, so the workload teaches it. They come down again one doubling
 * at a time, each time a stop proves right for as long as it took to decide.
 *
 * Copying makes the commit longer, for everybody who waits for it. Where disks
 * are fast and commits small that can be far more than the delays: saves are
 * counted by buffer, and a writer that is let through often goes on to wait for
 * the next commit anyway. So the sleep that commits without copies cost their
 * operations, on average, is held against the time spent copying, times the sync
 * events that waited for it: copy-out is on only while the former is larger
 * (knob copyout_adapt). What copying costs is known once it was tried; each
 * further delay makes that knowledge a little less, so that a load that has
 * changed is tried again.
 *
 * No estimate sees what copies do to batches: tasks that sleep for the same buffer
 * go on together, and their syncs share a commit. Where commits could be held, the
 * trial of holding compares LUC as a whole with stock (luc_trial.c), so copies rest
 * while it runs unheld, and where stock has won.
 *
 * Another case where copies hurt: a journal that is short of space. Writers that
 * pass by a copy make the same blocks part of the next transaction, so that a
 * checkpoint cannot free them and has to force more commits. A commit that finds
 * space short therefore pauses copy-out for PAUSE commits. An urgent wait, as of
 * syncfs, does not: it says nothing about copies.
 */
#include "luc_controllers.h"
#include "luc_trial.h"

#define BACKOFF_MAX 12LL
#define PAUSE 32LL
#define DELAY_SHIFT 5		/* a commit's delays count for a thirty-second */
#define COST_SHIFT 2		/* a commit's copying for a quarter */
#define FORGET_SHIFT 8		/* by so little fades what copying cost */

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

/* What the commit that ended cost, by its copies or for lack of them. */
static void weigh(struct luc_state *s, const struct luc_input *in)
{
	luc_s64 copy_ns = luc_max(in->copy_ns, 0);
	luc_s64 delay_ns = luc_max(in->writes_delay_ns, 0);

	if (copy_ns) {
		copy_ns = luc_mul(copy_ns, luc_max(in->commit_events, 1));
		s->copy_cost_ns = luc_average(s->copy_cost_ns, copy_ns, COST_SHIFT);
	} else if (s->copy_active != LUC_COPY_ON) {
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
	s->copy_active = LUC_COPY_ON;
	s->copy_clean = 0;
}

/* A batch that was complete at once is nothing that the trial is about. */
static int trial_forbids(const struct luc_params *p, const struct luc_state *s)
{
	return p->copyout_adapt && s->limit_ns > 0 && luc_trial_forbids_copies(s);
}

int luc_copyout_auto_step(const struct luc_params *params, struct luc_state *state,
			  const struct luc_input *in)
{
	luc_s64 hurt = luc_add(luc_max(in->writes_delayed, 0),
			       luc_max(in->writes_saved, 0));
	luc_s64 wanted = clean_runs_wanted(params, state);
	int stopped_before = state->copy_active == LUC_COPY_STOPPED;

	if (trial_forbids(params, state))
		return 0;
	weigh(state, in);
	if (state->copy_active == LUC_COPY_ON && !pays(params, state)) {
		state->copy_active = LUC_COPY_OFF;
		state->copy_clean = 0;
		state->copy_backoff = 0;
	} else if (state->copy_active == LUC_COPY_ON) {
		state->copy_clean = hurt ? 0 : luc_add(state->copy_clean, 1);
		if (state->copy_clean >= wanted) {
			state->copy_active = LUC_COPY_STOPPED;
			state->copy_clean = 0;
		}
	} else if (luc_copyout_over_threshold(params, hurt, in->writes) && pays(params, state)) {
		start(params, state, stopped_before);
	} else if (stopped_before) {
		state->copy_clean = luc_add(state->copy_clean, 1);
		if (state->copy_clean >= wanted) {
			state->copy_clean = 0;
			state->copy_backoff = luc_max(luc_sub(state->copy_backoff, 1), 0);
			if (!state->copy_backoff)
				state->copy_active = LUC_COPY_OFF;
		}
	}
	if (in->space_short)
		state->copy_pause = PAUSE;
	else if (state->copy_pause > 0)
		state->copy_pause--;
	return state->copy_active == LUC_COPY_ON && state->copy_pause <= 0;
}
