/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences in the block layer and the timers from 6.1 to today, in one
 * place, so that the driver itself is written for one kernel.
 */
#ifndef LUCDISK_COMPAT_H
#define LUCDISK_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/sched/mm.h>
#include <linux/version.h>

/* Properties of a disk that the block layer needs. */
struct lucdisk_traits {
	bool cache;		/* volatile write cache, with FUA */
	bool rotational;
	unsigned int max_sectors;
	unsigned int max_discard_sectors;	/* 0: none */
};

/* Merging used to be optional; now every queue merges. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define LUCDISK_SET_FLAGS BLK_MQ_F_SHOULD_MERGE
#else
#define LUCDISK_SET_FLAGS 0
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static inline struct gendisk *lucdisk_alloc_gendisk(struct blk_mq_tag_set *set,
						    const struct lucdisk_traits *traits,
						    void *queuedata)
{
	struct queue_limits limits = {
		.logical_block_size = SECTOR_SIZE,
		.max_hw_sectors = traits->max_sectors,
		.max_hw_discard_sectors = traits->max_discard_sectors,
		.discard_granularity = traits->max_discard_sectors ? SECTOR_SIZE : 0,
	};
	struct gendisk *gendisk;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	if (traits->cache)
		limits.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (traits->rotational)
		limits.features |= BLK_FEAT_ROTATIONAL;
	gendisk = blk_mq_alloc_disk(set, &limits, queuedata);
#else
	gendisk = blk_mq_alloc_disk(set, &limits, queuedata);
	if (IS_ERR(gendisk))
		return gendisk;
	blk_queue_write_cache(gendisk->queue, traits->cache, traits->cache);
	if (!traits->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, gendisk->queue);
#endif
	return gendisk;
}
#else
static inline struct gendisk *lucdisk_alloc_gendisk(struct blk_mq_tag_set *set,
						    const struct lucdisk_traits *traits,
						    void *queuedata)
{
	struct gendisk *gendisk = blk_mq_alloc_disk(set, queuedata);
	struct request_queue *queue;

	if (IS_ERR(gendisk))
		return gendisk;
	queue = gendisk->queue;
	blk_queue_logical_block_size(queue, SECTOR_SIZE);
	blk_queue_max_hw_sectors(queue, traits->max_sectors);
	blk_queue_max_discard_sectors(queue, traits->max_discard_sectors);
	if (traits->max_discard_sectors)
		queue->limits.discard_granularity = SECTOR_SIZE;
	blk_queue_write_cache(queue, traits->cache, traits->cache);
	if (!traits->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	return gendisk;
}
#endif

/*
 * While a queue is frozen, memory reclaim must not write to it. Since 6.14 the
 * block layer ensures that itself.
 */
static inline unsigned int lucdisk_freeze(struct request_queue *queue)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	return blk_mq_freeze_queue(queue);
#else
	unsigned int flags = memalloc_noio_save();

	blk_mq_freeze_queue(queue);
	return flags;
#endif
}

static inline void lucdisk_unfreeze(struct request_queue *queue, unsigned int flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	blk_mq_unfreeze_queue(queue, flags);
#else
	blk_mq_unfreeze_queue(queue);
	memalloc_noio_restore(flags);
#endif
}

static inline void lucdisk_timer_init(struct hrtimer *timer,
				      enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = function;
#endif
}

#endif
