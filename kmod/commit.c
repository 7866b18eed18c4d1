// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holding commits back.
 *
 * kjournald2 calls jbd2_journal_commit_transaction() with no lock held, while the
 * transaction is still T_RUNNING: sync events that arrive now still join it, and a
 * sleep here delays only tasks that wait for this very commit. The hook asks control/
 * how long to wait, sleeps at most that long, and returns into the function. It never
 * sleeps when
 *
 *   - the caller is not the journal's own thread (umount commits by itself),
 *   - the journal is aborted or being shut down: commits must get through,
 *   - updates are barred (freeze, flush): their owner waits for this commit,
 *   - tasks wait for the transaction to be locked: they hold up operations,
 *   - the transaction is nearly full or log space is short, for the same reason,
 *   - a checkpoint runs: the tasks that a hold would wait for queue behind it,
 *   - the journal takes fast commits: tasks make their own during a hold, and ext4
 *     replays many of them less reliably than few,
 *   - a waiting task is not inside a sync call, or has priority (see sync.c),
 *   - the mount option max_batch_time is 0: an administrator wants no batching,
 *   - the system is suspending: the freezer waits for the tasks that a hold delays,
 *   - LUC is being detached.
 *
 * All of these, and the knobs, are rechecked every LOOK_NS, in case one changes
 * without a wake-up. The sleep is TASK_IDLE: it adds nothing to the load average, no
 * hung-task report mentions it, and no signal ends it. It counts as a wait for I/O, like
 * the commit that it delays: schedutil raises the clock of a task that wakes from such a
 * wait, and fewer commits would otherwise mean a lower clock.
 */
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/tick.h>
#include <linux/timekeeping.h>

#include "../control/luc_control.h"
#include "luc.h"
#include "trace.h"

#define LOOK_NS (1 * NSEC_PER_MSEC)	/* chosen: bounds the delay of changes without a wake-up */
#define BUSY_NS (50 * NSEC_PER_MSEC)	/* chosen: a handful of commits; a look takes some us */

/* True if tasks queue behind a checkpoint, or soon will. */
static __always_inline bool luc_space_short(journal_t *journal, const transaction_t *t)
{
	unsigned int most = journal->j_max_transaction_buffers;

	/* Leave a quarter for the handles that are about to start. */
	return atomic_read(&t->t_outstanding_credits) > most / 4 * 3 ||
	       mutex_is_locked(&journal->j_checkpoint_mutex) ||
	       data_race(jbd2_log_space_left(journal)) < most;
}

/*
 * Tells whether a freezer runs. freezing(current) would not do: for a kernel thread it
 * is true only once user space is frozen, and until then the freezer waits for the
 * tasks that wait for this commit. A frozen version 1 control group counts, too, for
 * as long as it stays frozen.
 */
static __always_inline bool luc_freezer_runs(void)
{
#ifdef CONFIG_FREEZER
	return static_branch_unlikely(&freezer_active);
#else
	return false;
#endif
}

/*
 * Everything that forbids holding this commit, except urgent waits. It is read without
 * j_state_lock, because it could change as soon as that lock is released, and a held
 * commit is rechecked.
 */
static __always_inline bool luc_journal_urgent(journal_t *journal, const transaction_t *t)
{
	return luc_space_short(journal, t) ||
	       (READ_ONCE(journal->j_flags) & (JBD2_UNMOUNT | JBD2_ABORT)) ||
	       READ_ONCE(journal->j_barrier_count) > 0 ||
	       waitqueue_active(&journal->j_wait_transaction_locked) ||
	       data_race(jbd2_has_feature_fast_commit(journal)) ||
	       !READ_ONCE(journal->j_max_batch_time) ||
	       luc_freezer_runs();
}

/* Picks up knobs that were changed. */
static noinline void luc_commit_params(struct luc_fs *fs)
{
	spin_lock(&fs->lock);
	fs->params_now = fs->params;
	fs->params_new = false;
	fs->copyout_rests = false;
	spin_unlock(&fs->lock);
}

