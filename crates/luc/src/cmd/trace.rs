//! `luc trace`

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use luc_trace::{Event, Header, Writer, parse_line};

use crate::Context;
use crate::exit::Failure;
use crate::tracefs::{self, Instance};
use crate::units::{count, counted};
use crate::{module, sysfs};

/// Record what LUC decides
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Write every decision, commit and delayed write to a file
    ///
    /// Ends with the command, after the given time, or with Ctrl-C. Records
    /// that the kernel had to drop are counted in the file and here.
    Record(RecordArgs),
}

/// Arguments of `luc trace record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Where to put the recording
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Record for this long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Buffer of each CPU in KiB; larger ones lose less
    #[arg(long, value_name = "KIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    buffer_kib: u32,
    /// Record while this command runs; its exit status becomes luc's
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// How often the buffers are emptied: often enough to keep them from filling,
/// seldom enough to disturb nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs the verb.
pub fn run(verb: &Verb, context: &mut Context) -> Result<(), Failure> {
    let Verb::Record(args) = verb;
    record(args, context)
}

fn failed(what: impl Into<String>, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return sysfs::denied("record a trace");
    }
    Failure::Trace {
        what: what.into(),
        why: super::plain(error),
    }
}

fn record(args: &RecordArgs, context: &mut Context) -> Result<(), Failure> {
    let system = context.system;
    let Some(root) = tracefs::root(system) else {
        return Err(if module::capable(system, module::Capability::SysAdmin) {
            Failure::Trace {
                what: "recording".into(),
                why: "tracefs is not mounted; mount -t tracefs tracefs /sys/kernel/tracing".into(),
            }
        } else {
            sysfs::denied("record a trace")
        });
    };
    if !sysfs::loaded(system) {
        return Err(Failure::ModuleUnavailable {
            why: "not loaded, so there is nothing to record".into(),
            fix: "switch LUC on first".into(),
        });
    }
    let shown = args.output.display().to_string();
    let mut header = Header::default().with("luc", env!("CARGO_PKG_VERSION"));
    if let Ok(release) = module::release(system) {
        header = header.with("kernel", &release);
    }
    if let Some(version) = sysfs::version(system) {
        header = header.with("module", &version);
    }
    let file = File::create(&args.output).map_err(|error| failed(&shown, &error))?;
    let mut tape = Tape::new(file, &header).map_err(|error| failed(&shown, &error))?;
    let mut instance = Instance::new(system, root, args.buffer_kib)
        .map_err(|error| failed("instance of tracefs", &error))?;
    let status = roll(args, context, &mut instance, &mut tape)?;
    instance.stop().map_err(|error| failed("tracefs", &error))?;
    tape.drain(&mut instance)
        .map_err(|error| failed(&shown, &error))?;
    let losses = instance.losses();
    let losses = losses.map_err(|error| failed("statistics of tracefs", &error))?;
    drop(instance);
    let totals = tape
        .finish(&losses)
        .map_err(|error| failed(&shown, &error))?;
    totals.tell(context, &args.output)?;
    match status {
        Some(status) => hand_on(&args.command, status),
        None => Ok(()),
    }
}

/// Records until the time is over, the command has ended, or somebody stops it.
fn roll(
    args: &RecordArgs,
    context: &Context,
    instance: &mut Instance,
    tape: &mut Tape,
) -> Result<Option<ExitStatus>, Failure> {
    let shown = args.output.display().to_string();
    let begin = Instant::now();
    let limit = args.seconds.map(Duration::from_secs);
    let mut child = start(&args.command)?;
    let mut ending = false;
    loop {
        let drained = tape.drain(instance);
        if let Err(error) = drained {
            // The disk is full, say: what the command does is no longer recorded.
            if let Some(child) = &mut child {
                let _ = child.kill();
                let _ = child.wait();
            }
            return Err(failed(shown, &error));
        }
        let late = limit.is_some_and(|limit| begin.elapsed() >= limit);
        let over = late || context.stopped();
        let Some(running) = &mut child else {
            if over {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
            continue;
        };
        if let Some(status) = running.try_wait()? {
            // A command that was ended as asked has not failed.
            return Ok((!late).then_some(status));
        }
        if over && !ending {
            // Politely, so that it can clean up; what it still does is recorded.
            let id = rustix::process::Pid::from_child(running);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            ending = true;
        }
        std::thread::sleep(PAUSE);
    }
}

fn start(command: &[String]) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).map_err(|error| Failure::Command {
        command: program.clone(),
        how: format!("cannot be started: {}", super::plain(&error)),
        status: None,
    })
}

fn hand_on(command: &[String], status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    Err(Failure::Command {
        command: command.first().cloned().unwrap_or_default(),
        how: status.to_string(),
        // As a shell reports it: 128 and the number of the signal.
        status: status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .and_then(|code| u8::try_from(code).ok()),
    })
}

/// The recording being written, line by line as ftrace prints them.
struct Tape {
    writer: Writer<BufWriter<File>>,
    buffer: Vec<u8>,
    /// Begin of a line whose end has not come yet.
    rest: Vec<u8>,
    totals: Totals,
}

/// What a recording holds.
#[derive(Default)]
struct Totals {
    decisions: i64,
    commits: i64,
    write_delays: i64,
    lost: u64,
}

impl Tape {
    fn new(file: File, header: &Header) -> io::Result<Self> {
        Ok(Tape {
            writer: Writer::new(BufWriter::new(file), header)?,
            buffer: vec![0; 1 << 16],
            rest: Vec::new(),
            totals: Totals::default(),
        })
    }

    /// Takes everything that is there.
    fn drain(&mut self, instance: &mut Instance) -> io::Result<()> {
        loop {
            let got = instance.read(&mut self.buffer)?;
            if got == 0 {
                return Ok(());
            }
            self.rest.extend_from_slice(&self.buffer[..got]);
            let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            let whole: Vec<u8> = self.rest.drain(..=end).collect();
            for line in whole.split_inclusive(|byte| *byte == b'\n') {
                self.totals.take(line);
                self.writer.raw_line(line)?;
            }
        }
    }

    /// Notes the losses that no line told of, and closes the file.
    fn finish(mut self, losses: &[(u32, u64)]) -> io::Result<Totals> {
        let all: u64 = losses.iter().map(|(_, lost)| lost).sum();
        if let Some(silent) = all.checked_sub(self.totals.lost).filter(|lost| *lost > 0) {
            let cpu = losses.iter().max_by_key(|(_, lost)| *lost);
            let cpu = cpu.map_or(0, |(cpu, _)| *cpu);
            self.writer.lost(cpu, Some(silent))?;
            self.totals.lost = all;
        }
        self.writer.finish()?;
        Ok(self.totals)
    }
}

impl Totals {
    /// Lines that cannot be read are kept as they are; replay will name them.
    fn take(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let Ok(Some(record)) = parse_line(text.trim_end(), 0) else {
            return;
        };
        match record.event {
            Event::Decision { .. } => self.decisions += 1,
            Event::Commit { .. } => self.commits += 1,
            Event::WriteDelay { .. } => self.write_delays += 1,
            Event::Lost { events } => self.lost += events.unwrap_or(1),
        }
    }

    fn tell(&self, context: &mut Context, path: &Path) -> Result<(), Failure> {
        writeln!(
            context.err,
            "luc: {}: {}, {}, {}; {} lost",
            path.display(),
            counted(self.decisions, "decision", "decisions"),
            counted(self.commits, "commit", "commits"),
            counted(self.write_delays, "delayed write", "delayed writes"),
            count(i64::try_from(self.lost).unwrap_or(i64::MAX)),
        )?;
        Ok(())
    }
}
