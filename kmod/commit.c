// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holding commits back.
 *
 * kjournald2 calls jbd2_journal_commit_transaction() with no lock held, while
 * the transaction is still T_RUNNING: sync events that arrive now still join
 * it, and sleeping here delays nobody but those who wait for this very commit.
 * The hook asks control/ how long to wait, sleeps that long at most, and
 * returns into the function. It never sleeps when
 *
 *   - the caller is not the journal's own thread (umount commits by itself),
 *   - the journal is aborted or being shut down: commits must get through,
 *   - updates are barred (freeze, flush): their owner waits for us,
 *   - tasks wait for the transaction to be locked: they hold up operations,
 *   - the transaction is nearly full or log space is short: same,
 *   - somebody checkpoints: those whom we would wait for queue behind it,
 *   - the journal takes fast commits: those whom we would wait for make one of
 *     their own meanwhile, and ext4's replay of many is less sound than of few,
 *   - a wait came that is no sync event (see sync.c),
 *   - the system suspends: the freezer waits for those whom we keep waiting,
 *   - LUC is being detached.
 *
 * All of these are looked at again every LOOK_NS, in case one of them comes
 * without waking us. The sleep is TASK_IDLE: no load average, no hung-task
 * report, and no signal ends it.
 */
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "../control/luc_control.h"
#include "luc.h"
#include "trace.h"

#define LOOK_NS (1 * NSEC_PER_MSEC)

struct luc_commit {
	journal_t *journal;
	struct luc_fs *fs;		/* under RCU, or kept */
	bool kept;			/* by a reference, because we slept */
	struct luc_input in;		/* what was last sensed */
	tid_t tid;			/* 0: no transaction to commit */
	ktime_t begun;			/* when that transaction was begun */
};

/* Under j_state_lock. Tasks queue behind a checkpoint, or soon will. */
static bool luc_space_short(const transaction_t *t, journal_t *journal)
{
	int most = journal->j_max_transaction_buffers;

	/* Leave a quarter for the handles that are about to start. */
	return (t && atomic_read(&t->t_outstanding_credits) > most / 4 * 3) ||
	       mutex_is_locked(&journal->j_checkpoint_mutex) ||
	       jbd2_log_space_left(journal) < most;
}

/*
 * Everything that forbids holding this commit back, but for urgent waits. Notes
 * which transaction it is on the way, to take the lock only once.
 */
static bool luc_journal_urgent(struct luc_commit *c)
{
	journal_t *journal = c->journal;
	const transaction_t *t;
	bool urgent;

	read_lock(&journal->j_state_lock);
	t = journal->j_running_transaction;
	c->tid = t ? t->t_tid : 0;
	c->begun = t ? t->t_start_time : 0;
	c->in.space_short = luc_space_short(t, journal);
	c->in.writes = t ? atomic_read(&t->t_handle_count) : 0;
	urgent = c->in.space_short || !t ||
		 (journal->j_flags & (JBD2_UNMOUNT | JBD2_ABORT)) ||
		 journal->j_barrier_count > 0 ||
		 waitqueue_active(&journal->j_wait_transaction_locked) ||
		 jbd2_has_feature_fast_commit(journal);
	read_unlock(&journal->j_state_lock);
	return urgent || freezing(current);
}

static void luc_commit_sense(struct luc_commit *c)
{
	bool urgent = luc_journal_urgent(c);
	struct luc_fs *fs = c->fs;

	spin_lock(&fs->lock);
	/* Behind the lock: no event of this batch is later. */
	c->in.now_ns = ktime_get_ns();
	if (fs->params_new) {
		fs->params_now = fs->params;
		fs->params_new = false;
	}
	c->in.events = luc_events_of(fs, c->tid);
	c->in.events_wait_ns = luc_wait_of(fs, c->tid, c->in.now_ns);
	c->in.calls = fs->calls;
	c->in.last_event_ns = c->in.events ? fs->last_event_ns : 0;
	c->in.expected_events = luc_returns_expected(&fs->returns, c->tid,
						     &c->in.syncing_events);
	c->in.same_task = c->in.events && fs->batch_same_task;
	if (luc_is_urgent(fs, c->tid))
		urgent = true;
	else if (c->tid)
		fs->urgent = false;	/* long ago: its number must not come round */
	spin_unlock(&fs->lock);
	c->in.age_ns = c->in.now_ns - ktime_to_ns(c->begun);
	c->in.commit_avg_ns = READ_ONCE(c->journal->j_average_commit_time);
	c->in.urgent = urgent || READ_ONCE(fs->gone);
}

