// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading. A loaded module that is attached to nothing has no
 * hook anywhere: the kernel runs its own code at its own speed.
 */
#include <linux/module.h>

#include "luc.h"

static int __init luc_init(void)
{
	int err = luc_layout_check();

	if (err)
		return err;
	luc_copyout_init();
	err = luc_fs_init();
	if (err)
		return err;
	err = luc_sysfs_init();
	if (err)
		luc_fs_exit();
	return err;
}

static void __exit luc_exit(void)
{
	/*
	 * In this order: first no task can attach, then none is in a hook, then
	 * everything is freed. Hooks pin the module, so only a forced removal finds any.
	 */
	luc_sysfs_stop();
	luc_fs_detach_all();
	luc_hooks_drain();
	luc_fs_exit();
	luc_sysfs_exit();
}

module_init(luc_init);
module_exit(luc_exit);

MODULE_DESCRIPTION("LUC: batches ext4 journal commits and copies metadata out");
MODULE_AUTHOR("The LUC developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(LUC_VERSION);
