// SPDX-License-Identifier: GPL-2.0-only
/*
 * The record of everything that reached a disk, in order.
 *
 * A request has one entry when it is accepted and one when it is done. The
 * second is written in hard interrupt context, so the first makes room for
 * both. The data of a write is kept as references to the store's pages right
 * after it. A failed request is not recorded, because it changed nothing.
 *
 * When memory or the limit runs out the record ends: later requests are counted
 * as lost and nothing more is appended, because a recorded flush would claim to
 * cover missing writes. The record up to there stays valid.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "lucdisk.h"

#define LUCDISK_CHUNK_ENTRIES (PAGE_SIZE / sizeof(struct lucdisk_entry))
/* The log may fail; the guest's other work may not. */
#define LUCDISK_GFP_LOG (GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN)

static void lucdisk_log_free(struct kref *kref)
{
	struct lucdisk_log *log = container_of(kref, struct lucdisk_log, kref);
	struct lucdisk_mark *mark;
	struct page *page;
	unsigned long index;

	lucdisk_store_clear(&log->base);
	xa_for_each(&log->chunks, index, page)
		put_page(page);
	xa_for_each(&log->data, index, page) {
		put_page(page);
		cond_resched();
	}
	xa_for_each(&log->mark, index, mark)
		kfree(mark);
	xa_destroy(&log->chunks);
	xa_destroy(&log->data);
	xa_destroy(&log->mark);
	kfree(log);
}

void lucdisk_log_put(struct lucdisk_log *log)
{
	if (log)
		kref_put(&log->kref, lucdisk_log_free);
}

/* A record that begins with the current content; io_mutex is held. */
struct lucdisk_log *lucdisk_log_new(struct lucdisk *disk)
{
	struct lucdisk_log *log;
	int err;

	lockdep_assert_held(&disk->io_mutex);
	log = kzalloc(sizeof(*log), GFP_NOIO);
	if (!log)
		return ERR_PTR(-ENOMEM);
	kref_init(&log->kref);
	lucdisk_store_init(&log->base, NULL);
	xa_init(&log->chunks);
	xa_init(&log->data);
	xa_init(&log->mark);
	log->sectors = disk->sectors;
	log->is_volatile = lucdisk_is_volatile(&disk->params);
	log->limit_bytes = (u64)disk->record_mib << 20;
	err = lucdisk_store_share_all(&log->base, &disk->store);
	if (err) {
		lucdisk_log_put(log);
		return ERR_PTR(err);
	}
	return log;
}

u64 lucdisk_log_len(const struct lucdisk_log *log)
{
	/* Pairs with the release in lucdisk_log_append(). */
	return smp_load_acquire(&log->len);
}

static struct lucdisk_entry *lucdisk_log_at(struct lucdisk_log *log, u64 index)
{
	struct page *page = xa_load(&log->chunks, index / LUCDISK_CHUNK_ENTRIES);
	struct lucdisk_entry *entry = page_address(page);

	return entry + index % LUCDISK_CHUNK_ENTRIES;
}

const struct lucdisk_entry *lucdisk_log_entry(struct lucdisk_log *log, u64 index)
{
	return lucdisk_log_at(log, index);
}

static int lucdisk_log_use(struct lucdisk_log *log, u64 bytes)
{
	if (log->used_bytes + bytes > log->limit_bytes)
		return -ENOSPC;
	log->used_bytes += bytes;
	return 0;
}

/* Allocates room for `entries` more entries. */
static int lucdisk_log_room(struct lucdisk_log *log, u32 entries)
{
	while (log->promised + entries > log->room) {
		struct page *page;
		int err = lucdisk_log_use(log, PAGE_SIZE);

		if (err)
			return err;
		page = alloc_page(LUCDISK_GFP_LOG);
		if (!page)
			return -ENOMEM;
		err = xa_err(xa_store(&log->chunks, log->room / LUCDISK_CHUNK_ENTRIES, page,
				      LUCDISK_GFP_LOG));
		if (err) {
			put_page(page);
			return err;
		}
		log->room += LUCDISK_CHUNK_ENTRIES;
	}
	log->promised += entries;
	return 0;
}

/* Keeps the pages that a write has just written. */
static int lucdisk_log_keep(struct lucdisk *disk, struct lucdisk_cmd *cmd)
{
	struct lucdisk_log *log = disk->log;
	u64 sectors = cmd->request.bytes / SECTOR_SIZE;
	u64 index = cmd->request.sector / LUCDISK_PAGE_SECTORS;
	u64 last = (cmd->request.sector + sectors - 1) / LUCDISK_PAGE_SECTORS;
	int err;

	cmd->log_ref = log->pages;
	for (; index <= last; index++) {
		struct page *page = xa_load(&disk->store.pages, index);

		err = lucdisk_log_use(log, PAGE_SIZE);
		if (err)
			return err;
		get_page(page);
		err = xa_err(xa_store(&log->data, log->pages, page, LUCDISK_GFP_LOG));
		if (err) {
			put_page(page);
			return err;
		}
		log->pages++;
	}
	return 0;
}

static void lucdisk_log_fail(struct lucdisk *disk)
{
	/* With interrupts off: the timer reads the state. */
	spin_lock_irq(&disk->queue.lock);
	disk->log->state = LUCDISK_LOG_FULL;
	spin_unlock_irq(&disk->queue.lock);
}

