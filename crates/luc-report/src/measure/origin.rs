//! Date, machine and command of a measurement.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The foot of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Date and time, UTC.
    pub date: String,
    /// Name, kernel and processor of the machine that ran the virtual ones.
    pub host: String,
    /// The command line.
    pub command: String,
}

impl Origin {
    /// This process, now.
    pub fn here() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let uname = rustix::system::uname();
        // The path of the program is of no use elsewhere.
        let words = std::env::args_os().skip(1);
        let words = words.map(|word| shown(&word.to_string_lossy()));
        Self {
            date: utc(since.map_or(0, |since| since.as_secs())),
            host: format!(
                "{} ({} {}, {})",
                uname.nodename().to_string_lossy(),
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy(),
                uname.machine().to_string_lossy()
            ),
            command: std::iter::once("luc".to_owned())
                .chain(words)
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// A word, quoted where a shell needs it.
fn shown(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Seconds since 1970 as date and time.
fn utc(seconds: u64) -> String {
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute) = (in_day / 3600, in_day % 3600 / 60);
    // Years begin in March here, so that the odd day is a year's last; an era of 400 years has
    // 146,097 days and began 719,468 days before 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::{shown, utc};

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }

    #[test]
    fn a_command_can_be_typed_again() {
        assert_eq!(shown("--smp=1,4"), "--smp=1,4");
        assert_eq!(shown("it's"), "'it'\\''s'");
        assert_eq!(shown(""), "''");
    }
}
