//! File systems under guard, for `luc guard` and `luc service`.

use std::time::Duration;

use luc_guard::slow::REFUTED;
use luc_guard::{Change, Event, Keeper, Lengths, Saved, Subject as _, Why};
use luc_host::health::HealthCheck;
use luc_host::sysfs::{self, Attached};
use luc_host::{Fault, HostError, System, journal};

use super::guard_findings::certified;
use super::host_subject::HostSubject;
use super::meter::Measured as _;
use super::recovery::put_back_killed;
use super::seed;
use super::trial_files::{self, Claim, Content, Purpose};
use crate::WatchError;
use crate::time::now;

/// Time between two attempts to take the turn: a guard resumes within 1 s after a trial.
const TURN: Duration = Duration::from_secs(1);

/// All file systems that one process guards. Its methods return lines to log.
pub struct GuardedFileSystems<'a> {
    system: &'a dyn System,
    verb: &'static str,
    health: HealthCheck,
    kept: Vec<GuardedFileSystem<'a>>,
    /// Refused file systems: logged once, and tried again.
    refused: Vec<Attached>,
}

/// A guarded file system.
struct GuardedFileSystem<'a> {
    system: &'a dyn System,
    verb: &'static str,
    subject: HostSubject<'a>,
    claim: Claim,
    /// Held during a look and during a pair.
    turn: Option<Claim>,
    keeper: Keeper,
    due: Duration,
}

