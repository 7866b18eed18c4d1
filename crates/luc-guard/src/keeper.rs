//! Keeps one file system: runs the pairs of its [`Guard`], and copes with crashes and interference.
//!
//! Before a pair switches anything, the keeper saves what it must know after a `kill -9`
//! ([`Keeper::saved`]). If that fails, there is no pair: LUC stays in its rest mode. A keeper that
//! is resumed in the middle of a pair finds the mode that the pair had set, and switches back to
//! the rest mode.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::course::{Course, Step, Subject, Why};
use crate::guard::{Change, Guard};
use crate::pair::Side;
use crate::run::Lengths;

/// Longest time between two checks for a change by hand. Chosen.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Pause after a pair that failed or could not be saved. Chosen.
const PAUSE: Duration = Duration::from_secs(60);

/// An event worth logging.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Changed(Change),
    /// The mode was set by hand: the file system is left alone until LUC is switched on again.
    LeftAlone,
    /// Another knob was set by hand: LUC now acts differently, and the bets start afresh.
    SetByHand,
    /// The pair could not be completed; another one follows.
    GivenUp(String),
    /// The notes for after a crash cannot be saved: there are no pairs.
    CannotSave(String),
    /// The notes can be saved again.
    CanSave,
}

/// A keeper's notes, from which another keeper resumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub guard: Guard,
    /// A pair is under way: the mode may be either.
    pub in_pair: bool,
    /// The file system is left alone.
    pub left_alone: bool,
    /// Commits by the module's count: a lower count means that LUC was switched on again.
    pub commits: u64,
}

/// Keeps one file system.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Keeper {
    lengths: Lengths,
    guard: Guard,
    course: Option<Course>,
    settings: Option<String>,
    left_alone: bool,
    cannot_save: bool,
    /// Whether the mode may still be one that a pair set: after a crash, or a failed switch.
    unsure: bool,
    commits: u64,
    resumed: bool,
}

/// Saves the notes; an error is one line.
pub type Save<'a> = dyn FnMut(&Saved) -> Result<(), String> + 'a;

impl Keeper {
    /// Starts with a file system as it is, or as `saved` says if that belongs to this attachment.
    pub fn new(
        subject: &mut dyn Subject,
        lengths: Lengths,
        seed: u64,
        now: Duration,
        saved: Option<Saved>,
    ) -> Result<Self, Why> {
        let commits = subject.totals()?.commits;
        let saved = saved.filter(|saved| saved.commits <= commits);
        let resumed = saved.is_some();
        let mut saved = saved.unwrap_or(Saved {
            guard: Guard::new(seed, now),
            in_pair: false,
            left_alone: false,
            commits,
        });
        if saved.in_pair {
            // Nobody knows how long LUC was outside the rest mode: count half of the longest pair.
            saved.guard.give_up(now, lengths.pair_max() / 2);
        }
        Ok(Self {
            lengths,
            guard: saved.guard,
            course: None,
            settings: None,
            // If an administrator switched LUC on in mode observe, it must stay there.
            left_alone: saved.left_alone || (!resumed && subject.side()? == Side::Off),
            cannot_save: false,
            unsure: saved.in_pair,
            commits,
            resumed,
        })
    }

    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Tells whether it goes on from saved notes.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub fn is_left_alone(&self) -> bool {
        self.left_alone
    }

    /// Tells whether a pair is under way, which must not be disturbed.
    pub fn is_in_pair(&self) -> bool {
        self.course.is_some()
    }

    pub fn saved(&self) -> Saved {
        Saved {
            guard: self.guard.clone(),
            in_pair: self.course.is_some() || self.unsure,
            left_alone: self.left_alone,
            commits: self.commits,
        }
    }

    /// Does what is due. Returns when to call again and what happened; fails with `Why::Gone` once
    /// LUC is no longer on for the file system.
    pub fn tick(
        &mut self,
        subject: &mut dyn Subject,
        now: Duration,
        save: &mut Save<'_>,
    ) -> Result<(Duration, Vec<Event>), Why> {
        let commits = subject.totals()?.commits;
        if commits < self.commits {
            return Err(Why::Gone);
        }
        self.commits = commits;
        let mut tick = Tick {
            subject,
            now,
            save,
            events: Vec::new(),
        };
        let wait = match self.due(&mut tick) {
            Ok(wait) => wait,
            Err(Why::Gone) => return Err(Why::Gone),
            Err(why) => {
                self.end_early(&mut tick, why);
                self.write(&mut tick);
                LOOK_MAX
            }
        };
        Ok((wait, tick.events))
    }

