/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Unsigned saturating arithmetic, integer roots and token buckets for the disk model. */
#ifndef LUCDISK_MATH_H
#define LUCDISK_MATH_H

#include "../../abi/luc_types.h"

#define LUCDISK_FOREVER 0xffffffffffffffffULL

static inline luc_u64 lucdisk_min(luc_u64 a, luc_u64 b)
{
	return a < b ? a : b;
}

static inline luc_u64 lucdisk_max(luc_u64 a, luc_u64 b)
{
	return a > b ? a : b;
}

static inline luc_u64 lucdisk_add(luc_u64 a, luc_u64 b)
{
	luc_u64 sum;

	return __builtin_add_overflow(a, b, &sum) ? LUCDISK_FOREVER : sum;
}

static inline luc_u64 lucdisk_sub(luc_u64 a, luc_u64 b)
{
	return a > b ? a - b : 0;
}

static inline luc_u64 lucdisk_mul(luc_u64 a, luc_u64 b)
{
	luc_u64 product;

	return __builtin_mul_overflow(a, b, &product) ? LUCDISK_FOREVER : product;
}

/*
 * How long count units take at rate_per_s, 0 for an unlimited rate. Rates are at most
 * LUCDISK_RATE_MAX, so the remainder times 1e9 fits.
 */
static inline luc_u64 lucdisk_rate_ns(luc_u64 count, luc_u64 rate_per_s)
{
	if (!rate_per_s)
		return 0;
	return lucdisk_add(lucdisk_mul(count / rate_per_s, 1000000000ULL),
			   count % rate_per_s * 1000000000ULL / rate_per_s);
}

/* Largest r with r * r <= v. */
static inline luc_u64 lucdisk_square_root(luc_u64 v)
{
	luc_u64 root, next;

	if (v < 2)
		return v;
	/* Newton from above: the first guess is a power of two >= the root. */
	next = 1ULL << ((65 - __builtin_clzll(v)) / 2);
	do {
		root = next;
		next = (root + v / root) / 2;
	} while (next < root);
	return root;
}

/* Largest r with r * r * r <= v. */
static inline luc_u64 lucdisk_cube_root(luc_u64 v)
{
	luc_u64 root = 0;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		luc_u64 next = root | 1ULL << bit;

		/* next < 2^21, so the product fits. */
		if (next * next * next <= v)
			root = next;
	}
	return root;
}

/*
 * Takes cost_ns worth of tokens from a bucket that holds depth_ns worth, and returns
 * when they are there. due is when the bucket would be full again. A cost larger than
 * the bucket passes when the bucket is full.
 */
static inline luc_u64 lucdisk_take_tokens(luc_u64 *due_ns, luc_u64 now_ns,
					  luc_u64 cost_ns, luc_u64 depth_ns)
{
	luc_u64 start = lucdisk_sub(*due_ns, lucdisk_sub(depth_ns, cost_ns));

	start = lucdisk_max(now_ns, start);
	*due_ns = lucdisk_add(lucdisk_max(*due_ns, start), cost_ns);
	return start;
}

#endif
