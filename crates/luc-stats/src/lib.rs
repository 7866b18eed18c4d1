//! Confidence intervals by Student's t.
//!
//! A ratio compares two arms of one boot, pair by pair. Its interval is that of the mean of the
//! logarithms, so that a ratio and its inverse agree. Three repeats tell little about their own
//! spread; how far repeats of other points spread helps: see [`Prior`].

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};
use statrs::statistics::{Data, Median as _};

pub use modes::{Modes, share_interval};
pub use prior::Prior;

mod modes;
mod prior;

/// A mean over repeats, with the interval in which the true mean lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    /// Ends of the interval; `None` for a single repeat, unless other points tell how far it may be
    /// off.
    pub ends: Option<(f64, f64)>,
    /// Standard deviation of the repeats, as a share of the mean if they are ratios; the standard
    /// error if two separate means are compared. `None` for a single repeat.
    pub sd: Option<f64>,
    pub repeats: usize,
}

impl Interval {
    /// The interval of the mean of these values; `None` if there are none.
    pub fn from_values(values: &[f64], confidence: f64) -> Option<Self> {
        Self::of_known(values, confidence, &Prior::NONE)
    }

    /// The interval of the mean if the spread of other points is known.
    pub fn of_known(values: &[f64], confidence: f64, prior: &Prior) -> Option<Self> {
        let repeats = values.len();
        if repeats == 0 {
            return None;
        }
        let n = repeats as f64;
        let mean = values.iter().sum::<f64>() / n;
        let own = Variance::from_values(values, mean);
        let half = prior.moderated(own).map(|better| {
            let error = (better.value / n).sqrt();
            quantile(confidence, better.freedom) * error
        });
        Some(Self {
            mean,
            ends: half.map(|half| (mean - half, mean + half)),
            sd: (repeats > 1).then(|| own.value.sqrt()),
            repeats,
        })
    }

    /// The interval of the mean of ratios, by their logarithms; `None` if there are none, or if one
    /// is not above 0.
    pub fn of_ratios(ratios: &[f64], confidence: f64, prior: &Prior) -> Option<Self> {
        let logs = Self::of_known(&logs(ratios)?, confidence, prior)?;
        Some(Self {
            mean: logs.mean.exp(),
            ends: logs.ends.map(|(low, high)| (low.exp(), high.exp())),
            ..logs
        })
    }

    /// The interval of the difference of two unpaired means, first minus second, by Welch's method;
    /// `None` if one has no value.
    pub fn of_separate_difference(
        first: &[f64],
        second: &[f64],
        confidence: f64,
        prior: &Prior,
    ) -> Option<Self> {
        let (a, b) = (
            Self::from_values(first, confidence)?,
            Self::from_values(second, confidence)?,
        );
        let mean = a.mean - b.mean;
        let of_mean = |values: &[f64], mean: f64| {
            let better = prior.moderated(Variance::from_values(values, mean))?;
            Some((better.value / values.len() as f64, better.freedom))
        };
        let errors = of_mean(first, a.mean).zip(of_mean(second, b.mean));
        let spread = errors.map(|((va, fa), (vb, fb))| {
            let variance = va + vb;
            if variance == 0.0 {
                return (0.0, 0.0);
            }
            let freedom = variance.powi(2) / (va.powi(2) / fa + vb.powi(2) / fb);
            let half = quantile(confidence, freedom) * variance.sqrt();
            (variance.sqrt(), half)
        });
        Some(Self {
            mean,
            ends: spread.map(|(_, half)| (mean - half, mean + half)),
            sd: spread.map(|(sd, _)| sd),
            repeats: a.repeats.min(b.repeats),
        })
    }

    /// The interval of the ratio of two unpaired means, first to second, by their logarithms; also
    /// `None` if a value is not above 0.
    pub fn of_separate_ratio(
        first: &[f64],
        second: &[f64],
        confidence: f64,
        prior: &Prior,
    ) -> Option<Self> {
        let (first, second) = (logs(first)?, logs(second)?);
        let logs = Self::of_separate_difference(&first, &second, confidence, prior)?;
        Some(Self {
            mean: logs.mean.exp(),
            ends: logs.ends.map(|(low, high)| (low.exp(), high.exp())),
            ..logs
        })
    }

    /// The interval of the standard deviation of these values as a share of their mean, by the
    /// chi-squared distribution; `None` for fewer than two values, or a mean that is not above 0.
    pub fn of_spread(values: &[f64], confidence: f64) -> Option<Self> {
        let plain = Self::from_values(values, confidence)?;
        let share = plain.sd.filter(|_| plain.mean > 0.0)? / plain.mean;
        let freedom = plain.repeats as f64 - 1.0;
        let chi = ChiSquared::new(freedom).ok()?;
        let end = |probability: f64| share * (freedom / chi.inverse_cdf(probability)).sqrt();
        let tail = (1.0 - confidence) / 2.0;
        Some(Self {
            mean: share,
            ends: Some((end(1.0 - tail), end(tail))),
            sd: None,
            repeats: plain.repeats,
        })
    }

