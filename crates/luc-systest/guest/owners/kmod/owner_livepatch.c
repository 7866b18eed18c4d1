// SPDX-License-Identifier: GPL-2.0-only
/*
 * A livepatch of the function that its parameter names. The new function
 * counts the call and goes on in the body of the old one, so that the kernel
 * works as before while the function belongs to the livepatch.
 *
 * To leave: write 0 to /sys/kernel/livepatch/owner_livepatch/enabled, wait
 * until that folder is gone, remove the module.
 */
#include <linux/livepatch.h>
#include <linux/module.h>
#include <asm/cpufeature.h>

static char *function;
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "kernel function to patch");

static unsigned long calls;
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "calls of the new function so far");

/* Six words are all arguments that a function takes in registers on x86-64. */
typedef unsigned long (*owner_body_t)(unsigned long a, unsigned long b,
				      unsigned long c, unsigned long d,
				      unsigned long e, unsigned long f);

static owner_body_t owner_body;

/*
 * Two tasks that count at once may lose a call: any call at all is what a
 * reader looks for.
 */
static notrace unsigned long owner_call(unsigned long a, unsigned long b,
					unsigned long c, unsigned long d,
					unsigned long e, unsigned long f)
{
	WRITE_ONCE(calls, READ_ONCE(calls) + 1);
	return owner_body(a, b, c, d, e, f);
}

/* One row is filled in at load; an empty one ends each list. */
static struct klp_func owner_funcs[2];
static struct klp_object owner_objs[2] = { { .funcs = owner_funcs } };
static struct klp_patch owner_patch = { .mod = THIS_MODULE, .objs = owner_objs };

/*
 * The body begins behind the five bytes that ftrace patches: a call while the
 * function is traced, a no-op else. A landing pad of four bytes may precede.
 */
static unsigned long owner_body_of(unsigned long old)
{
	static const u8 nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	int pad;

	for (pad = 0; pad <= 4; pad += 4) {
		const u8 *code = (const u8 *)old + pad;

		if (*code == 0xe8 || !memcmp(code, nop, sizeof(nop)))
			return old + pad + sizeof(nop);
	}
	return 0;
}

/*
 * Called once the livepatch core has found the function and before the first
 * call can come here.
 */
static int owner_pre_patch(struct klp_object *obj)
{
	owner_body = (owner_body_t)owner_body_of((unsigned long)owner_funcs[0].old_func);
	return owner_body ? 0 : -ENOENT;
}

static int __init owner_init(void)
{
	/* There the call would have to land on an ENDBR, and the body has none. */
	if (boot_cpu_has(X86_FEATURE_IBT))
		return -EOPNOTSUPP;
	if (!function)
		return -EINVAL;
	owner_funcs[0].old_name = function;
	owner_funcs[0].new_func = owner_call;
	owner_objs[0].callbacks.pre_patch = owner_pre_patch;
	return klp_enable_patch(&owner_patch);
}

/* The livepatch core lets the module go only when no task needs it any more. */
static void __exit owner_exit(void)
{
}

module_init(owner_init);
module_exit(owner_exit);

MODULE_DESCRIPTION("Owns a function as a livepatch, for a test");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
