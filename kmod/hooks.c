// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entry hooks by ftrace direct calls.
 *
 * ftrace can patch the entry pad of a function into a call to a trampoline of
 * ours. It runs in the context of the caller: unlike a kprobe or an ordinary
 * ftrace callback it may sleep and take locks. The trampoline saves the
 * argument registers, calls a C function with them and returns into the
 * function's body; what jbd2 does next is jbd2's own code.
 *
 * Only one direct call fits a function. If a BPF program or a livepatch is
 * there already, registering fails with -EBUSY: we say which and step back.
 *
 * Leaving. A task may sleep in one of our hooks, and synchronize_rcu_tasks()
 * takes a sleeping task for one that has left. So the parts that may sleep are
 * counted: first unregister (nobody enters any more), then wake the sleepers,
 * wait for the count to reach zero, and only then synchronize_rcu_tasks(),
 * which is right for those who are in a trampoline but not in a counted part.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/version.h>
#include <asm/ibt.h>
#include <asm/linkage.h>
#include <asm/nospec-branch.h>

#include "luc.h"

#ifndef CONFIG_X86_64
#error "luc: the trampolines exist for x86-64 only"
#endif

/* Kernels that count call depth (Skylake return stuffing) want it in thunks. */
#ifdef CALL_DEPTH_ACCOUNT
#define LUC_DEPTH_ACCOUNT CALL_DEPTH_ACCOUNT
#else
#define LUC_DEPTH_ACCOUNT ""
#endif

/*
 * From 6.19 on bit 0 of a trampoline's address is a flag, hence the alignment.
 * %r8 carries the return address of the hooked function to hooks that ask who
 * called; the functions we hook have at most five arguments of their own.
 */
#define LUC_TRAMPOLINE(hook)						\
	extern void luc_tramp_##hook(void *);				\
	asm(".pushsection .text, \"ax\", @progbits\n"			\
	    ".balign 16\n"						\
	    ".type luc_tramp_" #hook ", @function\n"			\
	    ".globl luc_tramp_" #hook "\n"				\
	    "luc_tramp_" #hook ":\n"					\
	    ASM_ENDBR							\
	    "	pushq %rbp\n"						\
	    "	movq %rsp, %rbp\n"					\
	    LUC_DEPTH_ACCOUNT						\
	    "	pushq %rdi\n"						\
	    "	pushq %rsi\n"						\
	    "	pushq %rdx\n"						\
	    "	pushq %rcx\n"						\
	    "	pushq %r8\n"						\
	    "	pushq %r9\n"						\
	    "	movq 16(%rbp), %r8\n"					\
	    "	call luc_on_" #hook "\n"				\
	    "	popq %r9\n"						\
	    "	popq %r8\n"						\
	    "	popq %rcx\n"						\
	    "	popq %rdx\n"						\
	    "	popq %rsi\n"						\
	    "	popq %rdi\n"						\
	    "	leave\n"						\
	    ASM_RET							\
	    ".size luc_tramp_" #hook ", .-luc_tramp_" #hook "\n"	\
	    ".popsection\n")

/*
 * The hooks. A needed one that cannot be had refuses the attach; without an
 * optional one LUC sees or does a little less, as its comment says.
 */
#define LUC_HOOKS(HOOK)							\
	HOOK(commit, "jbd2_journal_commit_transaction", true)		\
	HOOK(write_buffer, "jbd2_journal_write_metadata_buffer", true)	\
	HOOK(complete, "jbd2_complete_transaction", true)		\
	HOOK(wait_commit, "jbd2_log_wait_commit", true)			\
	HOOK(destroy, "jbd2_journal_destroy", true)			\
	/* fsync of directories counts as urgent from 6.12 on */	\
	HOOK(sync_file, "ext4_sync_file", false)			\
	/* copy-out ends by its clean runs alone */			\
	HOOK(file_buffer, "jbd2_journal_file_buffer", false)		\
	/* delayed writes are not seen: copy-out never starts */	\
	HOOK(wait_bit, "out_of_line_wait_on_bit", false)		\
	/* a task that waits for a new transaction waits up to 1 ms more */ \
	HOOK(wait_locked, "wait_transaction_locked", false)		\
	/* fast commits are not counted */				\
	HOOK(fast_commit, "jbd2_fc_end_commit", false)

