/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where bytes lie on the platter and how long the arm takes to reach them: pure
 * functions for lucdisk_model.c, whose essay explains them.
 */
#ifndef LUCDISK_ARM_H
#define LUCDISK_ARM_H

#include "lucdisk_model.h"
#include "lucdisk_math.h"

/* k_NAME(p) is the knob within its bounds, whatever the caller put there. */
#define KNOB_VALUE(name, min, max, dflt, help) \
	static inline luc_u64 k_##name(const struct lucdisk_params *p) \
	{ \
		luc_s64 v = p->name; \
		return (luc_u64)(v < (min) ? (min) : v > (max) ? (max) : v); \
	}
LUCDISK_KNOBS(KNOB_VALUE)

struct place {
	luc_u64 track;
	luc_u64 offset;		/* bytes from the start of the track */
	luc_u64 track_bytes;
};

static inline struct place place_of(const struct lucdisk_state *s, luc_u64 byte)
{
	const struct lucdisk_zone *zone = s->zone;
	luc_u64 tracks;
	luc_u32 i;

	for (i = 1; i < LUCDISK_ZONES && s->zone[i].byte <= byte; i++)
		zone = &s->zone[i];
	tracks = (byte - zone->byte) / zone->track_bytes;
	return (struct place){
		.track = zone->track + tracks,
		.offset = byte - zone->byte - tracks * zone->track_bytes,
		.track_bytes = zone->track_bytes,
	};
}

/* Skew of the tracks: the longest time to the next one. */
static inline luc_u64 skew_ns(const struct lucdisk_params *p)
{
	return k_seek_min_ns(p) + k_write_settle_ns(p);
}

static inline luc_u64 seek_ns(const struct lucdisk_params *p,
		       const struct lucdisk_state *s, luc_u64 distance)
{
	luc_u64 least = k_seek_min_ns(p);
	luc_u64 more = lucdisk_sub(k_seek_max_ns(p), least);
	luc_u64 share;

	if (!distance)
		return 0;
	if (!more || distance < 2)
		return least;
	/* Below 2^38 tracks times 1000: 16 more bits fit. */
	share = ((distance - 1) * k_stroke_permille(p) << 16) /
		((s->tracks - 1) * 1000);
	return least + (more * lucdisk_square_root(share << 16) >> 16);
}

/* When the arm is over the byte, if it starts to move at from_ns. */
static inline luc_u64 reach_ns(const struct lucdisk_params *p,
			const struct lucdisk_state *s, luc_u64 byte, int write,
			luc_u64 from_ns)
{
	luc_u64 turn = k_rotation_ns(p);
	struct place at = place_of(s, byte);
	luc_u64 distance = at.track > s->arm_track ? at.track - s->arm_track :
						     s->arm_track - at.track;
	luc_u64 angle, arrival;

	arrival = lucdisk_add(from_ns, seek_ns(p, s, distance));
	if (write && distance)
		arrival = lucdisk_add(arrival, k_write_settle_ns(p));
	angle = at.track % turn * (skew_ns(p) % turn) +
		at.offset * turn / at.track_bytes;
	return lucdisk_add(arrival, (angle % turn + turn - arrival % turn) % turn);
}

/*
 * How long the bytes take to pass under the head, starting at byte. Computed as
 * a difference of angles, so that a stream cut into requests of any size loses
 * no ns to rounding, let alone a turn.
 */
static inline luc_u64 pass_ns(const struct lucdisk_params *p,
		       const struct lucdisk_state *s, luc_u64 byte, luc_u64 bytes)
{
	luc_u64 turn = k_rotation_ns(p);
	struct place first, last;

	if (!bytes)
		return 0;
	first = place_of(s, byte);
	last = place_of(s, byte + bytes - 1);
	return lucdisk_add(lucdisk_mul(last.track - first.track,
				       turn + skew_ns(p)),
			   (last.offset + 1) * turn / last.track_bytes) -
	       first.offset * turn / first.track_bytes;
}

/* Positioning of the nearest of n random places: see the essay. */
static inline luc_u64 nearest_ns(const struct lucdisk_params *p, luc_u64 n)
{
	luc_u64 turn = k_rotation_ns(p);
	luc_u64 least = skew_ns(p);
	luc_u64 spread = lucdisk_sub(k_seek_max_ns(p), k_seek_min_ns(p));
	luc_u64 spread_us, near_ns;

	spread = spread *
		 lucdisk_square_root((k_stroke_permille(p) << 20) / 1000) >> 10;
	spread_us = spread / 1000;
	/* us: at most 3e18 before the division. */
	near_ns = lucdisk_cube_root(3 * (turn / 1000) * spread_us * spread_us /
				    (2 * lucdisk_max(n, 1))) * 893;
	return least + lucdisk_min(near_ns, spread * 8 / 15 + turn / 2);
}

#endif
