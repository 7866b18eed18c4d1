/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Is LUC at least 0.99 of stock? Two bets on pairs of windows; the essay is in
 * luc_bets.c.
 */
#ifndef LUC_BETS_H
#define LUC_BETS_H

#include "../abi/luc_types.h"
#include "luc_log.h"

/* ln 0.99: LUC may be slower by this much and still counts as harmless. */
#define LUC_BETS_LIMIT_PPM (-10050LL)
/* ln 100, rounded up: a capital that has grown this much has won. 1 % of verdicts err. */
#define LUC_BETS_WON_PPM 4605171LL
/* Later pairs are bet on, but no longer learned from: sums stay far from overflow. */
#define LUC_BETS_PAIRS_MAX (1LL << 20)

/* All zeros: nothing is known. Any other bits are accepted, too. */
struct luc_bets {
	luc_s64 pairs;		/* heard */
	luc_s64 sum;		/* of cut y, ppm */
	luc_s64 squares;	/* of cut y's distance from the mean of those before, ppm^2 */
	luc_s64 wide_squares;	/* of y, cut at the largest bound only, ppm^2 */
	luc_s64 certificate;	/* ln of the capital that bets for LUC, ppm ... */
	luc_s64 harm;		/* ... and of the one against it */
};

enum luc_bets_verdict {
	LUC_BETS_OPEN,
	LUC_BETS_CERTIFIED,	/* LUC is at least 0.99 of stock ... */
	LUC_BETS_REFUTED,	/* ... or less, each 99 % sure */
};

/* Hears a pair: x = ln(on / off), any value. */
void luc_bets_hear(struct luc_bets *bets, luc_s64 x_ppm);

/* The verdict of the pairs heard so far. May be asked after each. */
enum luc_bets_verdict luc_bets_verdict(const struct luc_bets *bets);

/* Mean of cut y so far: how far the pairs are above the limit. 0 before the first. */
luc_s64 luc_bets_mean_ppm(const struct luc_bets *bets);

/* Where the next pair is cut, and the stake on it; both depend only on earlier pairs. */
luc_s64 luc_bets_bound_ppm(const struct luc_bets *bets);
luc_s64 luc_bets_stake_ppm(const struct luc_bets *bets);

/*
 * 0 or 1 for the order of a pair's windows. Consecutive counters give independent
 * coins, and a counter always gives the same one: a replay draws the same order.
 */
int luc_coin(luc_u64 counter);

#endif
