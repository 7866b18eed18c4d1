// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Two opposing bets: one can certify LUC, the other can prove harm.
 *
 * 1. Question. A pair is two windows of equal length, one with LUC and one without, in
 * an order decided by a coin toss. It yields x = ln(on / off), the logarithm of the ratio
 * of LUC to stock. m = ln 0.99 is the limit, and y = x - m is the pair's distance above
 * it. The claim "LUC is worse than 0.99" means that y is below 0 on average; "LUC is
 * not" means that it is not.
 *
 * 2. Bet. A player doubts the first claim and stakes a share of her capital on each
 * pair: the capital becomes 1 + l y times as large. While the claim is true, no choice
 * of stakes lets her expect to gain. So, by Ville's inequality, the chance that she ever
 * has a hundred times her initial capital is below one percent. When she has, the claim
 * is rejected: LUC is certified. A second player bets 1 - l y on the opposite and
 * refutes LUC. The number of pairs is not fixed in advance, and one may look after each
 * (Waudby-Smith and Ramdas, arXiv 2010.09686, section 4.4).
 *
 * 3. Clip. A stake must not lose more than everything, so y has to be bounded: it is cut
 * at -B and +B. The cut is centred on the limit, not on "no difference". If LUC is
 * exactly at the limit, its pairs lie above and below by symmetric noise, because chance
 * decides which window comes first. A cut centred on x = 0 would remove more from below
 * than from above. The mean of the rest would be above the limit: false certificates.
 *
 * 4. Bound. B is 2.5 times the root mean square of the y of earlier pairs, within 0.02
 * and 0.2. It must not depend on the pair that it cuts. A wide bound costs: stakes are
 * limited to 3/4 of 1/B, so a difference of 1 % moves the capital by 4 % per pair under
 * a bound of 0.2, and by 38 % under one of 0.02. No pair moves it by more than 75 %, so
 * a verdict takes at least nine pairs.
 *
 * 5. Stake. l is the mean of past y divided by their mean square, "aGRAPA" in that
 * paper: it grows the capital fastest if future pairs are like past ones. Before the
 * first pair the mean is 0 and the deviation 5 %: nothing is known, so little is staked.
 * A mean above 0 stakes for LUC, one below 0 against it: only one player bets on each
 * pair.
 *
 * 6. Price of cutting. The bets judge the mean of cut pairs. For symmetric noise that is
 * the same claim. The noise is always symmetric here: a coin toss decides which window
 * comes first, and both are equally long. So anything that happens to a window is as
 * likely to happen to LUC's as to stock's, even where windows vary wildly and each
 * resembles the one before. Under a growing load, pairs of one order gain what pairs of
 * the other order lose.
 *
 * 7. Integers. Logarithms are in ppm; capital is kept as its logarithm and cannot
 * vanish. Any stake that follows from the past is fair, so rounding of mean, bound and
 * stake makes no verdict false. Rounding of the capital would. So a bet is rounded down,
 * its logarithm is rounded to the nearest ppm, and 1 ppm is subtracted: no pair ever
 * counts for more than it is worth. A thousand pairs lose some 1,500 ppm of the
 * 4,605,171 that a verdict takes.
 *
 * 8. Worked example: a pair 6 % above the limit, one far below it, then one 5 % above.
 * All figures are in ppm; a stake of 5,000,000 is l = 5.
 *
 *	pair	y	bound	stake	bet	certificate	harm
 *	1	60000	200000	0	0	0	0
 *	2	-1000000	150000	5000000	-750000	-1386295	0
 *	3	50000	200000	-2184466	-109224	-1386295	-115663
 *
 * The first pair is heard without a stake. After it the mean is 60000 / 2 and the mean
 * square (50000^2 + 60000^2) / 2 + 30000^2, whose quotient would be a stake of 7.6; the
 * limit 0.75 / 0.15 is lower. The second pair takes three quarters of the certificate's
 * capital, not all. Then the mean is below 0, so the other player stakes, and loses a
 * tenth. After 19 pairs of 5 % LUC is certified.
 */
#include "luc_bets.h"
#include "luc_math.h"

/* The most and the least at which y is cut: see 4. Chosen. */
#define BETS_BOUND_MAX_PPM 200000LL
#define BETS_BOUND_MIN_PPM 20000LL
/* The bound in root mean squares, 5 / 2: normal noise is cut once in eighty pairs. Chosen. */
#define BETS_SPREADS 5LL
#define BETS_SPREADS_BY 2LL
/*
 * A stake is at most this share of the largest that cannot lose everything. From the
 * paper.
 */
#define BETS_SHARE_PPM 750000LL
/* Expected deviation of the first pair, 5 %. Chosen. */
#define BETS_FIRST_PPM 50000LL
#define BETS_NANO 1000LL	/* billionths in a ppm */

/* Whatever bits a state holds, sums stay within these. */
#define BETS_SQUARE_MAX (BETS_BOUND_MAX_PPM * BETS_BOUND_MAX_PPM)
_Static_assert(BETS_SQUARE_MAX <= LUC_SQUARE_MAX, "luc_sqrt() takes it");
_Static_assert(4 * BETS_SQUARE_MAX * LUC_BETS_PAIRS_MAX < LUC_S64_MAX / 2,
	       "the squares of two bounds, over all pairs, can be summed");

static luc_s64 bets_pairs(const struct luc_bets *bets)
{
	return luc_clamp(bets->pairs, 0, LUC_BETS_PAIRS_MAX);
}

/* The sum of n cut pairs. */
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

/* Mean of past y, preceded by one of 0, in billionths. */
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

/* ln(1 + stake cut), never above the true value: see 7. */
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

	/* A stake against LUC is negative, and it wins if y is negative. */
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

/* The lower 64 bits, without a wrap that a sanitizer would report. */
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