void lucdisk_log_prepare(struct lucdisk *disk, struct lucdisk_cmd *cmd)
{
	struct lucdisk_log *log = disk->log;
	int err;

	lockdep_assert_held(&disk->io_mutex);
	cmd->recorded = log && log->state != LUCDISK_LOG_STOPPED && !cmd->status &&
			cmd->log_op != LUCDISK_LOG_NONE;
	if (!cmd->recorded || log->state == LUCDISK_LOG_FULL)
		return;
	cmd->log_ref = 0;
	err = lucdisk_log_room(log, 2);
	if (!err && cmd->log_op == LUCDISK_LOG_WRITE)
		err = lucdisk_log_keep(disk, cmd);
	if (err)
		lucdisk_log_fail(disk);
}

/* Under queue.lock, into room that was made earlier. */
static void lucdisk_log_append(struct lucdisk_log *log, struct lucdisk_entry entry)
{
	u64 len = log->len;

	if (log->state != LUCDISK_LOG_RUNNING) {
		if (log->state == LUCDISK_LOG_FULL)
			log->lost++;
		return;
	}
	*lucdisk_log_at(log, len) = entry;
	/* Readers hold no lock: they must see the entry before the new length. */
	smp_store_release(&log->len, len + 1);
}

void lucdisk_log_accept(struct lucdisk *disk, struct lucdisk_cmd *cmd, u64 now_ns)
{
	struct lucdisk_log *log = disk->log;
	u64 index;

	if (!cmd->recorded)
		return;
	index = log->len;
	lucdisk_log_append(log, (struct lucdisk_entry) {
		.sector = cmd->request.sector,
		.ref = cmd->log_ref,
		.time_ns = now_ns,
		.bytes = cmd->request.bytes,
		.op = cmd->log_op,
		.fua = cmd->request.fua,
	});
	cmd->log_ref = index;
}

static u8 lucdisk_log_done_op(u8 op)
{
	switch (op) {
	case LUCDISK_LOG_WRITE:
		return LUCDISK_LOG_WRITE_DONE;
	case LUCDISK_LOG_DISCARD:
		return LUCDISK_LOG_DISCARD_DONE;
	default:
		return LUCDISK_LOG_FLUSH_DONE;
	}
}

void lucdisk_log_done(struct lucdisk *disk, struct lucdisk_cmd *cmd, u64 now_ns)
{
	struct lucdisk_log *log = disk->log;

	if (!cmd->recorded)
		return;
	lucdisk_log_append(log, (struct lucdisk_entry) {
		.sector = cmd->request.sector,
		.ref = cmd->log_ref,
		.time_ns = now_ns,
		.bytes = cmd->request.bytes,
		.op = lucdisk_log_done_op(cmd->log_op),
		.fua = cmd->request.fua,
	});
}

static int lucdisk_log_mark_room(struct lucdisk_log *log, struct lucdisk_mark *mark, u32 bytes)
{
	int err = lucdisk_log_room(log, 1);

	if (!err)
		err = lucdisk_log_use(log, sizeof(*mark) + bytes);
	if (!err)
		err = xa_err(xa_store(&log->mark, log->marks, mark, LUCDISK_GFP_LOG));
	return err;
}

int lucdisk_log_mark(struct lucdisk *disk, struct lucdisk_mark *mark)
{
	struct lucdisk_log *log = disk->log;
	u32 bytes = le32_to_cpu(mark->head.bytes);
	u64 now_ns, number;
	bool full;

	lockdep_assert_held(&disk->io_mutex);
	if (!log || log->state == LUCDISK_LOG_STOPPED)
		return -ENODATA;
	if (log->state == LUCDISK_LOG_RUNNING && lucdisk_log_mark_room(log, mark, bytes))
		lucdisk_log_fail(disk);
	number = log->marks;

	/* Keeps the timer from appending in between. */
	spin_lock_irq(&disk->queue.lock);
	now_ns = ktime_get_ns();
	/* Requests done by now come before the mark, even if their interrupt is late. */
	lucdisk_queue_advance(disk, now_ns);
	full = log->state == LUCDISK_LOG_FULL;
	if (!full) {
		mark->index = log->len;
		mark->pos = log->marks_bytes;
		mark->head.index = cpu_to_le64(mark->index);
		log->marks_bytes += sizeof(mark->head) + bytes;
	}
	lucdisk_log_append(log, (struct lucdisk_entry) {
		.ref = number,
		.time_ns = now_ns,
		.bytes = bytes,
		.op = LUCDISK_LOG_MARK,
	});
	if (!full)
		smp_store_release(&log->marks, number + 1);
	spin_unlock_irq(&disk->queue.lock);

	if (!full)
		return 0;
	/* There may have been room for the mark but not for its entry. */
	xa_erase(&log->mark, number);
	return -ENOSPC;
}

void lucdisk_log_stop(struct lucdisk_log *log)
{
	if (log)
		log->state = LUCDISK_LOG_STOPPED;
}

/*
 * Starts and stops recording with no request in the disk, so that base and
 * record meet without a gap. disk->lock is held.
 */
int lucdisk_record(struct lucdisk *disk, bool on)
{
	struct lucdisk_log *log = NULL, *old = NULL;
	unsigned int flags;
	int err = 0;

	lockdep_assert_held(&disk->lock);
	if (!disk->powered || disk->replica.log)
		return on ? -EINVAL : 0;
	flags = lucdisk_freeze(disk->gendisk->queue);
	/* A mark may come at any time. */
	mutex_lock(&disk->io_mutex);
	if (on) {
		log = lucdisk_log_new(disk);
		err = PTR_ERR_OR_ZERO(log);
	}
	spin_lock_irq(&disk->queue.lock);
	if (!on) {
		lucdisk_log_stop(disk->log);
	} else if (!err) {
		old = disk->log;
		disk->log = log;
	}
	spin_unlock_irq(&disk->queue.lock);
	mutex_unlock(&disk->io_mutex);
	lucdisk_unfreeze(disk->gendisk->queue, flags);
	lucdisk_log_put(old);
	return err;
}
