//! `luc trace`

mod count;
mod during;
mod export;
mod model;
pub(crate) mod module_events;
mod rank;
pub mod read;
mod record;
mod slow;
mod spans;
mod summary;
mod tape;
mod watch;

use luc_host::{plain, sysfs};

use crate::Context;
use crate::exit::Failure;

/// Record what file systems, their journals and LUC do
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Write operations, commits, waits and LUC's decisions to a file
    ///
    /// Watches opens, writes, syncs and closes on ext4 file systems, their journal commits, and who
    /// waits for those, with BPF: neither LUC's module nor a change of any program is needed. Where the
    /// module is loaded, its decisions are in the recording too. Ends with the command, after the
    /// given time, or with Ctrl-C. What the kernel had to drop is counted in the file and here.
    #[command(after_help = "Examples:\n\
        \x20 luc trace record -o run.luc -- make check\n\
        \x20 luc trace record -o run.luc --on /srv/data --seconds 60")]
    Record(record::Args),
    /// Count syncs, commits and waits, and print sums and quantiles
    ///
    /// The kernel's side adds them up, so that it costs little enough to be left on. Ends as `record` does.
    #[command(after_help = "Examples:\n\
        \x20 luc trace count --seconds 10\n\
        \x20 luc trace count --on /srv/data --json -- tar xf linux.tar")]
    Count(count::Args),
    /// Say what a recording shows: operations, commits, and who waited for what
    #[command(after_help = "Examples:\n\
        \x20 luc trace summary run.luc\n\
        \x20 luc trace summary --last-s 10 --json run.luc")]
    Summary(summary::Args),
    /// Set the analytical model beside a recording, and say what other rules would give
    ///
    /// Fsync times, file creation rate and write delays as the model has them and as they were
    /// measured; then the same threads again under other rules: commits held for whoever is about to come, no
    /// write blocked, a fixed delay, LUC. How far to believe that shows in the first of them, which
    /// repeats what was recorded.
    #[command(after_help = "Examples:\n\
        \x20 luc trace model run.luc\n\
        \x20 luc trace model --delay-us 500 run.luc")]
    Model(model::Args),
    /// Compare recordings: which of the measured quantities go with throughput
    ///
    /// Each recording is one run of a workload, with something varied between them: threads, processor
    /// speed, disk, LUC off and on. At least three are needed, ten or more say something.
    #[command(after_help = "Examples:\n\
        \x20 luc trace rank a.luc b.luc c.luc\n\
        \x20 luc trace rank --device 8:1 --json a.luc b.luc c.luc")]
    Rank(rank::Args),
    /// Turn a recording into another program's format
    #[command(after_help = "Examples:\n\
        \x20 luc trace export --format perfetto -o run.json run.luc\n\
        \x20 luc trace export --format csv run.luc")]
    Export(export::Args),
}

impl Verb {
    /// True if it ends with a command that it runs.
    pub fn runs_a_command(&self) -> bool {
        match self {
            Verb::Record(args) => args.runs_a_command(),
            Verb::Count(args) => args.runs_a_command(),
            _ => false,
        }
    }
}

/// Runs the verb.
pub fn run(verb: &Verb, context: &mut Context) -> Result<(), Failure> {
    match verb {
        Verb::Record(args) => record::run(args, context),
        Verb::Count(args) => count::run(args, context),
        Verb::Summary(args) => summary::run(args, context),
        Verb::Model(args) => model::run(args, context),
        Verb::Rank(args) => rank::run(args, context),
        Verb::Export(args) => export::run(args, context),
    }
}

/// What the system refused while a trace was made.
fn failed(what: impl Into<String>, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return sysfs::denied("record a trace").into();
    }
    Failure::Trace {
        what: what.into(),
        why: plain(error),
    }
}
