// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entry hooks by ftrace direct calls.
 *
 * ftrace can patch the entry pad of a function into a call to our trampoline. The
 * trampoline runs in the caller's context: unlike a kprobe or an ordinary ftrace
 * callback it may sleep and take locks. It (entry.c) saves the argument registers, calls
 * a C function with them and returns into the body of the hooked function.
 *
 * One trampoline serves all functions and tells them apart by its return address, so that
 * ftrace registers and removes only one, and waits for one grace period of tasks instead
 * of ten.
 *
 * A function can have only one direct call. If a BPF program is attached there,
 * registering fails with -EBUSY: LUC finds out which function it is and does without it
 * or, if it is required, gives up. While LUC is attached, ftrace refuses BPF programs
 * without telling LUC. Kprobes share a function with LUC. So do livepatches, which are
 * often security fixes and must not be kept out: see luc_ops_func().
 *
 * Unloading. A task may sleep in a hook, and synchronize_rcu_tasks() takes a sleeping
 * task for one that has left. So the parts that may sleep are counted: unregister (no
 * more tasks enter), wake the sleepers, wait until the count is zero, and only then call
 * synchronize_rcu_tasks(), which waits for tasks in the trampoline outside these parts.
 *
 * After an internal fault ftrace stops for good and leaves the kernel's text as it is:
 * hooks still in place are called until the machine restarts. So this module holds a
 * reference to itself from before the hooks are installed until they are known to be
 * gone.
 */
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "../abi/luc_hooks.h"
#include "entry.h"
#include "luc.h"

/*
 * The hooks' own code. regs: registers of the hooked call. back: the hook's return
 * address, which entry.c learns. caller: the function's return address.
 */
#define LUC_AT(function)						\
	static __always_inline void					\
	luc_at_##function(const struct luc_regs *regs, unsigned long back, unsigned long caller)

LUC_AT(jbd2_complete_transaction)
{
	luc_learn(&luc_entry.complete, back);
	luc_on_complete((void *)regs->di, regs->si, luc_dev_of((void *)regs->di));
}

LUC_AT(jbd2_log_wait_commit)
{
	luc_learn(&luc_entry.wait_commit, back);
	luc_on_wait_commit((void *)regs->di, regs->si, luc_dev_of((void *)regs->di), caller);
}

LUC_AT(ext4_sync_file)
{
	luc_learn(&luc_entry.sync_file, back);
	luc_on_sync_file(file_inode((void *)regs->di)->i_sb->s_dev);
}

LUC_AT(jbd2_journal_commit_transaction)
{
	luc_learn(&luc_entry.commit, back);
	luc_on_commit((void *)regs->di, luc_dev_of((void *)regs->di));
}

LUC_AT(jbd2_journal_write_metadata_buffer)
{
	luc_learn_write(back);
	luc_on_write_buffer((void *)regs->di, (void *)regs->si);
}

LUC_AT(jbd2_journal_file_buffer)
{
	luc_learn_file(back);
	luc_on_file_buffer((void *)regs->di, (void *)regs->si, regs->dx);
}

LUC_AT(out_of_line_wait_on_bit)
{
	luc_learn(&luc_entry.wait_bit, back);
	luc_on_wait_bit((void *)regs->di, regs->si, regs->cx, caller);
}

LUC_AT(wait_transaction_locked)
{
	luc_learn(&luc_entry.wait_locked, back);
	luc_on_wait_locked((void *)regs->di);
}

LUC_AT(jbd2_fc_end_commit)
{
	luc_learn(&luc_entry.fast_commit, back);
	luc_on_fast_commit((void *)regs->di);
}

LUC_AT(jbd2_journal_destroy)
{
	luc_on_destroy((void *)regs->di);
}

enum luc_hook_state { LUC_DETACHED, LUC_ATTACHED, LUC_BUSY, LUC_MISSING, LUC_STUCK };

static const char *const luc_hook_state_text[] = {
	[LUC_DETACHED] = "detached",
	[LUC_ATTACHED] = "attached",
	[LUC_BUSY] = "busy",
	[LUC_MISSING] = "missing",
	[LUC_STUCK] = "stuck",
};