    /// Half the width as a share of the mean; `None` for a single repeat, or if the mean is 0 and
    /// the width is not.
    pub fn half_width_share(&self) -> Option<f64> {
        let (low, high) = self.ends?;
        let half = (high - low) / 2.0;
        if half == 0.0 {
            return Some(0.0);
        }
        (self.mean != 0.0).then(|| half / self.mean.abs())
    }

    /// Whether the interval lies above (1) or below (-1) a value; 0 if it contains the value, or is
    /// unknown.
    pub fn beyond(&self, value: f64) -> i8 {
        match self.ends {
            Some((low, _)) if low > value => 1,
            Some((_, high)) if high < value => -1,
            _ => 0,
        }
    }
}

/// An estimate of the variance of a point's values, with its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    pub value: f64,
    /// Degrees of freedom: one less than the values.
    pub freedom: f64,
}

impl Variance {
    /// Estimates the variance around a given mean; a single value has no degree of freedom.
    fn from_values(values: &[f64], mean: f64) -> Self {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = values.len() as f64 - 1.0;
        Self {
            value: squares / freedom.max(1.0),
            freedom,
        }
    }

    /// Estimates the variance of values; `None` for fewer than two.
    pub fn of_values(values: &[f64]) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.len() > 1).then(|| Self::from_values(values, mean))
    }
}

/// The middle one of the values, or the mean of the two in the middle; `None` if there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| Data::new(values.to_vec()).median())
}

/// The logarithms; `None` if a value is not above 0.
pub fn logs(values: &[f64]) -> Option<Vec<f64>> {
    let is_sound = values.iter().all(|value| *value > 0.0);
    is_sound.then(|| values.iter().map(|value| value.ln()).collect())
}

/// The p-value of the difference of two means by Welch's test, which allows unequal variances;
/// `None` if one has a single repeat. Each argument is mean, standard deviation and number of
/// repeats; for ratios, those of the logarithms.
pub fn chance(a: (f64, f64, usize), b: (f64, f64, usize)) -> Option<f64> {
    if a.2 < 2 || b.2 < 2 {
        return None;
    }
    let share = |(_, sd, n): (f64, f64, usize)| sd * sd / n as f64;
    let (of_a, of_b) = (share(a), share(b));
    let apart = (a.0 - b.0).abs();
    if of_a + of_b == 0.0 {
        // Repeats without any spread, as virtual time may give.
        return Some(f64::from(u8::from(apart == 0.0)));
    }
    let freedom = (of_a + of_b).powi(2)
        / (of_a * of_a / (a.2 as f64 - 1.0) + of_b * of_b / (b.2 as f64 - 1.0));
    let t = apart / (of_a + of_b).sqrt();
    let below = StudentsT::new(0.0, 1.0, freedom).map_or(0.0, |student| student.cdf(t));
    Some((2.0 * (1.0 - below)).clamp(0.0, 1.0))
}

/// Tells which of several findings are significant together, by Holm's method: the probability that
/// any of them is false stays below `alpha`, however many there are.
pub fn believed(chances: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut believed = vec![false; chances.len()];
    for (rank, at) in order.iter().enumerate() {
        if chances[*at] > alpha / (chances.len() - rank) as f64 {
            break;
        }
        believed[*at] = true;
    }
    believed
}

