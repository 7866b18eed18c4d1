// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power: the block device and /dev/NAME-log exist while it is on. The content
 * lives as long as the configfs directory, so a disk can be formatted at one
 * speed and measured at another.
 */
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "lucdisk.h"

/* The largest request of usual disks: merged writes end here. */
#define LUCDISK_SECTORS_MAX 2048
#define LUCDISK_DISCARD_SECTORS_MAX (1U << 17)
/* Queue depth of a replica, which completes requests at once. */
#define LUCDISK_REPLICA_DEPTH 64

static const struct block_device_operations lucdisk_ops = {
	.owner = THIS_MODULE,
};

struct lucdisk *lucdisk_new(const char *name)
{
	struct lucdisk *disk = kzalloc(sizeof(*disk), GFP_KERNEL);

	if (!disk)
		return NULL;
	config_item_init_type_name(&disk->item, name, &lucdisk_item_type);
	mutex_init(&disk->lock);
	mutex_init(&disk->io_mutex);
	spin_lock_init(&disk->queue.lock);
	INIT_LIST_HEAD(&disk->queue.running);
	INIT_LIST_HEAD(&disk->queue.finished);
	lucdisk_params_init(&disk->params);
	disk->size_mib = 1024;
	disk->record_mib = 256;
	lucdisk_store_init(&disk->store, NULL);
	lucdisk_faults_init(&disk->faults, 1);
	lucdisk_replica_init(&disk->replica);
	return disk;
}

static void lucdisk_traits(struct lucdisk *disk, struct lucdisk_traits *traits)
{
	bool is_replica = disk->replica.log;

	*traits = (struct lucdisk_traits) {
		.cache = !is_replica && lucdisk_is_volatile(&disk->params),
		.rotational = !is_replica && lucdisk_rotates(&disk->params),
		.max_sectors = LUCDISK_SECTORS_MAX,
	};
	if (!traits->rotational)
		traits->max_discard_sectors = LUCDISK_DISCARD_SECTORS_MAX;
}

static int lucdisk_alloc_tags(struct lucdisk *disk, const struct lucdisk_traits *traits)
{
	disk->tag_set = (struct blk_mq_tag_set) {
		.ops = &lucdisk_mq_ops,
		.nr_hw_queues = 1,
		.queue_depth = disk->replica.log ? LUCDISK_REPLICA_DEPTH : disk->queue.depth,
		.numa_node = NUMA_NO_NODE,
		.cmd_size = sizeof(struct lucdisk_cmd),
		.flags = BLK_MQ_F_BLOCKING | LUCDISK_SET_FLAGS,
	};
	/* As for real disks: a scheduler only for a disk with an arm. */
	if (!traits->rotational)
		disk->tag_set.flags |= BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	return blk_mq_alloc_tag_set(&disk->tag_set);
}

static int lucdisk_add_gendisk(struct lucdisk *disk)
{
	struct lucdisk_traits traits;
	struct gendisk *gendisk;
	int err;

	lucdisk_traits(disk, &traits);
	err = lucdisk_alloc_tags(disk, &traits);
	if (err)
		return err;
	gendisk = lucdisk_alloc_gendisk(&disk->tag_set, &traits, disk);
	if (IS_ERR(gendisk)) {
		err = PTR_ERR(gendisk);
		goto free_tags;
	}
	gendisk->fops = &lucdisk_ops;
	/* By default nothing reads the disk before its user does. */
	if (!disk->partitions)
		gendisk->flags |= GENHD_FL_NO_PART;
	strscpy(gendisk->disk_name, config_item_name(&disk->item), DISK_NAME_LEN);
	set_capacity(gendisk, disk->sectors);
	disk->gendisk = gendisk;
	err = add_disk(gendisk);
	if (!err)
		return 0;
	disk->gendisk = NULL;
	put_disk(gendisk);
free_tags:
	blk_mq_free_tag_set(&disk->tag_set);
	return err;
}

static void lucdisk_remove_gendisk(struct lucdisk *disk)
{
	del_gendisk(disk->gendisk);
	put_disk(disk->gendisk);
	disk->gendisk = NULL;
	blk_mq_free_tag_set(&disk->tag_set);
}

/* Both under disk->lock. */
int lucdisk_power_on(struct lucdisk *disk)
{
	int err;

	lockdep_assert_held(&disk->lock);
	disk->sectors = disk->replica.log ? disk->replica.log->sectors :
					    (u64)disk->size_mib << (20 - SECTOR_SHIFT);
	/* The disk may have been larger. A replica's content is its record's. */
	if (!disk->replica.log)
		lucdisk_store_truncate(&disk->store, disk->sectors / LUCDISK_PAGE_SECTORS);
	err = lucdisk_queue_init(disk);
	if (err)
		return err;
	err = lucdisk_add_gendisk(disk);
	if (err)
		goto exit_queue;
	err = lucdisk_marks_register(disk);
	if (err)
		goto remove_gendisk;
	disk->powered = true;
	return 0;

remove_gendisk:
	lucdisk_queue_abort(disk);
	lucdisk_remove_gendisk(disk);
exit_queue:
	lucdisk_queue_exit(disk);
	return err;
}

/* Like pulling the plug: requests in flight fail. */
void lucdisk_power_off(struct lucdisk *disk)
{
	lockdep_assert_held(&disk->lock);
	lucdisk_queue_abort(disk);
	misc_deregister(&disk->marks);
	lucdisk_remove_gendisk(disk);
	lucdisk_queue_exit(disk);
	disk->powered = false;
}
