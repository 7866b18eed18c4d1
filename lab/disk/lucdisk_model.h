/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Service model of a disk: when is each request done? See the essay in
 * lucdisk_model.c. The caller owns clock, queue and data:
 *
 *	while (n > 0 && lucdisk_free_channels(p, s) > 0) {
 *		i = lucdisk_choose(p, s, waiting, n, now);
 *		if (i >= n)
 *			break;		// nothing can start before an end
 *		done = lucdisk_start(p, s, &waiting[i], now);
 *		// remove waiting[i], keep the order of the others
 *	}
 *	// at time done: lucdisk_end(p, s, &request, done), then the loop again
 *
 * waiting is in order of arrival. Times are ns of any clock that does not run
 * backwards. All values of parameters and requests are accepted: knobs count as
 * their nearest bound, sectors beyond the end as the last one.
 */
#ifndef LUCDISK_MODEL_H
#define LUCDISK_MODEL_H

#include "../../abi/luc_types.h"
#include "lucdisk_knobs.h"

#define LUCDISK_SECTOR_BYTES 512u
#define LUCDISK_BLOCK_BYTES 4096u	/* unit of the write cache */
#define LUCDISK_ZONES 16u		/* zones of tracks of one length each */
#define LUCDISK_EXTENTS 16u		/* runs in the cache whose place is known */

enum lucdisk_op { LUCDISK_READ, LUCDISK_WRITE, LUCDISK_FLUSH };

struct lucdisk_request {
	luc_u64 sector;
	luc_u32 bytes;
	luc_u32 op;		/* enum lucdisk_op; another value is a flush */
	luc_u32 fua;		/* nonzero: a write is durable when done */
	luc_u64 arrived_ns;
};

#define LUCDISK_KNOB_FIELD(name, min, max, dflt, help) luc_s64 name;
/* Every knob is an luc_s64, so the struct is also an array in table order. */
struct lucdisk_params {
	LUCDISK_KNOBS(LUCDISK_KNOB_FIELD)
};

#define LUCDISK_KNOB_INDEX(name, min, max, dflt, help) LUCDISK_KNOB_##name,
enum lucdisk_knob_index { LUCDISK_KNOBS(LUCDISK_KNOB_INDEX) LUCDISK_KNOB_NR };

_Static_assert(sizeof(struct lucdisk_params) == LUCDISK_KNOB_NR * sizeof(luc_s64),
	       "knobs must form an array");

/* A zone of tracks of one length; byte and track are its first on the disk. */
struct lucdisk_zone {
	luc_u64 byte;
	luc_u64 track;
	luc_u64 track_bytes;
};

/* A run of dirty blocks in the cache of a rotating disk. */
struct lucdisk_extent {
	luc_u64 byte;
	luc_u64 blocks;
};

/* Plain data without pointers: copy it to ask "what if". */
struct lucdisk_state {
	/* Geometry, constant after lucdisk_init(). */
	luc_u64 disk_bytes;
	luc_u64 tracks;
	struct lucdisk_zone zone[LUCDISK_ZONES];
	/* In service. */
	luc_u32 active;			/* requests started and not ended */
	luc_u32 active_arm;		/* of these, those that need the arm */
	luc_u32 active_alone;		/* of these, exclusive flushes */
	/* The arm, where all started requests leave it. */
	luc_u64 arm_track;
	luc_u64 arm_free_ns;
	/* Reading ahead: the arm was at ahead_byte at ahead_ns and reads on. */
	luc_u64 ahead_byte;
	luc_u64 ahead_ns;
	luc_u64 ahead_next_byte;	/* a read from here on continues the stream */
	luc_u32 ahead_valid;
	/* Interface and medium that serve requests one after the other. */
	luc_u64 read_free_ns;
	luc_u64 write_free_ns;
	luc_u64 link_free_ns;
	/* Write cache. */
	luc_u64 dirty_blocks;
	luc_u64 drained_ns;		/* draining is accounted for up to here */
	luc_u64 spilled_blocks;		/* blocks in runs whose place was forgotten ... */
	luc_u64 spilled_extents;	/* ... and the number of these runs */
	luc_u32 extents;
	struct lucdisk_extent extent[LUCDISK_EXTENTS];
	/* Token buckets: when each would be empty, full and idle. */
	luc_u64 requests_due_ns;
	luc_u64 peak_due_ns;
	luc_u64 bytes_due_ns;
};

/* Loses written data that was not flushed if the power fails. */
static inline int lucdisk_is_volatile(const struct lucdisk_params *p)
{
	return p->cache_bytes > 0 && p->cache_volatile > 0;
}

/* Has an arm and a platter. */
static inline int lucdisk_rotates(const struct lucdisk_params *p)
{
	return p->rotation_ns > 0;
}

/* Defaults of the knob table: a disk that takes no time. */
void lucdisk_params_init(struct lucdisk_params *p);

/* A disk of `sectors` sectors that has been idle and whose cache is clean. */
void lucdisk_init(struct lucdisk_state *s, const struct lucdisk_params *p,
		  luc_u64 sectors);

/* How many more requests may be started now. */
luc_u32 lucdisk_free_channels(const struct lucdisk_params *p,
			      const struct lucdisk_state *s);

/*
 * Index of the waiting request that the disk starts next, or n if none can
 * start until one in service ends (or n is 0).
 */
luc_u32 lucdisk_choose(const struct lucdisk_params *p,
		       const struct lucdisk_state *s,
		       const struct lucdisk_request *waiting, luc_u32 n,
		       luc_u64 now_ns);

/* Starts the request; returns when it will be done, now_ns at the earliest. */
luc_u64 lucdisk_start(const struct lucdisk_params *p, struct lucdisk_state *s,
		      const struct lucdisk_request *request, luc_u64 now_ns);

/* The request is done: its channel is free again. Pass the request as it was started. */
void lucdisk_end(const struct lucdisk_params *p, struct lucdisk_state *s,
		 const struct lucdisk_request *request, luc_u64 now_ns);

#endif