#define LUC_HOOK_TRAMPOLINE(hook, function, needed) LUC_TRAMPOLINE(hook);
LUC_HOOKS(LUC_HOOK_TRAMPOLINE)

enum luc_hook_state { LUC_DETACHED, LUC_ATTACHED, LUC_BUSY, LUC_MISSING };

static const char *const luc_hook_state_text[] = {
	[LUC_DETACHED] = "detached",
	[LUC_ATTACHED] = "attached",
	[LUC_BUSY] = "busy",
	[LUC_MISSING] = "missing",
};

struct luc_hook {
	const char *function;
	void (*trampoline)(void *);
	bool needed;
	enum luc_hook_state state;
	struct ftrace_ops ops;
};

#define LUC_HOOK_ROW(hook, name, need)					\
	{ .function = name, .trampoline = luc_tramp_##hook, .needed = need },

/* Under luc_mutex. */
static struct luc_hook luc_hook[] = { LUC_HOOKS(LUC_HOOK_ROW) };

static atomic_t luc_inflight = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(luc_inflight_wait);
static bool luc_leaving;

bool luc_hooks_leaving(void)
{
	return READ_ONCE(luc_leaving);
}

void luc_hook_enter(void)
{
	atomic_inc(&luc_inflight);
}

void luc_hook_leave(void)
{
	if (atomic_dec_and_test(&luc_inflight) && luc_hooks_leaving())
		wake_up_all(&luc_inflight_wait);
}

static int luc_direct_register(struct luc_hook *h)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	return register_ftrace_direct(&h->ops, (unsigned long)h->trampoline);
#else
	return register_ftrace_direct_multi(&h->ops, (unsigned long)h->trampoline);
#endif
}

static void luc_direct_unregister(struct luc_hook *h)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	unregister_ftrace_direct(&h->ops, (unsigned long)h->trampoline, true);
#else
	unregister_ftrace_direct_multi(&h->ops, (unsigned long)h->trampoline);
	ftrace_free_filter(&h->ops);
#endif
}

static int luc_hook_install(struct luc_hook *h)
{
	int err;

	/* A fresh ops each time: some kernels leave traces of the last use. */
	memset(&h->ops, 0, sizeof(h->ops));
	err = ftrace_set_filter(&h->ops, (unsigned char *)h->function,
				strlen(h->function), 1);
	if (err) {
		h->state = LUC_MISSING;
		ftrace_free_filter(&h->ops);
		return -ENOENT;
	}
	err = luc_direct_register(h);
	if (err) {
		h->state = err == -EBUSY ? LUC_BUSY : LUC_MISSING;
		ftrace_free_filter(&h->ops);
		return err;
	}
	h->state = LUC_ATTACHED;
	return 0;
}

static void luc_hook_complain(const struct luc_hook *h, int err)
{
	if (err == -EBUSY)
		pr_notice("luc: %s is hooked by a BPF program or a livepatch; stop it and attach again\n",
			  h->function);
	else
		pr_notice("luc: cannot hook %s on this kernel (error %d)\n",
			  h->function, err);
}

int luc_hooks_install(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		struct luc_hook *h = &luc_hook[i];

		err = luc_hook_install(h);
		if (!err || !h->needed)
			continue;
		luc_hook_complain(h, err);
		while (i--) {
			if (luc_hook[i].state == LUC_ATTACHED)
				luc_direct_unregister(&luc_hook[i]);
			luc_hook[i].state = LUC_DETACHED;
		}
		return err;
	}
	return 0;
}

void luc_hooks_remove(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		if (luc_hook[i].state == LUC_ATTACHED)
			luc_direct_unregister(&luc_hook[i]);
		luc_hook[i].state = LUC_DETACHED;
	}
}

/* After luc_hooks_remove() and a wake-up of all holders, before freeing. */
void luc_hooks_drain(void)
{
	WRITE_ONCE(luc_leaving, true);
	smp_mb();	/* a leaver sees luc_leaving, or we see its count */
	wait_event(luc_inflight_wait, !atomic_read(&luc_inflight));
	synchronize_rcu_tasks();
}

ssize_t luc_hooks_show(char *buf)
{
	ssize_t n = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++)
		n += sysfs_emit_at(buf, n, "%s %s%s\n", luc_hook[i].function,
				   luc_hook_state_text[luc_hook[i].state],
				   luc_hook[i].needed ? "" : " optional");
	return n;
}
