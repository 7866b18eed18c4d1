//! Numbers for people: three significant digits, and always a unit.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

pub use luc_base::words::{bytes, count, counted, duration, percent};

/// Stands for a value that is not known.
pub const UNKNOWN: &str = "-";

/// The value, or [`UNKNOWN`].
pub fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| UNKNOWN.into())
}

/// Formats a time in ns, or returns [`UNKNOWN`].
pub fn known_time(ns: Option<impl Into<i128>>) -> String {
    known(ns.map(duration))
}

/// Parses an interval from the command line, 0.2 s to `MAX_S`.
pub fn interval<const MAX_S: u32>(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.2..=f64::from(MAX_S)).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!("expected seconds from 0.2 to {MAX_S}")),
    }
}

/// Text like `3 opens`, or `- opens`.
pub fn many(count: Option<impl Into<i128>>, one: &str, many: &str) -> String {
    count.map_or_else(
        || format!("{UNKNOWN} {many}"),
        |count| counted(count, one, many),
    )
}

/// Returns `part` of `whole` as `67%`; small shares keep the digits that tell
/// them from 0. Empty if the whole is 0.
pub fn share(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return String::new();
    }
    let percent = part as f64 / whole as f64 * 100.0;
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

pub fn rounded(value: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation)] // a cast of a float saturates
    let number = value.round() as i64;
    number
}

/// Lists mount points, separated by commas.
pub fn paths(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "(not mounted here)".into();
    }
    let shown: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    shown.join(", ")
}

/// Prints columns as wide as needed, two spaces apart, without trailing
/// spaces.
pub fn table<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    list(out, &heads, rows)
}

/// As [`table`], for a number of columns that is known only at run time.
pub fn list<R: AsRef<[String]>>(out: &mut dyn Write, heads: &[&str], rows: &[R]) -> io::Result<()> {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{cell:<width$}  "));
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut heads.iter().copied())?;
    rows.iter()
        .try_for_each(|row| line(&mut row.as_ref().iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_hide_that_there_is_something() {
        assert_eq!(share(0, 10), "0%");
        assert_eq!(share(1, 1), "100%");
        assert_eq!(share(67, 1000), "6.7%");
        assert_eq!(share(1, 10_000), "0.010%");
        assert_eq!(share(1, 1_000_000_000), "under 0.001%");
        assert_eq!(share(1, 0), "");
    }
}
