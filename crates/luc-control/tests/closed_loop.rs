//! Checks that the C law in its closed loop does what the poles say.

use luc_control::{Gains, PidState, Saturated, Stability, pid_step, poles};
use proptest::prelude::*;

/// The set point: a thousand events, in thousandths. Rounding to thousandths is then far below the
/// tolerances.
const R_MILLI: i64 = 1_000_000;

/// The published gains, which are the knobs' defaults.
const DEFAULT: Gains = Gains {
    kp_milli: 800,
    ki_milli: 250,
    kd_milli: 250,
};

fn factors(gains: Gains) -> [f64; 3] {
    [gains.kp_milli, gains.ki_milli, gains.kd_milli].map(|milli| milli as f64 / 1_000.0)
}

#[allow(clippy::cast_possible_truncation)] // saturates, and so does the law
fn rounded(milli: f64) -> i64 {
    milli.round() as i64
}

/// Runs d(t+1) = d(t) + c u(t+1), with u from the error of the commit before. Returns the errors,
/// in thousandths.
fn stepwise(gains: Gains, c: f64, commits: u64) -> Vec<f64> {
    let mut memory = PidState::default();
    let mut d = 0.0;
    (0..commits)
        .map(|_| {
            let e = R_MILLI as f64 - d;
            let terms = pid_step(&gains, &mut memory, rounded(e), 1_000, Saturated::No);
            d += c * terms.u_milli as f64;
            e
        })
        .collect()
}

