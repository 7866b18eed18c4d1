//! Numbers for people: three digits that matter, and always a unit.

use std::fmt;
use std::io::{self, Write};

/// `12,345`.
pub fn count(number: i64) -> String {
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

/// A counter as [`count`] and [`counted`] take it; none comes near the end of the range.
pub fn number(counter: u64) -> i64 {
    i64::try_from(counter).unwrap_or(i64::MAX)
}

/// `1 commit`, `12,345 commits`.
pub fn counted(number: i64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Three significant digits.
fn three(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Nanoseconds as `812 ns`, `41.5 us`, `8.10 ms` or `2.00 s`.
pub fn duration(ns: i64) -> String {
    #[allow(clippy::cast_precision_loss)] // three digits are shown
    let value = ns as f64;
    match ns.unsigned_abs() {
        0 => "0 s".into(),
        1..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} us", three(value / 1e3)),
        999_500..999_500_000 => format!("{} ms", three(value / 1e6)),
        _ => format!("{} s", three(value / 1e9)),
    }
}

/// `part` of `whole` as `67%`; small shares keep the digits that tell them
/// from nothing. Empty where there is no whole.
pub fn share(part: i64, whole: i64) -> String {
    let Some(ratio) = ratio(part, whole) else {
        return String::new();
    };
    let percent = ratio * 100.0;
    if part == 0 || percent >= 9.95 {
        format!("{percent:.0}%")
    } else if percent >= 0.995 {
        format!("{percent:.1}%")
    } else if percent >= 0.001 {
        format!("{percent:.3}%")
    } else {
        "under 0.001%".into()
    }
}

/// `part / whole`, `None` where there is no whole.
pub fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
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

/// Prints columns as wide as they need be, two blanks apart, nothing after the
/// last.
pub fn table<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let mut widths = heads.map(|head| head.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{cell:<width$}  "));
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(heads)?;
    rows.iter()
        .try_for_each(|row| line(row.each_ref().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(-1_234_567), "-1,234,567");
        assert_eq!(counted(1, "commit", "commits"), "1 commit");
        assert_eq!(counted(i64::MIN, "x", "x"), "-9,223,372,036,854,775,808 x");
    }

    #[test]
    fn durations_carry_three_digits() {
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
    }

    #[test]
    fn shares_never_hide_that_there_is_something() {
        assert_eq!(share(0, 10), "0%");
        assert_eq!(share(1, 1), "100%");
        assert_eq!(share(67, 1000), "6.7%");
        assert_eq!(share(1, 10_000), "0.010%");
        assert_eq!(share(1, 1_000_000_000), "under 0.001%");
        assert_eq!(share(1, 0), "");
    }

    #[test]
    fn bytes_are_binary() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(1_500_000), "1.43 MiB");
    }
}