static __always_inline void luc_commit_sense(struct luc_fs *fs, journal_t *journal,
					     const transaction_t *t)
{
	bool urgent = luc_journal_urgent(journal, t);
	struct luc_input *in = &fs->in;
	tid_t tid = t->t_tid;

	in->handles = atomic_read(&t->t_handle_count);
	if (READ_ONCE(fs->params_new))
		luc_commit_params(fs);
	spin_lock(&fs->lock);
	/* After taking the lock: no event of this batch is later. */
	in->now_ns = ktime_get_ns();
	in->events = luc_events_of(fs, tid);
	if (in->events) {
		in->events_wait_ns = in->events * (in->now_ns - fs->first_event_ns) -
				     fs->after_first_ns;
		in->last_event_ns = fs->last_event_ns;
		in->same_task = fs->batch_same_task;
	} else {
		in->events_wait_ns = 0;
		in->last_event_ns = 0;
		in->same_task = 0;
	}
	in->expected_events = luc_returns_expected(&fs->returns, tid,
						   &in->syncing_events);
	if (luc_is_urgent(fs, tid))
		urgent = true;
	else
		fs->urgent = false;	/* past: tids wrap, and it must not become urgent anew */
	spin_unlock(&fs->lock);
	in->age_ns = in->now_ns - ktime_to_ns(t->t_start_time);
	in->commit_avg_ns = READ_ONCE(journal->j_average_commit_time);
	in->urgent = urgent;
}

/*
 * A recorded step. A function of its own: kernels may zero a function's stack, and a
 * record is large.
 */
static noinline void luc_step_recorded(struct luc_fs *fs, tid_t tid, enum luc_step step,
				       const struct luc_input *in)
{
	struct luc_decision d;

	d.step = step;
	d.params = fs->params_now;
	d.in = *in;
	d.state = fs->state;
	luc_control_step(step, &fs->params_now, &fs->state, in, &fs->out);
	d.out = fs->out;
	trace_luc_decision(fs->dev, tid, &d);
}

static void luc_step(struct luc_fs *fs, tid_t tid, enum luc_step step,
		     const struct luc_input *in)
{
	if (trace_luc_decision_enabled())
		luc_step_recorded(fs, tid, step, in);
	else
		luc_control_step(step, &fs->params_now, &fs->state, in, &fs->out);
}

/* From now on the arrival that the controller waits for pokes the holder. */
static void luc_hold_begin(struct luc_fs *fs, tid_t tid)
{
	spin_lock(&fs->lock);
	fs->held = true;
	fs->held_tid = tid;
	fs->held_complete = luc_complete_events(&fs->params_now, &fs->state);
	/* Recheck: an arrival or an urgent waiter may have come since the step. */
	fs->poked = luc_events_of(fs, tid) >= fs->held_complete ||
		    luc_is_urgent(fs, tid);
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
	unsigned int in_iowait = current->in_iowait;
	DEFINE_WAIT(wait);

	prepare_to_wait(&fs->wait, &wait, TASK_IDLE);
	if (!READ_ONCE(fs->poked) && !READ_ONCE(fs->gone) && !luc_freezer_runs()) {
		/* Like io_schedule(), which has no such timer: cpufreq governors see I/O. */
		current->in_iowait = 1;
		schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);
		current->in_iowait = in_iowait;
	}
	finish_wait(&fs->wait, &wait);
	/* The holder rechecks now: a later poke is a new one. */
	WRITE_ONCE(fs->poked, false);
}

/* The controller knows of neither reason: LUC is detached, or mode observe was set. */
static bool luc_hold_forgone(const struct luc_fs *fs)
{
	return READ_ONCE(fs->gone) || !luc_steers(&fs->params_now);
}

/*
 * Holds the commit as long as the controller says. Returns why it stopped, which is
 * still HOLD if the hold was forgone.
 */
