//! The lowest clock that the load of a file system needs, for `luc power`.
//!
//! `luc_guard::descent` decides what pairs of windows show and which clock is next. This module has
//! what it acts on: [`Clocks`], those of this machine; [`ClockSubject`], the load at two of them;
//! [`limit`], which restores the earlier limits; [`search`], which runs the pairs;
//! [`ClockFindings`], what they showed; [`KeptLimit`], which ends a limit that no longer fits.

mod clocks;
mod findings;
mod kept;
pub mod limit;
mod subject;

use std::time::Duration;

use luc_base::{Asleep, Stop};
use luc_guard::{ClockVerdict, Descent, Lengths, Side, Subject as _, Tails, Trouble, Why};

use crate::time::now;
use crate::trial::{Ended, Sums, Windows, run_pair, seed};

pub use clocks::{Clock, Clocks, Setting};
pub use findings::{AtClock, ClockFindings, Spending, YEAR_H};
pub use kept::{KeptLimit, WriteMeter, keep};
pub use subject::ClockSubject;

/// Each window has enough syncs for a 99th percentile if the load makes 50 a second.
const LENGTHS: Lengths = Lengths {
    burn: Duration::from_millis(200),
    burn_commits: 50,
    burn_max: Duration::from_secs(2),
    window: Duration::from_secs(1),
    window_commits: luc_guard::TAIL_CALLS_MIN / 2,
    window_max: Duration::from_secs(10),
};

/// A search so far.
pub struct Search {
    pub descent: Descent,
    /// Energy and syncs of both sides of each lower clock's pairs.
    pub spent: Vec<Spending>,
    /// Pairs that were discarded because the machine slept.
    pub slept: u64,
}

impl Search {
    pub fn new(clocks: &Clocks, tolerance: f64, sees_times: bool, time: Duration) -> Self {
        let number = clocks.lower.len();
        Self {
            descent: Descent::new(number, tolerance, sees_times, now(), now() + time),
            spent: vec![Spending::default(); number],
            slept: 0,
        }
    }

    /// Discards a pair in which the machine slept.
    fn awake<T>(&mut self, heard: Option<T>, before: Asleep, after: Asleep) -> Option<T> {
        let slept = heard.is_some() && after.grew_since(before);
        self.slept += u64::from(slept);
        heard.filter(|_| !slept)
    }

    fn hear(&mut self, clock: usize, windows: &Windows<Sums>) -> Option<ClockVerdict> {
        self.spent[clock].add(windows);
        let tails = Tails::from_pair(&windows.pair);
        self.descent.hear(Some((&windows.pair, tails)), now())
    }
}

/// Tries clocks until the search is over. Calls `each` after each clock.
///
/// # Errors
/// It ended early; what was found stays.
pub fn search(
    subject: &mut ClockSubject,
    search: &mut Search,
    stop: &Stop,
    mut each: impl FnMut(&Search, usize) -> std::io::Result<()>,
) -> Result<(), Ended> {
    let mut coin = fastrand::Rng::with_seed(seed());
    while let Some(clock) = search.descent.clock() {
        subject.choose(clock).map_err(ended_by)?;
        loop {
            let first = if coin.bool() { Side::On } else { Side::Off };
            let slept = Asleep::now();
            let end = search.descent.until();
            let heard = run_pair(subject, LENGTHS, first, end, stop)?;
            let verdict = match search.awake(heard, slept, Asleep::now()) {
                Some(windows) => search.hear(clock, &windows),
                None => search.descent.hear(None, now()),
            };
            if verdict.is_some() {
                break;
            }
        }
        each(search, clock).map_err(|error| Ended::By(Why::Refused(error.to_string())))?;
    }
    Ok(())
}

/// Sets the lowest clock that was found, if there is one.
///
/// # Errors
/// Another program changed the clock, or the kernel refuses.
pub fn set_lowest(subject: &mut ClockSubject, search: &Search) -> Result<bool, Ended> {
    let Some(lowest) = search.descent.lowest() else {
        return Ok(false);
    };
    subject.choose(lowest).map_err(ended_by)?;
    subject.switch(Side::On).map_err(ended_by)?;
    Ok(true)
}

fn ended_by(trouble: Trouble) -> Ended {
    Ended::By(trouble.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_in_which_the_machine_slept_is_discarded() {
        let mut search = Search {
            descent: Descent::new(1, 0.01, false, now(), now()),
            spent: Vec::new(),
            slept: 0,
        };
        let before = Asleep(Duration::from_secs(5));
        let woken = Asleep(Duration::from_secs(65));
        assert_eq!(search.awake(Some(1), before, before), Some(1));
        assert_eq!(search.awake(None::<u8>, before, woken), None);
        assert_eq!(search.slept, 0);
        assert_eq!(search.awake(Some(1), before, woken), None);
        assert_eq!(search.slept, 1);
    }
}