/// Runs the published loop, with u from the error of the same commit, so that d solves d(t) =
/// d(t-1) + c u(r - d(t)). u falls as d grows, so bisection finds it.
///
/// The analysis starts from rest, where the error was known to be 0.
fn published(gains: Gains, c: f64, commits: usize) -> Vec<i64> {
    let mut memory = PidState {
        error_known: 1,
        ..PidState::default()
    };
    let mut d = 0;
    let mut trace = Vec::new();
    for _ in 0..commits {
        let excess = |d_now: i64| {
            let terms = pid_step(
                &gains,
                &mut memory.clone(),
                R_MILLI - d_now,
                1_000,
                Saturated::No,
            );
            (d_now - d) as f64 - c * terms.u_milli as f64
        };
        let (mut low, mut high) = (-100 * R_MILLI, 100 * R_MILLI);
        while low < high {
            let middle = low + (high - low) / 2;
            if excess(middle) < 0.0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        d = low;
        pid_step(&gains, &mut memory, R_MILLI - d, 1_000, Saturated::No);
        trace.push(d);
    }
    trace
}

/// Computes section 5.3.1's transfer function: batch size per commit, as a share of the set point,
/// after the set point jumps from 0 to 1. The numerator is c(Kp+Ki+Kd) z^2 - c(Kp+2Kd) z + cKd, the
/// denominator that of `poles.rs`.
fn step_response(gains: Gains, c: f64, commits: usize) -> Vec<f64> {
    let [p, i, d] = factors(gains).map(|gain| c * gain);
    let numerator = [p + i + d, -(p + 2.0 * d), d];
    let denominator = [p + i + d + 1.0, -(p + 2.0 * d + 2.0), d + 1.0];
    let mut response: Vec<f64> = Vec::with_capacity(commits);
    for now in 0..commits {
        let input: f64 = numerator.iter().take(now + 1).sum();
        let before = |back: usize| now.checked_sub(back).map_or(0.0, |at| response[at]);
        let memory = denominator[1] * before(1) + denominator[2] * before(2);
        response.push((input - memory) / denominator[0]);
    }
    response
}

fn any_gains() -> impl Strategy<Value = (Gains, f64)> {
    (
        50_i64..4_000,
        prop_oneof![1 => Just(0_i64), 6 => 20_i64..3_000],
        prop_oneof![1 => Just(0_i64), 4 => 0_i64..3_000],
        0.1_f64..3.0,
    )
        .prop_map(|(kp_milli, ki_milli, kd_milli, c)| {
            (
                Gains {
                    kp_milli,
                    ki_milli,
                    kd_milli,
                },
                c,
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_called_stable_converges((gains, c) in any_gains()) {
        let [kp, ki, kd] = factors(gains);
        let loops = poles(kp, ki, kd, c).unwrap();
        prop_assume!(loops.stability == Stability::Stable && loops.stepwise.modulus < 0.98);
        let commits = 12 * loops.stepwise.settling_commits.unwrap() + 50;
        let errors = stepwise(gains, c, commits);
        for e in &errors[errors.len() - 10..] {
            prop_assert!(e.abs() < 1_000.0, "{gains:?} {c}: {e} left of {R_MILLI} after {commits}");
        }
    }

    #[test]
    fn what_is_called_unstable_diverges((gains, c) in any_gains()) {
        let [kp, ki, kd] = factors(gains);
        let loops = poles(kp, ki, kd, c).unwrap();
        prop_assume!(loops.stability == Stability::Unstable && loops.stepwise.modulus > 1.03);
        // Long enough for a growth by 100,000 even at the slowest.
        let errors = stepwise(gains, c, 450);
        let worst = errors.iter().fold(0.0, |worst: f64, e| worst.max(e.abs()));
        prop_assert!(worst > 100.0 * R_MILLI as f64, "{gains:?} {c}: {worst}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_published_loop_is_the_law((gains, c) in any_gains()) {
        let expected = step_response(gains, c, 60);
        let got = published(gains, c, 60);
        for (commit, (d_milli, share)) in got.iter().zip(&expected).enumerate() {
            let difference = *d_milli as f64 / R_MILLI as f64 - share;
            prop_assert!(difference.abs() < 0.002, "{gains:?} {c} commit {commit}: {difference}");
        }
    }
}

#[test]
fn the_default_gains_settle_in_eight_commits() {
    for (commit, e) in stepwise(DEFAULT, 1.0, 30).iter().enumerate().skip(8) {
        assert!(e.abs() <= 0.1 * R_MILLI as f64, "commit {commit}: {e}");
    }
}

/// The plant gain is the estimated gap divided by the true one: it tells how wrong the estimate may
/// be before the loop oscillates. At z = -1 the stepwise denominator is c (2 Kp + Ki + 4 Kd) - 4.
#[test]
fn the_default_gains_bear_a_gap_overrated_by_two_fifths() {
    let stability = |c| poles(0.8, 0.25, 0.25, c).unwrap().stability;
    for c in [0.01, 0.1, 0.5, 1.0, 1.40] {
        assert_eq!(stability(c), Stability::Stable, "{c}");
    }
    for c in [1.41, 2.0, 10.0] {
        assert_eq!(stability(c), Stability::Unstable, "{c}");
    }
}

#[test]
fn a_saturated_actuator_does_not_wind_up() {
    let mut memory = PidState::default();
    for _ in 0..1_000 {
        pid_step(&DEFAULT, &mut memory, 5_000, 1_000, Saturated::High);
    }
    assert_eq!(memory.integral_milli, 0);
    // The error changes its sign: so does the output, at once.
    let terms = pid_step(&DEFAULT, &mut memory, -1_000, 1_000, Saturated::High);
    assert!(terms.u_milli < 0, "{terms:?}");
    pid_step(&DEFAULT, &mut memory, -1_000, 1_000, Saturated::Low);
    assert_eq!(memory.integral_milli, -1_000);
}

#[test]
fn step_lengths_weigh_the_integral_and_the_slope() {
    let gains = Gains {
        kp_milli: 0,
        ki_milli: 1_000,
        kd_milli: 1_000,
    };
    let after = |dt_milli| {
        let mut memory = PidState {
            integral_milli: 0,
            error_milli: 0,
            error_known: 1,
        };
        pid_step(&gains, &mut memory, 8_000, dt_milli, Saturated::No)
    };
    assert_eq!((after(1_000).i_milli, after(1_000).d_milli), (8_000, 8_000));
    assert_eq!(
        (after(2_000).i_milli, after(2_000).d_milli),
        (16_000, 4_000)
    );
    // A pause counts as at most four steps, a burst as at least a quarter.
    assert_eq!(after(i64::MAX), after(4_000));
    assert_eq!(after(i64::MIN), after(250));
    assert_eq!(after(0).d_milli, 32_000);
}
