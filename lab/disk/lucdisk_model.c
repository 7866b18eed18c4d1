// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * How long a disk takes.
 *
 * A disk is a chain of stages, each a plain rule with knobs for its figures; a
 * stage whose knobs are 0 takes no time. A read or write passes
 *
 *	token buckets -> interface -> cache, medium or arm -> network
 *
 * and is done when the last stage is. Times are ns, sizes bytes, in 64 bits;
 * sums and products saturate. No stage is random: the same requests at the same
 * times are done at the same times.
 *
 * Interface. One transfer at a time, each command_ns plus its bytes at
 * link_per_s_bytes. The inverse of command_ns bounds the requests per second of
 * an SSD at large queue depths.
 *
 * Medium without moving parts. One stream of read_per_s_bytes, one of
 * write_per_s_bytes, then a fixed latency for which any number of requests, up
 * to channels, wait in parallel. Garbage collection is not modelled: this is a
 * drive with room to write.
 *
 * Arm and platter. Tracks lie on one spiral from outside in, LUCDISK_ZONES
 * zones of equally many tracks, whose length falls linearly with the radius
 * (zoned recording). The platter's angle is the clock modulo rotation_ns; each
 * byte has an angle, so how long a seek leaves to wait follows from the time
 * at which the arm arrives: half a turn on average for random accesses, none
 * for sequential ones. Neighbouring tracks are skewed by the longest
 * track-to-track seek, which makes a stream lose exactly that per track; data
 * sheets' sustained rates include it. A seek over d of D tracks takes
 *
 *	seek_min + (seek_max - seek_min) sqrt((d - 1) / (D - 1))
 *
 * the acceleration-bound curve of Ruemmler and Wilkes, "An introduction to
 * disk drive modeling" (IEEE Computer, 1994). Over uniformly random pairs the
 * root averages 8/15, so a data sheet's average seek time A gives seek_max =
 * seek_min + 15/8 (A - seek_min): 6.9 ms for Seagate's Savvio 10K.4 and 21.6
 * ms for Hitachi's Travelstar 5K320, whose manuals say 7.8 and 20.0 ms for the
 * full stroke and mean the average. Head switches count as seeks to the
 * neighbouring track. A disk of some GiB is a scaled image of a whole drive,
 * with its tracks spread over the full stroke, unless stroke_permille says
 * that it is a part at the outer edge.
 *
 * Choice. Among the oldest queue_requests, the arm takes the request that it can
 * begin first (shortest positioning time first, the purpose of NCQ and TCQ). A
 * request that has waited for age_limit_ns comes before all others. The next
 * request is chosen when the previous one begins, ARM_AHEAD in all, because
 * firmware plans while the arm moves; otherwise the fixed times of a command
 * would cost a turn.
 *
 * Read-ahead. After a read the disk reads on until read_ahead_bytes lie in its
 * buffer. A read that continues there is served at the platter's pace or from
 * the buffer; any other use of the arm ends it.
 *
 * Write cache. A write is done cache_write_ns after its transfer, or when there
 * is room. The cache drains whenever the medium has nothing else to do, from the
 * moment the data is in. Draining is accounted for at each call and needs no
 * timer. A flush is done flush_ns after everything that was dirty at its start
 * has reached the medium; with a clean cache it takes flush_ns. A FUA write goes
 * to the medium. If the cache survives power loss, a flush is free and FUA
 * changes nothing. On a medium without an arm a dirty block takes flush_block_ns
 * plus its bytes at write_per_s_bytes.
 *
 * With an arm, runs of adjacent blocks in the cache are written in one go,
 * nearest first. The model knows the places of LUCDISK_EXTENTS runs; older runs
 * are only counted, and cost as much as the nearest of n random places. With
 * seek time a + b sqrt(x) at a distance of x strokes, the share of requests
 * within reach in time t is (2/R) (t - a)^3 / (3 b^2) for a turn of R, so that
 * the first of n random ones can begin after
 *
 *	a + 0.893 cbrt(3 R b^2 / (2 n))		0.893 = Gamma(4/3)
 *
 * on average, and never later than a + 8/15 b + R/2, the average of one. n is at
 * most SORTED_RUNS, an assumption, because makers do not say how many their
 * firmware sorts; a disk at 7200 rpm then writes 380 random blocks per second
 * from its cache. A read may interrupt draining; the run that was being written
 * then starts over.
 *
 * Token buckets. A provisioned volume admits requests_per_s_events, in units of
 * request_unit_bytes, and throttle_per_s_bytes; a bucket of burst_events or
 * burst_bytes, full at first, lets a burst pass ahead, its requests at
 * peak_per_s_events. A request that waits for tokens occupies only its own
 * channel.
 *
 * An exclusive flush is ATA's FLUSH CACHE EXT, which is not queued: it waits
 * until nothing is in service and nothing starts beside it. No request overtakes
 * a flush that arrived before it.
 */
