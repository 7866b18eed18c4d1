// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Both numbers are doubled or halved until they have 32 bits; each doubling or halving
 * is one ln 2. That leaves a ratio of 1/2 to 2. With z = (a - b) / (a + b) its
 * logarithm is
 *
 *	2 atanh(z) = 2 (z + z^3/3 + z^5/5 + ...)
 *
 * where |z| <= 1/3, so that each term is at most a ninth of the one before: after nine
 * the rest is below 2^-31. All numbers are in units of 2^-31, and no product has more
 * than 63 bits: BPF has no wider ones. Divisions round towards 0, so that a and b can
 * be swapped. The terms' rounding errors, 2^-31 each, add up to 0.02 ppm at most.
 */
#include "luc_log.h"
#include "luc_math.h"

#define LOG_BITS 31
#define LOG_ONE (1LL << LOG_BITS)
#define LOG_LN2 1488522236LL	/* ln 2 */
#define LOG_LAST_TERM 17	/* 3^-19 / 19 is 0.1 of a unit */
#define SQRT_BITS 20		/* bits of a root */

/* The position of the highest bit of a positive number. */
static int log_top(luc_s64 v)
{
	return 63 - __builtin_clzll((luc_u64)v);
}

/* Shifts a positive number so that its highest bit is at LOG_BITS. */
static luc_s64 log_scaled(luc_s64 v, int top)
{
	return top > LOG_BITS ? v >> (top - LOG_BITS) : v << (LOG_BITS - top);
}

static luc_s64 log_atanh(luc_s64 z)
{
	luc_s64 square = z * z / LOG_ONE, power = z, sum = 0;
	int n;

	for (n = 1; n <= LOG_LAST_TERM; n += 2) {
		sum += power / n;
		power = power * square / LOG_ONE;
	}
	return sum;
}

luc_s64 luc_ln_ratio_ppm(luc_s64 a, luc_s64 b)
{
	luc_s64 x, y, ln;
	int x_top, y_top;

	if (a <= 0 || b <= 0)
		return LUC_LN_MAX_PPM * ((a > 0) - (b > 0));
	x_top = log_top(a);
	y_top = log_top(b);
	x = log_scaled(a, x_top);
	y = log_scaled(b, y_top);
	ln = 2 * log_atanh((x - y) * LOG_ONE / (x + y)) + (x_top - y_top) * LOG_LN2;
	/* 63 ln 2 are below 2^37, times a million below 2^57. */
	ln = (ln * LUC_PPM + (ln < 0 ? -LOG_ONE : LOG_ONE) / 2) / LOG_ONE;
	return luc_clamp(ln, -LUC_LN_MAX_PPM, LUC_LN_MAX_PPM);
}

luc_s64 luc_sqrt(luc_s64 square)
{
	luc_s64 root = 0;
	int bit;

	square = luc_min(square, LUC_SQUARE_MAX);
	for (bit = SQRT_BITS - 1; bit >= 0; bit--) {
		luc_s64 more = root | 1LL << bit;

		if (more * more <= square)
			root = more;
	}
	return root;
}
