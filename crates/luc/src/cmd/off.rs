//! `luc off`

use std::path::PathBuf;

use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, journal, module};

use luc_cli::units;
use luc_cli::{Context, Failure, Interrupt, Verb};

/// Switch LUC off, so that the file system runs as on a stock kernel
///
/// Takes effect at once, under any load. Unmounting a file system also switches LUC off for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc off /srv/data\n\
    \x20 luc off --all\n\
    \x20 luc off --unload")]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(value_name = "PATH|DEVICE", value_hint = clap::ValueHint::AnyPath, conflicts_with = "all")]
    path: Option<PathBuf>,
    /// Switch LUC off for every file system
    #[arg(long)]
    all: bool,
    /// Remove the kernel module afterwards
    #[arg(long)]
    unload: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.path.is_none() && !self.all && !self.unload {
            let why = "name a path or a device, or use --all or --unload";
            return Err(Failure::usage("off", why));
        }
        super::recover(context)?;
        let system = context.system;
        let attached = sysfs::attached(system)?;
        let chosen = match &self.path {
            Some(path) => vec![super::attached_at(system, path, &attached)?],
            None if self.all => attached.clone(),
            None => Vec::new(),
        };
        if self.unload {
            let others: Vec<_> = attached
                .iter()
                .filter(|one| !chosen.contains(one))
                .map(|one| one.name.as_str())
                .collect();
            if !others.is_empty() {
                return Err(HostError::Busy {
                    what: "kernel module luc".into(),
                    why: format!("LUC is still on for {}", others.join(", ")),
                    fix: "use `luc off --all --unload`".into(),
                }
                .into());
            }
        }
        for attached in &chosen {
            match off(context, attached, self.path.as_ref()) {
                // Unmounted meanwhile: LUC is off for it.
                Err(Failure::Host(HostError::NotOn { .. })) if self.all => {}
                outcome => outcome?,
            }
        }
        if self.all && chosen.is_empty() {
            writeln!(context.out, "LUC is on for no file system")?;
        }
        if self.unload {
            let was = sysfs::loaded(system);
            module::unload(system)?;
            if was {
                writeln!(context.out, "module luc removed")?;
            } else {
                writeln!(context.out, "module luc is not loaded")?;
            }
        }
        Ok(())
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

fn off(context: &mut Context, attached: &Attached, path: Option<&PathBuf>) -> Result<(), Failure> {
    let system = context.system;
    let device = attached.name.replace('!', "/");
    let place = journal::journals(system)?
        .into_iter()
        .find(|journal| journal.device == attached.device)
        .filter(|journal| !journal.mount_points.is_empty())
        .map_or_else(
            || device.clone(),
            |journal| units::paths(&journal.mount_points),
        );
    // Detaching removes the counters.
    let count = |name: &str| {
        let counter = luc_control::counter(name)?;
        sysfs::counter_value(system, attached, counter)
    };
    let (commits, held) = (count("commits"), count("commits_held"));
    let shown = path.map_or_else(|| place.clone(), |path| path.display().to_string());
    sysfs::detach(system, &shown, attached.device)?;
    write!(context.out, "off: {place} ({device})")?;
    if let (Some(commits), Some(held)) = (commits, held) {
        write!(
            context.out,
            ": of {}, LUC held {}",
            units::counted(commits, "commit", "commits"),
            units::count(held)
        )?;
    }
    writeln!(context.out)?;
    Ok(())
}