struct luc_hook {
	const char *function;
	bool needed;
	enum luc_hook_state state;	/* luc_hooks_show() reads it without the mutex */
	unsigned long address;		/* 0 until looked up */
};

#define LUC_HOOK_ROW(name, need) { .function = #name, .needed = need },

/* Changed under luc_mutex while luc_ops is not registered. */
static struct luc_hook luc_hook[] __read_mostly = { LUC_HOOKS(LUC_HOOK_ROW) };
/* Read at each hooked call while another tracer is attached. */
static struct ftrace_ops luc_ops __read_mostly;
static bool luc_registered;
static bool luc_stuck;			/* luc_ops can no longer be removed */
static struct module *luc_ext4;		/* NULL where ext4 is no module */

/* The word that luc_hooks_fire() waits for, and whether a hook saw it. */
static unsigned long luc_nothing;
static bool luc_fired;

/* The call is at the function's start or after a 4-byte landing pad. */
static bool luc_is_in(unsigned long back, const struct luc_hook *h)
{
	return back - MCOUNT_INSN_SIZE - h->address <= 4;
}

#define LUC_HOOK_CALL(name, need)					\
	if (luc_is_in(back, h)) {					\
		luc_at_##name(regs, back, caller);			\
		return;							\
	}								\
	h++;

void luc_dispatch(const struct luc_regs *regs, unsigned long back,
		  unsigned long caller)
{
	const struct luc_hook *h = luc_hook;

	LUC_HOOKS(LUC_HOOK_CALL)
	/* No hook matches: the function is livepatched. */
	luc_entry_patched();
	if (regs->di == (unsigned long)&luc_nothing)
		luc_fired = true;
}

/* On its own cache line: tasks that sleep in hooks write it, all others only read. */
static atomic_t luc_inflight ____cacheline_aligned_in_smp = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(luc_inflight_wait);
static bool luc_leaving __read_mostly;

void luc_hook_enter(void)
{
	atomic_inc(&luc_inflight);
}

void luc_hook_leave(void)
{
	if (atomic_dec_and_test(&luc_inflight) && READ_ONCE(luc_leaving))
		wake_up_all(&luc_inflight_wait);
}

static void luc_hook_set(struct luc_hook *h, enum luc_hook_state state)
{
	WRITE_ONCE(h->state, state);
}

/* Moves all hooks in one state to another. */
static void luc_hooks_change(enum luc_hook_state from, enum luc_hook_state to)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		if (luc_hook[i].state == from)
			luc_hook_set(&luc_hook[i], to);
	}
}

/* ftrace has failed with hooks in place. They find no file system and do nothing. */
static int luc_hooks_stick(int err)
{
	luc_stuck = true;
	luc_hooks_change(LUC_ATTACHED, LUC_STUCK);
	luc_hooks_change(LUC_DETACHED, LUC_STUCK);
	pr_err("luc: ftrace has failed (%d): hooks do nothing, but stay, and the module with them, until a restart\n",
	       err);
	return -ENOTRECOVERABLE;
}

/* If ftrace has stopped, a failed registration may leave some functions hooked. */
static int luc_direct_register(void)
{
	unsigned long trampoline = (unsigned long)luc_trampoline;
	int err;

#ifdef LUC_HAVE_DIRECT_MULTI
	err = register_ftrace_direct_multi(&luc_ops, trampoline);
#else
	err = register_ftrace_direct(&luc_ops, trampoline);
#endif
	/*
	 * From now on kernel.ftrace_enabled cannot be cleared: that would drop the hooks
	 * silently, in the middle of waits. Registering resets the flags, so set this
	 * afterwards.
	 */
	if (!err)
		luc_ops.flags |= FTRACE_OPS_FL_PERMANENT;
	return err == -ENODEV ? luc_hooks_stick(err) : err;
}

