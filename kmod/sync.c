// SPDX-License-Identifier: GPL-2.0-only
/*
 * Detecting sync events: which task waits for which transaction.
 *
 *   ext4_sync_file		fsync, fdatasync and O_SYNC writes begin here
 *   jbd2_complete_transaction	most of them ask for their commit here
 *   jbd2_log_wait_commit	every task that waits for a commit ends here
 *
 * A wait of a task that came through one of the first two is a sync event and may be
 * batched; nfsd and others that write an inode durably come through the second alone. Any
 * other wait (checkpoint, syncfs, freeze, no space left, memory reclaim) is urgent: its
 * commit must not be held. A sync event of the control group with priority is both: it
 * counts as an event, and its commit must not be held.
 *
 * The estimator of returning tasks knows which tasks are inside a sync call, and which
 * have arrived for which transaction. Two tasks may share one of its slots: the wait of
 * the task that lost its slot then counts as urgent, which only starts a commit early.
 * The trampoline keeps waits that the second hook counted away from the third (entry.c).
 */
#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "entry.h"
#include "luc.h"

/* Tells whether this arrival is the one that the holder of the commit waits for. */
static bool luc_completes_batch(struct luc_fs *fs, tid_t tid)
{
	if (!fs->held || fs->held_tid != tid || fs->poked ||
	    fs->batch_events < fs->held_complete)
		return false;
	fs->poked = true;
	return true;
}

/*
 * Under fs->lock: an urgent waiter for tid. Recorded even while nothing is held, because
 * the commit of tid may be held soon. Returns whether the holder must be woken.
 */
static bool luc_urge(struct luc_fs *fs, tid_t tid)
{
	if (!fs->urgent || tid_gt(tid, fs->urgent_tid))
		fs->urgent_tid = tid;
	fs->urgent = true;
	if (!fs->held || !tid_geq(tid, fs->held_tid))
		return false;
	fs->poked = true;
	return true;
}

/*
 * Tells whether this task is in that control group of version 2 or in one below it. Every
 * task is at least in the root group, even where only version 1 is mounted.
 */
static bool luc_in_cgroup(u64 id)
{
	bool found = false;
#ifdef CONFIG_CGROUPS
	struct cgroup *group;

	rcu_read_lock();
	for (group = task_dfl_cgroup(current); group && !found; group = cgroup_parent(group))
		found = cgroup_id(group) == id;
	rcu_read_unlock();
#endif
	return found;
}

/*
 * Under fs->lock: a new sync event while a control group has priority. No commit is held
 * while a task of that group waits for it. Wakes the holder itself: other events must
 * not pay for a second reason to do so.
 */
static noinline void luc_priority_arrives(struct luc_fs *fs, tid_t tid)
{
	if (!luc_in_cgroup(fs->params.priority_cgroup))
		return;
	luc_count(fs, priority_events, 1);
	if (luc_urge(fs, tid))
		wake_up(&fs->wait);
}

/* Under fs->lock. Returns whether the holder must be woken. */
static __always_inline bool luc_arrive(struct luc_fs *fs, tid_t tid, s64 now)
{
	pid_t task = current->pid;

	if (!luc_returns_arrive(&fs->returns, task, tid))
		return false;
	fs->sync_events++;
	if (unlikely(fs->params.priority_cgroup))
		luc_priority_arrives(fs, tid);
	/* Numbers wrap: before the first batch, none is older or newer. */
	if (!fs->batch_known || tid_gt(tid, fs->batch_tid)) {
		fs->batch_known = true;
		fs->batch_tid = tid;
		fs->batch_events = 0;
		fs->batch_same_task = fs->last_task == task;
		fs->first_event_ns = now;
		fs->after_first_ns = 0;
	}
	if (fs->batch_tid != tid)
		return false;
	fs->batch_events++;
	fs->last_event_ns = now;
	fs->last_task = task;
	fs->after_first_ns += now - fs->first_event_ns;
	return luc_completes_batch(fs, tid);
}

/* Under fs->lock: a wait that is no sync event. */
static bool luc_urgent_arrives(struct luc_fs *fs, tid_t tid)
{
	luc_count(fs, urgent_events, 1);
	return luc_urge(fs, tid);
}

