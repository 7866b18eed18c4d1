// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/config/lucdisk: mkdir creates a disk, rmdir removes it. */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/string.h>

#include "lucdisk.h"

static struct configfs_subsystem lucdisk_subsys;

/*
 * The name of a disk is a name in /dev and in /sys/block. The prefix keeps it
 * apart from the names of other drivers.
 */
static bool lucdisk_name_is_good(const char *name)
{
	if (strlen(name) > LUCDISK_NAME_BYTES_MAX || !strstarts(name, LUCDISK_NAME_PREFIX))
		return false;
	while (isalnum(*name) || *name == '_')
		name++;
	return !*name;
}

static struct config_item *lucdisk_make_item(struct config_group *group, const char *name)
{
	struct lucdisk *disk;

	if (!lucdisk_name_is_good(name))
		return ERR_PTR(-EINVAL);
	disk = lucdisk_new(name);
	return disk ? &disk->item : ERR_PTR(-ENOMEM);
}

static void lucdisk_drop_item(struct config_group *group, struct config_item *item)
{
	struct lucdisk *disk = lucdisk_of(item);

	mutex_lock(&disk->lock);
	if (disk->powered)
		lucdisk_power_off(disk);
	mutex_unlock(&disk->lock);
	config_item_put(item);
}

/*
 * Returns the disk with a reference; call without disk->lock, which rmdir takes
 * inside.
 */
struct config_item *lucdisk_find(const char *name)
{
	struct config_item *item;

	mutex_lock(&lucdisk_subsys.su_mutex);
	item = config_group_find_item(&lucdisk_subsys.su_group, name);
	mutex_unlock(&lucdisk_subsys.su_mutex);
	return item;
}

static struct configfs_group_operations lucdisk_group_ops = {
	.make_item = lucdisk_make_item,
	.drop_item = lucdisk_drop_item,
};

static const struct config_item_type lucdisk_subsys_type = {
	.ct_owner = THIS_MODULE,
	.ct_group_ops = &lucdisk_group_ops,
};

static struct configfs_subsystem lucdisk_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = LUCDISK_NAME_PREFIX,
			.ci_type = &lucdisk_subsys_type,
		},
	},
};

static int __init lucdisk_module_init(void)
{
	config_group_init(&lucdisk_subsys.su_group);
	mutex_init(&lucdisk_subsys.su_mutex);
	return configfs_register_subsystem(&lucdisk_subsys);
}

static void __exit lucdisk_module_exit(void)
{
	configfs_unregister_subsystem(&lucdisk_subsys);
}

module_init(lucdisk_module_init);
module_exit(lucdisk_module_exit);

MODULE_DESCRIPTION("Disk of the lab: modelled timing, faults, power cuts");
MODULE_LICENSE("GPL");
