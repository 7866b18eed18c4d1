//! `luc try`

mod tally;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_control::{Knob, policy};
use luc_guard::{Course, Lengths, Side, Step, Why};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, journal, kernel, module};
use serde::Serialize;

use crate::trying::before::{self, Held};
use crate::trying::meter::Sums;
use crate::trying::notes::{Before, Claim, To};
use crate::trying::subject::{MODE, OnHost};
use crate::trying::{now, seed, wait};
use luc_cli::Context;
use luc_cli::exit::{Code, Failure};
use luc_cli::verb::{Interrupt, Verb};
use tally::{Ratio, Shown, Tally};

/// Compare LUC with stock on the live load
///
/// Runs pairs of short windows, LUC steering in one and only observing in the other, in random
/// order, each after a burn-in. Then LUC's state is restored: off, or its mode and policy. Ctrl-C
/// restores it, too; after `kill -9`, the next `luc` command does. A change by hand ends the trial
/// and stays. docs/guard.md tells how to read the answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc try /srv/data\n\
    \x20 luc try /srv/data --minutes 30 --policy batching\n\
    \x20 luc try /srv/data --json")]
pub struct Args {
    /// A path on the file system, or its block device
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    path: PathBuf,
    /// Length of the trial, 0.05 to 1440
    #[arg(long, value_name = "MINUTES", default_value = "5", value_parser = minutes)]
    minutes: Duration,
    /// Policy to try [default: the one in use, or luc if LUC is off]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Print JSON at the end, and no line for each pair
    #[arg(long)]
    json: bool,
}

fn minutes(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(minutes) if (0.05..=1440.0).contains(&minutes) => {
            Ok(Duration::from_secs_f64(minutes * 60.0))
        }
        _ => Err("expected minutes from 0.05 to 1440".into()),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    device: String,
    mount_points: &'a [PathBuf],
    policy: String,
    luc: Shown,
    stock: Shown,
    /// The measure that counts for this load: `rate` or `latency`.
    measure: luc_guard::Measure,
    ratio: Option<Ratio>,
    rate_ratio: Option<Ratio>,
    /// Ratio of speeds, so that above 1 is better here, too; `None` if latencies were not seen.
    latency_ratio: Option<Ratio>,
    idle_pairs: u64,
    /// `certified` or `refuted`; `None` if the pairs decide nothing.
    verdict: Option<luc_guard::TrialVerdict>,
    verdict_pairs: Option<u64>,
    sentence: String,
    /// Why the trial ended early.
    ended: Option<String>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let settings = self.settings()?;
        let system = context.system;
        let shown = self.path.display().to_string();
        let journal = journal::steerable(system, &self.path)?;
        if !kernel::capable(system, kernel::Capability::SysAdmin) {
            return Err(sysfs::denied(&format!("try LUC on {shown}")).into());
        }
        before::recover(context)?;
        let attached = Attached {
            name: journal.name.clone(),
            device: journal.device,
        };
        let claim = take_turn(context, &attached)?;
        let held = begin(context, claim, &attached, &settings)?;
        let policy = sysfs::policy(system, &attached).to_owned();
        let (mut subject, lacks) = OnHost::new("try", system, attached.clone())?;
        for lack in lacks {
            context.note(lack)?;
        }
        if !self.json {
            text::heads(context.out)?;
            context.out.flush()?;
        }
        // Attaching the tracer takes a while: somebody may have set the mode meanwhile.
        let (tally, ended) = if held.mode_was_changed() {
            (Tally::default(), Some(Ended::By(Why::ModeByHand)))
        } else {
            self.compare(context, &mut subject)?
        };
        if ended == Some(Ended::By(Why::ModeByHand)) {
            held.leave_mode();
        }
        held.put_back()?;
        let said = tally::sentence(&tally);
        if self.json {
            let report = Report {
                schema: 1,
                device: attached.device.to_string(),
                mount_points: &journal.mount_points,
                policy,
                luc: tally.on.shown(),
                stock: tally.off.shown(),
                measure: tally.measure(),
                ratio: tally.ratio(),
                rate_ratio: tally.ratio_of(luc_guard::Measure::Rate),
                latency_ratio: tally.ratio_of(luc_guard::Measure::Latency),
                idle_pairs: tally.idle_pairs,
                verdict: tally.found().map(|(verdict, _)| verdict),
                verdict_pairs: tally.found().map(|(_, pairs)| pairs),
                sentence: said,
                ended: ended.as_ref().map(Ended::told),
            };
            context.print_json(&report)?;
        } else {
            text::totals(context.out, &tally)?;
            writeln!(context.out, "{said}")?;
        }
        close(&shown, &tally, ended)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(before::put_back_at_once)
    }
}

/// What ended the trial early.
#[derive(Clone, Debug, PartialEq)]
enum Ended {
    Interrupted,
    By(Why),
}

