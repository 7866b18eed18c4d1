/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Saturating 64-bit arithmetic for the controllers.
 *
 * An administrator, a clock or a corrupt trace may make their numbers arbitrarily
 * large. Every sum and product that could leave 64 bits goes through these
 * functions: a wild input can only pin a result to its bound.
 */
#ifndef LUC_MATH_H
#define LUC_MATH_H

#include "../abi/luc_types.h"

#define LUC_S64_MAX 0x7fffffffffffffffLL
#define LUC_S64_MIN (-LUC_S64_MAX - 1)

/* Out of line, so that the usual path saves no registers for it. */
#define LUC_RARE __attribute__((__noinline__))

static inline luc_s64 luc_min(luc_s64 a, luc_s64 b)
{
	return a < b ? a : b;
}

static inline luc_s64 luc_max(luc_s64 a, luc_s64 b)
{
	return a > b ? a : b;
}

static inline luc_s64 luc_clamp(luc_s64 v, luc_s64 lo, luc_s64 hi)
{
	return luc_max(lo, luc_min(v, hi));
}

static inline luc_s64 luc_add(luc_s64 a, luc_s64 b)
{
	luc_s64 sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b > 0 ? LUC_S64_MAX : LUC_S64_MIN;
}

static inline luc_s64 luc_sub(luc_s64 a, luc_s64 b)
{
	luc_s64 diff;

	if (!__builtin_sub_overflow(a, b, &diff))
		return diff;
	return b < 0 ? LUC_S64_MAX : LUC_S64_MIN;
}

static inline luc_s64 luc_mul(luc_s64 a, luc_s64 b)
{
	luc_s64 product;

	if (!__builtin_mul_overflow(a, b, &product))
		return product;
	return (a < 0) == (b < 0) ? LUC_S64_MAX : LUC_S64_MIN;
}

/*
 * Exponentially weighted average with weight 1/2^shift for the new sample; the
 * first sample (average still 0) is taken as is.
 */
static inline luc_s64 luc_average(luc_s64 average, luc_s64 sample, int shift)
{
	if (!average)
		return sample;
	return luc_add(average, luc_sub(sample, average) / (1LL << shift));
}

#endif
