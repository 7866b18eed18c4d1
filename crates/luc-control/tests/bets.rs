//! The bets on pairs of windows, and the logarithms under them.

mod common;

use common::assert_written;
use luc_control::{Bets, coin, ln_ratio_ppm};
use proptest::prelude::*;

const PPM: f64 = 1e6;

/// The oracle: the bets in floating point, by the essay's formulas.
#[derive(Default)]
struct Oracle {
    pairs: f64,
    sum: f64,
    squares: f64,
    wide_squares: f64,
    certificate: f64,
    harm: f64,
}

impl Oracle {
    fn bound(&self) -> f64 {
        if self.pairs == 0.0 {
            return 0.2;
        }
        (2.5 * (self.wide_squares / self.pairs).sqrt()).clamp(0.02, 0.2)
    }

    fn stake(&self) -> f64 {
        let n = self.pairs + 1.0;
        let mean = self.sum / n;
        let mean_square = (0.05 * 0.05 + self.squares) / n + mean * mean;
        let most = 0.75 / self.bound();
        (mean / mean_square).clamp(-most, most)
    }

    fn hear(&mut self, x: f64) {
        let (bound, stake) = (self.bound(), self.stake());
        let whole = x - Bets::LIMIT_PPM as f64 / PPM;
        let y = whole.clamp(-bound, bound);
        self.certificate += (stake.max(0.0) * y).ln_1p();
        self.harm += (stake.min(0.0) * y).ln_1p();
        let off = y - self.sum / (self.pairs + 1.0);
        self.squares += off * off;
        self.sum += y;
        self.wide_squares += whole.clamp(-0.2, 0.2).powi(2);
        self.pairs += 1.0;
    }
}

fn heard(pairs: &[i64]) -> Bets {
    let mut bets = Bets::default();
    for &x_ppm in pairs {
        bets.hear(x_ppm);
    }
    bets
}

/// Generates a state of any bits, which need not be reachable by any sequence of pairs.
fn any_bets() -> impl Strategy<Value = Bets> {
    any::<[i64; 6]>().prop_map(
        |[pairs, sum, squares, wide_squares, certificate, harm]| Bets {
            pairs,
            sum,
            squares,
            wide_squares,
            certificate,
            harm,
        },
    )
}

/// Generates pairs as a load gives them, not extreme ones.
fn pairs() -> impl Strategy<Value = Vec<i64>> {
    (-300_000..300_000_i64, 0..300_000_i64).prop_flat_map(|(mean, spread)| {
        proptest::collection::vec(mean - spread..=mean + spread, 0..200)
    })
}

#[test]
fn the_worked_example_is_what_the_code_does() {
    let mut bets = Bets::default();
    let mut rows = Vec::new();
    for (pair, y) in (1..).zip([60_000, -1_000_000, 50_000]) {
        let (bound, stake) = (bets.bound_ppm(), bets.stake_ppm());
        let cut: i64 = y.clamp(-bound, bound);
        let bet = (stake * cut).div_euclid(1_000_000);
        bets.hear(Bets::LIMIT_PPM + y);
        rows.push(format!(
            " *\t{pair}\t{y}\t{bound}\t{stake}\t{bet}\t{}\t{}",
            bets.certificate, bets.harm
        ));
    }
    let steady = [ln_ratio_ppm(105, 100); 40];
    let won = (0..40).find(|&n| heard(&steady[..n]).verdict().is_some());
    rows.push(format!(
        "After {} pairs of 5 % LUC is certified.",
        won.unwrap()
    ));
    let essay = include_str!("../../../control/luc_bets.c");
    assert_written(essay, &rows);
}

#[test]
fn at_the_limit_nothing_is_gained() {
    let bets = heard(&[Bets::LIMIT_PPM; 1000]);
    assert_eq!((bets.certificate, bets.harm, bets.mean_ppm()), (0, 0, 0));
    assert_eq!(bets.verdict(), None);
}

#[test]
fn later_pairs_are_bet_on_but_teach_nothing() {
    let mut bets = Bets {
        pairs: (1 << 20) - 1,
        ..Bets::default()
    };
    bets.hear(100_000);
    let known = bets;
    assert_eq!(known.pairs, 1 << 20);
    bets.hear(100_000);
    assert!(bets.certificate > known.certificate);
    let Bets { certificate, .. } = bets;
    assert_eq!(
        bets,
        Bets {
            certificate,
            ..known
        }
    );
}

#[test]
fn logarithms_of_no_ratio() {
    const MOST: i64 = 4_605_170;
    for (a, b, want) in [
        (0, 0, 0),
        (-5, i64::MIN, 0),
        (1, 0, MOST),
        (0, 1, -MOST),
        (i64::MAX, i64::MIN, MOST),
        (i64::MAX, 1, MOST),
        (1, i64::MAX, -MOST),
        (100, 1, MOST),
        (i64::MAX, i64::MAX, 0),
        (99, 100, Bets::LIMIT_PPM),
    ] {
        assert_eq!(ln_ratio_ppm(a, b), want, "{a} / {b}");
    }
}