    /// Stops in order: leaves the file system in its rest mode.
    pub fn stop(&mut self, subject: &mut dyn Subject, now: Duration, save: &mut Save<'_>) {
        if let Some(mut course) = self.course.take() {
            let _ = course.rest(subject, self.guard.rests_in(), now);
            self.guard.give_up(now, course.away(now));
        }
        self.write(&mut Tick {
            subject,
            now,
            save,
            events: Vec::new(),
        });
    }

    fn due(&mut self, tick: &mut Tick<'_, '_>) -> Result<Duration, Why> {
        if self.left_alone {
            tick.subject.side()?;
            return Ok(LOOK_MAX);
        }
        if self.course.is_none() {
            self.look(tick)?;
            let early = self.guard.next_pair().saturating_sub(tick.now);
            if !early.is_zero() {
                return Ok(early.min(LOOK_MAX));
            }
            if !self.begin(tick)? {
                return Ok(LOOK_MAX);
            }
        }
        self.lead(tick)
    }

    /// Checks a file system between pairs.
    fn look(&mut self, tick: &mut Tick<'_, '_>) -> Result<(), Why> {
        let rest = self.guard.rests_in();
        if tick.subject.was_written() {
            return Err(Why::ModeByHand);
        }
        if tick.subject.side()? != rest {
            if !self.unsure {
                return Err(Why::ModeByHand);
            }
            tick.subject.switch(rest)?;
        }
        self.unsure = false;
        let settings = tick.subject.settings()?;
        let before = self.settings.replace(settings.clone());
        if before.is_some_and(|before| before != settings) {
            self.guard.begin_anew();
            tick.events.push(Event::SetByHand);
        }
        Ok(())
    }

    /// Begins a pair, unless the note that one is under way cannot be saved.
    fn begin(&mut self, tick: &mut Tick<'_, '_>) -> Result<bool, Why> {
        self.unsure = true;
        let written = self.write(tick);
        self.unsure = false;
        if !written {
            self.guard.give_up(tick.now, PAUSE / 9);
            return Ok(false);
        }
        let first = self.guard.begin_pair();
        self.course = Some(Course::begin(tick.subject, self.lengths, first)?);
        Ok(true)
    }

    fn lead(&mut self, tick: &mut Tick<'_, '_>) -> Result<Duration, Why> {
        let Some(course) = &mut self.course else {
            return Ok(Duration::ZERO);
        };
        let pair = match course.step(tick.subject, tick.now)? {
            Step::Wait(time) => return Ok(time),
            Step::Begun(_) | Step::Counted(..) => return Ok(Duration::ZERO),
            Step::Done(pair) => pair,
        };
        let away = course.away(tick.now);
        let change = self.guard.end_pair(&pair, tick.now, away);
        tick.events.extend(change.map(Event::Changed));
        course.rest(tick.subject, self.guard.rests_in(), tick.now)?;
        self.course = None;
        self.write(tick);
        Ok(Duration::ZERO)
    }

    fn end_early(&mut self, tick: &mut Tick<'_, '_>, why: Why) {
        let course = self.course.take();
        let away = course
            .as_ref()
            .map_or(Duration::ZERO, |one| one.away(tick.now));
        match why {
            Why::ModeByHand => {
                self.left_alone = true;
                tick.events.push(Event::LeftAlone);
                return;
            }
            Why::KnobByHand => {
                self.guard.begin_anew();
                tick.events.push(Event::SetByHand);
            }
            Why::Refused(why) => tick.events.push(Event::GivenUp(why)),
            Why::Gone => {}
        }
        // The mode is still ours: if it cannot be restored now, the next check restores it.
        self.unsure = tick.subject.switch(self.guard.rests_in()).is_err();
        self.settings = None;
        self.guard.give_up(tick.now, away.max(PAUSE / 9));
    }

    /// Saves the notes; false on failure. Reports the first failure, and the first success after.
    fn write(&mut self, tick: &mut Tick<'_, '_>) -> bool {
        match ((tick.save)(&self.saved()), self.cannot_save) {
            (Ok(()), true) => {
                self.cannot_save = false;
                tick.events.push(Event::CanSave);
                true
            }
            (Ok(()), false) => true,
            (Err(why), told) => {
                self.cannot_save = true;
                if !told {
                    tick.events.push(Event::CannotSave(why));
                }
                false
            }
        }
    }
}

/// The surroundings of one tick, and what happened in it.
struct Tick<'a, 'save> {
    subject: &'a mut dyn Subject,
    now: Duration,
    save: &'a mut Save<'save>,
    events: Vec<Event>,
}
