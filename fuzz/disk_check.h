/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bounds of the disk model, written from lucdisk_model.h, the knob table and the
 * essay, not from the code. Sums are kept from a mark on, so that every rate is checked
 * over any span of requests.
 */
#ifndef LUC_FUZZ_DISK_CHECK_H
#define LUC_FUZZ_DISK_CHECK_H

#include "../lab/disk/lucdisk_model.h"
#include "harness.h"

/* Later times may saturate: then order and rates mean nothing. */
#define ENDLESS_NS (1ULL << 62)
#define NS_PER_S ((wide)LUC_NS_PER_S)

/* Since the mark, of the requests that were started. */
struct sums {
	luc_u64 begin_ns;
	wide requests, units, bytes, read_bytes, medium_bytes, arm_bytes;
};

static inline wide larger(wide a, wide b)
{
	return a > b ? a : b;
}

/* Knobs out of bounds count as their nearest bound. */
static inline struct lucdisk_params bounded(const struct lucdisk_params *p)
{
	struct lucdisk_params to;

#define KNOB_BOUNDED(name, min, max, dflt, help) \
	to.name = p->name < (min) ? (min) : p->name > (max) ? (max) : p->name;
	LUCDISK_KNOBS(KNOB_BOUNDED)
	return to;
}

static inline int is_flush_of(const struct lucdisk_request *r)
{
	return r->op != LUCDISK_READ && r->op != LUCDISK_WRITE;
}

static inline int flush_works(const struct lucdisk_params *p,
			      const struct lucdisk_request *r)
{
	return is_flush_of(r) && lucdisk_is_volatile(p);
}

static inline int to_medium(const struct lucdisk_params *p,
			    const struct lucdisk_request *r)
{
	return r->op == LUCDISK_WRITE &&
	       (!p->cache_bytes || (r->fua && p->cache_volatile));
}

static inline int uses_arm(const struct lucdisk_params *p,
			   const struct lucdisk_request *r)
{
	return p->rotation_ns && (r->op == LUCDISK_READ || to_medium(p, r) ||
				  flush_works(p, r));
}

static inline int is_alone(const struct lucdisk_params *p,
			   const struct lucdisk_request *r)
{
	return p->flush_exclusive && flush_works(p, r);
}

/* Sectors beyond the end count as the last one, and no request passes the end. */
static inline luc_u64 bytes_of(const struct lucdisk_state *s,
			       const struct lucdisk_request *r)
{
	wide last = s->disk_bytes - LUCDISK_SECTOR_BYTES;
	wide first = (wide)r->sector * LUCDISK_SECTOR_BYTES;
	wide room = s->disk_bytes - (first < last ? first : last);

	return (luc_u64)(r->bytes < room ? r->bytes : room);
}

/* Room of the cache in blocks. */
static inline luc_u64 room_of(const struct lucdisk_params *p)
{
	luc_u64 blocks = (luc_u64)p->cache_bytes / LUCDISK_BLOCK_BYTES;

	return blocks ? blocks : 1;
}

/* Time a dirty block takes on a medium without an arm, rounded down. */
static inline wide block_time_ns(const struct lucdisk_params *p)
{
	wide rate = p->write_per_s_bytes;

	return p->flush_block_ns + (rate ? LUCDISK_BLOCK_BYTES * NS_PER_S / rate : 0);
}

static inline void check_geometry(const struct lucdisk_state *s)
{
	unsigned int i;

	must(s->disk_bytes >= LUCDISK_SECTOR_BYTES && s->disk_bytes <= 1ULL << 50);
	must(s->tracks >= 1 && !s->zone[0].byte && !s->zone[0].track);
	for (i = 0; i < LUCDISK_ZONES; i++) {
		const struct lucdisk_zone *z = &s->zone[i];

		must(z->track_bytes >= 4096 && z->track_bytes <= 1 << 30);
		must(!i || (z->byte - z[-1].byte ==
			    (z->track - z[-1].track) * z[-1].track_bytes));
		must(z->byte >= s->disk_bytes || z->track < s->tracks);
	}
}

static inline void check_disk_state(const struct lucdisk_params *p,
				    const struct lucdisk_state *s)
{
	wide dirty = s->spilled_blocks;
	unsigned int i;

	must(s->arm_track < s->tracks);
	must(!s->ahead_valid || (s->ahead_byte < s->disk_bytes + 1 &&
				 s->ahead_next_byte < s->disk_bytes));
	must(s->extents <= LUCDISK_EXTENTS);
	for (i = 0; i < s->extents; i++) {
		const struct lucdisk_extent *e = &s->extent[i];

		must(e->blocks && e->byte < s->disk_bytes &&
		     e->byte % LUCDISK_BLOCK_BYTES == 0);
		must(e->byte + (e->blocks - 1) * LUCDISK_BLOCK_BYTES < s->disk_bytes);
		dirty += e->blocks;
	}
	/* Runs are known or counted, and nothing is both or neither. */
	must(p->rotation_ns ? dirty == s->dirty_blocks : !dirty);
	must(!s->spilled_extents == !s->spilled_blocks);
	must(p->cache_bytes || !s->dirty_blocks);
}

