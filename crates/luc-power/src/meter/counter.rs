//! Energy counters of processor packages: microjoules that only grow, until they wrap.
//!
//! The kernel says where a counter wraps, not how often it did. A package takes at most
//! [`POWER_MAX_W`], which bounds the energy between two looks: less than the range, so at most one
//! wrap. More than that means that the counter was reset.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::MeterError;
use super::reading::Parts;
use super::source::{Counted, Lost, Source};
use super::sysfs::number;

/// More than any package or its memory takes: the largest packages are specified for 500 W.
const POWER_MAX_W: u64 = 1_000;
/// Time that a look at the clock and the counter's own update may lie apart.
const SLACK: Duration = Duration::from_secs(1);
/// Time between looks at counters that do not wrap.
const PERIOD_MAX: Duration = Duration::from_secs(60);

/// The files of the counters of one boundary.
#[derive(Default)]
pub struct Files {
    pub packages: Vec<CounterFile>,
    /// Outside of the packages.
    pub dram: Vec<CounterFile>,
    /// Inside the packages.
    pub cores: Vec<CounterFile>,
}

/// Counters of one boundary: packages and DRAM count, the cores stand beside.
pub struct Counters {
    packages: Vec<Counter>,
    dram: Vec<Counter>,
    cores: Vec<Counter>,
}

/// A counter's file, with the file of its range.
pub type CounterFile = (PathBuf, Option<PathBuf>);

#[derive(Debug)]
struct Counter {
    file: PathBuf,
    /// Value at which it wraps; `None` if it has 64 bits.
    range_uj: Option<u64>,
    at: Instant,
    value_uj: u64,
    sum_uj: u64,
}

impl Counters {
    /// Opens the counters of all these files.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn open(files: Files, now: Instant) -> Result<Self, MeterError> {
        let open = |(file, range): CounterFile| -> Result<Counter, MeterError> {
            let read = |file: &Path| number(file).map_err(|e| MeterError::read(file, e));
            Ok(Counter {
                range_uj: range.as_deref().map(read).transpose()?,
                at: now,
                value_uj: read(&file)?,
                sum_uj: 0,
                file,
            })
        };
        let each = |files: Vec<CounterFile>| -> Result<Vec<Counter>, MeterError> {
            files.into_iter().map(open).collect()
        };
        Ok(Self {
            packages: each(files.packages)?,
            dram: each(files.dram)?,
            cores: each(files.cores)?,
        })
    }
}

impl Source for Counters {
    fn count(&mut self, now: Instant) -> Result<Counted, Lost> {
        let packages_uj = advance(&mut self.packages, now)?;
        let dram_uj = advance(&mut self.dram, now)?;
        let cores_uj = advance(&mut self.cores, now)?;
        let sum_uj = packages_uj + dram_uj;
        let known = |of: &[Counter], uj: u64| (!of.is_empty()).then_some(uj as f64 / 1e6);
        Ok(Counted {
            joules: sum_uj as f64 / 1e6,
            parts: Parts {
                cores_joules: known(&self.cores, cores_uj),
                dram_joules: known(&self.dram, dram_uj),
            },
            // The counters of a package move every millisecond.
            steps: sum_uj,
        })
    }

    fn steps_min(&self) -> u64 {
        1
    }

    fn period(&self) -> Duration {
        let all = [&self.packages, &self.dram, &self.cores].into_iter();
        let ranges = all.flatten().filter_map(|counter| counter.range_uj);
        let half = |range_uj| Duration::from_micros(range_uj / POWER_MAX_W / 2);
        ranges.map(half).min().unwrap_or(PERIOD_MAX).min(PERIOD_MAX)
    }
}

fn advance(counters: &mut [Counter], now: Instant) -> Result<u64, Lost> {
    let mut sum_uj = 0;
    for counter in counters {
        counter.advance(now)?;
        sum_uj += counter.sum_uj;
    }
    Ok(sum_uj)
}

