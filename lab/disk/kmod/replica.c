// SPDX-License-Identifier: GPL-2.0-only
/*
 * States of a disk that a power cut could have left.
 *
 * A replica replays the record of another disk up to a cut. It keeps three
 * things: the durable content, which must be there in any case; the pending
 * writes, each of which may be there, in whole or in part; and, above the
 * durable content, what it shows: the pending writes chosen by the mode of the
 * cut, and anything written to the replica afterwards. A new cut drops the
 * third, so that moving on to a later cut costs only the entries in between.
 *
 * A write is durable when
 *   it is done, and the disk has no volatile cache or the write was FUA; or
 *   it was done before a flush was accepted that is done.
 *
 * On a disk, older data never replaces newer data on the medium. So each durable
 * sector has a version, the number of its write plus one. A write that is older
 * than that leaves the sector alone, whether it becomes durable later or is
 * chosen as a survivor. Among pending writes the later one replaces the earlier.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "lucdisk.h"

/* A write that need not survive. */
struct lucdisk_pending {
	struct lucdisk_entry entry;
	u64 done;		/* the entry of its completion, if is_done */
	bool is_done;
};

/* Newest durable write of each sector of a page, plus one. */
struct lucdisk_version {
	u64 sector[LUCDISK_PAGE_SECTORS];
};

static const char *const lucdisk_cut_name[LUCDISK_CUT_NR] = {
	[LUCDISK_CUT_NONE] = "none",
	[LUCDISK_CUT_ALL] = "all",
	[LUCDISK_CUT_RANDOM] = "random",
	[LUCDISK_CUT_RANDOM_WHOLE] = "random-whole",
	[LUCDISK_CUT_LATEST_LOST] = "latest-lost",
	[LUCDISK_CUT_EARLIEST_LOST] = "earliest-lost",
};

void lucdisk_replica_init(struct lucdisk_replica *replica)
{
	lucdisk_store_init(&replica->durable, NULL);
	xa_init(&replica->versions);
	xa_init(&replica->pending);
}

static void lucdisk_free_all(struct xarray *xa)
{
	unsigned long index;
	void *item;

	xa_for_each(xa, index, item) {
		kfree(item);
		cond_resched();
	}
	xa_destroy(xa);
}

/* Goes back to the base of the record. */
static int lucdisk_replica_reset(struct lucdisk *disk)
{
	struct lucdisk_replica *replica = &disk->replica;

	lucdisk_store_clear(&disk->store);
	lucdisk_store_clear(&replica->durable);
	lucdisk_free_all(&replica->versions);
	lucdisk_free_all(&replica->pending);
	replica->at = 0;
	replica->cut = 0;
	replica->mode = LUCDISK_CUT_NONE;
	replica->seed = 0;
	return replica->log ? lucdisk_store_share_all(&replica->durable, &replica->log->base) : 0;
}

/* Under disk->lock, powered off. */
int lucdisk_replica_set(struct lucdisk *disk, struct lucdisk_log *log, const char *name)
{
	struct lucdisk_replica *replica = &disk->replica;
	int err;

	lucdisk_log_put(replica->log);
	replica->log = log;
	strscpy(replica->name, name, sizeof(replica->name));
	/* If it was an ordinary disk, it keeps no content of its own. */
	disk->store.below = log ? &replica->durable : NULL;
	err = lucdisk_replica_reset(disk);
	if (err)
		lucdisk_replica_clear(disk);
	return err;
}

void lucdisk_replica_clear(struct lucdisk *disk)
{
	struct lucdisk_log *log = disk->replica.log;

	disk->replica.log = NULL;
	disk->replica.name[0] = '\0';
	disk->store.below = NULL;
	/* Without a record it takes no memory and cannot fail. */
	lucdisk_replica_reset(disk);
	lucdisk_log_put(log);
}

/* ---- one write onto a store ---- */

/* Which sectors of a write go to a store. */
struct lucdisk_choice {
	u64 seed;
	bool random;		/* each by its own coin */
	bool durable;		/* all, and they get its version */
};

static bool lucdisk_coin(u64 seed, u64 entry, u64 sector)
{
	return lucdisk_random(lucdisk_random(seed ^ lucdisk_random(entry)) ^ sector) >> 63;
}

static struct lucdisk_version *lucdisk_version_of(struct lucdisk_replica *replica, u64 page,
						  bool make)
{
	struct lucdisk_version *version = xa_load(&replica->versions, page);
	int err;

	if (version || !make)
		return version;
	version = kzalloc(sizeof(*version), GFP_NOIO);
	if (!version)
		return NULL;
	err = xa_err(xa_store(&replica->versions, page, version, GFP_NOIO));
	if (err) {
		kfree(version);
		return NULL;
	}
	return version;
}

/*
 * Bit s is set if sector s is to be changed, among n sectors of this page from
 * `first` on.
 */
