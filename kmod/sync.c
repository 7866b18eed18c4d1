// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sensing sync events: which task waits for which transaction.
 *
 *   ext4_sync_file		fsync, fdatasync and O_SYNC writes begin here
 *   jbd2_complete_transaction	most of them ask for their commit here
 *   jbd2_log_wait_commit	everybody who waits for a commit ends here
 *
 * A wait of a task that came through one of the first two is a sync event and
 * may be batched. Any other wait (checkpoint, syncfs, freeze, no space left)
 * is urgent: its commit must not be held. The first two leave a mark with the
 * task's number, the third one takes it away. Two tasks may share a mark; the
 * loser's wait is then taken for urgent, which only starts a commit early.
 */
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "luc.h"

/* A mark: the task's number, a flag, and the transaction it was counted for. */
#define LUC_MARK_COUNTED BIT_ULL(31)	/* no task has a number this large */
#define LUC_MARK_TID_SHIFT 32

static u64 *luc_mark_of(struct luc_fs *fs)
{
	return &fs->marks[hash_32(current->pid, ilog2(LUC_MARKS))];
}

static void luc_mark(struct luc_fs *fs)
{
	WRITE_ONCE(*luc_mark_of(fs), current->pid);
}

static void luc_mark_counted(struct luc_fs *fs, tid_t tid)
{
	WRITE_ONCE(*luc_mark_of(fs), (u64)tid << LUC_MARK_TID_SHIFT |
				     LUC_MARK_COUNTED | current->pid);
}

/* Takes the mark of this task away; 0 if there was none. */
static u64 luc_unmark(struct luc_fs *fs)
{
	u64 *mark = luc_mark_of(fs);
	u64 old = READ_ONCE(*mark);

	if ((old & (LUC_MARK_COUNTED - 1)) != current->pid)
		return 0;
	WRITE_ONCE(*mark, 0);
	return old;
}

static bool luc_counted_for(u64 mark, tid_t tid)
{
	return (mark & LUC_MARK_COUNTED) && mark >> LUC_MARK_TID_SHIFT == tid;
}

/* Is this the arrival that the holder of the commit waits for? */
static bool luc_completes_batch(struct luc_fs *fs, tid_t tid)
{
	if (!fs->held || fs->held_tid != tid || fs->poked ||
	    fs->batch_events < fs->held_complete)
		return false;
	fs->poked = true;
	return true;
}

static void luc_arrive(struct luc_fs *fs, tid_t tid)
{
	u64 now = ktime_get_ns();
	bool complete = false;

	spin_lock(&fs->lock);
	if (luc_returns_arrive(&fs->returns, current->pid, tid)) {
		luc_count(fs, sync_events, 1);
		/* Numbers wrap: before the first one, none is older or newer. */
		if (!fs->batch_known || tid_gt(tid, fs->batch_tid)) {
			fs->batch_known = true;
			fs->batch_tid = tid;
			fs->batch_events = 0;
			fs->batch_same_task = fs->last_task == current->pid;
			fs->first_event_ns = now;
			fs->after_first_ns = 0;
		}
		if (fs->batch_tid == tid) {
			fs->batch_events++;
			fs->last_event_ns = now;
			fs->last_task = current->pid;
			fs->after_first_ns += now - fs->first_event_ns;
			complete = luc_completes_batch(fs, tid);
		}
	}
	spin_unlock(&fs->lock);
	if (complete)
		wake_up(&fs->wait);
}

/*
 * Somebody who may not be kept waits for tid. Noted also while nothing is held:
 * the commit of tid may be about to be.
 */
static void luc_urge(struct luc_fs *fs, tid_t tid)
{
	bool held;

	spin_lock(&fs->lock);
	if (!fs->urgent || tid_gt(tid, fs->urgent_tid))
		fs->urgent_tid = tid;
	fs->urgent = true;
	held = fs->held && tid_geq(tid, fs->held_tid);
	if (held)
		fs->poked = true;
	spin_unlock(&fs->lock);
	if (held)
		wake_up(&fs->wait);
}

/* Committed transactions need no waiting and are no events. */
static bool luc_committed(const journal_t *journal, tid_t tid)
{
	return tid_geq(READ_ONCE(journal->j_commit_sequence), tid);
}

void luc_on_sync_file(struct file *file)
{
	/* Here no journal is known yet; a superblock has the same number. */
	const struct super_block *sb = file_inode(file)->i_sb;
	struct luc_fs *fs;

	rcu_read_lock();
	fs = luc_fs_find_dev(sb->s_dev);
	if (fs) {
		luc_mark(fs);
		spin_lock(&fs->lock);
		fs->calls++;
		luc_returns_enter(&fs->returns, current->pid, fs->batch_tid);
		spin_unlock(&fs->lock);
	}
	rcu_read_unlock();
}

void luc_on_complete(journal_t *journal, tid_t tid)
{
	struct luc_fs *fs;

	rcu_read_lock();
	fs = luc_fs_find(journal);
	if (fs && !luc_committed(journal, tid)) {
		luc_mark_counted(fs, tid);
		luc_arrive(fs, tid);
	}
	rcu_read_unlock();
}

void luc_on_wait_commit(journal_t *journal, tid_t tid)
{
	struct luc_fs *fs;
	u64 mark;

	rcu_read_lock();
	fs = luc_fs_find(journal);
	if (fs && !luc_committed(journal, tid)) {
		mark = luc_unmark(fs);
		if (!mark) {
			luc_count(fs, urgent_events, 1);
			luc_urge(fs, tid);
		} else if (!luc_counted_for(mark, tid)) {
			luc_arrive(fs, tid);
		}
	}
	rcu_read_unlock();
}

/* Somebody waits for a transaction to be locked, so that a new one can begin. */
void luc_on_wait_locked(journal_t *journal)
{
	struct luc_fs *fs;

	rcu_read_lock();
	fs = luc_fs_find(journal);
	/* Not held: it locks by itself. Held later: the holder looks for them. */
	if (fs && READ_ONCE(fs->held))
		luc_urge(fs, READ_ONCE(fs->held_tid));
	rcu_read_unlock();
}

void luc_on_fast_commit(journal_t *journal)
{
	struct luc_fs *fs;

	rcu_read_lock();
	fs = luc_fs_find(journal);
	if (fs) {
		luc_unmark(fs);
		luc_count(fs, fast_commits, 1);
	}
	rcu_read_unlock();
}

void luc_on_destroy(journal_t *journal)
{
	luc_fs_journal_gone(journal);
}
