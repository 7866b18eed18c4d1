// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes the direct call of jbd2_journal_commit_transaction() and does nothing
 * with it, as a BPF program or a livepatch would: LUC must say so and leave
 * everything as it was.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/version.h>
#include <asm/ibt.h>
#include <asm/linkage.h>
#include <asm/nospec-branch.h>

void blocker_tramp(void *);
/* Aligned, because newer kernels keep a flag in the lowest bit. */
asm(".pushsection .text, \"ax\", @progbits\n"
    ".balign 16\n"
    ".type blocker_tramp, @function\n"
    ".globl blocker_tramp\n"
    "blocker_tramp:\n"
    ASM_ENDBR
    ASM_RET
    ".size blocker_tramp, .-blocker_tramp\n"
    ".popsection\n");

static struct ftrace_ops blocker_ops;
static unsigned char blocker_function[] = "jbd2_journal_commit_transaction";

static int __init blocker_init(void)
{
	int err;

	err = ftrace_set_filter(&blocker_ops, blocker_function,
				sizeof(blocker_function) - 1, 1);
	if (err)
		return err;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	err = register_ftrace_direct(&blocker_ops, (unsigned long)blocker_tramp);
#else
	err = register_ftrace_direct_multi(&blocker_ops, (unsigned long)blocker_tramp);
#endif
	if (err)
		ftrace_free_filter(&blocker_ops);
	return err;
}

static void __exit blocker_exit(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	unregister_ftrace_direct(&blocker_ops, (unsigned long)blocker_tramp, true);
#else
	unregister_ftrace_direct_multi(&blocker_ops, (unsigned long)blocker_tramp);
	ftrace_free_filter(&blocker_ops);
#endif
	/* Nobody may be left in the trampoline when its memory goes. */
	synchronize_rcu_tasks();
}

module_init(blocker_init);
module_exit(blocker_exit);

MODULE_DESCRIPTION("Owns a function that LUC hooks, for a test");
MODULE_LICENSE("GPL");
