// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages in the kernel log: a line each time LUC is switched on or off, a knob is
 * set, a trial's verdict differs from the last one, or LUC stands aside. Each line
 * begins with "luc: " and the device as in /sys/fs/luc.
 *
 * An administrator causes the lines about on and off, one at a time. All other lines
 * about a file system share a rate limit, because `luc guard` sets a knob for each of its
 * windows.
 */
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/time64.h>

#include "../control/luc_bets.h"
#include "luc.h"

/* Chosen: lines per minute and file system, not counting on and off. */
#define TOLD_MAX 10

#define LUC_TEXT(NAME, name, knobs, help) #name,
static const char *const luc_batchings[] = { LUC_BATCHINGS(LUC_TEXT) };
static const char *const luc_copyouts[] = { LUC_COPYOUTS(LUC_TEXT) };

void luc_tell_init(struct luc_fs *fs)
{
	ratelimit_state_init(&fs->told, 60 * HZ, TOLD_MAX);
}

void luc_tell_on(const struct luc_fs *fs)
{
	const struct luc_params *p = &fs->params;

	pr_info_ratelimited("luc: %s (%u:%u): on, %s, batching %s, copyout %s\n",
			    kobject_name(&fs->kobj), MAJOR(fs->dev), MINOR(fs->dev),
			    luc_steers(p) ? "steering" : "observing only",
			    luc_batchings[p->batching], luc_copyouts[p->copyout]);
}

void luc_tell_off(const struct luc_fs *fs, const char *why)
{
	pr_info_ratelimited("luc: %s (%u:%u): off, %s; %lld commits for %lld sync events, %lld held, %lld us at most, %lld copies\n",
			    kobject_name(&fs->kobj), MAJOR(fs->dev), MINOR(fs->dev), why,
			    luc_counted(fs, commits), READ_ONCE(fs->sync_events),
			    luc_counted(fs, commits_held),
			    div_s64(luc_counted(fs, held_max_ns), NSEC_PER_USEC),
			    luc_counted(fs, copies));
}

void luc_tell_knob(struct luc_fs *fs, const char *knob, const char *value)
{
	if (__ratelimit(&fs->told))
		pr_info("luc: %s: %s set to %s\n", kobject_name(&fs->kobj), knob, value);
}

/* The average effect of holding that the bets heard, per mille of stock. */
static s64 luc_mean_permille(s64 sum_ppm, s64 pairs)
{
	return div_s64(div64_s64(sum_ppm, max_t(s64, pairs, 1)) + LUC_BETS_LIMIT_PPM, 1000);
}

/*
 * The phase of the trial changed: logs it if it is a verdict that has not been logged
 * yet.
 */
void luc_tell_verdict(struct luc_fs *fs)
{
	const struct luc_state *s = &fs->state;

	if (s->trial_phase != LUC_TRIAL_STAY_FREE &&
	    s->trial_phase != LUC_TRIAL_STAY_HELD)
		return;
	if (s->trial_phase == fs->told_verdict || !__ratelimit(&fs->told))
		return;
	fs->told_verdict = s->trial_phase;
	pr_info("luc: %s: verdict after %lld pairs: %s; throughput %+lld permille, waiting %+lld permille better by holding\n",
		kobject_name(&fs->kobj), s->rate_pairs,
		s->trial_phase == LUC_TRIAL_STAY_HELD ? "go on" : "stand aside",
		luc_mean_permille(s->rate_sum, s->rate_pairs),
		luc_mean_permille(s->wait_sum, s->wait_pairs));
}

/* A commit was not held: logs why, if a lasting property of the mount forbids it. */
void luc_tell_aside(struct luc_fs *fs, journal_t *journal)
{
	const char *why = NULL;

	if (!READ_ONCE(journal->j_max_batch_time))
		why = "mount option max_batch_time=0";
	else if (data_race(jbd2_has_feature_fast_commit(journal)))
		why = "feature fast_commit";
	if (why == fs->told_aside || (why && !__ratelimit(&fs->told)))
		return;
	fs->told_aside = why;
	if (why)
		pr_info("luc: %s: no commit is held: %s\n", kobject_name(&fs->kobj), why);
}