#include "lucdisk_model.h"
#include "lucdisk_arm.h"
#include "lucdisk_math.h"

#define ARM_AHEAD 2u		/* requests given to the arm at a time */
#define SECTORS_MAX (1ULL << 41)	/* 1 PiB: byte numbers stay below 2^50 */
#define BATCH_SHARE 8u		/* an eighth of the counted runs drains at a time */
#define SORTED_RUNS 128u	/* runs among which firmware finds the nearest */
#define PIECE_BLOCKS 64u	/* known runs drain at least 64 blocks at a time, or ... */
#define PIECE_SHARE 64u		/* ... this share, which bounds the number of steps */

#define KNOB_DEFAULT(name, min, max, dflt, help) .name = (dflt),

void lucdisk_params_init(struct lucdisk_params *p)
{
	*p = (struct lucdisk_params){ LUCDISK_KNOBS(KNOB_DEFAULT) };
}

/* ---- The arm ---- */

void lucdisk_init(struct lucdisk_state *s, const struct lucdisk_params *p,
		  luc_u64 sectors)
{
	luc_s64 outer = (luc_s64)k_track_outer_bytes(p);
	luc_s64 inner = (luc_s64)k_track_inner_bytes(p);
	luc_u64 all = 0, tracks, byte = 0;
	luc_u32 i;

	sectors = lucdisk_max(1, lucdisk_min(sectors, SECTORS_MAX));
	*s = (struct lucdisk_state){
		.disk_bytes = sectors * LUCDISK_SECTOR_BYTES,
	};
	inner = outer + (inner - outer) * (luc_s64)k_stroke_permille(p) / 1000;
	for (i = 0; i < LUCDISK_ZONES; i++) {
		s->zone[i].track_bytes = (luc_u64)(outer +
			(inner - outer) * (2 * (luc_s64)i + 1) / (2 * LUCDISK_ZONES));
		all += s->zone[i].track_bytes;
	}
	tracks = (s->disk_bytes + all - 1) / all;
	for (i = 0; i < LUCDISK_ZONES; i++) {
		s->zone[i].byte = byte;
		s->zone[i].track = i * tracks;
		byte += tracks * s->zone[i].track_bytes;
	}
	s->tracks = place_of(s, s->disk_bytes - 1).track + 1;
}

/* Moves the arm over the bytes; returns when it has passed them. */
static luc_u64 arm_pass(const struct lucdisk_params *p, struct lucdisk_state *s,
			luc_u64 byte, luc_u64 bytes, int write, luc_u64 from_ns)
{
	luc_u64 end = lucdisk_add(reach_ns(p, s, byte, write, from_ns),
				  pass_ns(p, s, byte, bytes));

	s->arm_track = place_of(s, byte + (bytes ? bytes - 1 : 0)).track;
	s->ahead_valid = 0;
	return end;
}

/* ---- Requests ---- */

static int is_flush(const struct lucdisk_request *r)
{
	return r->op != LUCDISK_READ && r->op != LUCDISK_WRITE;
}

/* Tells whether it is a flush that has something to wait for. */
static int flush_counts(const struct lucdisk_params *p,
			const struct lucdisk_request *r)
{
	return is_flush(r) && lucdisk_is_volatile(p);
}

static int writes_medium(const struct lucdisk_params *p,
			 const struct lucdisk_request *r)
{
	return r->op == LUCDISK_WRITE &&
	       (p->cache_bytes <= 0 || (r->fua && lucdisk_is_volatile(p)));
}

static int needs_arm(const struct lucdisk_params *p,
		     const struct lucdisk_request *r)
{
	return lucdisk_rotates(p) && (r->op == LUCDISK_READ ||
				      writes_medium(p, r) || flush_counts(p, r));
}

static int runs_alone(const struct lucdisk_params *p,
		      const struct lucdisk_request *r)
{
	return k_flush_exclusive(p) && flush_counts(p, r);
}

static luc_u64 first_byte(const struct lucdisk_state *s,
			  const struct lucdisk_request *r)
{
	return lucdisk_min(lucdisk_mul(r->sector, LUCDISK_SECTOR_BYTES),
			   s->disk_bytes - LUCDISK_SECTOR_BYTES);
}

