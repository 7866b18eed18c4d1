//! A pair of windows of `luc try`.

use std::time::Duration;

use luc_base::Stop;
use luc_guard::{Course, Lengths, Side, Step, Why};

use super::host_subject::HostSubject;
use super::meter::Sums;
use super::tally::Tally;
use crate::time::{now, wait};

/// What ended the trial early.
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

/// Runs one pair. Returns false if the time was over before its end.
pub fn compare_pair(
    subject: &mut HostSubject,
    first: Side,
    end: Duration,
    stop: &Stop,
    tally: &mut Tally,
) -> Result<bool, Ended> {
    let mut course = Course::begin(subject, Lengths::default(), first).map_err(Ended::By)?;
    let mut begin: Option<Sums> = None;
    let mut first_half: Option<(Side, u64, Sums, Sums)> = None;
    loop {
        if stop.is_set() {
            return Err(Ended::Interrupted);
        }
        match course.step(subject, now()).map_err(Ended::By)? {
            Step::Wait(_) if now() >= end => return Ok(false),
            Step::Wait(time) => wait(time, stop),
            Step::Begun(_) => begin = Some(sums(subject)?),
            Step::Counted(side, window) => {
                let before = begin.take().unwrap_or_default();
                first_half = Some((side, window.time_ns, before, sums(subject)?));
            }
            Step::Done(pair) => {
                let (before, after) = (begin.take().unwrap_or_default(), sums(subject)?);
                // Only whole pairs count: a load may change in the course of a trial.
                if let Some((side, time_ns, begin, end)) = first_half.take() {
                    tally.half(side).add(time_ns, &begin, &end);
                    let other = match side.other() {
                        Side::On => pair.on,
                        Side::Off => pair.off,
                    };
                    tally.half(side.other()).add(other.time_ns, &before, &after);
                }
                tally.hear(&pair);
                return Ok(true);
            }
        }
    }
}

fn sums(subject: &HostSubject) -> Result<Sums, Ended> {
    subject.sums().ok_or(Ended::By(Why::Gone))
}