/* One request was started: no rate was exceeded since the mark. */
static inline void check_rates(const struct lucdisk_params *p,
			       const struct lucdisk_state *s, struct sums *sums,
			       const struct lucdisk_request *r, luc_u64 done_ns)
{
	wide t = (wide)(done_ns - sums->begin_ns) - p->network_ns, n, rate;
	wide bytes = bytes_of(s, r);
	wide units = p->request_unit_bytes ?
		     larger(1, (bytes + p->request_unit_bytes - 1) / p->request_unit_bytes) : 1;

	n = ++sums->requests;	/* each was rounded down to a ns */
	sums->units += units;
	sums->bytes += bytes;
	rate = p->requests_per_s_events;
	must(!rate || (sums->units - larger(p->burst_events, units)) * NS_PER_S <= rate * (t + n));
	rate = p->peak_per_s_events;
	must(!rate || (sums->units - units) * NS_PER_S <= rate * (t + n));
	rate = p->throttle_per_s_bytes;
	must(!rate || (sums->bytes - larger(p->burst_bytes, bytes)) * NS_PER_S <= rate * (t + n));
	must(n * p->command_ns <= t);
	rate = p->link_per_s_bytes;
	must(!rate || sums->bytes * NS_PER_S <= rate * (t - n * p->command_ns + n));
	if (r->op == LUCDISK_READ) {
		sums->read_bytes += bytes;
		rate = p->rotation_ns ? 0 : p->read_per_s_bytes;
		t -= p->read_latency_ns;
		must(!rate || sums->read_bytes * NS_PER_S <= rate * (t + n));
	} else if (to_medium(p, r)) {
		sums->medium_bytes += bytes;
		rate = p->rotation_ns ? 0 : p->write_per_s_bytes;
		t -= p->write_latency_ns;
		must(!rate || sums->medium_bytes * NS_PER_S <= rate * (t + n));
	} else {
		t -= p->cache_write_ns;
		must(t >= 0);
	}
	if (uses_arm(p, r)) {
		wide track = larger(p->track_outer_bytes, p->track_inner_bytes);

		/* Bytes read ahead came at the platter's pace, too. */
		sums->arm_bytes += bytes;
		must((sums->arm_bytes - p->read_ahead_bytes) * p->rotation_ns <=
		     track * (t + 2 * n));
	}
}

/* The cache before and after the request. */
static inline void check_cache(const struct lucdisk_params *p,
			       const struct lucdisk_state *before,
			       const struct lucdisk_state *after,
			       const struct lucdisk_request *r, luc_u64 done_ns)
{
	luc_u64 first = r->sector * LUCDISK_SECTOR_BYTES % LUCDISK_BLOCK_BYTES;
	luc_u64 bytes = bytes_of(after, r);
	/* A place beyond the end is that of the last sector: up to 7 sectors in. */
	luc_u64 shift = (wide)r->sector * LUCDISK_SECTOR_BYTES >=
			(wide)after->disk_bytes - LUCDISK_SECTOR_BYTES ?
			LUCDISK_BLOCK_BYTES - LUCDISK_SECTOR_BYTES : first;
	luc_u64 blocks = r->op == LUCDISK_WRITE && !to_medium(p, r) && bytes ?
			 (shift + bytes + LUCDISK_BLOCK_BYTES - 1) / LUCDISK_BLOCK_BYTES : 0;
	luc_u64 room = room_of(p);

	must(after->drained_ns >= before->drained_ns);
	must(after->dirty_blocks <= before->dirty_blocks + blocks);
	/*
	 * A write larger than the cache waits until it is empty. One that is not
	 * aligned asks for room as if it were: a block more at most.
	 */
	if (blocks)
		must(after->dirty_blocks <= (blocks > room ? blocks : room + 1));
	if (!p->rotation_ns) {
		wide gone = (wide)before->dirty_blocks + blocks - after->dirty_blocks;

		/* Draining takes its time. */
		must(gone <= 1 || (gone - (shift ? 1 : 0)) * block_time_ns(p) <=
				  (wide)after->drained_ns - before->drained_ns);
	}
	if (flush_works(p, r)) {
		wide least_ns = p->flush_ns + p->network_ns;

		/* Done means durable: dirty blocks have reached the medium. */
		must(done_ns >= least_ns);
		if (p->rotation_ns)
			must(!after->dirty_blocks);
		if (p->rotation_ns ? before->dirty_blocks : after->dirty_blocks)
			must(done_ns >= least_ns + after->drained_ns +
					(p->rotation_ns ? 0 : after->dirty_blocks * block_time_ns(p)));
	}
}

#endif
