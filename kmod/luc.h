/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * luc.ko on one page.
 *
 *   layout.c	refuses kernels that this build was not made for
 *   hooks.c	installs the trampoline at the entry of jbd2 and ext4 functions
 *   entry.c	the trampoline: lets calls for other file systems through
 *   fs.c	which file systems are attached; finds them by device number
 *   sync.c	senses sync events: which task waits for which transaction
 *   commit.c	acts: holds a commit back; learns from it
 *   copyout.c	acts: freezes metadata before it is written; senses delays
 *   sysfs.c	knobs and counters from the tables in abi/
 *   trace.c	the tracepoints
 *   tell.c	the messages in the kernel log
 *
 * control/ makes the decisions. When anything is unknown or in doubt, LUC falls back to
 * stock behaviour.
 */
#ifndef LUC_KMOD_H
#define LUC_KMOD_H

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/cache.h>
#include <linux/jbd2.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/ratelimit_types.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../abi/luc_counters.h"
#include "../abi/luc_decision.h"
#include "../abi/luc_knobs.h"
#include "../control/luc_returns.h"

#define LUC_VERSION "0.1.0"
#define LUC_MARKS_BITS 10	/* a thousand contended buffers; 4 KiB */
#define LUC_TABLE_SLOTS 64u	/* as many as luc_entry.devs has bits */

/*
 * One attached file system.
 *
 * Hooks find it by device number under RCU and may keep it with a kobject reference,
 * so nothing here depends on the life of a journal_t: a journal is only touched inside
 * a hook that received it.
 */
struct luc_fs {
	/*
	 * Every hook on every processor reads this line; it hardly ever changes. The
	 * system test lines.rs checks that nothing else is on it.
	 */
	struct hlist_node node;		/* luc_table, under luc_mutex and RCU */
	dev_t dev;
	bool gone;			/* off the table; under luc_mutex */
	enum luc_copies copy_now;	/* what the commit under way copies */

	/*
	 * Guards the next block, which is written at each sync call. Only taken in
	 * task context, never nested. No slot of returns is on two cache lines.
	 * priority_cgroup is the last field of params: each event reads it, and
	 * writes the first line of returns.
	 */
	spinlock_t lock ____cacheline_aligned_in_smp;
	bool params_new;		/* params changed since params_now was taken */
	u32 batch_tid;			/* transaction that events belong to ... */
	bool batch_known;		/* ... once there was one */
	bool batch_same_task;		/* opened by the task that synced last */
	pid_t last_task;		/* ... which is this one */
	s64 batch_events;
	s64 first_event_ns;
	s64 last_event_ns;
	s64 after_first_ns;		/* sum of how long after the first event the others came */
	s64 sync_events;		/* calls that waited for a commit */
	bool held;			/* a commit of held_tid is held back */
	u32 held_tid;
	s64 held_complete;		/* poke the holder at this number of events */
	u32 urgent_tid;			/* newest transaction that an urgent waiter waits for ... */
	bool urgent;			/* ... if there is one */
	bool poked;			/* the holder has a reason to recheck */
	struct luc_params params;
	struct luc_returns returns __aligned(sizeof(struct luc_returns_slot));

	wait_queue_head_t wait;		/* where the holder sleeps */
	wait_queue_head_t writers;	/* and where writers wait for a buffer's journal write */

	/*
	 * Only the committing task touches these. Its input and output are here
	 * because kernels may zero what a function has on its stack.
	 */
	struct luc_params params_now ____cacheline_aligned_in_smp;
	struct luc_state state;
	struct luc_input in;		/* gathered last */
	struct luc_output out;
	s64 writes_delayed_seen;
	s64 buffers_spared_seen;
	s64 copies_left;		/* buffers that the commit under way may still copy */
	s64 closed_events;		/* of the last commit */
	s64 busy_looked_ns;		/* when processors were looked at, 0 if never */
	u64 idle_us;			/* how long they had all been idle by then, summed up */
	bool copyout_rests;		/* no step until there is news */
	s64 told_verdict;		/* enum luc_trial_phase, 0 before the first */
	const char *told_aside;		/* why no commit is held; NULL if some are */

	/* Written by any task. */
	atomic64_t counters[LUC_COUNTER_NR] ____cacheline_aligned_in_smp;
	bool copyout_news;		/* a sleep or a needed copy was counted */
	u32 marks[1 << LUC_MARKS_BITS];	/* of contended buffers; copyout.c */

	struct ratelimit_state told;	/* lines in the kernel log */
	struct kobject kobj;
	struct list_head list;		/* luc_list, under luc_mutex */
	struct work_struct gone_work;
};