impl Ended {
    fn told(&self) -> String {
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

/// The exit code. A trial that ended early may have an answer.
fn close(shown: &str, tally: &Tally, ended: Option<Ended>) -> Result<(), Failure> {
    match ended {
        Some(Ended::Interrupted) => Err(Failure::interrupted(format!(
            "LUC is restored to its earlier state on {shown}"
        ))),
        Some(ended) => Err(Failure::Coded(
            Code::TrialEnded,
            format!("try {shown}: {}", ended.told()),
        )),
        None if tally.ratio().is_none() => Err(Failure::Coded(
            Code::NothingToTry,
            format!("try {shown}: too few sync calls to compare; try it while its load runs"),
        )),
        None => Ok(()),
    }
}

/// Saves LUC's state, then switches LUC on and sets the policy, if necessary.
fn begin<'a>(
    context: &Context<'a>,
    claim: Claim,
    attached: &Attached,
    settings: &[(&'static Knob, i64)],
) -> Result<Held<'a>, Failure> {
    let system = context.system;
    let on = sysfs::attached(system)?.contains(attached);
    let word = |name: &str| sysfs::knob_word(system, attached, name);
    let mut knobs = BTreeMap::new();
    for (knob, value) in settings.iter().filter(|_| on) {
        let was = sysfs::knob_value(system, attached, knob)?;
        let change = (knob.format(was), knob.format(*value));
        knobs.insert(knob.name.to_owned(), change);
    }
    let before = Before {
        on,
        loaded: sysfs::loaded(system),
        knobs,
        mode: if on { word(MODE) } else { Some("steer".into()) },
    };
    let held = Held::new(system, claim, attached, before)?;
    module::ensure_loaded(system, None)?;
    if on {
        for (knob, value) in settings {
            sysfs::set_knob(system, &attached.name, attached, knob, *value)?;
        }
    } else {
        let name = attached.name.replace('!', "/");
        sysfs::attach(system, &name, attached.device, settings)?;
    }
    Ok(held)
}

impl Args {
    /// The knobs of the policy asked for, checked before anything is changed.
    fn settings(&self) -> Result<Vec<(&'static Knob, i64)>, Failure> {
        let Some(name) = &self.policy else {
            return Ok(Vec::new());
        };
        let policy = policy(name).map_err(|error| HostError::KnobRefused {
            why: error.to_string(),
            kept: "nothing was changed",
        })?;
        Ok(policy.settings.clone())
    }

    /// Runs pairs until the time is over or something ends the trial.
    fn compare(
        &self,
        context: &mut Context,
        subject: &mut OnHost,
    ) -> Result<(Tally, Option<Ended>), Failure> {
        let end = now() + self.minutes;
        let mut tally = Tally::default();
        let mut coin = fastrand::Rng::with_seed(seed());
        while now() < end {
            let first = if coin.bool() { Side::On } else { Side::Off };
            match lead(context, subject, first, end, &mut tally) {
                Ok(true) if !self.json => {
                    text::row(context.out, &tally)?;
                    context.out.flush()?;
                }
                Ok(_) => {}
                Err(ended) => return Ok((tally, Some(ended))),
            }
        }
        Ok((tally, None))
    }
}

/// Runs one pair. Returns false if the time was over before its end.
fn lead(
    context: &Context,
    subject: &mut OnHost,
    first: Side,
    end: Duration,
    tally: &mut Tally,
) -> Result<bool, Ended> {
    let mut course = Course::begin(subject, Lengths::default(), first).map_err(Ended::By)?;
    let mut begin: Option<Sums> = None;
    let mut first_half: Option<(Side, u64, Sums, Sums)> = None;
    loop {
        if context.stopped() {
            return Err(Ended::Interrupted);
        }
        let step = course.step(subject, now()).map_err(Ended::By)?;
        match step {
            Step::Wait(_) if now() >= end => return Ok(false),
            Step::Wait(time) => wait(time, &context.stop),
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

fn sums(subject: &OnHost) -> Result<Sums, Ended> {
    subject.sums().ok_or(Ended::By(Why::Gone))
}

/// Claims the file system, once a guard has ended its pair.
fn take_turn(context: &mut Context, attached: &Attached) -> Result<Claim, Failure> {
    let system = context.system;
    let end = now() + Lengths::default().pair_max();
    let mut told = false;
    loop {
        let is_guarded = || Claim::take(system, attached, "try", To::Guard).is_err();
        match Claim::take(system, attached, "try", To::Switch) {
            Err(Failure::Host(HostError::Busy { .. }))
                if now() < end && !context.stopped() && is_guarded() =>
            {
                if !told {
                    context.note("a guard is comparing a pair; the trial begins after it")?;
                    told = true;
                }
                wait(Duration::from_millis(200), &context.stop);
            }
            taken => return taken,
        }
    }
}
