//! `luc guard`

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_guard::{Change, Event, Keeper, Lengths, Saved, Why};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, journal, kernel};

use crate::Context;
use crate::exit::{Code, Failure};
use crate::trying::meter::Meter;
use crate::trying::notes::{self, Claim, Of};
use crate::trying::subject::OnHost;
use crate::trying::{before, now, seed, wait};
use crate::units;
use crate::verb::{Interrupt, Verb};

/// Keep LUC on only while it is not shown to harm
///
/// Tries LUC against stock on each file system that it is on for, at a low duty and for as long as this
/// runs. Where it is less than 0.99 of stock, 99% sure, LUC stands aside there and is tried again later,
/// each time later. `luc status` and `luc exporter` show the verdicts. A mode that is set by hand is left
/// alone until LUC is switched on anew. docs/guard.md tells what is promised, and what trying costs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc guard\n\
    \x20 luc guard /srv/data /srv/mail")]
pub struct Args {
    /// Paths on the file systems, or their block devices [default: each that LUC is on for, later ones
    /// too]
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
}

/// How often it is looked for file systems that LUC was switched on for.
const LOOK: Duration = Duration::from_secs(5);

/// A file system that is kept.
struct Kept {
    attached: Attached,
    claim: Claim,
    meter: Meter,
    keeper: Keeper,
    due: Duration,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        if !kernel::capable(system, kernel::Capability::SysAdmin) {
            return Err(sysfs::denied("guard file systems").into());
        }
        before::recover(context)?;
        let mut chosen = Vec::new();
        let all = sysfs::attached(system)?;
        for path in &self.paths {
            chosen.push(super::attached_at(system, path, &all)?);
        }
        let mut kept: Vec<Kept> = Vec::new();
        let mut refused: Vec<Attached> = Vec::new();
        let first = if self.paths.is_empty() {
            all
        } else {
            chosen.clone()
        };
        for attached in first {
            kept.push(Kept::take(context, attached)?);
        }
        while !context.stopped() {
            for attached in sysfs::attached(system).unwrap_or_default() {
                let asked = self.paths.is_empty() || chosen.contains(&attached);
                let known = kept.iter().any(|one| one.attached == attached);
                if !asked || known {
                    continue;
                }
                match Kept::take(context, attached.clone()) {
                    Ok(one) => kept.push(one),
                    // A trial, say: told once, and asked again.
                    Err(failure) if !refused.contains(&attached) => {
                        context.note(failure)?;
                        refused.push(attached);
                    }
                    Err(_) => {}
                }
            }
            kept = tick_all(context, kept)?;
            if kept.is_empty() && !self.paths.is_empty() {
                return Err(Failure::Coded(
                    Code::TrialEnded,
                    "guard: LUC is no longer on for any of the file systems named".into(),
                ));
            }
            let next = kept.iter().map(|one| one.due).min();
            let next = next.unwrap_or(Duration::MAX).min(now() + LOOK);
            wait(next.saturating_sub(now()), &context.stop);
        }
        for mut one in kept {
            one.stop(context);
        }
        Ok(())
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

/// Does what is due everywhere; gives back those that LUC is still on for.
fn tick_all(context: &mut Context, kept: Vec<Kept>) -> Result<Vec<Kept>, Failure> {
    let mut still = Vec::new();
    for mut one in kept {
        if one.due > now() {
            still.push(one);
            continue;
        }
        if let Ok(events) = one.tick(context) {
            for event in events {
                one.tell(context, &told(&event))?;
            }
            still.push(one);
        } else {
            one.claim.forget(context.system, notes::GUARD);
            let line = "LUC was switched off, or it was unmounted; no longer guarded";
            one.tell(context, line)?;
        }
    }
    Ok(still)
}

impl Kept {
    fn take(context: &mut Context, attached: Attached) -> Result<Self, Failure> {
        let system = context.system;
        let claim = Claim::take(system, &attached, "guard")?;
        let (meter, lacks) = Meter::new("guard", &attached, system)?;
        let noted = notes::read(system, &attached.name, notes::GUARD);
        let noted = noted.filter(|noted| noted.device == attached.device.to_string());
        let saved = noted.and_then(|noted| match noted.of {
            Of::Guard(saved) => Some(*saved),
            Of::Try(_) => None,
        });
        let resumed = saved.is_some();
        let mut subject = OnHost {
            system,
            attached: &attached,
            meter: &meter,
        };
        let keeper = Keeper::new(&mut subject, Lengths::default(), seed(), now(), saved);
        let keeper = keeper.map_err(|_| HostError::NotOn {
            path: attached.name.replace('!', "/"),
        })?;
        let mut kept = Self {
            attached,
            claim,
            meter,
            keeper,
            due: now(),
        };
        let begun = if kept.keeper.is_left_alone() {
            "its mode was set by hand: left alone until LUC is switched on anew"
        } else if resumed {
            "guarded again, from where it was"
        } else {
            "guarded"
        };
        let blind = match lacks.first() {
            Some(lack) => format!("; by throughput alone: {lack}"),
            None => String::new(),
        };
        kept.tell(context, &format!("{begun}{blind}"))?;
        // So that it is seen from the beginning. Where it cannot be written the first pair tells.
        let _ = kept
            .claim
            .note(system, Of::Guard(Box::new(kept.keeper.saved())));
        Ok(kept)
    }

