// SPDX-License-Identifier: GPL-2.0-only
/*
 * No memory for luc.ko, on kernels that have no fault injection built in: a
 * kprobe at the entry of the allocator that the parameter names lets every
 * fail_every-th call of a journal thread that comes from module luc return NULL
 * at once. All others go on. The calls are counted.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/ibt.h>
#include <asm/linkage.h>
#include <asm/nospec-branch.h>

static char *function;
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "allocator to watch");

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "1: every call fails, 3: every third, 0: none");

static unsigned long calls, failed;
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "calls of luc.ko from a journal thread so far");
module_param(failed, ulong, 0444);
MODULE_PARM_DESC(failed, "those that failed");

/* Replaces the allocator: returns at once. */
void pressure_return(void);
asm(".pushsection .text, \"ax\", @progbits\n"
    ".balign 16\n"
    ".type pressure_return, @function\n"
    ".globl pressure_return\n"
    "pressure_return:\n"
    ASM_ENDBR
    ASM_RET
    ".size pressure_return, .-pressure_return\n"
    ".popsection\n");

static bool pressure_from_luc(unsigned long caller)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol(name, caller);
	return strstr(name, "[luc]");
}

/* Only one journal thread works at a time in this test: plain counts will do. */
static int pressure_pre(struct kprobe *probe, struct pt_regs *regs)
{
	if (strncmp(current->comm, "jbd2/", 5) ||
	    !pressure_from_luc(*(unsigned long *)regs->sp))
		return 0;
	calls++;
	if (!fail_every || calls % fail_every)
		return 0;
	failed++;
	regs->ax = 0;
	regs->ip = (unsigned long)pressure_return;
	return 1;
}

/* With one of these a kprobe may change where the function goes on. */
static void pressure_post(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe pressure_probe = {
	.pre_handler = pressure_pre,
	.post_handler = pressure_post,
};

static int __init pressure_init(void)
{
	pressure_probe.symbol_name = function;
	return function ? register_kprobe(&pressure_probe) : -EINVAL;
}

static void __exit pressure_exit(void)
{
	unregister_kprobe(&pressure_probe);
}

module_init(pressure_init);
module_exit(pressure_exit);

MODULE_DESCRIPTION("Fails allocations of luc.ko, for a test");
MODULE_LICENSE("GPL");
