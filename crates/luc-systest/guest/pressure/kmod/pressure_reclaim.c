// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks for a commit as memory reclaim does when it evicts an inode: by
 * jbd2_complete_transaction(), with PF_MEMALLOC. Loading it does so once for the
 * journal of the thread that the parameter names, and returns when the wait is over.
 */
#include <linux/err.h>
#include <linux/jbd2.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>

static int journal_task;
module_param(journal_task, int, 0444);
MODULE_PARM_DESC(journal_task, "process ID of the journal's thread");

static journal_t *pressure_journal(void)
{
	struct task_struct *task;
	journal_t *journal = NULL;

	rcu_read_lock();
	task = pid_task(find_vpid(journal_task), PIDTYPE_PID);
	if (task && (task->flags & PF_KTHREAD))
		journal = kthread_data(task);
	rcu_read_unlock();
	return journal;
}

static int __init pressure_init(void)
{
	journal_t *journal = pressure_journal();
	unsigned int flags;
	tid_t tid = 0;
	int err;

	if (!journal)
		return -ESRCH;
	read_lock(&journal->j_state_lock);
	if (journal->j_running_transaction)
		tid = journal->j_running_transaction->t_tid;
	read_unlock(&journal->j_state_lock);
	if (!tid)
		return -ENODATA;
	flags = memalloc_noreclaim_save();
	err = jbd2_complete_transaction(journal, tid);
	memalloc_noreclaim_restore(flags);
	return err;
}

static void __exit pressure_exit(void)
{
}

module_init(pressure_init);
module_exit(pressure_exit);

MODULE_DESCRIPTION("Waits for a commit as memory reclaim does, for a test");
MODULE_LICENSE("GPL");
