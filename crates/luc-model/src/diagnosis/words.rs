//! Numbers for people: three digits, and a unit.

use super::slices::Estimate;
use luc_base::words::{percent, time_unit};

pub(super) use luc_base::words::{bytes, counted, three};

/// Formats `3.81 ms`, or `no time`.
pub(super) fn time(ns: f64) -> String {
    let shown = luc_base::words::time(ns);
    if shown == "0.00 ns" {
        "no time".into()
    } else {
        shown
    }
}

/// Formats `67%`; small shares keep one digit more.
pub(super) fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 9.95 {
        format!("{percent:.0}%")
    } else if percent >= 0.05 {
        format!("{percent:.1}%")
    } else {
        "under 0.1%".into()
    }
}

/// Formats a number with its interval, in the unit that its name ends in.
pub(super) fn range_of(name: &str, estimate: Estimate) -> String {
    match name.rsplit('_').next() {
        Some("share") => share_range(estimate),
        Some("ns") => time_range(estimate),
        Some("ratio") => times_range(estimate),
        _ => number_range(estimate),
    }
}

/// Formats `3.81 ms (3.70 to 3.92)`.
fn time_range(estimate: Estimate) -> String {
    let (_, scale) = time_unit(estimate.value);
    time(estimate.value) + &range(estimate, |end| three(end / scale))
}

/// Formats `1.95 (1.93 to 1.97)`.
fn number_range(estimate: Estimate) -> String {
    three(estimate.value) + &range(estimate, three)
}

/// Formats `44.1% (41.0% to 47.2%)`: with one digit more, or the ends of a narrow interval look the
/// same.
pub(super) fn share_range(estimate: Estimate) -> String {
    let range = range(estimate, percent);
    if range.is_empty() {
        share(estimate.value)
    } else {
        percent(estimate.value) + &range
    }
}

/// Formats `1.95 times (1.90 to 2.00)`.
pub(super) fn times_range(estimate: Estimate) -> String {
    format!("{} times{}", three(estimate.value), range(estimate, three))
}

/// Formats an interval; empty if both ends look like the value.
fn range(estimate: Estimate, show: impl Fn(f64) -> String) -> String {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        return String::new();
    };
    let [low, value, high] = [low, estimate.value, high].map(show);
    if low == value && high == value {
        String::new()
    } else {
        format!(" ({low} to {high})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(share(0.0), "0%");
        assert_eq!(share(0.067), "6.7%");
        assert_eq!(share(0.000_01), "under 0.1%");
        let estimate = Estimate {
            value: 3.8e6,
            low: Some(3.7e6),
            high: Some(3.9e6),
        };
        assert_eq!(time_range(estimate), "3.80 ms (3.70 to 3.90)");
        assert_eq!(number_range(Estimate::exact(2.0)), "2.00");
        assert_eq!(time_range(Estimate::exact(0.0)), "no time");
    }

    #[test]
    fn an_interval_without_width_is_not_shown() {
        let narrow = |value: f64| Estimate {
            value,
            low: Some(value * 0.9999),
            high: Some(value * 1.0001),
        };
        assert_eq!(number_range(narrow(2.0)), "2.00");
        assert_eq!(time_range(narrow(4e6)), "4.00 ms");
        assert_eq!(share_range(narrow(1.0)), "100%");
        assert_eq!(times_range(narrow(1.5)), "1.50 times");
        let wide = Estimate {
            high: Some(2.1),
            ..narrow(2.0)
        };
        assert_eq!(number_range(wide), "2.00 (2.00 to 2.10)");
    }
}