/// The factor between standard error and half width, for a number of degrees of freedom.
fn quantile(confidence: f64, freedom: f64) -> f64 {
    // The caller passes valid arguments; without a distribution nothing may look certain.
    StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interval, Prior, believed, chance, quantile};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, freedom, expected) in [
            (0.95, 1.0, 12.7062),
            (0.95, 2.0, 4.3027),
            (0.95, 9.0, 2.2622),
            (0.99, 4.0, 4.6041),
            (0.95, 1000.0, 1.9623),
        ] {
            let got = quantile(confidence, freedom);
            assert!(
                (got - expected).abs() < 2e-4,
                "{confidence} {freedom}: {got}"
            );
        }
    }

    #[test]
    fn a_worked_welch_test() {
        // Means 10 and 12, variances 1 and 4, four repeats each: t = 2 / sqrt(1.25), 4.41 degrees
        // of freedom; without any spread, every difference is a change.
        let p = chance((10.0, 1.0, 4), (12.0, 2.0, 4)).unwrap();
        assert!((p - 0.142).abs() < 0.003, "{p}");
        assert_eq!(chance((1.0, 0.0, 3), (1.0, 0.0, 3)), Some(1.0));
        assert_eq!(chance((1.0, 0.0, 3), (1.1, 0.0, 3)), Some(0.0));
        assert_eq!(chance((1.0, 0.0, 1), (2.0, 0.1, 9)), None);
        // 0.04 alone is significant; among four findings it is not, nor is any larger one.
        assert_eq!(believed(&[0.04], 0.05), [true]);
        let many = [0.04, 0.001, 0.016, 0.5];
        assert_eq!(believed(&many, 0.05), [false, true, true, false]);
        assert_eq!(believed(&[], 0.05), [false; 0]);
    }

    #[test]
    fn a_worked_interval() {
        // Mean 10, n 4: half width 3.1824 * sd / 2.
        let interval = Interval::from_values(&[9.0, 9.0, 11.0, 11.0], 0.95).unwrap();
        let sd = (4.0_f64 / 3.0).sqrt();
        let (low, high) = interval.ends.unwrap();
        assert!((interval.sd.unwrap() - sd).abs() < 1e-12);
        assert!((high - low - 2.0 * 3.182_446 * sd / 2.0).abs() < 1e-4);
        assert_eq!(interval.beyond(5.0), 1);
        assert_eq!(interval.beyond(10.5), 0);
        let single = Interval::from_values(&[5.0], 0.95).unwrap();
        assert_eq!((single.ends, single.beyond(1.0)), (None, 0));
        assert_eq!(Interval::from_values(&[], 0.95), None);
        assert_eq!(Interval::of_ratios(&[1.0, 0.0], 0.95, &Prior::NONE), None);
    }

    #[test]
    fn a_worked_interval_of_separate_means() {
        // Logarithms 0 +- 0.1 and 1 +- 0.2, three of each: Welch's degrees of freedom are 2.94.
        let of = |middle: f64, sd: f64| [-sd, 0.0, sd].map(|off: f64| (middle + off).exp());
        let ratio =
            Interval::of_separate_ratio(&of(1.0, 0.2), &of(0.0, 0.1), 0.95, &Prior::NONE).unwrap();
        assert!((ratio.mean - 1.0_f64.exp()).abs() < 1e-9);
        let half = (ratio.ends.unwrap().1 / ratio.mean).ln();
        let standard = (0.05_f64 / 3.0).sqrt();
        let expected = quantile(
            0.95,
            0.05_f64.powi(2) / (0.04_f64.powi(2) / 2.0 + 0.01_f64.powi(2) / 2.0),
        );
        assert!((half - expected * standard).abs() < 1e-9, "{half}");
        assert_eq!(
            Interval::of_separate_ratio(&[1.0], &[0.0], 0.95, &Prior::NONE),
            None
        );
        let single = Interval::of_separate_ratio(&[1.0], &[2.0, 2.0], 0.95, &Prior::NONE).unwrap();
        assert_eq!(single.ends, None);
        let equal =
            Interval::of_separate_ratio(&[3.0, 3.0], &[2.0, 2.0], 0.95, &Prior::NONE).unwrap();
        assert_eq!(equal.ends, Some((equal.mean, equal.mean)));
    }

    #[test]
    fn a_worked_interval_of_a_spread() {
        // Chi squared with 9 degrees of freedom, from tables: 2.700 and 19.023.
        let values: Vec<f64> = (0..10).map(|n| 100.0 + f64::from(n)).collect();
        let spread = Interval::of_spread(&values, 0.95).unwrap();
        let (low, high) = spread.ends.unwrap();
        assert!((low / spread.mean - (9.0_f64 / 19.023).sqrt()).abs() < 1e-4);
        assert!((high / spread.mean - (9.0_f64 / 2.700).sqrt()).abs() < 1e-3);
        assert_eq!(Interval::of_spread(&[1.0], 0.95), None);
    }

    proptest! {
        #[test]
        fn a_ratio_and_its_inverse_agree(ratios in proptest::collection::vec(1e-5_f64..1e5, 2..12)) {
            let there = Interval::of_ratios(&ratios, 0.95, &Prior::NONE).unwrap();
            let swapped: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
            let back = Interval::of_ratios(&swapped, 0.95, &Prior::NONE).unwrap();
            prop_assert!((there.mean * back.mean - 1.0).abs() < 1e-9);
            let (low, high) = there.ends.unwrap();
            let (back_low, back_high) = back.ends.unwrap();
            prop_assert!((low * back_high - 1.0).abs() < 1e-6 && (high * back_low - 1.0).abs() < 1e-6);
            prop_assert_eq!(there.beyond(1.0), -back.beyond(1.0));
        }

        #[test]
        fn the_mean_lies_in_its_interval(values in proptest::collection::vec(-1e6_f64..1e6, 2..20)) {
            let interval = Interval::from_values(&values, 0.95).unwrap();
            let (low, high) = interval.ends.unwrap();
            prop_assert!(low <= interval.mean && interval.mean <= high);
        }
    }
}