static u32 lucdisk_chosen(struct lucdisk_version *version, u64 page, u32 first, u32 n,
			  u64 index, const struct lucdisk_choice *choice)
{
	u32 mask = 0, s;

	for (s = first; s < first + n; s++) {
		u64 sector = page * LUCDISK_PAGE_SECTORS + s;

		if (version && version->sector[s] > index)
			continue;
		if (choice->random && !lucdisk_coin(choice->seed, index, sector))
			continue;
		mask |= 1U << s;
		if (choice->durable)
			version->sector[s] = index + 1;
	}
	return mask;
}

/* Writes sectors of one page, from a page of the record or, for a discard, zeros. */
static int lucdisk_put_sectors(struct lucdisk_store *store, u64 index, struct page *from,
			       u32 mask)
{
	bool whole = mask == (1U << LUCDISK_PAGE_SECTORS) - 1;
	struct page *page;
	u8 *to;
	u32 s;

	if (!mask || (!from && !lucdisk_store_look(store, index)))
		return 0;
	if (from && whole)
		return lucdisk_store_share(store, index, from);
	page = lucdisk_store_edit(store, index, whole);
	if (!page)
		return -ENOMEM;
	to = page_address(page);
	for (s = 0; s < LUCDISK_PAGE_SECTORS; s++) {
		u32 at = s * SECTOR_SIZE;

		if (!(mask & (1U << s)))
			continue;
		if (from)
			memcpy(to + at, page_address(from) + at, SECTOR_SIZE);
		else
			memset(to + at, 0, SECTOR_SIZE);
	}
	return 0;
}

static int lucdisk_apply(struct lucdisk *disk, u64 index, const struct lucdisk_entry *entry,
			 const struct lucdisk_choice *choice)
{
	struct lucdisk_replica *replica = &disk->replica;
	struct lucdisk_store *store = choice->durable ? &replica->durable : &disk->store;
	u64 sector = entry->sector;
	u64 end = sector + entry->bytes / SECTOR_SIZE;
	u64 ref = entry->ref;
	int err;

	while (sector < end) {
		u64 page = sector / LUCDISK_PAGE_SECTORS;
		u32 first = sector % LUCDISK_PAGE_SECTORS;
		u32 n = min_t(u64, LUCDISK_PAGE_SECTORS - first, end - sector);
		struct lucdisk_version *version;
		struct page *from = NULL;

		version = lucdisk_version_of(replica, page, choice->durable);
		if (!version && choice->durable)
			return -ENOMEM;
		if (entry->op == LUCDISK_LOG_WRITE)
			from = xa_load(&replica->log->data, ref++);
		err = lucdisk_put_sectors(store, page, from,
					  lucdisk_chosen(version, page, first, n, index, choice));
		if (err)
			return err;
		sector += n;
		cond_resched();
	}
	return 0;
}

/* ---- replay ---- */

static int lucdisk_make_durable(struct lucdisk *disk, u64 index, struct lucdisk_pending *pending)
{
	static const struct lucdisk_choice choice = { .durable = true };
	int err = lucdisk_apply(disk, index, &pending->entry, &choice);

	if (err)
		return err;
	xa_erase(&disk->replica.pending, index);
	kfree(pending);
	return 0;
}

static int lucdisk_replay_accept(struct lucdisk_replica *replica, u64 index,
				 const struct lucdisk_entry *entry)
{
	struct lucdisk_pending *pending = kzalloc(sizeof(*pending), GFP_NOIO);
	int err;

	if (!pending)
		return -ENOMEM;
	pending->entry = *entry;
	err = xa_err(xa_store(&replica->pending, index, pending, GFP_NOIO));
	if (err)
		kfree(pending);
	return err;
}

static int lucdisk_replay_done(struct lucdisk *disk, u64 index, u64 accepted)
{
	struct lucdisk_pending *pending = xa_load(&disk->replica.pending, accepted);

	if (!pending)
		return 0;
	pending->is_done = true;
	pending->done = index;
	if (disk->replica.log->is_volatile && !pending->entry.fua)
		return 0;
	return lucdisk_make_durable(disk, accepted, pending);
}

/* A flush covers the writes that were done when it was accepted. */
static int lucdisk_replay_flush(struct lucdisk *disk, u64 accepted)
{
	struct lucdisk_pending *pending;
	unsigned long index;
	int err;

	xa_for_each(&disk->replica.pending, index, pending) {
		if (!pending->is_done || pending->done > accepted)
			continue;
		err = lucdisk_make_durable(disk, index, pending);
		if (err)
			return err;
	}
	return 0;
}

