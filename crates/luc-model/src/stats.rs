//! Statistics.

use luc_base::Latency;

/// Summarises durations.
pub(crate) fn times(times_ns: impl IntoIterator<Item = u64>) -> Latency {
    luc_base::summary(&mut times_ns.into_iter().collect::<Vec<_>>())
}

/// Returns the index of a quantile in a sorted list of at least one value.
fn nearest_rank(count: usize, percent: usize) -> usize {
    // In 128 bits the product cannot overflow: a list has fewer than 2^64 values.
    let rank = (count as u128 * percent as u128).div_ceil(100).max(1) - 1;
    usize::try_from(rank).unwrap_or(count).min(count - 1)
}

/// Returns a quantile; 0 if the list is empty.
pub(crate) fn quantile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    if values.is_empty() {
        return 0.0;
    }
    values[nearest_rank(values.len(), percent)]
}

/// Returns the mean; 0 if the list is empty.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

/// Returns `part` as a share of `whole`; 0 if `whole` is not positive.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns the count per second; 0 if no time passed.
pub(crate) fn per_s(count: f64, duration_ns: u64) -> f64 {
    share(count * 1e9, duration_ns as f64)
}

/// Rounds a time to whole ns; 0 if it is negative or not a number.
pub(crate) fn whole_ns(value_ns: f64) -> u64 {
    // A cast of a float saturates at both ends, and NaN becomes 0.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = value_ns.round() as u64;
    ns
}

/// Scales the values to mean 0 and variance 1; `None` if they do not differ. Values that differ
/// only by rounding count as equal.
pub(crate) fn standardised(values: &[f64]) -> Option<Vec<f64>> {
    let scale = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    if scale == 0.0 || !scale.is_finite() {
        return None;
    }
    // Divided by the largest first: squares of huge values would be infinite.
    let values: Vec<f64> = values.iter().map(|v| v / scale).collect();
    let middle = mean(values.iter().copied());
    let deviation = mean(values.iter().map(|v| (v - middle).powi(2))).sqrt();
    if deviation < 1e-12 {
        return None;
    }
    Some(values.iter().map(|v| (v - middle) / deviation).collect())
}

/// Returns Pearson's correlation of two standardised lists of equal length, -1 to 1.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    mean(a.iter().zip(b).map(|(a, b)| a * b)).clamp(-1.0, 1.0)
}

/// Returns ranks from 1; equal values share the mean of their ranks.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut done = 0;
    for run in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let rank = done as f64 + f64::midpoint(1.0, run.len() as f64);
        for place in run {
            ranks[*place] = rank;
        }
        done += run.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_hundred() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((quantile(&mut values, 90) - 90.0).abs() < 1e-12);
        assert!((quantile(&mut values, 50) - 50.0).abs() < 1e-12);
        assert!(quantile(&mut [], 50).abs() < 1e-12);
    }

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[10.0, 30.0, 10.0, 20.0]), [1.5, 4.0, 1.5, 3.0]);
        assert_eq!(ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn standardised_lists() {
        // Mean 2, variance ((-1)^2 + 0 + 1^2) / 3: the ends lie at sqrt(3/2).
        let list = standardised(&[1.0, 2.0, 3.0]).unwrap();
        assert!((list[2] - 1.5_f64.sqrt()).abs() < 1e-12 && list[1].abs() < 1e-12);
        assert_eq!(standardised(&[7.1, 7.1, 7.1]), None);
        assert_eq!(standardised(&[0.0, 0.0]), None);
        let huge = standardised(&[1e300, 2e300, 3e300]).unwrap();
        assert!((correlation(&huge, &list) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn whole_times() {
        assert_eq!(whole_ns(-3.0), 0);
        assert_eq!(whole_ns(f64::NAN), 0);
        assert_eq!(whole_ns(2.5), 3);
        assert_eq!(whole_ns(1e30), u64::MAX);
    }
}
