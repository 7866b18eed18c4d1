//! `luc trace record`

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use luc_bpf::Detail;
use luc_host::{journal, kernel, process, sysfs};
use luc_trace::{Header, Sight};

use super::during::{during, hand_on};
use super::failed;
use super::module_events::ModuleEvents;
use super::spans::Spans;
use super::tape::{BUFFER_KIB_MAX, Tape};
use super::watch::{Watch, attach};
use crate::tracer::{PAUSE, untraceable};
use luc_cli::Context;
use luc_cli::exit::Failure;
use luc_cli::verb::{Interrupt, Verb};

/// Where a recording comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Origin {
    /// Both, as far as available
    Both,
    /// BPF programs: operations, commits, waits
    Tracer,
    /// The module's tracepoints: decisions
    Module,
}

/// Write operations, commits, waits and LUC's decisions to a file
///
/// Watches opens, writes, syncs and closes on ext4 file systems, their journal commits, and waits
/// for those, with BPF: neither LUC's module nor a change of any program is needed. If the module
/// is loaded, the recording has its decisions, too. Ends with the command, after the given time, or
/// with Ctrl-C. The file and the summary here count what the kernel had to drop.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace record -o run.luc -- make check\n\
    \x20 luc trace record -o run.luc --on /srv/data --seconds 60")]
pub struct Args {
    /// File to write the recording to
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    watch: Watch,
    /// Time to record
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Buffers between kernel and program, KiB: that of spans, and that of each CPU's tracepoints;
    /// larger ones lose less
    #[arg(long, value_name = "KIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(16..=i64::from(BUFFER_KIB_MAX)))]
    buffer_kib: u32,
    /// What to record
    #[arg(long, value_enum, default_value = "both")]
    from: Origin,
    /// Record while this command runs; its exit status becomes luc's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut sources = Sources::new(self, context)?;
        let shown = self.output.display().to_string();
        let file = File::create(&self.output).map_err(|error| failed(&shown, &error))?;
        let header = header(&sources, context);
        let mut tape = Tape::new(file, &header).map_err(|error| failed(&shown, &error))?;
        let limit = self.seconds.map(Duration::from_secs);
        let system = context.system;
        let status = during(&self.command, limit, PAUSE, context, || {
            sources.drain(&mut tape)?;
            tape.files(system)
        })?;
        sources
            .finish(&mut tape)
            .and_then(|()| tape.files(system))
            .and_then(|()| tape.cgroups(&process::cgroups(context.system)))
            .map_err(|error| failed(&shown, &error))?;
        let summary = tape.finish().map_err(|error| failed(&shown, &error))?;
        summary.tell(context, &self.output, self.buffer_kib)?;
        hand_on(&self.command, status)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::beside(&self.command)
    }
}

fn header(sources: &Sources, context: &Context) -> Header {
    let system = context.system;
    // Both kinds of time stamps are of the monotonic clock, which starts anew at each boot.
    let mut header = Header::default()
        .with("luc", env!("CARGO_PKG_VERSION"))
        .with("clock", "monotonic");
    if let Ok(boot) = system.read("/proc/sys/kernel/random/boot_id") {
        header = header.with("boot", boot.trim());
    }
    if let Ok(release) = kernel::release(system) {
        header = header.with("kernel", &release);
    }
    if let Ok(stat) = system.read("/proc/stat") {
        header = header.with("cpus", &cpus(&stat).to_string());
    }
    if let Some(version) = sysfs::version(system) {
        header = header.with("module", &version);
    }
    let journals = journal::journals(system).unwrap_or_default();
    for journal in &journals {
        if let Some(point) = journal.mount_points.first() {
            header = header.with_mount_point(journal.device, &point.to_string_lossy());
        }
    }
    if let Some(spans) = &sources.spans {
        let unseen = Sight::words(&spans.unseen());
        header = header
            .with("tracer", &spans.means())
            .with(Header::UNSEEN, &unseen);
        if let Some(why) = spans.unseen_why() {
            header = header.with(Header::UNSEEN_WHY, &why);
        }
    }
    header
}

/// Counts the online processors: each has a line of its own, after that of all together.
fn cpus(stat: &str) -> usize {
    let of_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    stat.lines().filter(of_one).count()
}

struct Sources {
    spans: Option<Spans>,
    events: Option<ModuleEvents>,
}

impl Sources {
    /// Opens those of the requested sources that are available; fails if none is.
    fn new(args: &Args, context: &mut Context) -> Result<Self, Failure> {
        let obstacle = ModuleEvents::obstacle(context.system);
        let events = match (args.from, obstacle) {
            (Origin::Module, Some(failure)) => return Err(failure),
            (Origin::Tracer, _) | (Origin::Both, Some(_)) => None,
            (Origin::Both | Origin::Module, None) => {
                Some(ModuleEvents::new(context.system, args.buffer_kib)?)
            }
        };
        if args.from == Origin::Module {
            return Ok(Self {
                spans: None,
                events,
            });
        }
        let spans = match attach(&args.watch, Detail::Spans, args.buffer_kib, context)? {
            Ok(tracer) => Some(Spans::new(tracer, args.watch.by)),
            Err(error) if events.is_some() && args.from == Origin::Both => {
                context.note(format_args!(
                    "only the module's events are recorded: {error}"
                ))?;
                None
            }
            Err(error) => {
                return Err(untraceable("trace record", error, context.system));
            }
        };
        Ok(Self { spans, events })
    }

    fn drain(&mut self, tape: &mut Tape) -> std::io::Result<()> {
        if let Some(spans) = &mut self.spans {
            spans.drain(tape)?;
        }
        if let Some(events) = &mut self.events {
            events.drain(tape)?;
        }
        tape.flush()
    }

    fn finish(self, tape: &mut Tape) -> std::io::Result<()> {
        if let Some(spans) = self.spans {
            spans.finish(tape)?;
        }
        if let Some(events) = self.events {
            events.finish(tape)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn processors_are_counted() {
        let stat = "cpu  3 0 4\ncpu0 1 0 2\ncpu11 2 0 2\nintr 9\nctxt 5\n";
        assert_eq!(super::cpus(stat), 2);
        assert_eq!(super::cpus(""), 0);
    }
}
