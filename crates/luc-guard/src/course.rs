//! Runs one pair on a file system whose knobs others may change meanwhile.
//!
//! Before each step it checks whether somebody else set the mode, even to the value that we set. If
//! so, an administrator wants that mode: the pair ends, and nothing is put back.

use std::time::Duration;

use crate::pair::{Pair, Side, Window};
use crate::run::{Lengths, Next, Run, Totals};

/// A file system that LUC is on for.
pub trait Subject {
    /// Returns counts since an arbitrary start.
    fn totals(&mut self) -> Result<Totals, Trouble>;
    /// Returns the mode that its knob shows.
    fn side(&mut self) -> Result<Side, Trouble>;
    /// Tells whether somebody else wrote that knob since the last call.
    fn was_written(&mut self) -> bool;
    fn switch(&mut self, to: Side) -> Result<(), Trouble>;
    /// Returns a text that changes whenever any other knob is set.
    fn settings(&mut self) -> Result<String, Trouble>;
}

/// Why a subject does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// LUC is no longer on for it: switched off, unmounted, or the module is gone.
    Gone,
    /// Any other failure, in one line.
    Refused(String),
}

/// Why a pair ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// See [`Trouble::Gone`]; also if LUC was switched off and on again.
    Gone,
    /// The mode was set by hand.
    ModeByHand,
    /// Another knob was set by hand.
    KnobByHand,
    /// See [`Trouble::Refused`].
    Refused(String),
}

impl From<Trouble> for Why {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Gone => Self::Gone,
            Trouble::Refused(why) => Self::Refused(why),
        }
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Wait(Duration),
    /// A window of this side begins now.
    Begun(Side),
    /// The first window ended.
    Counted(Side, Window),
    /// Both windows ended.
    Done(Pair),
}

/// A pair under way.
#[derive(Clone, Debug)]
pub struct Course {
    run: Run,
    rest: Side,
    /// The mode that was last set, or found at the start.
    mine: Side,
    settings: String,
    /// Time outside the rest mode before the current stretch, and the start of that stretch.
    away: Duration,
    away_since: Option<Duration>,
}

impl Course {
    /// Begins a pair; the subject's current mode is its rest mode.
    pub fn begin(subject: &mut dyn Subject, lengths: Lengths, first: Side) -> Result<Self, Why> {
        let rest = subject.side()?;
        Ok(Self {
            run: Run::new(lengths, first),
            rest,
            mine: rest,
            settings: subject.settings()?,
            away: Duration::ZERO,
            away_since: None,
        })
    }

    /// Takes the steps that are due.
    pub fn step(&mut self, subject: &mut dyn Subject, now: Duration) -> Result<Step, Why> {
        loop {
            self.look(subject)?;
            match self.run.next(now, subject.totals()?) {
                Next::Switch(side) => self.switch(subject, side, now)?,
                Next::Begun(side) => return Ok(Step::Begun(side)),
                Next::Counted(side, window) => return Ok(Step::Counted(side, window)),
                Next::Wait(time) => return Ok(Step::Wait(time)),
                Next::Done(pair) => return Ok(Step::Done(pair)),
                Next::Lost => return Err(Why::Gone),
            }
        }
    }

    /// Switches to this rest mode; fails if somebody else set a knob.
    pub fn rest(&mut self, subject: &mut dyn Subject, to: Side, now: Duration) -> Result<(), Why> {
        self.look(subject)?;
        self.switch(subject, to, now)
    }

    /// Returns how long the subject was outside the rest mode that the pair began in.
    pub fn away(&self, now: Duration) -> Duration {
        let since = self.away_since.map(|since| now.saturating_sub(since));
        self.away + since.unwrap_or_default()
    }

    fn look(&self, subject: &mut dyn Subject) -> Result<(), Why> {
        if subject.was_written() || subject.side()? != self.mine {
            return Err(Why::ModeByHand);
        }
        if subject.settings()? != self.settings {
            return Err(Why::KnobByHand);
        }
        Ok(())
    }

    fn switch(&mut self, subject: &mut dyn Subject, to: Side, now: Duration) -> Result<(), Why> {
        if to != self.mine {
            subject.switch(to)?;
            self.mine = to;
        }
        self.away = self.away(now);
        self.away_since = (to != self.rest).then_some(now);
        Ok(())
    }
}