static enum luc_reason luc_hold_polling(struct luc_fs *fs, journal_t *journal,
					const transaction_t *t)
{
	const struct luc_output *out = &fs->out;

	do {
		luc_hold_begin(fs, t->t_tid);
		luc_hold_sleep(fs, out->wake_ns);
		luc_commit_sense(fs, journal, t);
		luc_step(fs, t->t_tid, LUC_STEP_POLL, &fs->in);
	} while (out->reason == LUC_REASON_HOLD && !luc_hold_forgone(fs));
	luc_hold_end(fs);
	return out->reason;
}

/*
 * Sleeping ends the RCU section: the caller's reference and a count replace it.
 * Returns how long the commit was held.
 */
static noinline s64 luc_hold(struct luc_fs *fs, journal_t *journal,
			     const transaction_t *t, enum luc_reason *reason)
{
	u64 begin = ktime_get_ns();

	luc_hook_enter();
	rcu_read_unlock_sched();
	*reason = luc_hold_polling(fs, journal, t);
	rcu_read_lock_sched();
	return ktime_get_ns() - begin;
}

/* Tells copy-out how the last commit affected writers. */
static noinline void luc_copyout_decide(struct luc_fs *fs, tid_t tid)
{
	enum luc_copies copies;
	s64 delayed, spared;
	struct luc_input in;

	/* First: anything counted after this is news for the next commit. */
	WRITE_ONCE(fs->copyout_news, false);
	smp_mb();
	delayed = luc_counted(fs, writes_delayed);
	spared = luc_counted(fs, buffers_spared);
	in = (struct luc_input){
		.now_ns = fs->in.now_ns,
		.handles = fs->in.handles,
		.writes_delayed = delayed - fs->writes_delayed_seen,
		.buffers_spared = spared - fs->buffers_spared_seen,
	};
	fs->writes_delayed_seen = delayed;
	fs->buffers_spared_seen = spared;
	luc_step(fs, tid, LUC_STEP_COPYOUT, &in);
	copies = fs->out.copy;
	if (luc_steers(&fs->params_now)) {
		luc_copyout_set(fs, copies);
	} else {
		luc_copyout_set(fs, LUC_COPY_NONE);
		luc_count(fs, copyout_forgone, copies != LUC_COPY_NONE);
	}
	fs->copies_left = fs->params_now.copyout_buffers_max;
	/* fs->in counts no delayed writer, like the input of a quiet commit. */
	fs->copyout_rests = copies == LUC_COPY_NONE &&
			    luc_copyout_is_idle(&fs->params_now, &fs->state, &fs->in);
}

static void luc_commit_copyout(struct luc_fs *fs, tid_t tid)
{
	luc_count(fs, handles, fs->in.handles);
	if (!fs->copyout_rests || READ_ONCE(fs->copyout_news))
		luc_copyout_decide(fs, tid);
}

static void luc_commit_account(struct luc_fs *fs, journal_t *journal,
			       enum luc_reason reason, s64 held_ns)
{
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
		luc_tell_aside(fs, journal);
		break;
	case LUC_REASON_HOLD:
		luc_count(fs, closed_forgone, 1);
		break;
	default:
		luc_count(fs, closed_now, 1);
	}
	if (held_ns) {
		luc_count(fs, commits_held, 1);
		luc_count(fs, held_ns, held_ns);
		luc_count_max(&fs->counters[LUC_COUNTER_held_max_ns], held_ns);
	}
}

static void luc_commit_told(const struct luc_fs *fs, const transaction_t *t,
			    enum luc_reason reason, s64 held_ns)
{
	if (trace_luc_commit_enabled())
		trace_luc_commit(fs->dev, t->t_tid, fs->in.events,
				 fs->state.setpoint_now_events, held_ns, reason,
				 luc_steers(&fs->params_now));
}

/*
 * How long all online processors have been idle, us, summed up. A processor whose tasks
 * wait for a disk is idle, too. U64_MAX if the kernel does not count this: it was booted
 * with nohz=off, or has no high resolution timers yet.
 */
