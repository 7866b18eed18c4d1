/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The counter table: one row for each count of an attached file system.
 *
 *   LUC_COUNTER(name, kind, help)
 *
 * kind: TOTAL only grows after the attach, MAX is the largest value seen,
 * GAUGE is the current state. The unit is the last word of the name.
 */
#ifndef LUC_COUNTERS_H
#define LUC_COUNTERS_H

#include "luc_types.h"

#define LUC_COUNTERS(LUC_COUNTER) \
	LUC_COUNTER(commits, TOTAL, "journal commits") \
	LUC_COUNTER(sync_events, TOTAL, "calls that waited for a journal commit (fsync, fdatasync, O_SYNC)") \
	LUC_COUNTER(urgent_events, TOTAL, "waits for a commit that may not be held: checkpoint, syncfs, no space") \
	LUC_COUNTER(priority_events, TOTAL, "sync events of priority_cgroup: their commit was not held, or no longer") \
	LUC_COUNTER(fast_commits, TOTAL, "sync events that a fast commit served") \
	LUC_COUNTER(commits_held, TOTAL, "commits that were held back for more sync events") \
	LUC_COUNTER(held_ns, TOTAL, "time that commits were held back") \
	LUC_COUNTER(held_max_ns, MAX, "longest time that a commit was held back") \
	LUC_COUNTER(closed_now, TOTAL, "commits that started at once: nothing to wait for") \
	LUC_COUNTER(closed_setpoint, TOTAL, "commits that started because the set point was met") \
	LUC_COUNTER(closed_idle, TOTAL, "commits that started because sync events stopped coming") \
	LUC_COUNTER(closed_limit, TOTAL, "commits that started because their time limit was reached") \
	LUC_COUNTER(closed_urgent, TOTAL, "commits that started because they became urgent") \
	LUC_COUNTER(closed_forgone, TOTAL, "commits that LUC would have held, had it not only observed") \
	LUC_COUNTER(handles, TOTAL, "journal handles: operations that changed metadata") \
	LUC_COUNTER(writes_delayed, TOTAL, "operations that slept because a commit was writing their metadata") \
	LUC_COUNTER(write_delay_ns, TOTAL, "time that operations slept for that reason") \
	LUC_COUNTER(write_delay_max_ns, MAX, "longest such sleep") \
	LUC_COUNTER(buffers_spared, TOTAL, "metadata buffers that changed while the commit wrote only their copy") \
	LUC_COUNTER(copies, TOTAL, "metadata buffers copied out") \
	LUC_COUNTER(copy_ns, TOTAL, "time that commits spent copying out") \
	LUC_COUNTER(copies_failed, TOTAL, "metadata buffers not copied out because memory was short") \
	LUC_COUNTER(copies_over_max, TOTAL, "metadata buffers not copied out because their commit had reached copyout_buffers_max") \
	LUC_COUNTER(copyout_forgone, TOTAL, "commits that LUC would have copied out, had it not only observed") \
	LUC_COUNTER(setpoint_events, GAUGE, "set point of the last commit, sync events per commit") \
	LUC_COUNTER(batch_events, GAUGE, "sync events that the last commit served") \
	LUC_COUNTER(hold_ns, GAUGE, "longest time that the PID controller may hold the next commit") \
	LUC_COUNTER(commit_avg_ns, GAUGE, "average duration of a commit, as jbd2 measures it") \
	LUC_COUNTER(gap_avg_ns, GAUGE, "average time between two sync events of one batch") \
	LUC_COUNTER(copyout_active, GAUGE, "1 while metadata is copied out")

#define LUC_COUNTER_FIELD(name, kind, help) luc_s64 name;
struct luc_counters {
	LUC_COUNTERS(LUC_COUNTER_FIELD)
};

#define LUC_COUNTER_INDEX(name, kind, help) LUC_COUNTER_##name,
enum luc_counter_index { LUC_COUNTERS(LUC_COUNTER_INDEX) LUC_COUNTER_NR };

_Static_assert(sizeof(struct luc_counters) == LUC_COUNTER_NR * sizeof(luc_s64),
	       "counters must form an array");

#endif
