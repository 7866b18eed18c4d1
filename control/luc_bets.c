// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Two bets that run against each other: a certificate, and harm.
 *
 * 1. Question. A pair is two windows of equal length, one with LUC and one without, in
 * an order that a coin decides. It gives x = ln(on / off), the logarithm of what LUC
 * makes of stock. m = ln 0.99 is the limit, y = x - m how far the pair is above it. "LUC
 * is worse than 0.99" says that y is below 0 on average; "LUC is not" says that it is
 * not.
 *
 * 2. Bet. A player doubts the first sentence and stakes a share of her capital on each
 * pair: it becomes 1 + l y times as large. While the sentence is true, no choice of
 * stakes lets her expect to gain. So, by Ville's inequality, the chance that she ever
 * has a hundred times her first capital is below one percent. When she has, the sentence
 * is given up: LUC is certified. A second player bets 1 - l y on the opposite and
 * refutes LUC. No number of pairs is fixed before, and one may look after each
 * (Waudby-Smith and Ramdas, arXiv 2010.09686, section 4.4).
 *
 * 3. Clip. A stake must not lose more than all, so y has to be bounded: it is cut at -B
 * and +B. The cut is centred on the limit, not on "no difference". The pairs of a LUC
 * that is exactly at the limit lie above and below it by symmetric noise, as chance
 * decides which window came first. A cut centred on x = 0 would take more from below
 * than from above. The mean of the rest would be above the limit: false certificates.
 *
 * 4. Bound. B is 2.5 times the root mean square of the y of the pairs before, within
 * 0.02 and 0.2. It must not know the pair that it cuts. A wide bound costs: stakes are
 * limited to 3/4 of 1/B, so that a difference of 1 % moves the capital by 4 % a pair
 * under a bound of 0.2, and by 38 % under one of 0.02. No pair moves it by more than
 * 75 %, so nine are the least that decide.
 *
 * 5. Stake. l is the mean of past y by their mean square, "aGRAPA" there: it grows the
 * capital fastest if the pairs to come are like the past ones. Before the first pair the
 * mean is 0 and the deviation 5 %: nothing is known, so little is staked. A mean above 0
 * stakes for LUC, one below 0 against it: only one player bets on a pair.
 *
 * 6. Price of cutting. The mean of cut pairs is judged. For symmetric noise that is the
 * same sentence. The noise is always symmetric here: a coin says which window comes
 * first, and both are equally long. So whatever happens to a window happens to LUC's and
 * to stock's with the same chance, even where windows differ wildly and each is like the
 * one before. A load that grows makes the pair of one order gain what the other loses.
 *
 * 7. Whole numbers. Logarithms are in ppm, capital is kept as its logarithm and cannot
 * vanish. Any stake that follows from the past is fair, so the rounding of mean, bound
 * and stake makes no verdict false. That of the capital would. So a bet is rounded down,
 * its logarithm is rounded to the nearest ppm, and 1 ppm is taken off: no pair ever counts
 * for more than it is worth. A thousand pairs lose some 1,500 ppm of the 4,605,171 that a
 * verdict takes.
 *
 * 8. Worked example: a pair 6 % above the limit, one far below it, then 5 % above. All
 * is in ppm; a stake of 5,000,000 is l = 5.
 *
 *	pair	y	bound	stake	bet	certificate	harm
 *	1	60000	200000	0	0	0	0
 *	2	-1000000	150000	5000000	-750000	-1386295	0
 *	3	50000	200000	-2184466	-109224	-1386295	-115663
 *
 * The first pair is heard without a stake. After it the mean is 60000 / 2 and the mean
 * square (50000^2 + 60000^2) / 2 + 30000^2, whose quotient asks for a stake of 7.6: the
 * limit 0.75 / 0.15 is less. The second pair takes three quarters of the certificate, not
 * all. The mean then is below 0, so the other player stakes, and loses a tenth.
 * After 19 pairs of 5 % LUC is certified.
 */
#include "luc_bets.h"
#include "luc_math.h"

/* A pair counts for so much at most and at least: see 4. Chosen. */
#define BETS_BOUND_MAX_PPM 200000LL
#define BETS_BOUND_MIN_PPM 20000LL
/* The bound in root mean squares, 5 / 2: normal noise is cut once in eighty pairs. Chosen. */
#define BETS_SPREADS 5LL
#define BETS_SPREADS_BY 2LL
/* A stake is at most this share of the largest that cannot lose all. Theirs. */
#define BETS_SHARE_PPM 750000LL
/* Deviation that the first pair is expected to have, 5 %. Chosen. */
#define BETS_FIRST_PPM 50000LL
#define BETS_NANO 1000LL	/* billionths in a ppm */

/* No bits of a state lead beyond these. */
#define BETS_SQUARE_MAX (BETS_BOUND_MAX_PPM * BETS_BOUND_MAX_PPM)
_Static_assert(BETS_SQUARE_MAX <= LUC_SQUARE_MAX, "luc_sqrt() takes it");
_Static_assert(4 * BETS_SQUARE_MAX * LUC_BETS_PAIRS_MAX < LUC_S64_MAX / 2,
	       "the squares of two bounds, over all pairs, can be summed");

