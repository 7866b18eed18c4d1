/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Logarithms and roots in integers.
 *
 * A logarithm is in ppm: 1,000,000 is a factor of e, and 10,000 is nearly 1 %.
 */
#ifndef LUC_LOG_H
#define LUC_LOG_H

#include "../abi/luc_types.h"

#define LUC_PPM 1000000LL
/* ln 100: larger ratios count as 100, smaller ones than 1/100 as that. */
#define LUC_LN_MAX_PPM 4605170LL

/*
 * ln(a / b) to the nearest ppm, within +-LUC_LN_MAX_PPM. The rounded value is at most
 * 0.52 ppm from the true one, and that of b / a is its exact opposite. If only one
 * number is positive, the result is the bound; if none is, 0.
 */
luc_s64 luc_ln_ratio_ppm(luc_s64 a, luc_s64 b);

/*
 * The square root, rounded down; 0 for numbers below 0. Larger ones count as
 * LUC_SQUARE_MAX.
 */
#define LUC_SQUARE_MAX ((1LL << 40) - 1)
luc_s64 luc_sqrt(luc_s64 square);

#endif