static int luc_direct_unregister(void)
{
	unsigned long trampoline = (unsigned long)luc_trampoline;
	int err;

	luc_ops.flags &= ~FTRACE_OPS_FL_PERMANENT;
#ifdef LUC_HAVE_DIRECT_MULTI
	err = unregister_ftrace_direct_multi(&luc_ops, trampoline);
#else
	err = unregister_ftrace_direct(&luc_ops, trampoline, false);
#endif
	if (err)
		return luc_hooks_stick(err);
	ftrace_free_filter(&luc_ops);
	return 0;
}

/*
 * kallsyms_lookup_name() is not exported; a kprobe that is never armed finds an address
 * too. ftrace accepts a name, but compares it with each of its fifty thousand records: a
 * second of work per attach.
 */
unsigned long luc_address_of(const char *symbol)
{
	struct kprobe kp = {
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};
	unsigned long address;

	if (register_kprobe(&kp))
		return 0;
	address = (unsigned long)kp.addr;
	unregister_kprobe(&kp);
	return address;
}

/*
 * Pins all code that hooks lead into or out of: ours and ext4's. jbd2 stays as long as
 * this module, which imports its symbols.
 */
static int luc_pin(void)
{
	struct file_system_type *ext4;

	/* The module is being removed. */
	if (!try_module_get(THIS_MODULE))
		return -ESHUTDOWN;
	ext4 = get_fs_type("ext4");
	if (!ext4) {
		module_put(THIS_MODULE);
		return -ENODEV;
	}
	luc_ext4 = ext4->owner;
	return 0;
}

/* The callers are sysfs files and workers, which luc_exit() waits for. */
static void luc_unpin(void)
{
	module_put(luc_ext4);
	module_put(THIS_MODULE);
}

/* Modules come and go, so look up addresses at each first attach. */
static void luc_hooks_find(void)
{
	int i;

	luc_entry_forget();
	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		luc_hook[i].address = luc_address_of(luc_hook[i].function);
		luc_hook_set(&luc_hook[i], luc_hook[i].address ? LUC_DETACHED : LUC_MISSING);
	}
}

/*
 * A livepatch can share a function with a hook, whichever comes first. The trampoline is
 * called first and returns into the livepatch's function, an address that luc_dispatch()
 * does not know: while a function is patched, LUC does without its hook. If the function
 * is jbd2_journal_destroy(), LUC does not see an unmount: the entry stays until LUC is
 * switched off for it.
 */
static int luc_ops_func(struct ftrace_ops *ops,
#ifdef LUC_HAVE_OPS_FUNC_IP
			unsigned long ip,
#endif
			enum ftrace_ops_cmd cmd)
{
	return 0;
}

/* Registers the available hooks of from..to, all at once. */
static int luc_hooks_register(int from, int to)
{
	int i, err = 0;

	/* Start with a fresh ops: some kernels leave traces of the last use. */
	memset(&luc_ops, 0, sizeof(luc_ops));
	luc_ops.ops_func = luc_ops_func;
	for (i = from; i < to && err != -ENODEV; i++) {
		if (luc_hook[i].state != LUC_DETACHED)
			continue;
		err = ftrace_set_filter_ip(&luc_ops, luc_hook[i].address, 0, 0);
		/* The function has no pad. */
		if (err && err != -ENODEV)
			luc_hook_set(&luc_hook[i], LUC_MISSING);
	}
	if (!luc_ops.func_hash)
		return -ENOENT;
	/* ftrace had already stopped: no function is hooked. */
	err = err == -ENODEV ? -ENOTRECOVERABLE : luc_direct_register();
	if (err && !luc_stuck)
		ftrace_free_filter(&luc_ops);
	return err;
}

static const struct luc_hook *luc_hook_of(const char *function)
{
	const struct luc_hook *h = luc_hook;

	while (strcmp(h->function, function))
		h++;
	return h;
}

/* ftrace does not say which function is taken: try each one. */
static int luc_hooks_find_busy(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		if (luc_hook[i].state != LUC_DETACHED)
			continue;
		err = luc_hooks_register(i, i + 1) ?: luc_direct_unregister();
		if (err == -ENOTRECOVERABLE)
			return err;
		if (err && luc_hook[i].state == LUC_DETACHED)
			luc_hook_set(&luc_hook[i], LUC_BUSY);
	}
	return 0;
}

