//! Runs one pair of windows: decides what to do next from the current time and counts.
//!
//! A coin decides the order. After each switch of the mode the load burns in: batches of the other
//! mode are under way, and convoys of tasks re-form. Then a window is counted. The first one ends
//! when it is long enough and has enough commits. It ends after the longest time in any case, as a
//! load may be slow; [`crate::Pair::is_idle`] deals with a window without commits. The second one
//! is as long as the first: LUC makes fewer commits, and of two windows of unequal length the
//! shorter has more noise, which [`crate::evidence`] would take for a difference.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pair::{Pair, Side, Window};
use crate::times::Times;

/// Lengths of the parts of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// A burn-in's minimum length, minimum commits, and maximum length, which ends it in any case.
    pub burn: Duration,
    pub burn_commits: u64,
    pub burn_max: Duration,
    /// The same for the first window.
    pub window: Duration,
    pub window_commits: u64,
    pub window_max: Duration,
}

impl Default for Lengths {
    /// Fifty commits cover a pair of the controller's own trial (36, `control/luc_trial.c`). Two
    /// hundred commits in a window, and the maximum lengths, are chosen: a pair takes 24 s on a
    /// load that commits 20 times a second.
    fn default() -> Self {
        Self {
            burn: Duration::from_millis(200),
            burn_commits: 50,
            burn_max: Duration::from_secs(2),
            window: Duration::from_secs(1),
            window_commits: 200,
            window_max: Duration::from_secs(10),
        }
    }
}

impl Lengths {
    /// Longest time that a pair can take, if [`Run::next`] is called often enough.
    pub fn pair_max(&self) -> Duration {
        (self.burn_max + self.window_max) * 2
    }
}

/// Counts since an arbitrary start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub calls: u64,
    pub commits: u64,
    pub waited_ns: Option<u64>,
    pub times: Option<Times>,
}

impl Totals {
    /// The growth since `before`; `None` if a count shrank, as it started again meanwhile.
    fn since(&self, before: &Self, time: Duration) -> Option<Window> {
        let waited_ns = match (self.waited_ns, before.waited_ns) {
            (Some(now), Some(before)) => Some(now.checked_sub(before)?),
            _ => None,
        };
        let times = match (&self.times, &before.times) {
            (Some(now), Some(before)) => Some(now.since(before)?),
            _ => None,
        };
        Some(Window {
            time_ns: u64::try_from(time.as_nanos()).ok()?,
            calls: self.calls.checked_sub(before.calls)?,
            commits: self.commits.checked_sub(before.commits)?,
            waited_ns,
            times,
        })
    }
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Switch to this side, then call again.
    Switch(Side),
    /// A window of this side begins now.
    Begun(Side),
    /// The first window, of this side, ended. Call again.
    Counted(Side, Window),
    /// Call again after this time.
    Wait(Duration),
    /// The second window ended.
    Done(Pair),
    /// The counts started again: the pair is void.
    Lost,
}

/// Time between two looks at a load, and the most by which windows are too long.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
enum Stage {
    Switch,
    Burn(Duration, Totals),
    Count(Duration, Totals),
}

/// One pair under way.
#[derive(Clone, Debug)]
pub struct Run {
    lengths: Lengths,
    side: Side,
    stage: Stage,
    first: Option<Window>,
}

impl Run {
    pub fn new(lengths: Lengths, first: Side) -> Self {
        Self {
            lengths,
            side: first,
            stage: Stage::Switch,
            first: None,
        }
    }

    /// The side whose turn it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the next thing to do. `now` comes from a clock that never jumps.
    pub fn next(&mut self, now: Duration, totals: Totals) -> Next {
        match &self.stage {
            Stage::Switch => {
                self.stage = Stage::Burn(now, totals);
                Next::Switch(self.side)
            }
            Stage::Burn(since, before) => {
                let Some(burnt) = totals.since(before, now.saturating_sub(*since)) else {
                    return Next::Lost;
                };
                let Lengths {
                    burn,
                    burn_commits,
                    burn_max,
                    ..
                } = self.lengths;
                if let Some(wait) = left(&burnt, burn, burn_commits, burn_max) {
                    return Next::Wait(wait);
                }
                self.stage = Stage::Count(now, totals);
                Next::Begun(self.side)
            }
            Stage::Count(since, before) => {
                let Some(window) = totals.since(before, now.saturating_sub(*since)) else {
                    return Next::Lost;
                };
                match self.left_of(&window) {
                    Some(wait) => Next::Wait(wait),
                    None => self.counted(window),
                }
            }
        }
    }

