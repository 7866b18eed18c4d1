use super::arrivals;
use crate::{FsyncStorm, Gaps};

const S: u64 = 1_000_000_000;

fn args() -> FsyncStorm {
    FsyncStorm {
        rate_per_s: 1000.0,
        period_ms: 100,
        spread_us: 500,
        seed: 1,
        ..FsyncStorm::default()
    }
}

#[test]
fn fixed_gaps_do_not_drift() {
    let args = FsyncStorm {
        rate_per_s: 3.0,
        gaps: Gaps::Fixed,
        ..args()
    };
    let at = arrivals(&args, 1000 * S).expect("few");
    assert_eq!(at.len(), 3000);
    assert_eq!((at[0], at[1], at[2997]), (0, 333_333_333, 999 * S));
}

#[test]
fn exponential_gaps_have_their_mean_and_spread() {
    let args = FsyncStorm {
        gaps: Gaps::Exponential,
        ..args()
    };
    let at = arrivals(&args, 100 * S).expect("few");
    assert!(at.is_sorted());
    // 100,000 are expected with a standard deviation of 316.
    assert!((98_500..101_500).contains(&at.len()), "{}", at.len());
    // A share of 1/e of the gaps is longer than the mean.
    let long = at.windows(2).filter(|w| w[1] - w[0] > S / 1000).count();
    let share = long as f64 / at.len() as f64;
    assert!((0.36..0.376).contains(&share), "{share}");
    assert_eq!(at, arrivals(&args, 100 * S).expect("few"), "same seed");
    let other = FsyncStorm { seed: 2, ..args };
    assert_ne!(at, arrivals(&other, 100 * S).expect("few"));
}

#[test]
fn bursts_keep_together() {
    let args = FsyncStorm {
        burst: Some(8),
        ..args()
    };
    let at = arrivals(&args, S).expect("few");
    assert_eq!(at.len(), 80);
    for (number, burst) in (0_u64..).zip(at.chunks(8)) {
        let from_ns = number * S / 10;
        assert!(
            burst
                .iter()
                .all(|&ns| (from_ns..from_ns + 500_000).contains(&ns))
        );
    }
}

#[test]
fn too_many_arrivals_are_refused() {
    let args = FsyncStorm {
        rate_per_s: 1e6,
        ..args()
    };
    let error = arrivals(&args, 1000 * S)
        .expect_err("a billion")
        .to_string();
    assert!(error.contains("ask for a lower rate"), "{error}");
}
