//! `luc try`

mod text;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_control::{Knob, policy};
use luc_guard::{Side, Why};
use luc_host::health::HealthCheck;
use luc_host::journal::Journal;
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, kernel, steerable};
use luc_power::meter::{Boundary, Energy, Meter};
use serde::Serialize;

use luc_cli::{Code, Context, Failure, Interrupt, Verb};
use luc_watch::time::now;
use luc_watch::trial::recovery::{RestoreOnDrop, put_back_at_once, take_turn};
use luc_watch::trial::{
    Ended, Half, HostSubject, Ratio, Shown, Tally, compare_pair, seed, sentence,
};

/// Compare LUC with stock on the live load
///
/// Runs pairs of short windows in random order, each after a burn-in: LUC steers in one window and
/// only observes in the other. At its end or on Ctrl-C, the trial restores LUC's earlier state;
/// after `kill -9`, the next `luc` command restores it. A manual change ends the trial and stays.
/// The energy of both is that of the processors' counters, or of a battery.
/// docs/guard.md explains the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc try /srv/data\n\
    \x20 luc try /srv/data --minutes 30 --policy batching\n\
    \x20 luc try /srv/data --json")]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    path: PathBuf,
    /// Length of the trial in minutes, 0.05 to 1440
    #[arg(long, value_name = "MINUTES", default_value = "5", value_parser = minutes)]
    minutes: Duration,
    /// Policy to try [default: the one in use, or luc if LUC is off]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Print JSON at the end instead of a line for each pair
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
    /// Parts of the machine whose energy was measured.
    energy_of: Option<Boundary>,
    energy_unknown: Option<String>,
    /// `certified` or `refuted`; `None` if the pairs decide nothing.
    verdict: Option<luc_guard::TrialVerdict>,
    verdict_pairs: Option<u64>,
    /// The same about the 99th percentile of a sync; `None` also if times were not seen.
    p99_verdict: Option<luc_guard::TrialVerdict>,
    sentence: String,
    /// Why the trial ended early.
    ended: Option<String>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let settings = self.settings()?;
        let system = context.system;
        let shown = self.path.display().to_string();
        let journal = steerable::at(system, &self.path)?;
        if !kernel::capable(system, kernel::Capability::SysAdmin) {
            return Err(sysfs::denied(&format!("try LUC on {shown}")).into());
        }
        super::recover(context)?;
        let attached = Attached {
            name: journal.name.clone(),
            device: journal.device,
        };
        sysfs::may_switch(system, &attached, &format!("try LUC on {shown}"))?;
        let claim = take_turn(system, &attached, &context.stop.clone(), || {
            context.note("a guard is comparing a pair; the trial begins after it")
        })?;
        let held = RestoreOnDrop::begin(system, claim, &attached, &settings)?;
        let policy = sysfs::policy(system, &attached).to_owned();
        let subject = HostSubject::new(system, attached.clone());
        let (subject, lacks) = subject.map_err(super::failed("try"))?;
        let meter = Meter::find(&system.path("/"), None).map_err(|error| error.to_string());
        let mut subject = subject.with_energy(meter.as_ref().ok());
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
            self.compare(context, &mut subject, &journal)?
        };
        if ended == Some(Ended::By(Why::ModeByHand)) {
            held.leave_mode();
        }
        held.put_back()?;
        let said = sentence(&tally);
        let energy_unknown = energy_unknown(&meter, &tally);
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
                energy_of: meter.as_ref().ok().map(Meter::boundary),
                energy_unknown,
                verdict: tally.found().map(|(verdict, _)| verdict),
                verdict_pairs: tally.found().map(|(_, pairs)| pairs),
                p99_verdict: tally.p99_verdict(),
                sentence: said,
                ended: ended.as_ref().map(Ended::told),
            };
            context.print_json(&report)?;
        } else {
            let of = meter.as_ref().ok().map(Meter::boundary);
            text::totals(context.out, &tally, of)?;
            if let Some(why) = energy_unknown {
                writeln!(context.out, "energy unknown: {why}")?;
            }
            writeln!(context.out, "{said}")?;
        }
        steerable::sound(system, &journal, &shown)?;
        close(&shown, &tally, ended)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}

/// Why the energy of a side is unknown; `None` if it is known, or if there was no window.
fn energy_unknown(meter: &Result<Meter, String>, tally: &Tally) -> Option<String> {
    let sides = [&tally.on, &tally.off].map(Half::energy);
    match meter {
        Err(why) => Some(why.clone()),
        Ok(_) => sides.into_iter().find_map(|energy| match energy {
            Some(Energy::Unknown { unknown }) => Some(unknown),
            _ => None,
        }),
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
            format!("try {shown}: too few sync calls to compare; try again under load"),
        )),
        None => Ok(()),
    }
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
        subject: &mut HostSubject,
        journal: &Journal,
    ) -> Result<(Tally, Option<Ended>), Failure> {
        let end = now() + self.minutes;
        let mut tally = Tally::default();
        let mut coin = fastrand::Rng::with_seed(seed());
        let health = HealthCheck::new(context.system);
        let fault = || health.fault(context.system, journal);
        while now() < end && fault().is_none() {
            let first = if coin.bool() { Side::On } else { Side::Off };
            match compare_pair(subject, first, end, &context.stop, &mut tally) {
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