static luc_u64 byte_count(const struct lucdisk_state *s,
			  const struct lucdisk_request *r)
{
	return lucdisk_min(r->bytes, s->disk_bytes - first_byte(s, r));
}

static int continues(const struct lucdisk_state *s,
		     const struct lucdisk_request *r)
{
	return r->op == LUCDISK_READ && s->ahead_valid &&
	       first_byte(s, r) == s->ahead_next_byte;
}

/* ---- Write cache ---- */

/* Time of one dirty block on a medium without an arm. */
static luc_u64 block_ns(const struct lucdisk_params *p)
{
	return k_flush_block_ns(p) +
	       lucdisk_rate_ns(LUCDISK_BLOCK_BYTES, k_write_per_s_bytes(p));
}

static void forget_extent(struct lucdisk_state *s, luc_u32 index)
{
	for (s->extents--; index < s->extents; index++)
		s->extent[index] = s->extent[index + 1];
}

/*
 * Writes the beginning of the nearest known run, if that ends by until_ns.
 * Returns its end, else 0. Pieces keep the wait for room short while a long run
 * drains; after a piece the arm is over the rest of the run, so pieces cost
 * nothing.
 */
static luc_u64 drain_known(const struct lucdisk_params *p,
			   struct lucdisk_state *s, luc_u64 at_ns, luc_u64 until_ns)
{
	luc_u64 nearest = LUCDISK_FOREVER, blocks, bytes, end;
	struct lucdisk_extent *e;
	luc_u32 i, best = 0;

	for (i = 0; i < s->extents; i++) {
		luc_u64 reach = reach_ns(p, s, s->extent[i].byte, 1, at_ns);

		if (reach < nearest) {
			nearest = reach;
			best = i;
		}
	}
	e = &s->extent[best];
	blocks = lucdisk_max(PIECE_BLOCKS, e->blocks / PIECE_SHARE);
	blocks = lucdisk_min(blocks, e->blocks);
	bytes = lucdisk_min(blocks * LUCDISK_BLOCK_BYTES,
			    s->disk_bytes - e->byte);
	end = lucdisk_add(nearest, pass_ns(p, s, e->byte, bytes));
	end = lucdisk_add(end, lucdisk_mul(blocks, k_flush_block_ns(p)));
	if (end > until_ns)
		return 0;
	s->arm_track = place_of(s, e->byte + bytes - 1).track;
	s->ahead_valid = 0;
	s->dirty_blocks = lucdisk_sub(s->dirty_blocks, blocks);
	e->byte += blocks * LUCDISK_BLOCK_BYTES;
	e->blocks -= blocks;
	if (!e->blocks)
		forget_extent(s, best);
	return lucdisk_max(1, end);
}

/* Writes some of the counted runs, like drain_known(). */
static luc_u64 drain_counted(const struct lucdisk_params *p,
			     struct lucdisk_state *s, luc_u64 at_ns,
			     luc_u64 until_ns, luc_u64 keep)
{
	luc_u64 n = s->spilled_extents;
	luc_u64 blocks = (s->spilled_blocks + n - 1) / n;
	luc_u64 bytes = lucdisk_mul(blocks, LUCDISK_BLOCK_BYTES);
	luc_u64 one = lucdisk_add(nearest_ns(p, lucdisk_min(n + s->extents,
							      SORTED_RUNS)),
				  lucdisk_mul(blocks, k_flush_block_ns(p)));
	luc_u64 count = n / BATCH_SHARE + 1;

	/* The middle of the disk stands for all of it. */
	bytes = lucdisk_min(bytes, s->disk_bytes / 2);
	one = lucdisk_add(one, pass_ns(p, s, s->disk_bytes / 2, bytes));
	count = lucdisk_min(count, (s->dirty_blocks - keep + blocks - 1) / blocks);
	if (one)
		count = lucdisk_min(count, (until_ns - at_ns) / one);
	if (!count)
		return 0;
	s->spilled_extents -= count;
	blocks = s->spilled_extents ? count * blocks : s->spilled_blocks;
	blocks = lucdisk_min(blocks, s->spilled_blocks);
	s->spilled_blocks -= blocks;
	/* The average was rounded up: blocks may run out before runs do. */
	if (!s->spilled_blocks)
		s->spilled_extents = 0;
	s->dirty_blocks = lucdisk_sub(s->dirty_blocks, blocks);
	s->ahead_valid = 0;
	return lucdisk_max(1, lucdisk_add(at_ns, lucdisk_mul(count, one)));
}

