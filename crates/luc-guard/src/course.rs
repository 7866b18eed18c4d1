//! One pair on a file system that others may touch meanwhile.
//!
//! Before anything is done it is looked whether somebody else set the mode, be it the one that we set. If
//! so, an administrator did it by hand, and it is his: the pair ends, and nothing is put back.

use std::time::Duration;

use crate::pair::{Pair, Side, Window};
use crate::run::{Lengths, Next, Run, Totals};

/// A file system that LUC is on for.
pub trait Subject {
    /// Counts since any moment.
    fn totals(&mut self) -> Result<Totals, Trouble>;
    /// The mode that its knob shows.
    fn side(&mut self) -> Result<Side, Trouble>;
    /// Whether somebody else wrote that knob since this was asked last.
    fn was_written(&mut self) -> bool;
    fn switch(&mut self, to: Side) -> Result<(), Trouble>;
    /// A text that is another one after any other knob was set.
    fn settings(&mut self) -> Result<String, Trouble>;
}

/// A subject that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// LUC is no longer on for it: switched off, unmounted, or the module is gone.
    Gone,
    /// Any other failure, a line.
    Refused(String),
}

/// Why a pair ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// See [`Trouble::Gone`]; also if it is on again, but anew.
    Gone,
    /// The mode was set by hand.
    ModeByHand,
    /// Another knob was.
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

/// The outcome of a step, and when the next is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Wait(Duration),
    /// A window of this side begins now.
    Begun(Side),
    /// The first window ended.
    Counted(Side, Window),
    /// Both ended.
    Done(Pair),
}

/// A pair under way.
#[derive(Clone, Debug)]
pub struct Course {
    run: Run,
    rest: Side,
    /// The mode as it was last set, or found.
    mine: Side,
    settings: String,
    /// Time in the mode that is not that of rest, and since when it is going on.
    away: Duration,
    away_since: Option<Duration>,
}

impl Course {
    /// Begins a pair on a subject that rests in the mode that it is in.
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

    /// Does what is due.
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

    /// Goes to the mode in which it is to rest, unless somebody else set another one.
    pub fn rest(&mut self, subject: &mut dyn Subject, to: Side, now: Duration) -> Result<(), Why> {
        self.look(subject)?;
        self.switch(subject, to, now)
    }

    /// How long it was not in the mode that it had rested in.
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
