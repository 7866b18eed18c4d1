// SPDX-License-Identifier: GPL-2.0-only
/*
 * Harness of the bets, control/luc_bets.c, and of the arithmetic under them: bytes are
 * pairs of windows. The first byte chooses between a state that has heard nothing and
 * one of any bits. No arithmetic goes wrong, a pair never ruins a player, a better pair
 * is better for LUC, and two pairs alike but for their sign win nothing together.
 */
#include "../control/luc_bets.h"
#include "harness.h"

#define BOUND_MIN_PPM 20000
#define BOUND_MAX_PPM 200000
/* ln 0.25 and ln 1.75: a stake is three quarters of the capital at most. */
#define LOSS_MAX_PPM 1386296
#define GAIN_MAX_PPM 559616

static int within(wide value, wide min, wide max)
{
	return value >= min && value <= max;
}

/* The gain of one player from a pair, which no other player loses. */
struct growth {
	wide certificate, harm;
};

static struct growth heard(struct luc_bets *bets, luc_s64 x_ppm)
{
	const struct luc_bets before = *bets;
	struct growth g;

	luc_bets_hear(bets, x_ppm);
	g.certificate = (wide)bets->certificate - before.certificate;
	g.harm = (wide)bets->harm - before.harm;
	must(within(g.certificate, -LOSS_MAX_PPM, GAIN_MAX_PPM));
	must(within(g.harm, -LOSS_MAX_PPM, GAIN_MAX_PPM));
	must(!g.certificate || !g.harm);
	must(within(luc_bets_bound_ppm(bets), BOUND_MIN_PPM, BOUND_MAX_PPM));
	must(within(luc_bets_mean_ppm(bets), -BOUND_MAX_PPM, BOUND_MAX_PPM));
	return g;
}

/* The capital of a wild state may stand at the end of its range, where it cannot grow. */
static struct luc_bets with_room(const struct luc_bets *bets)
{
	struct luc_bets copy = *bets;

	copy.certificate = 0;
	copy.harm = 0;
	return copy;
}

static void check_fair(const struct luc_bets *bets, luc_s64 y)
{
	struct luc_bets up = with_room(bets), down = with_room(bets);
	struct growth more, less;

	if (y < 0 || y > INT64_MAX / 2)
		return;
	more = heard(&up, LUC_BETS_LIMIT_PPM + y);
	less = heard(&down, LUC_BETS_LIMIT_PPM - y);
	/* (1 + b) (1 - b) <= 1 */
	must(more.certificate + less.certificate <= 0);
	must(more.harm + less.harm <= 0);
	must(more.certificate >= less.certificate);
	must(more.harm <= less.harm);
}

static void check_arithmetic(luc_s64 a, luc_s64 b)
{
	luc_s64 ln = luc_ln_ratio_ppm(a, b), root = luc_sqrt(a);
	wide square = a < 0 ? 0 : a < LUC_SQUARE_MAX ? a : LUC_SQUARE_MAX;

	must(within(ln, -LUC_LN_MAX_PPM, LUC_LN_MAX_PPM));
	must(luc_ln_ratio_ppm(b, a) == -ln);
	must(a <= 0 || b <= 0 || (ln >= 0 && a >= b) || (ln <= 0 && a <= b));
	must((wide)root * root <= square && (wide)(root + 1) * (root + 1) > square);
}

static luc_u64 run(const uint8_t *data, size_t size)
{
	struct bytes in = { data, data + size };
	struct luc_bets bets = { 0 };
	luc_s64 last = 1;
	luc_u64 sum = 0;

	if (take(&in) % 2) {
		bets.pairs = take_wild(&in);
		bets.sum = take_wild(&in);
		bets.squares = take_wild(&in);
		bets.wide_squares = take_wild(&in);
		bets.certificate = take_wild(&in);
		bets.harm = take_wild(&in);
	}
	while (bytes_left(&in)) {
		/* Ratios of a load every other time. */
		luc_s64 x = take(&in) % 2 ? take_wild(&in) :
			(luc_s64)take_scaled(&in, 19) - (luc_s64)take_scaled(&in, 19);

		check_fair(&bets, x);
		check_arithmetic(x, last);
		last = x;
		heard(&bets, x);
		mix(&sum, (luc_u64)luc_bets_stake_ppm(&bets));
		mix(&sum, (luc_u64)bets.certificate ^ (luc_u64)luc_bets_verdict(&bets));
		mix(&sum, (luc_u64)luc_coin((luc_u64)x));
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	must(run(data, size) == run(data, size));
	return 0;
}
