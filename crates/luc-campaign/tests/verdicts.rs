//! Error rates of the judge: results with a known truth, judged many times.

use luc_campaign::reproduce::Published;
use luc_campaign::reproduce::found::{Candidate, Found};
use luc_campaign::reproduce::published::Claim;
use luc_campaign::reproduce::verdict::{ClaimVerdict, judge};
use luc_stats::{Interval, Prior};

const EXPERIMENTS: u32 = 200;
/// The confidence of campaigns.
const CONFIDENCE: f64 = 0.95;
/// Errors of 5%, and how far as many experiments may be off: four standard errors.
const MOST: f64 = 0.05 + 0.062;

/// Repeats of a point, which spread by `sd` around its true figure.
#[derive(Clone, Copy)]
struct Sampled {
    repeats: usize,
    sd: f64,
}

const SAMPLED: [Sampled; 4] = [
    Sampled {
        repeats: 3,
        sd: 0.02,
    },
    Sampled {
        repeats: 5,
        sd: 0.20,
    },
    Sampled {
        repeats: 20,
        sd: 0.10,
    },
    Sampled {
        repeats: 20,
        sd: 1.00,
    },
];

/// A number of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

fn sample(truth: &[f64], sampled: Sampled, random: &mut fastrand::Rng) -> Found {
    let joint = 1.0 - (1.0 - CONFIDENCE) / truth.len() as f64;
    let candidate = |truth: &f64| {
        let values = (0..sampled.repeats).map(|_| truth + sampled.sd * normal(random));
        let values: Vec<f64> = values.collect();
        let interval = |confidence| Interval::of_known(&values, confidence, &Prior::NONE).unwrap();
        Candidate {
            at: String::new(),
            alone: interval(CONFIDENCE),
            jointly: interval(joint),
        }
    };
    Found {
        candidates: truth.iter().map(candidate).collect(),
        points: truth.len(),
        measured: truth.len(),
        ranking: None,
    }
}

/// The share of experiments that end in one of these verdicts.
fn share(claim: &str, truth: &[f64], sampled: Sampled, verdicts: &[ClaimVerdict]) -> f64 {
    let claim: Claim = toml::from_str(&format!("says = \"\"\n{claim}")).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let hits = (0..EXPERIMENTS).filter(|_| {
        let found = sample(truth, sampled, &mut random);
        verdicts.contains(&judge(&claim, &found, Published::builtin()).verdict)
    });
    hits.count() as f64 / f64::from(EXPERIMENTS)
}

/// Asserts that these verdicts are rare at any spread.
fn seldom<const N: usize>(verdicts: &[ClaimVerdict], cases: [(&str, [Vec<f64>; 3]); N]) {
    for (claim, truths) in cases {
        for (truth, sampled) in truths
            .iter()
            .flat_map(|truth| SAMPLED.map(|it| (truth, it)))
        {
            let share = share(claim, truth, sampled, verdicts);
            assert!(share <= MOST, "{claim}, {truth:?}: {share}");
        }
    }
}

const NUMBER: &str = "unit = \"times\"\npublished = 2.0";
const LEVEL: &str = "unit = \"ms\"\npublished = 20.0\nlevel = true";
const EVERY: &str = "unit = \"times\"\nside = \"above\"\ntake = \"every\"";
const SAME: &str = "unit = \"times\"\nside = \"same\"\ntake = \"every\"";
const NEVER_BELOW: &str = "unit = \"times\"\nside = \"not-below\"\ntake = \"every\"";
const HOLDS: [ClaimVerdict; 2] = [ClaimVerdict::Reproduced, ClaimVerdict::SameDirection];

/// The same truth at several points, or at one of several, is the hardest for an extreme.
fn points(others: f64, one: f64) -> [Vec<f64>; 3] {
    let of = |count: usize| [vec![others; count - 1], vec![one]].concat();
    [of(1), of(3), of(10)]
}

#[test]
fn a_true_claim_is_seldom_refuted() {
    let cases = [
        (NUMBER, points(1.0, 2.0)),
        (NUMBER, points(2.0, 2.0)),
        // At the edge of the tolerated range.
        (NUMBER, points(1.75, 1.75)),
        (LEVEL, points(20.0, 20.0)),
        (EVERY, points(1.05, 1.05)),
        (SAME, points(1.0, 1.0)),
        (SAME, points(1.05, 0.95)),
        (NEVER_BELOW, points(1.3, 0.95)),
    ];
    seldom(&[ClaimVerdict::Refuted], cases);
}

#[test]
fn a_false_claim_seldom_holds() {
    let cases = [
        (NUMBER, points(1.0, 1.0)),
        (NUMBER, points(0.9, 0.9)),
        (LEVEL, points(15.0, 14.9)),
        (EVERY, points(1.0, 1.0)),
        (EVERY, points(1.5, 0.99)),
        (SAME, points(1.0, 1.051)),
        (SAME, points(1.0, 0.949)),
        (NEVER_BELOW, points(1.5, 0.949)),
    ];
    seldom(&HOLDS, cases);
}

#[test]
fn an_effect_of_another_size_is_seldom_reproduced() {
    let truths = [points(1.0, 1.74), points(1.74, 1.74), points(1.0, 2.26)];
    seldom(
        &[ClaimVerdict::Reproduced],
        truths.map(|truth| (NUMBER, truth)),
    );
}

/// A judge that never decides makes no error: a clear truth has to be told.
#[test]
fn clear_truths_are_told() {
    let sampled = Sampled {
        repeats: 20,
        sd: 0.02,
    };
    for (claim, [one, few, many], verdict) in [
        (NUMBER, points(1.0, 2.0), ClaimVerdict::Reproduced),
        (NUMBER, points(1.0, 1.4), ClaimVerdict::SameDirection),
        (NUMBER, points(1.0, 1.0), ClaimVerdict::Refuted),
        (LEVEL, points(20.0, 19.0), ClaimVerdict::Reproduced),
        (LEVEL, points(20.0, 40.0), ClaimVerdict::Refuted),
        (EVERY, points(1.2, 1.1), ClaimVerdict::Reproduced),
        (EVERY, points(1.2, 0.9), ClaimVerdict::Refuted),
        (SAME, points(1.0, 1.01), ClaimVerdict::Reproduced),
        (SAME, points(1.0, 1.2), ClaimVerdict::Refuted),
        (NEVER_BELOW, points(1.5, 0.99), ClaimVerdict::Reproduced),
        (NEVER_BELOW, points(1.5, 0.8), ClaimVerdict::Refuted),
    ] {
        for truth in [&one, &few, &many] {
            let share = share(claim, truth, sampled, &[verdict]);
            assert!(share > 0.95, "{claim}, {truth:?}: {share}");
        }
    }
}
