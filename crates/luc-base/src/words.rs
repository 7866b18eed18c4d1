//! Formats numbers for people: three significant digits, with units.

/// A count: `12,345`.
pub fn count(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 commit`, `12,345 commits`.
pub fn counted(number: impl Into<i128>, one: &str, many: &str) -> String {
    let number: i128 = number.into();
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Three significant digits.
pub fn three(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Three significant digits, or all of a larger number: `812`, `12,345`.
pub fn rate(value: f64) -> String {
    if value.abs() < 999.5 {
        return three(value);
    }
    #[allow(clippy::cast_possible_truncation)] // a cast of a float saturates
    count(value.round() as i64)
}

/// A share as `27.8%`.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A value with the ends of its interval: `1.012 (1.003 to 1.021)`.
pub fn with_interval(value: f64, ends: Option<(f64, f64)>, decimals: usize) -> String {
    let value = format!("{value:.decimals$}");
    match ends {
        None => value,
        Some((low, high)) => format!("{value} ({low:.decimals$} to {high:.decimals$})"),
    }
}

/// A counted time: `0 s`, `7 ns`, and from 1000 ns on as [`time`].
pub fn duration(ns: impl Into<i128>) -> String {
    let ns: i128 = ns.into();
    match ns.unsigned_abs() {
        0 => "0 s".into(),
        1..1_000 => format!("{ns} ns"),
        _ => time(ns as f64),
    }
}

/// A computed time: `812 ns`, `41.5 us`, `8.10 ms` or `2.00 s`.
pub fn time(ns: f64) -> String {
    let (unit, scale_ns) = time_unit(ns);
    format!("{} {unit}", three(ns / scale_ns))
}

/// The unit in which [`time`] shows this many ns, and how many ns the unit is.
pub fn time_unit(ns: f64) -> (&'static str, f64) {
    match ns.abs() {
        size if size < 999.5 => ("ns", 1.0),
        size if size < 999_500.0 => ("us", 1e3),
        size if size < 999_500_000.0 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

/// Bytes as `64 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{} {}", three(value), UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(-1_234_567), "-1,234,567");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "commit", "commits"), "1 commit");
        assert_eq!(counted(i64::MIN, "x", "x"), "-9,223,372,036,854,775,808 x");
    }

    #[test]
    fn times_carry_three_digits() {
        let shown = [
            (0, "0 s"),
            (7, "7 ns"),
            (8_100, "8.10 us"),
            (201_400, "201 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (8_096_000, "8.10 ms"),
            (-1_500_000_000, "-1.50 s"),
        ];
        for (ns, text) in shown {
            assert_eq!(duration(ns), text, "{ns}");
        }
        // A mean is not a count: its digits show that it was computed.
        assert_eq!(time(0.0), "0.00 ns");
        assert_eq!(time(7.25), "7.25 ns");
        assert_eq!(time(999_499.0), "999 us");
        assert_eq!(time(8_096_000.0), "8.10 ms");
    }

    #[test]
    fn rates_keep_their_thousands() {
        let shown = [
            (0.0, "0.00"),
            (99.96, "100"),
            (999.4, "999"),
            (-12_345.6, "-12,346"),
        ];
        for (value, text) in shown {
            assert_eq!(rate(value), text, "{value}");
        }
    }

    #[test]
    fn an_interval_has_the_decimals_of_its_value() {
        assert_eq!(with_interval(1.5, None, 2), "1.50");
        let ends = Some((0.9996, 2.0));
        assert_eq!(with_interval(1.5, ends, 3), "1.500 (1.000 to 2.000)");
    }

    #[test]
    fn bytes_are_binary() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(1_500_000), "1.43 MiB");
    }
}