/*
 * Drains from at_ns until until_ns or until no more than keep blocks are dirty.
 * Returns the time it reached; a run not finished by then counts as not begun,
 * so the next call starts from there.
 */
static luc_u64 drain(const struct lucdisk_params *p, struct lucdisk_state *s,
		     luc_u64 at_ns, luc_u64 until_ns, luc_u64 keep)
{
	luc_u64 end, count, one;

	if (!lucdisk_rotates(p)) {
		one = block_ns(p);
		count = lucdisk_sub(s->dirty_blocks, keep);
		if (one)
			count = lucdisk_min(count,
					    lucdisk_sub(until_ns, at_ns) / one);
		s->dirty_blocks -= count;
		return lucdisk_add(at_ns, lucdisk_mul(count, one));
	}
	while (s->dirty_blocks > keep && at_ns <= until_ns) {
		if (s->spilled_extents)
			end = drain_counted(p, s, at_ns, until_ns, keep);
		else
			end = drain_known(p, s, at_ns, until_ns);
		if (!end)
			break;
		at_ns = end;
	}
	return at_ns;
}

/* Accounts for draining until now. */
static void settle(const struct lucdisk_params *p, struct lucdisk_state *s,
		   luc_u64 now_ns)
{
	luc_u64 from = s->drained_ns;

	if (lucdisk_rotates(p))
		from = lucdisk_max(from, s->arm_free_ns);
	if (from < now_ns && s->dirty_blocks)
		from = drain(p, s, from, now_ns, 0);
	if (!s->dirty_blocks)
		from = lucdisk_max(from, now_ns);
	s->drained_ns = from;
}

/* Puts a run into the cache; rewriting a cached block adds nothing. */
static void cache_add(const struct lucdisk_params *p, struct lucdisk_state *s,
		      luc_u64 byte, luc_u64 bytes)
{
	luc_u64 first = byte - byte % LUCDISK_BLOCK_BYTES;
	luc_u64 blocks = (byte + bytes - first + LUCDISK_BLOCK_BYTES - 1) /
			 LUCDISK_BLOCK_BYTES;
	luc_u32 i;

	for (i = 0; lucdisk_rotates(p) && i < s->extents; i++) {
		struct lucdisk_extent *e = &s->extent[i];
		luc_u64 end = e->byte + e->blocks * LUCDISK_BLOCK_BYTES;
		luc_u64 fresh;

		if (first < e->byte || first > end)
			continue;
		fresh = lucdisk_sub(first + blocks * LUCDISK_BLOCK_BYTES, end) /
			LUCDISK_BLOCK_BYTES;
		e->blocks += fresh;
		s->dirty_blocks += fresh;
		return;
	}
	s->dirty_blocks += blocks;
	if (!lucdisk_rotates(p))
		return;
	if (s->extents == LUCDISK_EXTENTS) {
		s->spilled_blocks += s->extent[0].blocks;
		s->spilled_extents++;
		forget_extent(s, 0);
	}
	s->extent[s->extents++] = (struct lucdisk_extent){ first, blocks };
}

static luc_u64 cached_write(const struct lucdisk_params *p,
			    struct lucdisk_state *s, luc_u64 byte, luc_u64 bytes,
			    luc_u64 at_ns)
{
	luc_u64 room = lucdisk_max(1, k_cache_bytes(p) / LUCDISK_BLOCK_BYTES);
	luc_u64 blocks = (bytes + LUCDISK_BLOCK_BYTES - 1) / LUCDISK_BLOCK_BYTES;
	luc_u64 from = s->drained_ns;

	if (!bytes)
		return at_ns;
	blocks = lucdisk_min(blocks, room);
	if (s->dirty_blocks > room - blocks) {
		if (lucdisk_rotates(p))
			from = lucdisk_max(from, s->arm_free_ns);
		s->drained_ns = drain(p, s, from, LUCDISK_FOREVER, room - blocks);
		if (lucdisk_rotates(p))
			s->arm_free_ns = s->drained_ns;
		at_ns = lucdisk_max(at_ns, s->drained_ns);
	}
	if (!s->dirty_blocks)
		s->drained_ns = lucdisk_max(s->drained_ns, at_ns);
	cache_add(p, s, byte, bytes);
	return at_ns;
}

