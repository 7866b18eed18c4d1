// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attached file systems.
 *
 * A hook is handed a journal_t; its key is the device number of the file system.
 * Numbers, unlike pointers, cannot dangle, so neither an unmount nor a reused journal_t
 * can mislead a hook. An entry leaves the table when it is detached or when its journal
 * is destroyed.
 */
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../control/luc_control.h"
#include "entry.h"
#include "luc.h"

DEFINE_MUTEX(luc_mutex);
/* Whole cache lines: every hook of an attached file system reads one. */
struct hlist_head luc_table[LUC_TABLE_SLOTS] ____cacheline_aligned_in_smp;
static_assert(sizeof(luc_table) % SMP_CACHE_BYTES == 0);
static LIST_HEAD(luc_list);
static struct workqueue_struct *luc_wq;
/* Entries off the table whose sysfs directory may still exist; under luc_mutex. */
static unsigned int luc_folders_left;
static DECLARE_WAIT_QUEUE_HEAD(luc_folders_wait);

/* Publishes which slots are used, after a change of the table. Under luc_mutex. */
static void luc_fs_tell_entry(void)
{
	const struct luc_fs *fs;
	u64 devs = 0;

	list_for_each_entry(fs, &luc_list, list)
		devs |= BIT_ULL(fs->dev % LUC_TABLE_SLOTS);
	WRITE_ONCE(luc_entry.devs, devs);
}

static struct luc_fs *luc_fs_get(dev_t dev)
{
	struct luc_fs *fs;

	rcu_read_lock_sched();
	fs = luc_fs_keep(luc_fs_find(dev));
	rcu_read_unlock_sched();
	return fs;
}

static void luc_fs_release(struct kobject *kobj)
{
	struct luc_fs *fs = container_of(kobj, struct luc_fs, kobj);

	luc_copyout_set(fs, LUC_COPY_NONE);
	kvfree(fs);
}

static struct kobj_type luc_fs_ktype = {
	.release = luc_fs_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = luc_fs_groups,
};

/* Properties of the superblock on a device that attaching depends on. */
struct luc_probe {
	dev_t dev;
	bool found;
	bool read_only;
	bool journal;
	char name[sizeof_field(struct super_block, s_id)];
};

/*
 * ext4's own structures are private; its on-disk superblock is not. It lies
 * 1024 bytes into the device, s_feature_compat 0x5c bytes into it.
 */
static bool luc_has_journal(struct super_block *sb)
{
	const u32 has_journal = 0x4;
	unsigned int offset = 1024 & (sb->s_blocksize - 1);
	struct buffer_head *bh;
	bool journal;

	bh = __bread(sb->s_bdev, 1024 >> sb->s_blocksize_bits, sb->s_blocksize);
	if (!bh)
		return false;
	journal = le32_to_cpup((__le32 *)(bh->b_data + offset + 0x5c)) & has_journal;
	brelse(bh);
	return journal;
}

static void luc_probe_super(struct super_block *sb, void *arg)
{
	struct luc_probe *probe = arg;

	if (sb->s_dev != probe->dev)
		return;
	probe->found = true;
	probe->read_only = sb_rdonly(sb);
	probe->journal = luc_has_journal(sb);
	strscpy(probe->name, sb->s_id, sizeof(probe->name));
	strreplace(probe->name, '/', '!');
}

/* The ext4 module serves both names; ext2 has no journal to attach to. */
static int luc_probe_device(struct luc_probe *probe)
{
	static const char *const types[] = { "ext4", "ext3" };
	int i;

	for (i = 0; i < ARRAY_SIZE(types) && !probe->found; i++) {
		struct file_system_type *type = get_fs_type(types[i]);

		if (!type)
			continue;
		iterate_supers_type(type, luc_probe_super, probe);
		module_put(type->owner);
	}
	if (!probe->found)
		return -ENODEV;
	if (!probe->journal)
		return -ENOLINK;
	return probe->read_only ? -EROFS : 0;
}

static struct luc_fs *luc_fs_new(dev_t dev, const struct luc_params *params)
{
	/* A few pages; the estimator's table is most of it. */
	struct luc_fs *fs = kvzalloc(sizeof(*fs), GFP_KERNEL);

	if (!fs)
		return NULL;
	fs->dev = dev;
	fs->params = *params;
	fs->params_now = *params;
	spin_lock_init(&fs->lock);
	init_waitqueue_head(&fs->wait);
	init_waitqueue_head(&fs->writers);
	INIT_LIST_HEAD(&fs->list);
	luc_tell_init(fs);
	luc_state_init(&fs->state);
	return fs;
}

/*
 * Takes fs off the table: from here on no hook finds it, and stock behaviour is back. A
 * held commit is released, and writers that sleep in a hook leave it. The caller holds
 * luc_mutex.
 */
static void luc_fs_unlink(struct luc_fs *fs, const char *why)
{
	if (fs->gone)
		return;
	fs->gone = true;
	luc_folders_left++;
	hlist_del_init_rcu(&fs->node);
	list_del(&fs->list);
	luc_fs_tell_entry();
	luc_commit_poke(fs);
	wake_up_all(&fs->writers);
	luc_tell_off(fs, why);
}

/*
 * The rest of a detach. Called without luc_mutex: sysfs waits for users of the files
 * that it removes.
 */