impl<'a> GuardedFileSystems<'a> {
    pub fn new(system: &'a dyn System, verb: &'static str) -> Self {
        Self {
            system,
            verb,
            health: HealthCheck::new(system),
            kept: Vec::new(),
            refused: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Starts to guard a file system that LUC is on for.
    ///
    /// # Errors
    /// If another process guards or tries LUC there, LUC is off by now, or the file system takes no
    /// writes.
    pub fn take(&mut self, attached: Attached) -> Result<String, WatchError> {
        if let Some(fault) = fault(&self.health, self.system, &attached) {
            let path = attached.name.replace('!', "/");
            return Err(HostError::Unsound { path, fault }.into());
        }
        let (kept, line) = GuardedFileSystem::take(self.system, self.verb, attached)?;
        self.kept.push(kept);
        Ok(line)
    }

    /// Guards these file systems and no others. Leaves LUC at rest on those that it lets go.
    pub fn keep(&mut self, wanted: Vec<Attached>) -> Vec<String> {
        let mut lines = Vec::new();
        self.kept.retain_mut(|one| {
            let is_wanted = wanted.contains(one.subject.attached());
            if !is_wanted && one.subject.sums().is_some() {
                one.stop();
            } else if !is_wanted {
                lines.push(one.end());
            }
            is_wanted
        });
        self.refused.retain(|one| wanted.contains(one));
        for attached in wanted {
            let is_kept = |one: &GuardedFileSystem<'_>| *one.subject.attached() == attached;
            if self.kept.iter().any(is_kept) {
                continue;
            }
            match self.take(attached.clone()) {
                Ok(line) => lines.push(line),
                // LUC was switched off while the guard looked.
                Err(WatchError::Host(HostError::NotOn { .. })) => {}
                Err(error) if !self.refused.contains(&attached) => {
                    lines.push(error.to_string());
                    self.refused.push(attached);
                }
                Err(_) => {}
            }
        }
        lines
    }

    /// Takes the steps due on all file systems. Lets go of those that LUC is no longer on for, and
    /// of those that take no writes.
    pub fn tick(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let (health, refused) = (&self.health, &mut self.refused);
        self.kept.retain_mut(|one| {
            if one.due > now() {
                return true;
            }
            let attached = one.subject.attached();
            if let Some(fault) = fault(health, one.system, attached) {
                refused.push(attached.clone());
                lines.push(one.line(&format!("{fault}; not guarded until that ends")));
                one.stop();
                return false;
            }
            let events = one.tick();
            match &events {
                Ok(events) => lines.extend(events.iter().map(|it| one.line(&told(it)))),
                Err(_) => lines.push(one.end()),
            }
            events.is_ok()
        });
        lines
    }

    /// The time until something is due.
    pub fn wait(&self) -> Duration {
        let next = self.kept.iter().map(|one| one.due).min();
        next.map_or(Duration::MAX, |due| due.saturating_sub(now()))
    }

    /// Ends in order, and leaves LUC at rest everywhere.
    pub fn stop(&mut self) {
        for one in &mut self.kept {
            one.stop();
        }
        self.kept.clear();
    }
}

/// Why a file system takes no writes, if that is seen.
fn fault(health: &HealthCheck, system: &dyn System, attached: &Attached) -> Option<Fault> {
    let journals = journal::journals(system).ok()?;
    let journal = journals
        .iter()
        .find(|journal| journal.device == attached.device)?;
    health.fault(system, journal)
}

impl<'a> GuardedFileSystem<'a> {
    fn take(
        system: &'a dyn System,
        verb: &'static str,
        attached: Attached,
    ) -> Result<(Self, String), WatchError> {
        let name = attached.name.replace('!', "/");
        sysfs::may_switch(system, &attached, &format!("guard {name}"))?;
        let claim = Claim::take(system, &attached, verb, Purpose::Guard)?;
        // During a trial the mode would mean nothing.
        let turn = Claim::take(system, &attached, verb, Purpose::Switch)?;
        put_back_killed(system, &attached, &turn)?;
        let saved = trial_files::guarded(system, &attached).map(|(saved, _)| saved);
        let has_notes = claim.has_notes(system, trial_files::GUARD);
        let (mut subject, lacks) = HostSubject::new(system, attached)?;
        let keeper = Keeper::new(&mut subject, Lengths::default(), seed(), now(), saved);
        let keeper = keeper.map_err(|_| HostError::NotOn {
            path: subject.attached().name.replace('!', "/"),
        })?;
        let begun = if keeper.is_left_alone() {
            "its mode was set by hand: left alone until LUC is switched on again"
        } else if keeper.is_resumed() {
            "guarded again, from where it stopped"
        } else if has_notes {
            "guarded from the start: earlier notes are damaged, or from before LUC was switched on \
             here"
        } else {
            "guarded"
        };
        let blind = match lacks.first() {
            Some(lack) => format!("; judged by throughput alone: {lack}"),
            None => String::new(),
        };
        let kept = Self {
            system,
            verb,
            subject,
            claim,
            turn: Some(turn),
            keeper,
            due: now(),
        };
        // Saved now, so that others see the guard from the start. The first pair reports a failure.
        let _ = note(&kept.claim, system, &kept.keeper.saved());
        let line = kept.line(&format!("{begun}{blind}"));
        Ok((kept, line))
    }

    fn tick(&mut self) -> Result<Vec<Event>, Why> {
        if !self.takes_turn()? {
            // A trial is under way.
            self.due = now() + TURN;
            return Ok(Vec::new());
        }
        let (claim, system) = (&self.claim, self.system);
        let mut save = |saved: &Saved| note(claim, system, saved);
        let (wait, events) = self.keeper.tick(&mut self.subject, now(), &mut save)?;
        self.due = now() + wait;
        if !self.keeper.is_in_pair() {
            self.turn = None;
        }
        Ok(events)
    }

    /// Takes the turn to switch the mode; false if another process has it.
    fn takes_turn(&mut self) -> Result<bool, Why> {
        if self.turn.is_some() {
            return Ok(true);
        }
        let attached = self.subject.attached();
        let Ok(turn) = Claim::take(self.system, attached, self.verb, Purpose::Switch) else {
            self.subject.side()?;
            return Ok(false);
        };
        if turn.was_others {
            // A killed trial may have left its mode. A trial's writes are no change by hand.
            let _ = put_back_killed(self.system, attached, &turn);
            self.subject.was_written();
        }
        self.turn = Some(turn);
        Ok(true)
    }

    fn stop(&mut self) {
        let (claim, system) = (&self.claim, self.system);
        let mut save = |saved: &Saved| note(claim, system, saved);
        self.keeper.stop(&mut self.subject, now(), &mut save);
        self.turn = None;
    }

    /// Forgets a file system that LUC is no longer on for.
    fn end(&self) -> String {
        self.claim.forget(self.system, trial_files::GUARD);
        let line = "LUC was switched off or the file system unmounted; no longer guarded";
        self.line(line)
    }

    fn line(&self, what: &str) -> String {
        let attached = self.subject.attached();
        let name = attached.name.replace('!', "/");
        let journals = journal::journals(self.system).unwrap_or_default();
        let point = journals
            .iter()
            .find(|journal| journal.device == attached.device)
            .and_then(|journal| journal.mount_points.first());
        match point {
            Some(point) => format!("{} ({name}): {what}", point.display()),
            None => format!("{name}: {what}"),
        }
    }
}

fn note(claim: &Claim, system: &dyn System, saved: &Saved) -> Result<(), String> {
    claim.note(system, Content::Guard(Box::new(saved.clone())))
}

fn told(event: &Event) -> String {
    match event {
        Event::Changed(change) => told_change(*change),
        Event::LeftAlone => {
            "the mode was set by hand: left alone until LUC is switched on again".into()
        }
        Event::SetByHand => "a knob was set by hand: the trial starts over".into(),
        Event::GivenUp(why) => format!("a pair was discarded: {why}"),
        Event::CannotSave(why) => {
            format!(
                "{why}; LUC stays on, but the guard does not try it, because it could not restore \
                 LUC's state after a crash"
            )
        }
        Event::CanSave => "LUC's state can be saved again; the trial continues".into(),
    }
}

fn told_change(change: Change) -> String {
    let aside =
        |time: Duration| luc_base::words::duration(i128::try_from(time.as_nanos()).unwrap_or(0));
    match change {
        Change::Certified { pairs, ratio, p99 } => certified(pairs, ratio, p99),
        Change::Refuted {
            pairs,
            ratio,
            by_p99,
            aside: time,
        } => {
            let why = if by_p99 {
                format!("99th percentile over {REFUTED} times stock's")
            } else {
                "less than 0.99 of stock".into()
            };
            format!(
                "refuted after {pairs} pairs: {why} with 99% confidence; mean {ratio:.2} of \
                 stock; LUC stands aside for {}",
                aside(time)
            )
        }
        Change::Undecided { pairs, aside: time } => format!(
            "no verdict after {pairs} pairs; LUC stands aside for {}",
            aside(time)
        ),
        Change::OtherLoad => {
            "the load has changed: LUC is no longer certified and is tried again".into()
        }
    }
}