static luc_u64 flush(const struct lucdisk_params *p, struct lucdisk_state *s,
		     luc_u64 now_ns)
{
	luc_u64 clean = now_ns;

	if (!lucdisk_rotates(p)) {
		/* The cache drains at full speed anyway: only compute until when. */
		if (s->dirty_blocks)
			clean = lucdisk_add(s->drained_ns,
					    lucdisk_mul(s->dirty_blocks, block_ns(p)));
	} else if (s->dirty_blocks) {
		clean = lucdisk_max(s->drained_ns, s->arm_free_ns);
		clean = drain(p, s, clean, LUCDISK_FOREVER, 0);
		s->drained_ns = s->arm_free_ns = clean;
	}
	return lucdisk_add(lucdisk_max(clean, now_ns), k_flush_ns(p));
}

/* ---- Reads and writes ---- */

static luc_u64 admit(const struct lucdisk_params *p, struct lucdisk_state *s,
		     luc_u64 bytes, luc_u64 now_ns)
{
	luc_u64 rate = k_requests_per_s_events(p);
	luc_u64 peak = k_peak_per_s_events(p);
	luc_u64 unit = k_request_unit_bytes(p);
	luc_u64 units = unit ? lucdisk_max(1, (bytes + unit - 1) / unit) : 1;

	if (rate)
		now_ns = lucdisk_take_tokens(&s->requests_due_ns, now_ns,
					     lucdisk_rate_ns(units, rate),
					     lucdisk_rate_ns(k_burst_events(p), rate));
	if (peak)
		now_ns = lucdisk_take_tokens(&s->peak_due_ns, now_ns,
					     lucdisk_rate_ns(units, peak), 0);
	rate = k_throttle_per_s_bytes(p);
	if (rate)
		now_ns = lucdisk_take_tokens(&s->bytes_due_ns, now_ns,
					     lucdisk_rate_ns(bytes, rate),
					     lucdisk_rate_ns(k_burst_bytes(p), rate));
	return now_ns;
}

/* A read that continues where the arm has been reading ahead. */
static luc_u64 read_on(const struct lucdisk_params *p, struct lucdisk_state *s,
		       luc_u64 byte, luc_u64 bytes, luc_u64 at_ns)
{
	luc_u64 full_byte = lucdisk_min(byte + k_read_ahead_bytes(p),
					s->disk_bytes - 1);
	luc_u64 end = byte + bytes;
	luc_u64 full_ns = s->ahead_ns;

	if (full_byte > s->ahead_byte)
		full_ns = lucdisk_add(full_ns, pass_ns(p, s, s->ahead_byte,
						       full_byte - s->ahead_byte));
	if (at_ns > full_ns) {
		/* The buffer was full: the arm continues where it stopped. */
		s->arm_track = place_of(s, full_byte).track;
		s->ahead_ns = reach_ns(p, s, full_byte, 0, at_ns);
		s->ahead_byte = full_byte;
	}
	if (end > s->ahead_byte)
		at_ns = lucdisk_max(at_ns, lucdisk_add(s->ahead_ns,
				pass_ns(p, s, s->ahead_byte, end - s->ahead_byte)));
	s->arm_track = place_of(s, end - 1).track;
	s->ahead_next_byte = end;
	return at_ns;
}

static luc_u64 arm_read(const struct lucdisk_params *p, struct lucdisk_state *s,
			const struct lucdisk_request *r, luc_u64 at_ns)
{
	luc_u64 byte = first_byte(s, r), bytes = byte_count(s, r);

	at_ns = lucdisk_max(at_ns, s->arm_free_ns);
	if (bytes && continues(s, r)) {
		at_ns = read_on(p, s, byte, bytes, at_ns);
	} else {
		at_ns = arm_pass(p, s, byte, bytes, 0, at_ns);
		s->ahead_byte = s->ahead_next_byte = byte + bytes;
		s->ahead_ns = at_ns;
		s->ahead_valid = k_read_ahead_bytes(p) > 0;
	}
	if (s->ahead_next_byte >= s->disk_bytes)
		s->ahead_valid = 0;
	s->arm_free_ns = at_ns;
	return at_ns;
}

