//! A pair of windows of a trial.

use std::time::Duration;

use luc_base::Stop;
use luc_guard::{Course, Lengths, Pair, Side, Step, Why};

use super::host_subject::HostSubject;
use super::meter::Measured;
use super::tally::Tally;
use crate::time::{now, wait};

/// Why the trial ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Interrupted,
    By(Why),
}

impl Ended {
    pub fn told(&self) -> String {
        match self {
            Self::Interrupted => "interrupted".into(),
            Self::By(Why::Gone) => {
                "LUC was switched off meanwhile, or the file system unmounted".into()
            }
            Self::By(Why::ModeByHand) => "the mode was set by hand, and stays".into(),
            Self::By(Why::KnobByHand) => "a knob was set by hand, and stays".into(),
            Self::By(Why::Refused(why)) => why.clone(),
        }
    }
}

/// A whole pair, with the totals at the edges of each window.
#[derive(Clone, Debug)]
pub struct Windows<S> {
    pub pair: Pair,
    pub on: (S, S),
    pub off: (S, S),
}

/// Runs one pair; `None` if the time was over before its end.
pub fn run_pair<M: Measured>(
    subject: &mut M,
    lengths: Lengths,
    first: Side,
    end: Duration,
    stop: &Stop,
) -> Result<Option<Windows<M::Sums>>, Ended> {
    let mut course = Course::begin(subject, lengths, first).map_err(Ended::By)?;
    let mut begin = sums(subject)?;
    let mut first_window = (begin.clone(), begin.clone());
    loop {
        if stop.is_set() {
            return Err(Ended::Interrupted);
        }
        match course.step(subject, now()).map_err(Ended::By)? {
            Step::Wait(_) if now() >= end => return Ok(None),
            Step::Wait(time) => wait(time, stop),
            Step::Begun(_) => begin = sums(subject)?,
            Step::Counted(..) => first_window = (begin.clone(), sums(subject)?),
            Step::Done(pair) => {
                let second = (begin, sums(subject)?);
                let (on, off) = match first {
                    Side::On => (first_window, second),
                    Side::Off => (second, first_window),
                };
                return Ok(Some(Windows { pair, on, off }));
            }
        }
    }
}

/// Runs one pair of `luc try`. Returns false if the time was over before its end.
pub fn compare_pair(
    subject: &mut HostSubject,
    first: Side,
    end: Duration,
    stop: &Stop,
    tally: &mut Tally,
) -> Result<bool, Ended> {
    // Only whole pairs count: a load may change in the course of a trial.
    let Some(windows) = run_pair(subject, Lengths::default(), first, end, stop)? else {
        return Ok(false);
    };
    let Windows { pair, on, off } = windows;
    tally.on.add(pair.on.time_ns, &on.0, &on.1);
    tally.off.add(pair.off.time_ns, &off.0, &off.1);
    tally.hear(&pair);
    Ok(true)
}

fn sums<M: Measured>(subject: &M) -> Result<M::Sums, Ended> {
    subject.sums().ok_or(Ended::By(Why::Gone))
}