#[test]
fn coins_are_fair_and_repeat() {
    // SplitMix64 of seed 0: its first outputs, e220a8397b1dcdaf, 6e789e6aa1b965f4,
    // 06c45d188009454f and f88bb8a8724c81ec, end in 1, 0, 1, 0.
    assert_eq!([1, 2, 3, 4].map(coin), [true, false, true, false]);
    let count = |of: &dyn Fn(u64) -> bool| (0..100_000).filter(|&n| of(n)).count();
    let fair = 49_200..50_800; // five standard deviations
    assert!(fair.contains(&count(&coin)), "heads");
    for apart in 1..20 {
        let alike = count(&|n| coin(n) == coin(n + apart));
        assert!(fair.contains(&alike), "{apart} apart: {alike}");
    }
    coin(u64::MAX);
}

proptest! {
    #[test]
    fn logarithms_are_exact(a in 1_i64.., b in 1_i64.., down in 0_u32..62, near in 0_u32..62) {
        let close = |a: i64, b: i64| {
            let want = ((a as f64 / b as f64).ln() * PPM).clamp(-4_605_170.0, 4_605_170.0);
            (ln_ratio_ppm(a, b) as f64 - want).abs() < 0.53 && ln_ratio_ppm(b, a) == -ln_ratio_ppm(a, b)
        };
        let (a, b) = (a >> down, b >> down);
        if a > 0 && b > 0 {
            prop_assert!(close(a, b), "{a} / {b}");
            let c = a.saturating_add(a >> near);
            prop_assert!(close(a, c), "{a} / {c}");
        }
    }

    #[test]
    fn fixed_point_agrees_with_floating_point(pairs in pairs()) {
        let (mut bets, mut oracle) = (Bets::default(), Oracle::default());
        for (n, x_ppm) in (1..).zip(pairs) {
            bets.hear(x_ppm);
            oracle.hear(x_ppm as f64 / PPM);
            // A stake is off by 50 ppm of itself at most, and each growth by 2 ppm.
            let near = |fixed: i64, exact: f64| (fixed as f64 - PPM * exact).abs() <= 50.0 * f64::from(n);
            prop_assert!(near(bets.certificate, oracle.certificate), "{bets:?} {}", oracle.certificate);
            prop_assert!(near(bets.harm, oracle.harm), "{bets:?} {}", oracle.harm);
            prop_assert!(near(bets.bound_ppm(), oracle.bound()));
        }
    }

    /// After any past, the next stake is fair over two pairs that differ only in their sign: it
    /// gains nothing, and loses less than 3 ppm of the capital to rounding.
    #[test]
    fn no_past_makes_an_unfair_bet(past in pairs(), wild in any_bets(), y in 0..3_000_000_i64) {
        for bets in [heard(&past), Bets { certificate: 0, harm: 0, ..wild }] {
            let growth = |y| {
                let mut after = bets;
                after.hear(Bets::LIMIT_PPM + y);
                let grown = |after: i64, before: i64| ((after - before) as f64 / PPM).exp();
                (grown(after.certificate, bets.certificate), grown(after.harm, bets.harm))
            };
            let (up, down) = (growth(y), growth(-y));
            for mean in [f64::midpoint(up.0, down.0), f64::midpoint(up.1, down.1)] {
                prop_assert!((1.0 - 3e-6..=1.0).contains(&mean), "{mean} {bets:?} {y}");
            }
        }
    }

    /// A better pair never helps the player against LUC, nor hurts the other one.
    #[test]
    fn a_better_pair_is_better(wild in any_bets(), past in pairs(), x in any::<[i64; 2]>(), small in -400_000..400_000_i64) {
        for bets in [wild, heard(&past)] {
            for (low, high) in [(x[0].min(x[1]), x[0].max(x[1])), (small, small + 1000)] {
                let (mut worse, mut better) = (bets, bets);
                worse.hear(low);
                better.hear(high);
                prop_assert!(better.certificate >= worse.certificate);
                prop_assert!(better.harm <= worse.harm);
            }
        }
    }

    /// A debug build traps on overflow. No pair ruins a player.
    #[test]
    fn any_bits_are_heard(wild in any_bets(), all in proptest::collection::vec(any::<i64>(), 1..20)) {
        let mut bets = wild;
        for x_ppm in all {
            let before = bets;
            bets.hear(x_ppm);
            prop_assert!((20_000..=200_000).contains(&bets.bound_ppm()));
            prop_assert!(bets.stake_ppm().abs() <= 37_500_000);
            prop_assert!((bets.stake_ppm() * bets.bound_ppm()).abs() <= 750_000_000_000);
            prop_assert!(bets.mean_ppm().abs() <= 200_000);
            // ln 0.25 to ln 1.75
            for (before, after) in [(before.certificate, bets.certificate), (before.harm, bets.harm)] {
                prop_assert!((-1_386_296..=559_616).contains(&after.saturating_sub(before)));
            }
        }
    }
}