/*
 * Tells whether the task reclaims memory, which may evict an inode that needs a commit
 * first. That is not a sync call. ext4_write_inode() does so on all kernels,
 * ext4_evict_inode() with data=journal before 6.4 (kernel commit 56c2a0e3d90d).
 */
static bool luc_reclaims(void)
{
	return current->flags & PF_MEMALLOC;
}

/* A committed transaction needs no waiting and is no event. */
static bool luc_committed(const journal_t *journal, tid_t tid)
{
	return tid_geq(READ_ONCE(journal->j_commit_sequence), tid);
}

/*
 * Processors can make millions of fsyncs a second that need no commit, so these take no
 * lock and write no shared memory. The estimator is read without the lock: a concurrent
 * change can only make it miss this call, as if two tasks shared a slot. Returns whether
 * the estimator already knows this call.
 */
static noinline bool luc_repeats(struct luc_fs *fs)
{
	return data_race(luc_returns_repeats(&fs->returns, current->pid, fs->batch_tid));
}

void luc_on_sync_file(dev_t dev)
{
	struct luc_fs *fs;

	rcu_read_lock_sched();
	fs = luc_fs_find(dev);
	if (fs && !(data_race(luc_returns_all_needless(&fs->returns)) && luc_repeats(fs))) {
		spin_lock(&fs->lock);
		luc_returns_enter(&fs->returns, current->pid, fs->batch_tid);
		spin_unlock(&fs->lock);
	}
	rcu_read_unlock_sched();
}

void luc_on_complete(journal_t *journal, tid_t tid, dev_t dev)
{
	struct luc_fs *fs;
	bool wake;
	s64 now;

	if (luc_committed(journal, tid))
		return;
	rcu_read_lock_sched();
	fs = luc_fs_find(dev);
	if (fs) {
		now = ktime_get_ns();
		spin_lock(&fs->lock);
		if (unlikely(luc_reclaims()))
			wake = luc_urgent_arrives(fs, tid);
		else
			wake = luc_arrive(fs, tid, now);
		spin_unlock(&fs->lock);
		if (wake)
			wake_up(&fs->wait);
	}
	rcu_read_unlock_sched();
}

/* Returns whether the holder must be woken. */
static noinline bool luc_waits(struct luc_fs *fs, tid_t tid, unsigned long caller)
{
	s64 now = ktime_get_ns();
	bool wake = false;

	spin_lock(&fs->lock);
	switch (luc_returns_seen(&fs->returns, current->pid, tid)) {
	case LUC_RETURNS_ARRIVED:
		luc_learn_counted(caller);
		break;
	case LUC_RETURNS_SYNCING:
		wake = luc_arrive(fs, tid, now);
		break;
	default:
		wake = luc_urgent_arrives(fs, tid);
	}
	spin_unlock(&fs->lock);
	return wake;
}

void luc_on_wait_commit(journal_t *journal, tid_t tid, dev_t dev, unsigned long caller)
{
	struct luc_fs *fs;

	if (luc_committed(journal, tid))
		return;
	rcu_read_lock_sched();
	fs = luc_fs_find(dev);
	if (fs && luc_waits(fs, tid, caller))
		wake_up(&fs->wait);
	rcu_read_unlock_sched();
}

/* A task waits for a transaction to be locked, so that a new one can begin. */
void luc_on_wait_locked(journal_t *journal)
{
	struct luc_fs *fs;
	bool wake;

	rcu_read_lock_sched();
	fs = luc_fs_find(luc_dev_of(journal));
	/*
	 * A commit that is not held locks it by itself. If one is held later, the holder
	 * checks for waiters.
	 */
	if (fs && READ_ONCE(fs->held)) {
		spin_lock(&fs->lock);
		wake = luc_urge(fs, fs->held_tid);
		spin_unlock(&fs->lock);
		if (wake)
			wake_up(&fs->wait);
	}
	rcu_read_unlock_sched();
}

void luc_on_fast_commit(journal_t *journal)
{
	struct luc_fs *fs;

	rcu_read_lock_sched();
	fs = luc_fs_find(luc_dev_of(journal));
	if (fs)
		luc_count(fs, fast_commits, 1);
	rcu_read_unlock_sched();
}

void luc_on_destroy(journal_t *journal)
{
	luc_fs_journal_gone(journal);
}
