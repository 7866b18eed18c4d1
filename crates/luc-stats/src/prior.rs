//! Infers the spread of one point from the spreads of many.
//!
//! The points' true variances are modelled as draws from one distribution, a scaled inverse
//! chi-squared. How much their estimates differ, beyond what so few repeats explain, tells how wide
//! it is. Then each point's own estimate and the common one are weighted by their degrees of
//! freedom. Points with similar spreads are pooled, as in Tukey's test; others keep their own.
//! Source: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential
//! expression in microarray experiments", 2004, sections 4 and 6.2.

use statrs::function::gamma::digamma;

use super::Variance;

/// An estimate below this share of the median is raised to it, because 0 has no logarithm.
const FLOOR_SHARE: f64 = 1e-5;
/// Degrees of freedom at which the variance is as good as known.
const FREEDOM_MAX: f64 = 1e6;
/// Degrees of freedom at which the other points do not count.
const FREEDOM_MIN: f64 = 1e-3;

/// The distribution of the points' variances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior(Variance);

impl Prior {
    /// Nothing is known about other points.
    pub const NONE: Self = Self(Variance {
        value: 0.0,
        freedom: 0.0,
    });

    /// Estimates the distribution from points of one kind. Fewer than three points tell nothing,
    /// nor do points half of which have no spread.
    pub fn from_variances(points: &[Variance]) -> Self {
        let mut sorted: Vec<f64> = points.iter().map(|point| point.value).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        if points.len() < 3 || median <= 0.0 || !median.is_finite() {
            return Self::NONE;
        }
        let n = points.len() as f64;
        // The logarithm of an estimate, corrected for its bias.
        let centred = |point: &Variance| {
            let value = point.value.max(FLOOR_SHARE * median);
            value.ln() - digamma(point.freedom / 2.0) + (point.freedom / 2.0).ln()
        };
        let mean = points.iter().map(centred).sum::<f64>() / n;
        let squares: f64 = points.iter().map(|it| (centred(it) - mean).powi(2)).sum();
        let by_chance: f64 = points.iter().map(|it| trigamma(it.freedom / 2.0)).sum();
        let freedom = freedom_of(squares / (n - 1.0) - by_chance / n);
        if freedom < FREEDOM_MAX {
            let value = (mean + digamma(freedom / 2.0) - (freedom / 2.0).ln()).exp();
            return Self(Variance { value, freedom });
        }
        // They differ no more than chance explains.
        let weights: f64 = points.iter().map(|it| it.freedom).sum();
        let value = points.iter().map(|it| it.value * it.freedom).sum::<f64>() / weights;
        Self(Variance { value, freedom })
    }

    /// Combines a point's variance with that of the others; `None` if neither has a degree of
    /// freedom.
    pub fn moderated(&self, own: Variance) -> Option<Variance> {
        let freedom = self.0.freedom + own.freedom;
        (freedom > 0.0).then(|| Variance {
            value: (self.0.freedom * self.0.value + own.freedom * own.value) / freedom,
            freedom,
        })
    }
}