static luc_u64 medium_access(const struct lucdisk_params *p,
			     struct lucdisk_state *s,
			     const struct lucdisk_request *r, luc_u64 at_ns)
{
	int write = r->op == LUCDISK_WRITE;
	luc_u64 fixed = write ? k_write_latency_ns(p) : k_read_latency_ns(p);
	luc_u64 *free_ns = write ? &s->write_free_ns : &s->read_free_ns;
	luc_u64 rate = write ? k_write_per_s_bytes(p) : k_read_per_s_bytes(p);

	if (!lucdisk_rotates(p)) {
		at_ns = lucdisk_add(lucdisk_max(*free_ns, at_ns),
				    lucdisk_rate_ns(byte_count(s, r), rate));
		*free_ns = at_ns;
	} else if (write) {
		at_ns = arm_pass(p, s, first_byte(s, r), byte_count(s, r), 1,
				 lucdisk_max(at_ns, s->arm_free_ns));
		s->arm_free_ns = at_ns;
	} else {
		at_ns = arm_read(p, s, r, at_ns);
	}
	return lucdisk_add(at_ns, fixed);
}

static luc_u64 transfer(const struct lucdisk_params *p, struct lucdisk_state *s,
			const struct lucdisk_request *r, luc_u64 now_ns)
{
	luc_u64 bytes = byte_count(s, r);
	luc_u64 at_ns = lucdisk_max(admit(p, s, bytes, now_ns), s->link_free_ns);

	at_ns = lucdisk_add(at_ns, k_command_ns(p) +
			    lucdisk_rate_ns(bytes, k_link_per_s_bytes(p)));
	s->link_free_ns = at_ns;
	if (r->op == LUCDISK_READ || writes_medium(p, r))
		return medium_access(p, s, r, at_ns);
	return cached_write(p, s, first_byte(s, r), bytes,
			    lucdisk_add(at_ns, k_cache_write_ns(p)));
}

/* ---- The interface ---- */

luc_u32 lucdisk_free_channels(const struct lucdisk_params *p,
			      const struct lucdisk_state *s)
{
	return s->active_alone ? 0 :
		(luc_u32)lucdisk_sub(k_channels(p), s->active);
}

luc_u32 lucdisk_choose(const struct lucdisk_params *p,
		       const struct lucdisk_state *s,
		       const struct lucdisk_request *waiting, luc_u32 n,
		       luc_u64 now_ns)
{
	luc_u32 window = (luc_u32)lucdisk_min(n, k_queue_requests(p));
	luc_u64 from = lucdisk_max(now_ns, s->arm_free_ns);
	luc_u64 age_limit = k_age_limit_ns(p), nearest = LUCDISK_FOREVER;
	int arm_ready = s->active_arm < ARM_AHEAD;
	luc_u32 i, best = n;

	if (s->active_alone)
		return n;
	for (i = 0; i < window; i++) {
		const struct lucdisk_request *r = &waiting[i];
		luc_u64 reach = from;

		if (flush_counts(p, r)) {
			if (!i && (k_flush_exclusive(p) ? !s->active :
				   !lucdisk_rotates(p) || arm_ready))
				best = 0;
			break;
		}
		if (!needs_arm(p, r))
			return i;
		if (!arm_ready)
			continue;
		if (!i && age_limit &&
		    lucdisk_sub(now_ns, r->arrived_ns) > age_limit)
			return 0;
		if (!continues(s, r))
			reach = reach_ns(p, s, first_byte(s, r),
					 r->op == LUCDISK_WRITE, from);
		if (best == n || reach < nearest) {
			nearest = reach;
			best = i;
		}
	}
	return best;
}

luc_u64 lucdisk_start(const struct lucdisk_params *p, struct lucdisk_state *s,
		      const struct lucdisk_request *request, luc_u64 now_ns)
{
	luc_u64 done = now_ns;

	settle(p, s, now_ns);
	s->active++;
	s->active_arm += (luc_u32)needs_arm(p, request);
	s->active_alone += (luc_u32)runs_alone(p, request);
	if (!is_flush(request))
		done = transfer(p, s, request, now_ns);
	else if (lucdisk_is_volatile(p))
		done = flush(p, s, now_ns);
	else
		return now_ns;
	return lucdisk_max(now_ns, lucdisk_add(done, k_network_ns(p)));
}

void lucdisk_end(const struct lucdisk_params *p, struct lucdisk_state *s,
		 const struct lucdisk_request *request, luc_u64 now_ns)
{
	settle(p, s, now_ns);
	s->active = (luc_u32)lucdisk_sub(s->active, 1);
	s->active_arm = (luc_u32)lucdisk_sub(s->active_arm,
					     (luc_u64)needs_arm(p, request));
	s->active_alone = (luc_u32)lucdisk_sub(s->active_alone,
					       (luc_u64)runs_alone(p, request));
}