static void luc_fs_destroy(struct luc_fs *fs)
{
	kobject_del(&fs->kobj);
	mutex_lock(&luc_mutex);
	luc_folders_left--;
	mutex_unlock(&luc_mutex);
	wake_up_all(&luc_folders_wait);
	synchronize_rcu();	/* hooks that found fs without a reference */
	kobject_put(&fs->kobj);
}

static int luc_fs_unhook_if_last(void)
{
	return list_empty(&luc_list) ? luc_hooks_remove() : 0;
}

/*
 * Takes this entry off the table and frees it. Returns -ENOENT if another task does so,
 * or the error of removing the hooks. The caller has a reference. The sysfs files go
 * first, then the hooks, which take time.
 */
static int luc_fs_drop(struct luc_fs *fs, const char *why)
{
	bool mine;
	int err;

	mutex_lock(&luc_mutex);
	mine = !fs->gone;
	luc_fs_unlink(fs, why);
	mutex_unlock(&luc_mutex);
	if (mine)
		luc_fs_destroy(fs);
	mutex_lock(&luc_mutex);
	err = luc_fs_unhook_if_last();
	mutex_unlock(&luc_mutex);
	return mine ? err : -ENOENT;
}

static void luc_fs_gone_work(struct work_struct *work)
{
	struct luc_fs *fs = container_of(work, struct luc_fs, gone_work);

	luc_fs_drop(fs, "unmounted");
	luc_fs_put(fs);
}

/*
 * The journal is being destroyed. This runs inside umount, which holds locks that an
 * attach may be waiting for, so a worker takes the mutex.
 */
void luc_fs_journal_gone(const journal_t *journal)
{
	struct luc_fs *fs = luc_fs_get(luc_dev_of(journal));

	if (!fs)
		return;
	luc_commit_poke(fs);
	if (!queue_work(luc_wq, &fs->gone_work))
		luc_fs_put(fs);
}

/*
 * Takes luc_mutex at a moment when no directory of a former entry is left: sysfs refuses
 * a second one of the same name with a stack dump.
 */
static void luc_fs_lock_clean(void)
{
	for (;;) {
		/* An unmount may have left its entry to a worker that is not done. */
		flush_workqueue(luc_wq);
		wait_event(luc_folders_wait, !READ_ONCE(luc_folders_left));
		mutex_lock(&luc_mutex);
		if (!luc_folders_left)
			return;
		mutex_unlock(&luc_mutex);
	}
}

static int luc_fs_insert(struct luc_fs *fs, const char *name)
{
	int err;

	luc_fs_lock_clean();
	if (luc_fs_find(fs->dev)) {
		err = -EEXIST;
		goto unlock;
	}
	err = luc_hooks_install();
	if (err)
		goto unlock;
	err = kobject_add(&fs->kobj, luc_kobj, "%s", name);
	if (err) {
		luc_fs_unhook_if_last();
		goto unlock;
	}
	/* The table's reference; a detach may drop it as soon as we unlock. */
	kobject_get(&fs->kobj);
	list_add_tail(&fs->list, &luc_list);
	hlist_add_head_rcu(&fs->node, luc_fs_slot(fs->dev));
	luc_fs_tell_entry();
	luc_tell_on(fs);
unlock:
	mutex_unlock(&luc_mutex);
	return err;
}

int luc_fs_attach(dev_t dev, const struct luc_params *params)
{
	struct luc_probe probe = { .dev = dev };
	struct luc_fs *fs;
	int err;

	err = luc_probe_device(&probe);
	if (err)
		return err;
	fs = luc_fs_new(dev, params);
	if (!fs)
		return -ENOMEM;
	INIT_WORK(&fs->gone_work, luc_fs_gone_work);
	kobject_init(&fs->kobj, &luc_fs_ktype);
	err = luc_fs_insert(fs, probe.name);
	if (err) {
		luc_fs_put(fs);
		return err;
	}
	/* Recheck: an unmount since the first check found no entry to detach. */
	probe.found = false;
	err = luc_probe_device(&probe) ? -ENODEV : 0;
	if (err)
		luc_fs_drop(fs, "unmounted");
	luc_fs_put(fs);
	return err;
}

int luc_fs_detach(dev_t dev)
{
	struct luc_fs *fs;
	int err;

	/* An attach creates its sysfs directory before its entry is in the table. */
	mutex_lock(&luc_mutex);
	fs = luc_fs_get(dev);
	mutex_unlock(&luc_mutex);
	if (!fs)
		return -ENOENT;
	err = luc_fs_drop(fs, "detached");
	luc_fs_put(fs);
	return err;
}

static struct luc_fs *luc_fs_first(void)
{
	struct luc_fs *fs;

	mutex_lock(&luc_mutex);
	fs = list_first_entry_or_null(&luc_list, struct luc_fs, list);
	if (fs)
		luc_fs_unlink(fs, "unloading");
	mutex_unlock(&luc_mutex);
	return fs;
}

void luc_fs_detach_all(void)
{
	struct luc_fs *fs;

	while ((fs = luc_fs_first()))
		luc_fs_destroy(fs);
	mutex_lock(&luc_mutex);
	luc_hooks_remove();
	mutex_unlock(&luc_mutex);
	pr_info("luc: the module is being unloaded\n");
}

int luc_fs_init(void)
{
	/* One worker: detaches of unmounts are rare. */
	luc_wq = alloc_workqueue("luc", WQ_UNBOUND, 1);
	return luc_wq ? 0 : -ENOMEM;
}

void luc_fs_exit(void)
{
	destroy_workqueue(luc_wq);
	rcu_barrier();
}
