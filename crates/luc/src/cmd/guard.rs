//! `luc guard`

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_host::{HostError, kernel, module, sysfs};

use luc_cli::{Code, Context, Failure, Interrupt, Verb};
use luc_watch::WatchError;
use luc_watch::time::wait;
use luc_watch::trial::GuardedFileSystems;

/// Keep LUC on unless it proves harmful
///
/// Compares LUC with stock on each file system that LUC is on for, in a small share of the time,
/// until it is interrupted. LUC stands aside where, with 99% confidence, it reaches less than 0.99
/// of stock, or its 99th percentile of a sync is over 1.2 times stock's; the guard tries it again
/// after ever longer pauses. `luc status` and `luc exporter` show the verdicts. If you set the mode
/// by hand, the guard leaves it alone until LUC is switched on again. docs/guard.md explains what
/// the guard promises and what trying costs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc guard\n\
    \x20 luc guard /srv/data /srv/mail")]
pub struct Args {
    /// Paths on the file systems, or their block devices, as in /dev/vdb, vdb or 254:16 [default:
    /// every file system that LUC is on for, now or later]
    #[arg(value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
}

const NOTHING_YET: &str = "LUC is on for no file system; waiting until it is (`luc on PATH`)";
/// How often the guard looks for file systems that LUC was switched on for.
const LOOK: Duration = Duration::from_secs(5);

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        if !kernel::capable(system, kernel::Capability::SysAdmin) {
            return Err(sysfs::denied("guard file systems").into());
        }
        module::can_run(system)?;
        super::recover(context)?;
        let mut chosen = Vec::new();
        let all = sysfs::attached(system)?;
        for path in &self.paths {
            chosen.push(super::attached_at(system, path, &all)?);
        }
        let mut guarded = GuardedFileSystems::new(system, "guard");
        for attached in if self.paths.is_empty() {
            all
        } else {
            chosen.clone()
        } {
            match guarded.take(attached) {
                // The guard of all file systems waits until it takes writes again.
                Err(WatchError::Host(HostError::Unsound { .. })) if self.paths.is_empty() => {}
                line => say(context, &[line.map_err(super::failed("guard"))?])?,
            }
        }
        if guarded.is_empty() {
            say(context, &[NOTHING_YET.into()])?;
        }
        while !context.stopped() {
            let mut wanted = sysfs::attached(system).unwrap_or_default();
            wanted.retain(|one| self.paths.is_empty() || chosen.contains(one));
            let ticked = guarded.tick();
            say(context, &ticked)?;
            let are_off = wanted.is_empty();
            let kept = guarded.keep(wanted);
            say(context, &kept)?;
            if are_off && !self.paths.is_empty() {
                return Err(Failure::Coded(
                    Code::TrialEnded,
                    "guard: LUC is no longer on for any of the file systems named".into(),
                ));
            }
            wait(guarded.wait().min(LOOK), &context.stop);
        }
        guarded.stop();
        Ok(())
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

fn say(context: &mut Context, lines: &[String]) -> Result<(), Failure> {
    for line in lines {
        writeln!(context.out, "{line}")?;
    }
    context.out.flush()?;
    Ok(())
}