/* Fails if a needed hook is not available. */
static int luc_hooks_check(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++) {
		const struct luc_hook *h = &luc_hook[i];

		if (!h->needed || h->state == LUC_DETACHED)
			continue;
		if (h->state == LUC_BUSY) {
			pr_notice("luc: %s is hooked by a BPF program; stop it and attach again\n",
				  h->function);
			return -EBUSY;
		}
		pr_notice("luc: cannot hook %s: this kernel's jbd2 is not one that LUC knows\n",
			  h->function);
		return -ENOENT;
	}
	return 0;
}

/*
 * Tells whether hooks are called: with kernel.ftrace_enabled at 0, registering succeeds
 * but no hook is ever called. A wait for a clear bit returns at once and makes the hook
 * learn its return address.
 */
static bool luc_hooks_fire(void)
{
	const struct luc_hook *h = luc_hook_of("out_of_line_wait_on_bit");

	if (h->state != LUC_ATTACHED)
		return true;	/* no way to tell */
	luc_fired = false;
	out_of_line_wait_on_bit(&luc_nothing, 0, bit_wait, TASK_UNINTERRUPTIBLE);
	return luc_fired || READ_ONCE(luc_entry.wait_bit);
}

/* On failure no function is hooked, unless hooks are stuck. */
static int luc_hooks_register_all(void)
{
	int err;

	luc_hooks_find();
	err = luc_hooks_check() ?: luc_hooks_register(0, ARRAY_SIZE(luc_hook));
	if (err == -EBUSY)
		err = luc_hooks_find_busy() ?: luc_hooks_check() ?:
		      luc_hooks_register(0, ARRAY_SIZE(luc_hook));
	if (err)
		return err;
	/* Recheck: a needed function may lack its pad. */
	err = luc_hooks_check();
	return err ? luc_direct_unregister() ?: err : 0;
}

/* Under luc_mutex. */
int luc_hooks_install(void)
{
	int err;

	if (luc_stuck)
		return -ENOTRECOVERABLE;
	/*
	 * The hooks are still there: the last entry is gone, but its detach is not done.
	 */
	if (luc_registered)
		return 0;
	err = luc_pin();
	if (err)
		return err;
	err = luc_hooks_register_all();
	if (err) {
		if (!luc_stuck)
			luc_unpin();
		return err;
	}
	luc_hooks_change(LUC_DETACHED, LUC_ATTACHED);
	luc_registered = true;
	if (luc_hooks_fire())
		return 0;
	err = luc_hooks_remove();
	if (err)
		return err;
	pr_notice("luc: hooks are not called; is kernel.ftrace_enabled 0?\n");
	return -EAGAIN;
}

/* Under luc_mutex, with no file system attached. */
int luc_hooks_remove(void)
{
	int err;

	if (!luc_registered)
		return 0;
	luc_registered = false;
	err = luc_direct_unregister();
	if (err)
		return err;
	luc_hooks_change(LUC_ATTACHED, LUC_DETACHED);
	luc_unpin();
	return 0;
}

/* Call it after luc_hooks_remove() and after waking all holders, before freeing. */
void luc_hooks_drain(void)
{
	WRITE_ONCE(luc_leaving, true);
	smp_mb();	/* a leaving task sees luc_leaving, or we see its count */
	wait_event(luc_inflight_wait, !atomic_read(&luc_inflight));
	synchronize_rcu_tasks();
}

/* Runs without luc_mutex, which is held across grace periods: anyone may read this. */
ssize_t luc_hooks_show(char *buf)
{
	ssize_t n = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_hook); i++)
		n += sysfs_emit_at(buf, n, "%s %s%s\n", luc_hook[i].function,
				   luc_hook_state_text[READ_ONCE(luc_hook[i].state)],
				   luc_hook[i].needed ? "" : " optional");
	return n;
}