static u64 luc_idle_us(void)
{
	u64 all_us = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		u64 idle_us = get_cpu_idle_time_us(cpu, NULL);

		if (idle_us == U64_MAX)
			return U64_MAX;
		all_us += idle_us + get_cpu_iowait_time_us(cpu, NULL);
	}
	return all_us;
}

/*
 * Updates busy_permille. Every look comes before a commit, so a share is one of whole
 * turns of commits and of the work in between. A processor that came or went falsifies
 * one share.
 */
static noinline void luc_busy_look(struct luc_fs *fs)
{
	s64 all_us = (fs->in.now_ns - fs->busy_looked_ns) / NSEC_PER_USEC * num_online_cpus();
	u64 idle_us = luc_idle_us();
	s64 busy_us = all_us - (s64)(idle_us - fs->idle_us);

	fs->in.busy_permille = 0;
	if (fs->busy_looked_ns && idle_us != U64_MAX)
		fs->in.busy_permille = clamp(busy_us, 0, all_us) * 1000 / max(all_us, 1);
	fs->busy_looked_ns = fs->in.now_ns;
	fs->idle_us = idle_us;
}

/* Returns whether it took a reference to fs in order to sleep. */
static noinline bool luc_commit_batch(struct luc_fs *fs, journal_t *journal,
				      const transaction_t *t)
{
	s64 trial_phase = fs->state.trial_phase;
	enum luc_reason reason;
	s64 held_ns = 0;
	bool kept = false;

	if (fs->in.now_ns - fs->busy_looked_ns >= BUSY_NS)
		luc_busy_look(fs);
	luc_step(fs, t->t_tid, LUC_STEP_OPEN, &fs->in);
	reason = fs->out.reason;
	if (reason == LUC_REASON_HOLD && luc_steers(&fs->params_now)) {
		kept = luc_fs_keep(fs);
		if (kept)
			held_ns = luc_hold(fs, journal, t, &reason);
		else
			reason = LUC_REASON_NOW;
	}
	luc_step(fs, t->t_tid, LUC_STEP_CLOSE, &fs->in);
	if (fs->state.trial_phase != trial_phase)
		luc_tell_verdict(fs);
	luc_commit_account(fs, journal, reason, held_ns);
	luc_commit_told(fs, t, reason, held_ns);
	return kept;
}

/* The usual commit: not held, and not recorded. */
static bool luc_commit_pass(struct luc_fs *fs, const transaction_t *t)
{
	if (trace_luc_decision_enabled() ||
	    !luc_control_pass(&fs->params_now, &fs->state, &fs->in))
		return false;
	luc_count(fs, closed_now, 1);
	luc_commit_told(fs, t, LUC_REASON_NOW, 0);
	return true;
}

/*
 * Most commits are neither held nor copied out: they take one short lock, but neither a
 * reference nor a count. RCU protects fs, and synchronize_rcu_tasks() waits for tasks
 * that do not sleep here.
 */
void luc_on_commit(journal_t *journal, dev_t dev)
{
	/* It cannot go away: only this task commits it, and it has not done so yet. */
	const transaction_t *t = smp_load_acquire(&journal->j_running_transaction);
	struct luc_fs *fs;
	bool kept = false;

	/* Not the journal's thread: umount's last commit. Never hold it. */
	if (!t || current != READ_ONCE(journal->j_task))
		return;
	rcu_read_lock_sched();
	fs = luc_fs_find(dev);
	if (fs) {
		luc_commit_sense(fs, journal, t);
		luc_commit_copyout(fs, t->t_tid);
		luc_count(fs, commits, 1);
		if (!luc_commit_pass(fs, t))
			kept = luc_commit_batch(fs, journal, t);
		fs->closed_events = fs->in.events;
	}
	rcu_read_unlock_sched();
	if (kept) {
		luc_fs_put(fs);
		luc_hook_leave();
	}
}