/// Twice the argument at which the trigamma function has this value, within the bounds.
fn freedom_of(trigamma_value: f64) -> f64 {
    let (mut low, mut high) = (FREEDOM_MIN.ln(), FREEDOM_MAX.ln());
    // The function decreases.
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if trigamma(middle.exp() / 2.0) > trigamma_value {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Bisection stops a hair short of a bound.
    let freedom = high.exp();
    if freedom > FREEDOM_MAX * 0.999 {
        FREEDOM_MAX
    } else {
        freedom
    }
}

/// The second derivative of the logarithm of the gamma function, for arguments above 0.
fn trigamma(of: f64) -> f64 {
    // The series is accurate from 12 on; the recurrence leads there.
    let (mut x, mut sum) = (of, 0.0);
    while x < 12.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + square / x * series
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::Interval;

    #[test]
    fn trigamma_has_its_known_values() {
        for (of, expected) in [
            (1.0, PI * PI / 6.0),
            (0.5, PI * PI / 2.0),
            (2.0, PI * PI / 6.0 - 1.0),
            (1e4, 1.000_050_001_666e-4),
        ] {
            let got = trigamma(of);
            assert!((got / expected - 1.0).abs() < 1e-9, "{of}: {got}");
        }
        for freedom in [0.01, 2.0, 7.5, 4000.0] {
            let back = freedom_of(trigamma(freedom / 2.0));
            assert!((back / freedom - 1.0).abs() < 1e-6, "{freedom}: {back}");
        }
    }

    /// Three values around 0 with this standard deviation.
    fn three(drawn: &mut fastrand::Rng, sd: f64) -> [f64; 3] {
        // Normal deviates by Box and Muller.
        [(); 3].map(|()| {
            let (u, v) = (1.0 - drawn.f64(), drawn.f64());
            sd * (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos()
        })
    }

    fn prior_of(points: &[[f64; 3]]) -> Prior {
        let variances: Vec<_> = points
            .iter()
            .filter_map(|it| Variance::of_values(it))
            .collect();
        Prior::from_variances(&variances)
    }

    #[test]
    fn points_that_spread_alike_are_pooled_and_others_are_not() {
        let mut drawn = fastrand::Rng::with_seed(0);
        let alike: Vec<_> = (0..60).map(|_| three(&mut drawn, 0.1)).collect();
        let Prior(pooled) = prior_of(&alike);
        assert!(pooled.freedom > 20.0, "{pooled:?}");
        assert!((pooled.value.sqrt() - 0.1).abs() < 0.02, "{pooled:?}");
        let unlike: Vec<_> = (0..60)
            .map(|n| three(&mut drawn, [0.0001, 0.01, 1.0, 100.0][n % 4]))
            .collect();
        let Prior(loose) = prior_of(&unlike);
        assert!(loose.freedom < 0.5, "{loose:?}");
        for none in [&[][..], &alike[..2], &[[1.0; 3]; 9][..]] {
            assert_eq!(prior_of(none), Prior::NONE);
        }
    }

    #[test]
    fn a_single_repeat_goes_by_the_others() {
        let mut drawn = fastrand::Rng::with_seed(50);
        let points: Vec<_> = (0..60).map(|_| three(&mut drawn, 0.1)).collect();
        let prior = prior_of(&points);
        let single = Interval::of_known(&[1.0], 0.95, &prior).unwrap();
        let (low, high) = single.ends.unwrap();
        assert!((0.3..0.6).contains(&(high - low)), "{single:?}");
        assert_eq!((single.sd, single.repeats), (None, 1));
        assert_eq!(
            Interval::of_known(&[1.0], 0.95, &Prior::NONE).unwrap().ends,
            None
        );
    }

    /// About 95% of intervals at 95% contain the true value, whether points spread alike or not,
    /// and they are narrower than with three repeats alone.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut drawn = fastrand::Rng::with_seed(1_000_000);
        for (sds, narrower) in [([0.1, 0.1], 0.6), ([0.05, 0.2], 0.8)] {
            let (mut held, mut all, mut width, mut plain_width) = (0, 0, 0.0, 0.0);
            for _ in 0..200 {
                let points: Vec<_> = (0..24).map(|n| three(&mut drawn, sds[n % 2])).collect();
                let prior = prior_of(&points);
                for point in &points {
                    let ends = |prior| {
                        Interval::of_known(point, 0.95, prior)
                            .unwrap()
                            .ends
                            .unwrap()
                    };
                    let ((low, high), plain) = (ends(&prior), ends(&Prior::NONE));
                    held += u32::from(low < 0.0 && 0.0 < high);
                    all += 1;
                    width += high - low;
                    plain_width += plain.1 - plain.0;
                }
            }
            let share = f64::from(held) / f64::from(all);
            assert!((0.93..0.97).contains(&share), "{sds:?}: {share}");
            assert!(
                width < narrower * plain_width,
                "{sds:?}: {}",
                width / plain_width
            );
        }
    }
}