/* fs.c */
extern struct mutex luc_mutex;
extern struct hlist_head luc_table[LUC_TABLE_SLOTS];
int luc_fs_attach(dev_t dev, const struct luc_params *params);
int luc_fs_detach(dev_t dev);
void luc_fs_detach_all(void);
void luc_fs_journal_gone(const journal_t *journal);
int luc_fs_init(void);
void luc_fs_exit(void);

static inline struct hlist_head *luc_fs_slot(dev_t dev)
{
	return &luc_table[dev % LUC_TABLE_SLOTS];
}

/*
 * Hooks look file systems up with preemption off. That also makes them RCU readers, and
 * costs three instructions where rcu_read_lock() costs sixteen.
 */
static inline struct luc_fs *luc_fs_find(dev_t dev)
{
	struct luc_fs *fs;

	hlist_for_each_entry_rcu(fs, luc_fs_slot(dev), node, lockdep_is_held(&luc_mutex)) {
		if (fs->dev == dev)
			return fs;
	}
	return NULL;
}

/* Under RCU. Returns fs with a reference, or NULL if it is going away. */
static inline struct luc_fs *luc_fs_keep(struct luc_fs *fs)
{
	return fs && kobject_get_unless_zero(&fs->kobj) ? fs : NULL;
}

static inline void luc_fs_put(struct luc_fs *fs)
{
	kobject_put(&fs->kobj);
}

/* j_fs_dev is set as long as a journal exists. */
static inline dev_t luc_dev_of(const journal_t *journal)
{
	return journal->j_fs_dev->bd_dev;
}

/* Under fs->lock: sync events of tid's batch so far. */
static inline s64 luc_events_of(const struct luc_fs *fs, tid_t tid)
{
	return fs->batch_tid == tid ? fs->batch_events : 0;
}

/* Under fs->lock. */
static inline bool luc_is_urgent(const struct luc_fs *fs, tid_t tid)
{
	return fs->urgent && tid_geq(fs->urgent_tid, tid);
}

/* commit.c */
void luc_commit_poke(struct luc_fs *fs);
static inline bool luc_steers(const struct luc_params *params)
{
	return params->mode == LUC_MODE_STEER;
}

/* hooks.c */
int luc_hooks_install(void);
int luc_hooks_remove(void);
void luc_hooks_drain(void);
void luc_hook_enter(void);
void luc_hook_leave(void);
ssize_t luc_hooks_show(char *buf);
unsigned long luc_address_of(const char *symbol);

/* entry.c */
void luc_entry_copying(bool more);

/* copyout.c */
void luc_copyout_init(void);
void luc_copyout_set(struct luc_fs *fs, enum luc_copies copies);

/* tell.c */
void luc_tell_init(struct luc_fs *fs);
void luc_tell_on(const struct luc_fs *fs);
void luc_tell_off(const struct luc_fs *fs, const char *why);
void luc_tell_knob(struct luc_fs *fs, const char *knob, const char *value);
void luc_tell_verdict(struct luc_fs *fs);
void luc_tell_aside(struct luc_fs *fs, journal_t *journal);

/* layout.c */
int luc_layout_check(void);

/* sysfs.c */
extern const struct attribute_group *luc_fs_groups[];
int luc_sysfs_init(void);
void luc_sysfs_stop(void);
void luc_sysfs_exit(void);
extern struct kobject *luc_kobj;

/*
 * Called by the trampoline with arguments of the hooked function and, for some, the
 * device number of the file system and the function's return address.
 */
void luc_on_commit(journal_t *journal, dev_t dev);
void luc_on_write_buffer(transaction_t *transaction, struct journal_head *jh);
void luc_on_file_buffer(struct journal_head *jh, transaction_t *transaction, int jlist);
void luc_on_sync_file(dev_t dev);
void luc_on_complete(journal_t *journal, tid_t tid, dev_t dev);
void luc_on_wait_commit(journal_t *journal, tid_t tid, dev_t dev, unsigned long caller);
void luc_on_wait_locked(journal_t *journal);
void luc_on_fast_commit(journal_t *journal);
void luc_on_destroy(journal_t *journal);
void luc_on_wait_bit(unsigned long *word, int bit, unsigned int mode,
		     unsigned long caller);

#define luc_count(fs, name, n) \
	atomic64_add((n), &(fs)->counters[LUC_COUNTER_##name])
#define luc_counted(fs, name) \
	atomic64_read(&(fs)->counters[LUC_COUNTER_##name])

/* Copy-out has new counts to base its decision on. Only the first call stores. */
static inline void luc_copyout_news(struct luc_fs *fs)
{
	smp_mb();	/* the commit sees the count, or we see that it has reset this */
	if (!READ_ONCE(fs->copyout_news))
		WRITE_ONCE(fs->copyout_news, true);
}

static inline void luc_count_max(atomic64_t *counter, s64 v)
{
	s64 old = atomic64_read(counter);

	while (v > old && !atomic64_try_cmpxchg(counter, &old, v))
		;
}

#endif