/*
 * A step that somebody records. Apart from the others, because kernels clear
 * what a function has on its stack, and a record is large.
 */
static noinline void luc_step_recorded(struct luc_commit *c, enum luc_step step,
				       const struct luc_input *in,
				       struct luc_output *out)
{
	struct luc_fs *fs = c->fs;
	struct luc_decision d;

	d.step = step;
	d.params = fs->params_now;
	d.in = *in;
	d.state = fs->state;
	luc_control_step(step, &fs->params_now, &fs->state, in, out);
	d.out = *out;
	trace_luc_decision(fs->dev, c->tid, &d);
}

static void luc_step(struct luc_commit *c, enum luc_step step,
		     const struct luc_input *in, struct luc_output *out)
{
	struct luc_fs *fs = c->fs;

	if (trace_luc_decision_enabled())
		luc_step_recorded(c, step, in, out);
	else
		luc_control_step(step, &fs->params_now, &fs->state, in, out);
}

/* From now on an arrival that completes the batch pokes us. */
static void luc_hold_begin(struct luc_commit *c)
{
	struct luc_fs *fs = c->fs;

	spin_lock(&fs->lock);
	fs->held = true;
	fs->held_tid = c->tid;
	fs->held_complete = luc_complete_events(&fs->params_now, &fs->state);
	/* Recheck: the last arrival or an urgent wait may have come since OPEN. */
	fs->poked = luc_events_of(fs, c->tid) >= fs->held_complete ||
		    luc_is_urgent(fs, c->tid);
	spin_unlock(&fs->lock);
}

static void luc_hold_end(struct luc_fs *fs)
{
	spin_lock(&fs->lock);
	fs->held = false;
	fs->poked = false;
	spin_unlock(&fs->lock);
}

void luc_commit_poke(struct luc_fs *fs)
{
	spin_lock(&fs->lock);
	if (fs->held) {
		fs->urgent = true;
		fs->urgent_tid = fs->held_tid;
		fs->poked = true;
	}
	spin_unlock(&fs->lock);
	wake_up_all(&fs->wait);
}

static void luc_hold_sleep(struct luc_fs *fs, s64 wake_ns)
{
	s64 look_ns = ktime_get_ns() + LOOK_NS;
	ktime_t until = ns_to_ktime(min(wake_ns, look_ns));
	DEFINE_WAIT(wait);

	prepare_to_wait(&fs->wait, &wait, TASK_IDLE);
	if (!READ_ONCE(fs->poked) && !READ_ONCE(fs->gone) &&
	    !freezing(current))
		schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);
	finish_wait(&fs->wait, &wait);
	/* Looked at: the next poke is a new one. */
	WRITE_ONCE(fs->poked, false);
}

/* Holds the commit as long as the controller says; returns why it stopped. */
static enum luc_reason luc_hold_polling(struct luc_commit *c, struct luc_output *out)
{
	luc_hold_begin(c);
	do {
		luc_hold_sleep(c->fs, out->wake_ns);
		luc_commit_sense(c);
		luc_step(c, LUC_STEP_POLL, &c->in, out);
	} while (out->reason == LUC_REASON_HOLD);
	luc_hold_end(c->fs);
	return out->reason;
}

/* Sleeping ends the RCU section: a reference and a count take its place. */
static enum luc_reason luc_hold(struct luc_commit *c, struct luc_output *out)
{
	enum luc_reason reason;

	if (!luc_fs_keep(c->fs))
		return LUC_REASON_NOW;
	c->kept = true;
	luc_hook_enter();
	rcu_read_unlock();
	reason = luc_hold_polling(c, out);
	rcu_read_lock();
	return reason;
}

static void luc_copyout_decide(struct luc_commit *c, const struct luc_input *in)
{
	struct luc_fs *fs = c->fs;
	struct luc_output out;

	luc_step(c, LUC_STEP_COPYOUT, in, &out);
	luc_copyout_set(fs, out.copy && luc_steers(&fs->params_now));
	fs->copies_left = fs->params_now.copyout_buffers_max;
	luc_gauge(fs, copyout_active, out.copy);
}

