// SPDX-License-Identifier: GPL-2.0-only
/*
 * The content of a disk: an xarray of pages, absent where all is zero.
 *
 * Stores share pages by reference. A page with more than one reference is never written
 * to: a writer copies it first. So a record keeps a write by keeping its pages, and its
 * base is a copy of references.
 *
 * A store changes under the io_mutex of its disk. Other stores may only drop their
 * references meanwhile; then a copy was made for nothing.
 */
#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>

#include "lucdisk.h"

void lucdisk_store_init(struct lucdisk_store *store, struct lucdisk_store *below)
{
	xa_init(&store->pages);
	store->below = below;
}

void lucdisk_store_clear(struct lucdisk_store *store)
{
	struct page *page;
	unsigned long index;

	xa_for_each(&store->pages, index, page) {
		put_page(page);
		cond_resched();
	}
	xa_destroy(&store->pages);
}

void lucdisk_store_truncate(struct lucdisk_store *store, u64 pages)
{
	struct page *page;
	unsigned long index;

	xa_for_each_start(&store->pages, index, page, pages) {
		xa_erase(&store->pages, index);
		put_page(page);
		cond_resched();
	}
}

struct page *lucdisk_store_look(struct lucdisk_store *store, u64 index)
{
	struct page *page = NULL;

	for (; store && !page; store = store->below)
		page = xa_load(&store->pages, index);
	return page;
}

/* Puts a page in, with the caller's reference, and drops the one it replaces. */
static int lucdisk_store_put(struct lucdisk_store *store, u64 index, struct page *page)
{
	struct page *old = xa_store(&store->pages, index, page, GFP_NOIO);

	if (xa_is_err(old)) {
		put_page(page);
		return xa_err(old);
	}
	if (old)
		put_page(old);
	return 0;
}

int lucdisk_store_share(struct lucdisk_store *store, u64 index, struct page *page)
{
	get_page(page);
	return lucdisk_store_put(store, index, page);
}

int lucdisk_store_share_all(struct lucdisk_store *to, struct lucdisk_store *from)
{
	struct page *page;
	unsigned long index;
	int err;

	xa_for_each(&from->pages, index, page) {
		err = lucdisk_store_share(to, index, page);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

struct page *lucdisk_store_edit(struct lucdisk_store *store, u64 index, bool whole)
{
	struct page *old = xa_load(&store->pages, index);
	struct page *page;

	if (old && page_ref_count(old) == 1) {
		/* Other holders finished reading before they dropped their reference. */
		smp_acquire__after_ctrl_dep();
		return old;
	}
	old = lucdisk_store_look(store, index);
	page = alloc_page(GFP_NOIO | (whole || old ? 0 : __GFP_ZERO));
	if (!page)
		return NULL;
	if (old && !whole)
		copy_page(page_address(page), page_address(old));
	return lucdisk_store_put(store, index, page) ? NULL : page;
}

int lucdisk_store_zero(struct lucdisk_store *store, u64 sector, u64 sectors)
{
	u64 end = sector + sectors;

	while (sector < end) {
		u64 index = sector / LUCDISK_PAGE_SECTORS;
		u64 offset = sector % LUCDISK_PAGE_SECTORS;
		u64 n = min(LUCDISK_PAGE_SECTORS - offset, end - sector);
		bool whole = n == LUCDISK_PAGE_SECTORS;
		struct page *page = lucdisk_store_look(store, index);

		sector += n;
		if (!page)
			continue;
		if (whole && !(store->below && lucdisk_store_look(store->below, index))) {
			xa_erase(&store->pages, index);
			put_page(page);
			continue;
		}
		page = lucdisk_store_edit(store, index, whole);
		if (!page)
			return -ENOMEM;
		memset(page_address(page) + offset * SECTOR_SIZE, 0, n * SECTOR_SIZE);
		cond_resched();
	}
	return 0;
}

/* Copies between the caller's memory and the bytes from pos on. */
static int lucdisk_store_copy(struct lucdisk_store *store, u64 pos, u8 *data, u32 bytes,
			      bool is_write)
{
	while (bytes) {
		u64 index = pos / PAGE_SIZE;
		u32 offset = pos % PAGE_SIZE;
		u32 n = min_t(u32, PAGE_SIZE - offset, bytes);
		struct page *page;

		if (is_write) {
			page = lucdisk_store_edit(store, index, n == PAGE_SIZE);
			if (!page)
				return -ENOMEM;
			memcpy(page_address(page) + offset, data, n);
		} else {
			page = lucdisk_store_look(store, index);
			if (page)
				memcpy(data, page_address(page) + offset, n);
			else
				memset(data, 0, n);
		}
		pos += n;
		data += n;
		bytes -= n;
	}
	return 0;
}

/* A read or a write, as the request says. */
int lucdisk_store_transfer(struct lucdisk_store *store, struct request *rq)
{
	bool is_write = op_is_write(req_op(rq));
	u64 pos = blk_rq_pos(rq) * SECTOR_SIZE;
	struct req_iterator iter;
	struct bio_vec bvec;
	int err;

	rq_for_each_segment(bvec, rq, iter) {
		u8 *data = bvec_kmap_local(&bvec);

		err = lucdisk_store_copy(store, pos, data, bvec.bv_len, is_write);
		if (!is_write)
			flush_dcache_page(bvec.bv_page);
		kunmap_local(data);
		if (err)
			return err;
		pos += bvec.bv_len;
	}
	return 0;
}