static int lucdisk_replay(struct lucdisk *disk, u64 index)
{
	const struct lucdisk_entry *entry = lucdisk_log_entry(disk->replica.log, index);

	switch (entry->op) {
	case LUCDISK_LOG_WRITE:
	case LUCDISK_LOG_DISCARD:
		return lucdisk_replay_accept(&disk->replica, index, entry);
	case LUCDISK_LOG_WRITE_DONE:
	case LUCDISK_LOG_DISCARD_DONE:
		return lucdisk_replay_done(disk, index, entry->ref);
	case LUCDISK_LOG_FLUSH_DONE:
		return lucdisk_replay_flush(disk, entry->ref);
	default:
		return 0;
	}
}

/* ---- the cut ---- */

static bool lucdisk_survives(struct lucdisk_replica *replica, u64 index, u64 first, u64 last)
{
	switch (replica->mode) {
	case LUCDISK_CUT_NONE:
		return false;
	case LUCDISK_CUT_LATEST_LOST:
		return index != last;
	case LUCDISK_CUT_EARLIEST_LOST:
		return index != first;
	case LUCDISK_CUT_RANDOM_WHOLE:
		return lucdisk_coin(replica->seed, index, 0);
	default:
		return true;
	}
}

/* Puts the survivors among the pending writes above the durable content. */
static int lucdisk_show_survivors(struct lucdisk *disk)
{
	struct lucdisk_replica *replica = &disk->replica;
	struct lucdisk_choice choice = {
		.seed = replica->seed,
		.random = replica->mode == LUCDISK_CUT_RANDOM,
	};
	struct lucdisk_pending *pending;
	unsigned long index = 0, first, last = 0;
	int err;

	if (!xa_find(&replica->pending, &index, ULONG_MAX, XA_PRESENT))
		return 0;
	first = index;
	xa_for_each(&replica->pending, index, pending)
		last = index;
	xa_for_each(&replica->pending, index, pending) {
		if (!lucdisk_survives(replica, index, first, last))
			continue;
		err = lucdisk_apply(disk, index, &pending->entry, &choice);
		if (err)
			return err;
	}
	return 0;
}

static int lucdisk_replica_go(struct lucdisk *disk, u64 cut, enum lucdisk_cut_mode mode,
			      u64 seed)
{
	struct lucdisk_replica *replica = &disk->replica;
	int err = 0;

	if (cut < replica->at)
		err = lucdisk_replica_reset(disk);
	else
		lucdisk_store_clear(&disk->store);
	for (; !err && replica->at < cut; replica->at++) {
		err = lucdisk_replay(disk, replica->at);
		cond_resched();
	}
	replica->cut = cut;
	replica->mode = mode;
	replica->seed = seed;
	if (!err)
		err = lucdisk_show_survivors(disk);
	if (err)
		/* No disk was ever in a half-replayed state. */
		lucdisk_replica_reset(disk);
	return err;
}

static int lucdisk_cut_parse(const char *text, u64 *cut, enum lucdisk_cut_mode *mode, u64 *seed)
{
	int words, i, err = -EINVAL;
	char **word = argv_split(GFP_KERNEL, text, &words);

	if (!word)
		return -ENOMEM;
	if (words != 3 || kstrtou64(word[0], 10, cut) || kstrtou64(word[2], 10, seed))
		goto free;
	i = match_string(lucdisk_cut_name, LUCDISK_CUT_NR, word[1]);
	if (i < 0)
		goto free;
	*mode = i;
	err = 0;
free:
	argv_free(word);
	return err;
}

/* "INDEX MODE SEED", under disk->lock. */
int lucdisk_replica_cut(struct lucdisk *disk, const char *text)
{
	struct gendisk *gendisk = disk->powered ? disk->gendisk : NULL;
	enum lucdisk_cut_mode mode;
	u64 cut, seed;
	int err;

	lockdep_assert_held(&disk->lock);
	err = lucdisk_cut_parse(text, &cut, &mode, &seed);
	if (err)
		return err;
	if (!disk->replica.log || cut > lucdisk_log_len(disk->replica.log))
		return -EINVAL;
	/*
	 * The content may only change while the disk is closed: the block layer
	 * drops its cache when the last user closes the disk, and no user can
	 * open it while this mutex is held.
	 */
	if (gendisk)
		mutex_lock(&gendisk->open_mutex);
	if (gendisk && disk_openers(gendisk)) {
		err = -EBUSY;
	} else {
		mutex_lock(&disk->io_mutex);
		err = lucdisk_replica_go(disk, cut, mode, seed);
		mutex_unlock(&disk->io_mutex);
	}
	if (gendisk)
		mutex_unlock(&gendisk->open_mutex);
	return err;
}

ssize_t lucdisk_replica_show(struct lucdisk *disk, char *page)
{
	struct lucdisk_replica *replica = &disk->replica;

	if (!replica->log)
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%llu %s %llu\n", replica->cut, lucdisk_cut_name[replica->mode],
			  replica->seed);
}