static void luc_commit_copyout(struct luc_commit *c)
{
	struct luc_fs *fs = c->fs;
	s64 delayed = luc_counted(fs, writes_delayed);
	s64 delay_ns = luc_counted(fs, write_delay_ns);
	s64 saved = luc_counted(fs, writes_saved);
	s64 copy_ns = luc_counted(fs, copy_ns);
	const struct luc_input in = {
		.now_ns = c->in.now_ns,
		.space_short = c->in.space_short,
		.writes = c->in.writes,
		.writes_delayed = delayed - fs->writes_delayed_seen,
		.writes_delay_ns = delay_ns - fs->write_delay_ns_seen,
		.writes_saved = saved - fs->writes_saved_seen,
		.copy_ns = copy_ns - fs->copy_ns_seen,
		.commit_events = fs->closed_events,
	};

	fs->writes_delayed_seen = delayed;
	fs->write_delay_ns_seen = delay_ns;
	fs->writes_saved_seen = saved;
	fs->copy_ns_seen = copy_ns;
	luc_count(fs, writes, in.writes);
	if (!luc_copyout_is_idle(&fs->params_now, &fs->state, &in)) {
		luc_copyout_decide(c, &in);
		return;
	}
	luc_copyout_set(fs, false);
	luc_gauge(fs, copyout_active, 0);
}

static void luc_commit_account(struct luc_commit *c, enum luc_reason reason,
			       s64 held_ns)
{
	struct luc_fs *fs = c->fs;

	luc_count(fs, commits, 1);
	switch (reason) {
	case LUC_REASON_SETPOINT:
		luc_count(fs, closed_setpoint, 1);
		break;
	case LUC_REASON_IDLE:
		luc_count(fs, closed_idle, 1);
		break;
	case LUC_REASON_LIMIT:
		luc_count(fs, closed_limit, 1);
		break;
	case LUC_REASON_URGENT:
		luc_count(fs, closed_urgent, 1);
		break;
	default:
		luc_count(fs, closed_now, 1);
	}
	if (held_ns) {
		luc_count(fs, commits_held, 1);
		luc_count(fs, held_ns, held_ns);
		luc_count_max(&fs->counters[LUC_COUNTER_held_max_ns], held_ns);
	}
	luc_gauge(fs, setpoint_events, fs->state.setpoint_now_events);
	luc_gauge(fs, batch_events, c->in.events);
	luc_gauge(fs, hold_ns, max_t(s64, fs->state.hold_ns, 0));
	luc_gauge(fs, gap_avg_ns, fs->state.gap_ns);
	luc_gauge(fs, commit_avg_ns, c->journal->j_average_commit_time);
}

static void luc_commit_batch(struct luc_commit *c)
{
	bool steers = luc_steers(&c->fs->params_now);
	enum luc_reason reason;
	struct luc_output out;
	s64 held_ns = 0;

	luc_step(c, LUC_STEP_OPEN, &c->in, &out);
	reason = out.reason;
	if (reason == LUC_REASON_HOLD && steers) {
		u64 begin = ktime_get_ns();

		reason = luc_hold(c, &out);
		held_ns = ktime_get_ns() - begin;
	}
	luc_step(c, LUC_STEP_CLOSE, &c->in, &out);
	c->fs->closed_events = c->in.events;
	luc_commit_account(c, reason, held_ns);
	trace_luc_commit(c->fs->dev, c->tid, c->in.events,
			 c->fs->state.setpoint_now_events, held_ns, reason, steers);
}

/*
 * Most commits are neither held nor copied out, and then this is all there is:
 * no reference, no count, two short locks. Under RCU the file system stays; and
 * a task that does not sleep here is seen by synchronize_rcu_tasks().
 */
void luc_on_commit(journal_t *journal)
{
	struct luc_commit c = { .journal = journal };

	/* Not the journal thread: umount's last commit. Stay out of its way. */
	if (current != READ_ONCE(journal->j_task))
		return;
	rcu_read_lock();
	c.fs = luc_fs_find(journal);
	if (c.fs) {
		luc_commit_sense(&c);
		if (c.tid) {
			luc_commit_copyout(&c);
			luc_commit_batch(&c);
		}
	}
	rcu_read_unlock();
	if (c.kept) {
		luc_fs_put(c.fs);
		luc_hook_leave();
	}
}