    fn tick(&mut self, context: &Context) -> Result<Vec<Event>, Why> {
        let mut subject = OnHost {
            system: context.system,
            attached: &self.attached,
            meter: &self.meter,
        };
        let claim = &self.claim;
        let mut save =
            |saved: &Saved| claim.note(context.system, Of::Guard(Box::new(saved.clone())));
        let (wait, events) = self.keeper.tick(&mut subject, now(), &mut save)?;
        self.due = now() + wait;
        Ok(events)
    }

    fn stop(&mut self, context: &Context) {
        let mut subject = OnHost {
            system: context.system,
            attached: &self.attached,
            meter: &self.meter,
        };
        let claim = &self.claim;
        let mut save =
            |saved: &Saved| claim.note(context.system, Of::Guard(Box::new(saved.clone())));
        self.keeper.stop(&mut subject, now(), &mut save);
    }

    /// A line of the log.
    fn tell(&mut self, context: &mut Context, line: &str) -> Result<(), Failure> {
        let name = self.attached.name.replace('!', "/");
        let points = journal::journals(context.system)?
            .into_iter()
            .find(|journal| journal.device == self.attached.device)
            .map(|journal| super::join_paths(&journal.mount_points));
        let place = match points {
            Some(points) if !points.is_empty() => format!("{points} ({name})"),
            _ => name,
        };
        writeln!(context.out, "{place}: {line}")?;
        context.out.flush()?;
        Ok(())
    }
}

fn told(event: &Event) -> String {
    match event {
        Event::Changed(change) => told_change(*change),
        Event::LeftAlone => {
            "the mode was set by hand: left alone until LUC is switched on anew".into()
        }
        Event::SetByHand => "a knob was set by hand: the trial begins anew".into(),
        Event::GivenUp(why) => format!("a pair was given up: {why}"),
        Event::CannotSave(why) => {
            format!(
                "{why}; LUC goes on and is not tried, as it could not be put back after a crash"
            )
        }
        Event::CanSave => "notes can be written again; the trial goes on".into(),
    }
}

fn told_change(change: Change) -> String {
    let aside = |time: Duration| units::duration(i128::try_from(time.as_nanos()).unwrap_or(0));
    match change {
        Change::Certified { pairs, ratio } => format!(
            "certified: at least 0.99 of stock, 99% sure, {pairs} pairs; {ratio:.2} of stock in them"
        ),
        Change::Refuted {
            pairs,
            ratio,
            aside: time,
        } => format!(
            "refuted: less than 0.99 of stock, 99% sure, {pairs} pairs; {ratio:.2} of stock in them; \
             LUC stands aside for {}",
            aside(time)
        ),
        Change::Undecided { pairs, aside: time } => format!(
            "{pairs} pairs decided nothing; LUC stands aside for {}",
            aside(time)
        ),
        Change::OtherLoad => "another load: no longer certified, and tried anew".into(),
    }
}
