// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stops ftrace as a fault of its own would: ftrace_kill(), whose address is the
 * parameter, is what ftrace_bug() ends in.
 */
#include <linux/module.h>

static unsigned long function;
module_param(function, ulong, 0444);
MODULE_PARM_DESC(function, "address of ftrace_kill()");

static int __init stop_init(void)
{
	if (!function)
		return -EINVAL;
	((void (*)(void))function)();
	return 0;
}

static void __exit stop_exit(void)
{
}

module_init(stop_init);
module_exit(stop_exit);

MODULE_DESCRIPTION("Stops ftrace, for a test");
MODULE_LICENSE("GPL");
