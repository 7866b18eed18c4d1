//! The choice of events to watch: arguments that the verbs share, and attaching the tracer.

use std::path::PathBuf;

use clap::ValueHint;
use luc_bpf::{Detail, Settings, Tracer, TracerError};
use luc_host::{journal, watching};

use crate::cmd::means::ByMeans;
use luc_cli::{Context, Failure};

/// Options that choose what to watch, and how.
#[derive(Debug, Default, clap::Args)]
pub struct Watch {
    /// Watch the file system of this path or block device; may be repeated [default: all ext4 file
    /// systems]
    #[arg(long = "on", value_name = "PATH|DEVICE", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Watch only operations of this process, and all commits; may be repeated
    #[arg(long = "pid", value_name = "PID")]
    pub processes: Vec<u32>,
    /// Watch only operations of tasks in this control group or below it; may be repeated
    #[arg(long = "cgroup", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cgroups: Vec<PathBuf>,
    #[command(flatten)]
    pub by: ByMeans,
}

/// Attaches the tracer to what was asked for, and notes what it cannot see. The inner error is the
/// tracer's: the caller may have another source.
pub fn attach(
    watch: &Watch,
    detail: Detail,
    ring_kib: u32,
    context: &mut Context,
) -> Result<Result<Tracer, TracerError>, Failure> {
    let devs = journal::devs(&watch.paths, context.system)?;
    let mut settings = Settings::new(devs, detail);
    settings.processes.clone_from(&watch.processes);
    settings.cgroups.clone_from(&watch.cgroups);
    settings.ring_kib = ring_kib;
    settings.means = watch.by.chosen().map_or(settings.means, |one| vec![one]);
    let tracer = watching::attach(&settings, context.system);
    for note in tracer.iter().flat_map(|tracer| tracer.attached().notes()) {
        context.note(note)?;
    }
    Ok(tracer)
}
