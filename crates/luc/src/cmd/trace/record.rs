//! `luc trace record`

use std::fs::File;
use std::path::PathBuf;

use luc_bpf::Detail;
use luc_host::process;

use super::watch::{Watch, attach};
use super::{during, failed, hand_on};
use luc_cli::units::count;
use luc_cli::{Context, Failure, Interrupt, Verb};
use luc_watch::WatchError;
use luc_watch::recording::{BUFFER_KIB_MAX, ModuleEvents, PAUSE, RecordingWriter, Sources, header};

/// Where a recording comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Origin {
    /// Both, where available
    Both,
    /// BPF programs: operations, commits, waits
    Tracer,
    /// The module's tracepoints: decisions
    Module,
}

/// Record operations, commits, waits and LUC's decisions in a file
///
/// Traces with BPF: opens, writes, syncs and closes on ext4 file systems, their journal commits,
/// and waits for these commits. Needs neither LUC's module nor a change to any program. If the
/// module is loaded, also records its decisions. Ends when the command exits, after the given time,
/// or on Ctrl-C. The file and the printed summary say how many events the kernel dropped.
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
    /// Seconds to record, 1 to 86400
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Size of the kernel's buffers in KiB: one for spans, and one for each CPU's tracepoints;
    /// larger buffers lose fewer events
    #[arg(long, value_name = "KIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(16..=i64::from(BUFFER_KIB_MAX)))]
    buffer_kib: u32,
    /// The events to record
    #[arg(long, value_enum, default_value = "both")]
    from: Origin,
    /// Record while this command runs; its exit status becomes luc's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut sources = sources(self, context)?;
        let shown = self.output.display().to_string();
        let file = File::create(&self.output).map_err(|error| failed(&shown, &error))?;
        let header = header(&sources, context.system);
        let mut writer =
            RecordingWriter::new(file, &header).map_err(|error| failed(&shown, &error))?;
        let system = context.system;
        let status = during(&self.command, self.seconds, PAUSE, context, || {
            sources.drain(&mut writer)?;
            writer.blocks(system)?;
            writer.files(system)
        })?;
        sources
            .finish(&mut writer, self.watch.by.kprobes(), system)
            .and_then(|()| writer.files(system))
            .and_then(|()| writer.cgroups(&process::cgroups(system)))
            .and_then(|()| writer.blocks(system))
            .map_err(|error| failed(&shown, &error))?;
        let recorded = writer.finish().map_err(|error| failed(&shown, &error))?;
        let (totals, lost) = (&recorded.totals, recorded.lost());
        writeln!(context.err, "luc: {shown}: {totals}; {} lost", count(lost))?;
        if lost > 0 {
            context.note(recorded.advice(self.buffer_kib))?;
        }
        hand_on(&self.command, status)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::beside(&self.command)
    }
}

/// Opens those of the requested sources that are available; fails if none is.
fn sources(args: &Args, context: &mut Context) -> Result<Sources, Failure> {
    let system = context.system;
    let failed = crate::cmd::failed("trace record");
    let obstacle = ModuleEvents::obstacle(system);
    let events = match (args.from, obstacle) {
        (Origin::Module, Some(error)) => return Err(failed(error)),
        (Origin::Tracer, _) | (Origin::Both, Some(_)) => None,
        (Origin::Both | Origin::Module, None) => {
            Some(ModuleEvents::new(system, args.buffer_kib).map_err(failed)?)
        }
    };
    if args.from == Origin::Module {
        let tracer = None;
        return Ok(Sources { tracer, events });
    }
    let tracer = match attach(&args.watch, Detail::Spans, args.buffer_kib, context)? {
        Ok(tracer) => Some(tracer),
        Err(error) if events.is_some() && args.from == Origin::Both => {
            context.note(format_args!(
                "only the module's events are recorded: {error}"
            ))?;
            None
        }
        Err(error) => return Err(failed(WatchError::untraceable(error, system))),
    };
    Ok(Sources { tracer, events })
}