    fn left_of(&self, so_far: &Window) -> Option<Duration> {
        let Lengths {
            window,
            window_commits,
            window_max,
            ..
        } = self.lengths;
        let Some(first) = &self.first else {
            return left(so_far, window, window_commits, window_max);
        };
        let as_long = Duration::from_nanos(first.time_ns);
        left(so_far, as_long, 0, as_long)
    }

    fn counted(&mut self, window: Window) -> Next {
        let side = self.side;
        match self.first.take() {
            None => {
                self.first = Some(window.clone());
                self.side = side.other();
                self.stage = Stage::Switch;
                Next::Counted(side, window)
            }
            Some(first) => Next::Done(match side {
                Side::On => Pair {
                    on: window,
                    off: first,
                },
                Side::Off => Pair {
                    on: first,
                    off: window,
                },
            }),
        }
    }
}

/// How long to wait before the next look; `None` if the part of the pair is long enough.
fn left(so_far: &Window, least: Duration, commits: u64, most: Duration) -> Option<Duration> {
    let time = Duration::from_nanos(so_far.time_ns);
    if time >= most || (time >= least && so_far.commits >= commits) {
        return None;
    }
    // Nothing can end it before its minimum time; after that, commits may at any moment.
    let wait = if time < least {
        least.saturating_sub(time)
    } else {
        LOOK.min(most.saturating_sub(time))
    };
    Some(wait.max(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a pair on a load of this many commits a second, each of four calls. Returns every
    /// switch, the first window, the last step, and the time taken.
    fn run(first: Side, commits_per_s: u64) -> (Vec<Side>, Vec<Window>, Next, Duration) {
        let mut run = Run::new(Lengths::default(), first);
        let (mut now, mut switches, mut windows) = (Duration::from_secs(5), Vec::new(), Vec::new());
        let begin = now;
        for _ in 0..2000 {
            let commits = u64::try_from(now.as_millis()).unwrap() * commits_per_s / 1000;
            let totals = Totals {
                calls: commits * 4,
                commits,
                waited_ns: Some(commits * 1000),
                times: None,
            };
            match run.next(now, totals) {
                Next::Switch(side) => switches.push(side),
                Next::Begun(side) => assert_eq!(switches.last(), Some(&side)),
                Next::Counted(_, window) => windows.push(window),
                Next::Wait(time) => now += time,
                end => return (switches, windows, end, now.saturating_sub(begin)),
            }
        }
        panic!("no end");
    }

    #[test]
    fn a_window_has_its_commits_and_its_second() {
        let (switches, windows, end, took) = run(Side::Off, 1000);
        assert_eq!(switches, [Side::Off, Side::On]);
        let Next::Done(pair) = end else {
            panic!("{end:?}")
        };
        assert_eq!(pair.off, windows[0]);
        assert!((1_000_000_000..1_060_000_000).contains(&pair.off.time_ns));
        assert!(pair.on.time_ns.abs_diff(pair.off.time_ns) < 60_000_000);
        assert!(pair.off.commits >= 1000 && took < Duration::from_secs(3));
        let (_, windows, ..) = run(Side::On, 50);
        assert!(windows[0].commits >= 200 && windows[0].time_ns > 3_900_000_000);
    }

    #[test]
    fn a_pair_without_a_load_ends_too() {
        let (.., end, took) = run(Side::On, 0);
        let Next::Done(pair) = end else {
            panic!("{end:?}")
        };
        assert!(pair.is_idle());
        assert!(took < Lengths::default().pair_max() + Duration::from_secs(1));
    }

    #[test]
    fn counts_that_begin_anew_are_no_window() {
        let totals = |calls| Totals {
            calls,
            commits: 0,
            waited_ns: None,
            times: None,
        };
        let mut run = Run::new(Lengths::default(), Side::On);
        run.next(Duration::ZERO, totals(9));
        assert_eq!(run.next(Duration::from_millis(50), totals(3)), Next::Lost);
    }

    proptest! {
        /// A pair ends whatever the counts do and however late the calls come.
        #[test]
        fn every_pair_ends(steps in proptest::collection::vec((0_u64..100, 0_u64..3000), 3000), on in any::<bool>()) {
            let mut run = Run::new(Lengths::default(), if on { Side::On } else { Side::Off });
            let (mut now, mut totals) = (Duration::ZERO, Totals::default());
            for (commits, late_ms) in steps {
                totals.commits += commits;
                totals.calls += commits;
                match run.next(now, totals.clone()) {
                    Next::Wait(time) => now += time + Duration::from_millis(late_ms % 100),
                    Next::Done(pair) => {
                        prop_assert!(pair.on.time_ns > 0 && pair.off.time_ns > 0);
                        return Ok(());
                    }
                    Next::Lost => prop_assert!(false, "nothing began anew"),
                    _ => {}
                }
            }
            prop_assert!(false, "no end");
        }
    }
}