impl Counter {
    fn advance(&mut self, now: Instant) -> Result<(), Lost> {
        let name = self.file.display();
        let value_uj = number(&self.file).map_err(|e| format!("cannot read {name}: {e}"))?;
        let elapsed = now.saturating_duration_since(self.at);
        let before_uj = self.value_uj;
        self.sum_uj += moved_uj(before_uj, value_uj, self.range_uj, elapsed).map_err(|why| {
            let seconds = elapsed.as_secs_f64();
            match why {
                Doubt::Wraps => format!(
                    "{name} was not read for {seconds:.0} s, in which it may have wrapped twice"
                ),
                Doubt::Reset => format!(
                    "{name} went from {before_uj} to {value_uj} within {seconds:.3} s, which no \
                     wrap explains"
                ),
            }
        })?;
        (self.at, self.value_uj) = (now, value_uj);
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Doubt {
    /// More than one wrap was possible.
    Wraps,
    /// It went backwards, or further than it can.
    Reset,
}

fn moved_uj(before: u64, after: u64, range: Option<u64>, elapsed: Duration) -> Result<u64, Doubt> {
    let possible = u128::from(POWER_MAX_W) * (elapsed + SLACK).as_micros();
    if range.is_some_and(|range| possible >= u128::from(range)) {
        return Err(Doubt::Wraps);
    }
    let forward = after.checked_sub(before);
    let wrapped = || Some(range?.checked_sub(before)? + after);
    let moved = forward.or_else(wrapped).ok_or(Doubt::Reset)?;
    if u128::from(moved) > possible {
        return Err(Doubt::Reset);
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range of most packages: 2^32 units of 1/65536 J.
    const RANGE: Option<u64> = Some(65_532_610_987);

    #[test]
    fn a_wrap_is_certain_or_the_reading_is_lost() {
        let seconds = Duration::from_secs;
        let cases = [
            (0, 5, RANGE, 1, Ok(5)),
            (7, 7, RANGE, 1, Ok(0)),
            (65_532_000_000, 400_000, RANGE, 1, Ok(1_010_987)),
            // Half a range back would be a wrap with 32 kJ within a second.
            (40_000_000_000, 8_000_000_000, RANGE, 1, Err(Doubt::Reset)),
            // The same within 40 s is a wrap: 840 W.
            (40_000_000_000, 8_000_000_000, RANGE, 40, Ok(33_532_610_987)),
            (0, 5, RANGE, 65, Err(Doubt::Wraps)),
            // A jump forward that is no energy.
            (0, 3_000_000_000, RANGE, 1, Err(Doubt::Reset)),
            // A value beyond its own range.
            (70_000_000_000, 5, RANGE, 1, Err(Doubt::Reset)),
            (5, 4, None, 1, Err(Doubt::Reset)),
            (5, 6, None, 100_000, Ok(1)),
        ];
        for (before, after, range, elapsed_s, expected) in cases {
            let moved = moved_uj(before, after, range, seconds(elapsed_s));
            assert_eq!(moved, expected, "{before} to {after} in {elapsed_s} s");
        }
    }

    #[test]
    fn it_is_looked_at_once_per_half_range() {
        let counter = |range_uj| Counter {
            file: PathBuf::new(),
            range_uj,
            at: Instant::now(),
            value_uj: 0,
            sum_uj: 0,
        };
        let counters = |packages: Vec<Counter>| Counters {
            packages,
            dram: Vec::new(),
            cores: vec![counter(None)],
        };
        let small = counters(vec![
            counter(None),
            counter(RANGE),
            counter(Some(262_143_328_850)),
        ]);
        assert_eq!(small.period(), Duration::from_micros(32_766_305));
        let moved = moved_uj(9, 8, RANGE, small.period());
        assert_eq!(moved, Err(Doubt::Reset), "only one wrap was possible");
        assert_eq!(counters(vec![counter(None)]).period(), PERIOD_MAX);
    }
}