static luc_s64 bets_pairs(const struct luc_bets *bets)
{
	return luc_clamp(bets->pairs, 0, LUC_BETS_PAIRS_MAX);
}

/* A sum of n cut pairs. */
static luc_s64 bets_sum(const struct luc_bets *bets, luc_s64 n)
{
	return luc_clamp(bets->sum, -n * BETS_BOUND_MAX_PPM, n * BETS_BOUND_MAX_PPM);
}

luc_s64 luc_bets_mean_ppm(const struct luc_bets *bets)
{
	luc_s64 n = bets_pairs(bets);

	return n ? bets_sum(bets, n) / n : 0;
}

luc_s64 luc_bets_bound_ppm(const struct luc_bets *bets)
{
	luc_s64 n = bets_pairs(bets), spread;

	if (!n)
		return BETS_BOUND_MAX_PPM;
	spread = luc_sqrt(luc_clamp(bets->wide_squares / n, 0, BETS_SQUARE_MAX));
	return luc_clamp(spread * BETS_SPREADS / BETS_SPREADS_BY,
			 BETS_BOUND_MIN_PPM, BETS_BOUND_MAX_PPM);
}

/* Mean of past y with a first one of 0, in billionths. */
static luc_s64 bets_past_nano(const struct luc_bets *bets)
{
	luc_s64 n = bets_pairs(bets);

	return bets_sum(bets, n) * BETS_NANO / (n + 1);
}

/* For LUC if above 0, against it if below. */
luc_s64 luc_bets_stake_ppm(const struct luc_bets *bets)
{
	luc_s64 n = bets_pairs(bets), nano = bets_past_nano(bets), mean = nano / BETS_NANO;
	luc_s64 squares = luc_clamp(bets->squares, 0, 4 * n * BETS_SQUARE_MAX);
	/* At least BETS_FIRST_PPM^2 / 2^20, some 2,000: no division by zero. */
	luc_s64 mean_square = (BETS_FIRST_PPM * BETS_FIRST_PPM + squares) / (n + 1) + mean * mean;
	luc_s64 most = BETS_SHARE_PPM * LUC_PPM / luc_bets_bound_ppm(bets);

	/* nano is within 2 10^8: the product is within 2 10^17. */
	return luc_clamp(nano * (LUC_PPM * BETS_NANO) / mean_square, -most, most);
}

/* ln(1 + stake cut), never above the true one: see 7. */
static luc_s64 bets_growth_ppm(luc_s64 product)
{
	luc_s64 bet_ppm = product / LUC_PPM - (product % LUC_PPM < 0);

	return bet_ppm ? luc_ln_ratio_ppm(LUC_PPM + bet_ppm, LUC_PPM) - 1 : 0;
}

static void bets_learn(struct luc_bets *bets, luc_s64 cut, luc_s64 wide)
{
	luc_s64 n = bets_pairs(bets), off = cut - bets_past_nano(bets) / BETS_NANO;

	if (n == LUC_BETS_PAIRS_MAX)
		return;
	bets->squares = luc_add(bets->squares, off * off);
	bets->sum = luc_add(bets->sum, cut);
	bets->wide_squares = luc_add(bets->wide_squares, wide * wide);
	bets->pairs = n + 1;
}

void luc_bets_hear(struct luc_bets *bets, luc_s64 x_ppm)
{
	luc_s64 bound = luc_bets_bound_ppm(bets), stake = luc_bets_stake_ppm(bets);
	luc_s64 y = luc_sub(x_ppm, LUC_BETS_LIMIT_PPM);
	luc_s64 cut = luc_clamp(y, -bound, bound);
	luc_s64 growth = bets_growth_ppm(stake * cut);

	/* A stake against LUC is below 0, and so is a y that it wins by. */
	if (stake > 0)
		bets->certificate = luc_add(bets->certificate, growth);
	else
		bets->harm = luc_add(bets->harm, growth);
	bets_learn(bets, cut, luc_clamp(y, -BETS_BOUND_MAX_PPM, BETS_BOUND_MAX_PPM));
}

enum luc_bets_verdict luc_bets_verdict(const struct luc_bets *bets)
{
	if (bets->harm >= LUC_BETS_WON_PPM)
		return LUC_BETS_REFUTED;
	return bets->certificate >= LUC_BETS_WON_PPM ? LUC_BETS_CERTIFIED : LUC_BETS_OPEN;
}

/* The lower 64 bits, without a wrap that a sanitizer takes for a mistake. */
static luc_u64 coin_product(luc_u64 a, luc_u64 b)
{
	luc_s64 product;

	(void)__builtin_mul_overflow((luc_s64)a, (luc_s64)b, &product);
	return (luc_u64)product;
}

/* SplitMix64 (Steele, Lea and Flood, 2014): its state is the counter times its step. */
int luc_coin(luc_u64 counter)
{
	luc_u64 z = coin_product(counter, 0x9e3779b97f4a7c15ULL);

	z = coin_product(z ^ z >> 30, 0xbf58476d1ce4e5b9ULL);
	z = coin_product(z ^ z >> 27, 0x94d049bb133111ebULL);
	return (int)((z ^ z >> 31) & 1);
}
