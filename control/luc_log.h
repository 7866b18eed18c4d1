/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Logarithms and roots in whole numbers.
 *
 * A logarithm is in ppm: 1,000,000 is a factor of e, and 10,000 is 1 %, nearly.
 */
#ifndef LUC_LOG_H
#define LUC_LOG_H

#include "../abi/luc_types.h"

#define LUC_PPM 1000000LL
/* ln 100: no ratio counts for more, or its reciprocal for less. */
#define LUC_LN_MAX_PPM 4605170LL

/*
 * ln(a / b) to the nearest ppm, within +-LUC_LN_MAX_PPM. The rounded value is 0.52 ppm
 * from the true one at most, and that of b / a is its exact opposite. A number that is
 * not positive is as far below a positive one as can be counted; two such are equal.
 */
luc_s64 luc_ln_ratio_ppm(luc_s64 a, luc_s64 b);

/* The root of a square, rounded down; 0 of what is none. Up to LUC_SQUARE_MAX. */
#define LUC_SQUARE_MAX ((1LL << 40) - 1)
luc_s64 luc_sqrt(luc_s64 square);

#endif
