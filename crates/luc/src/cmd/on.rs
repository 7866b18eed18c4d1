//! `luc on`

use std::path::PathBuf;

use clap::ValueHint;
use luc_control::{Knob, POLICY, knob, policy};
use luc_host::cgroup::{GroupError, format_knob, parse_knob};
use luc_host::journal::Journal;
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System, kernel, module, stack, steerable};

use super::status;
use luc_cli::help;
use luc_cli::units;
use luc_cli::{Context, Failure, Interrupt, Verb};

/// Switch LUC on for a file system
///
/// Loads the kernel module if necessary. Needs no configuration: LUC starts with policy luc,
/// steers, and finds its set point by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc on /srv/data\n\
    \x20 luc on --observe /srv/data\n\
    \x20 luc on --dry-run /srv/data\n\
    \x20 luc on --policy batching --set delay_limit_us=5000 /srv/data")]
#[command(after_long_help = help::knob_table())]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    path: PathBuf,
    /// Policy to use, listed below [default: luc]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Only measure; change nothing
    #[arg(long)]
    observe: bool,
    /// Set a knob from the start; may be repeated
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    settings: Vec<String>,
    /// Load this luc.ko instead of the installed one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    module: Option<PathBuf>,
    /// Check the preconditions, print what `luc on` would do, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    /// The knobs asked for, checked before anything is changed.
    fn knobs(&self, system: &dyn System) -> Result<Vec<(&'static Knob, i64)>, Failure> {
        let mut asked: Vec<(&str, &str)> = Vec::new();
        if let Some(policy) = &self.policy {
            asked.push((POLICY, policy));
        }
        if self.observe {
            asked.push(("mode", "observe"));
        }
        for setting in &self.settings {
            let pair = setting.split_once('=').ok_or_else(|| {
                Failure::usage("on", format!("--set '{setting}' is not KNOB=VALUE"))
            })?;
            asked.push(pair);
        }
        let mut knobs: Vec<(&Knob, i64)> = Vec::new();
        for (name, value) in asked {
            let settings = parse(system, name, value).map_err(|error| HostError::KnobRefused {
                why: error.to_string(),
                kept: "nothing was switched on",
            })?;
            for (knob, value) in settings {
                // The last value of a knob counts, as with any option.
                knobs.retain(|(earlier, _)| earlier.name != knob.name);
                knobs.push((knob, value));
            }
        }
        Ok(knobs)
    }
}

impl Args {
    /// Prints what would be done.
    fn would(
        &self,
        settings: &[(&Knob, i64)],
        journal: &Journal,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let system = context.system;
        let all = sysfs::attached(system)?;
        if all.iter().any(|one| one.device == journal.device) {
            let path = self.path.display().to_string();
            return Err(HostError::AlreadyOn { path }.into());
        }
        if let Some(file) = module::to_load(system, self.module.as_deref())? {
            writeln!(context.out, "would load {}", file.display())?;
        }
        let knobs = settings.iter();
        let knobs = knobs
            .map(|(knob, value)| format!("{}={}", knob.name, format_knob(system, knob, *value)));
        let mut with = knobs.collect::<Vec<_>>().join(" ");
        if with.is_empty() {
            with = "default knobs".into();
        }
        let remarks = remarks(context, journal)?;
        writeln!(
            context.out,
            "would switch on: {}, with {with}{remarks}",
            named(journal)
        )?;
        Ok(())
    }
}

/// Names a file system for people.
fn named(journal: &Journal) -> String {
    let (points, name) = (
        units::paths(&journal.mount_points),
        journal.name.replace('!', "/"),
    );
    format!("{points} ({name}, {})", journal.kind)
}

/// Parses a knob and its value, or returns the knobs that a policy stands for.
fn parse(
    system: &dyn System,
    name: &str,
    value: &str,
) -> Result<Vec<(&'static Knob, i64)>, GroupError> {
    if name == POLICY {
        return Ok(policy(value)?.settings.clone());
    }
    let knob = knob(name)?;
    Ok(vec![(knob, parse_knob(system, knob, value)?)])
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let settings = self.knobs(system)?;
        let shown = self.path.display().to_string();
        let journal = steerable::at(system, &self.path)?;
        if !kernel::capable(system, kernel::Capability::SysAdmin) {
            return Err(sysfs::denied(&format!("switch LUC on for {shown}")).into());
        }
        if self.dry_run {
            return self.would(&settings, &journal, context);
        }
        super::recover(context)?;
        let fresh = module::ensure_loaded(system, self.module.as_deref())?;
        let attached = if context.stopped() {
            Err(Failure::interrupted(format!(
                "LUC was not switched on for {shown}"
            )))
        } else {
            // Only the module knows whether LUC is on already: it may be about to
            // release a file system that was just unmounted.
            sysfs::attach(system, &shown, journal.device, &settings).map_err(Failure::from)
        };
        let attached = attached.inspect_err(|_| {
            // Leave the machine as it was found. The user needs the reason for this
            // failure more than that of a failed clean-up.
            if fresh && sysfs::attached(system).is_ok_and(|others| others.is_empty()) {
                let _ = module::unload(system);
            }
        })?;
        let summary = summary(context, &attached)?;
        let remarks = remarks(context, &journal)?;
        writeln!(context.out, "on: {}: {summary}{remarks}", named(&journal))?;
        Ok(())
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

/// Tells what else limits LUC there or adds to the waits.
fn remarks(context: &Context, journal: &Journal) -> Result<String, Failure> {
    let all = sysfs::attached(context.system)?;
    let below = stack::attached_below(context.system, journal.device, &all)?;
    let barred = journal.holds_barred_by();
    let barred = barred.map(|why| format!("; no commit is held: {why}"));
    let stacked = status::stacked(&below).map(|waits| format!("; stacked {waits}"));
    Ok(barred.unwrap_or_default() + &stacked.unwrap_or_default())
}

/// Text like `policy luc, steering, set point automatic`.
fn summary(context: &Context, attached: &Attached) -> Result<String, Failure> {
    let value = |name: &str| -> Result<String, Failure> {
        let knob = knob(name).map_err(anyhow::Error::from)?;
        Ok(knob.format(sysfs::knob_value(context.system, attached, knob)?))
    };
    let mode = match value("mode")?.as_str() {
        "steer" => "steering".to_owned(),
        "observe" => "observing only".to_owned(),
        other => other.to_owned(),
    };
    let setpoint = match value("setpoint_events")?.as_str() {
        "0" => "automatic".to_owned(),
        events => format!("{events} sync events per commit"),
    };
    let without = sysfs::lacking(context.system)
        .map(|hooks| format!("; without {hooks}"))
        .unwrap_or_default();
    Ok(format!(
        "policy {}, {mode}, set point {setpoint}{without}",
        sysfs::policy(context.system, attached)
    ))
}
