//! `luc-lab run`, and what kernels it has

pub mod disks;
pub mod torture;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use luc_campaign::places::lab_disk;
use luc_vm::cache::Cache;
use luc_vm::image::{Content, GuestFile};
use luc_vm::{
    AllowList, Cell, DiskSpec, KernelList, KernelStatus, LineGroup, LogProblem, RunResult, RunSpec,
    Status, Step, StepResult,
};
use serde_json::json;

use super::stock_lab::source;
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::units;
use luc_cli::{Code, Context, Failure, Verb};

const SOURCE_HELP: &str = concat!(
    "Build luc.ko from the sources in this directory [default: the current one or /usr/src/luc-",
    env!("CARGO_PKG_VERSION"),
    "]"
);

/// Run a command in a fresh virtual machine
///
/// Mounts the disks at /mnt/0, /mnt/1 and so on. The command starts in the first one, and its PATH
/// has luc and this luc-lab. With --out DIR, the files that the command leaves in `$LUC_OUT` are
/// copied to DIR/files. Pass a script as one argument: -- sh -c 'A && B'. luc-lab prints the
/// command's output about once per second of guest time, and exits with the command's status. A
/// warning or an error in the kernel log fails the run with an exit code of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab run -- luc-lab bench create-fsync --threads 16 /mnt/0\n\
    \x20 luc-lab run --kernel 7.2 --disk hdd-7200 --smp 4 -- sh -c 'luc on /mnt/0 && luc-lab bench run varmail /mnt/0'\n\
    \x20 luc-lab run --disk 4ms:1 --disk 100us:64:1G:ext3 --out out/run -- dmesg")]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct RunArgs {
    /// Kernel, by its name in `luc-lab list`
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    kernel: String,
    /// CPU speed in million instructions per second: 1000, 500, 250 and so on
    #[arg(long, value_name = "MIPS", default_value_t = 1000.0)]
    cpu_mips: f64,
    /// Disk: time per request and number of requests at once, or a preset of `luc-lab disks` with
    /// changes; then size, type (ext4, ext4-nojournal, ext3, ext2, xfs, btrfs, f2fs or none) and
    /// mount options; for example 4ms:1, 100us:64:1G:xfs, 4ms:1:mount=dirsync,noatime, hdd-7200,
    /// `nvme:flush_ns=500000:1G`
    #[arg(long = "disk", value_name = "SPEC", value_parser = lab_disk)]
    disks: Vec<DiskSpec>,
    /// Memory of the guest in MiB; it also holds the disks
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory_mib: u32,
    /// Number of virtual CPUs; on virtual time they share the speed of one
    #[arg(long, value_name = "N", default_value_t = 1)]
    smp: u32,
    /// Run on host time with parallel CPUs: for stress tests, not repeatable
    #[arg(long)]
    real_time: bool,
    /// Count the memory lines that move between virtual CPUs at each call of `luc-lab bench
    /// scaling`
    #[arg(long, requires = "real_time")]
    lines: bool,
    /// Seed of all randomness in the guest
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Copy a file or a folder of the host into the guest; may be repeated
    #[arg(long = "file", value_name = "HOST:GUEST")]
    files: Vec<String>,
    /// Load another kernel module of the distribution; may be repeated
    #[arg(long = "modprobe", value_name = "NAME")]
    modules: Vec<String>,
    /// Put this luc.ko into the guest instead of building one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_module", "source"])]
    module: Option<PathBuf>,
    /// Put no luc.ko into the guest
    #[arg(long, conflicts_with = "source")]
    no_module: bool,
    // The help names the version, which a comment cannot.
    #[arg(long, value_name = "DIR", help = SOURCE_HELP)]
    source: Option<PathBuf>,
    /// Text to add to the kernel command line
    #[arg(long, value_name = "TEXT")]
    cmdline: Option<String>,
    /// Keep results, files and kernel log in this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Allow kernel log lines that contain TEXT, a literal substring
    #[arg(long = "allow-log", value_name = "TEXT")]
    allow: Vec<String>,
    /// Time limit in seconds of host time
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Print everything about the run as JSON instead of the command's output
    #[arg(long)]
    json: bool,
    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// List the kernels that the lab knows
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab list\n\
    \x20 luc-lab list --json")]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Download kernels, so that runs need no network
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab fetch\n\
    \x20 luc-lab fetch 6.1 6.12")]
pub struct FetchArgs {
    /// Names of kernels [default: all stock kernels that are known to work]
    kernels: Vec<String>,
}

/// Build luc.ko for a kernel and print where it is
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab build --kernel 7.2")]
pub struct BuildArgs {
    /// Kernel, by its name in `luc-lab list`
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    kernel: String,
    // The help names the version, which a comment cannot.
    #[arg(long, value_name = "DIR", help = SOURCE_HELP)]
    source: Option<PathBuf>,
}

/// Build a kernel that checks itself, or one with the patches of upstream/
///
/// A debug kernel checks locks, memory, leaks and data races. 7.2-upstream has no checks: it serves
/// to measure LUC as a part of the kernel. Builds from the sources of the distribution's package,
/// which takes a quarter of an hour on two processors. The lab keeps the kernel, so one build is
/// enough. `luc-lab list` lists these kernels.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab debug-kernel\n\
    \x20 luc-lab debug-kernel 7.2-upstream")]
pub struct DebugKernelArgs {
    /// Kernel, by its name in `luc-lab list`
    #[arg(default_value = "6.12-debug")]
    kernel: String,
}

impl RunArgs {
    fn spec(&self, bar: &mut Bar) -> Result<RunSpec, Failure> {
        let cell = Cell {
            name: "run".into(),
            disks: self.disks.clone(),
            steps: vec![Step::new(self.command.iter().cloned())],
            ..Cell::default()
        };
        let mut spec = RunSpec::new(&self.kernel, vec![cell]).or_failure()?;
        spec.cpu_mips = self.cpu_mips;
        spec.vcpus = self.smp;
        spec.virtual_time = !self.real_time;
        spec.count_lines = self.lines;
        spec.memory_mib = self.memory_mib;
        spec.modules.clone_from(&self.modules);
        spec.kernel_cmdline_extra = self.cmdline.clone().unwrap_or_default();
        spec.seed = self.seed;
        spec.timeout_host_s = self.timeout;
        spec.out_dir.clone_from(&self.out);
        spec.allow = AllowList::new(self.allow.iter().cloned());
        for file in &self.files {
            spec.files.push(guest_file(file)?);
        }
        spec.luc_module = match &self.module {
            Some(file) => Some(file.clone()),
            None if self.no_module => None,
            None => match source(self.source.as_deref()) {
                Ok(source) => Some(module_of(&self.kernel, &source, bar)?),
                // No module was asked for; `luc on` in the guest reports that it is missing.
                Err(_) if self.source.is_none() => None,
                Err(failure) => return Err(failure),
            },
        };
        Ok(spec)
    }
}

/// Parses `HOST:GUEST`; the guest's part is an absolute path.
fn guest_file(text: &str) -> Result<GuestFile, Failure> {
    let split = text.rsplit_once(':');
    let Some((host, guest)) = split.filter(|(_, guest)| guest.starts_with('/')) else {
        return Err(Failure::usage(
            "run",
            format!("--file '{text}' is not HOST:GUEST with an absolute path in the guest"),
        ));
    };
    let content = if Path::new(host).is_dir() {
        Content::Folder
    } else {
        Content::Host
    };
    Ok(GuestFile::new(guest, content(host.into())))
}

impl Verb for RunArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut bar = Bar::new();
        let mut spec = self.spec(&mut bar)?;
        let mut live = Live {
            bar,
            outputs: [
                (&mut *context.out, Lines::default()),
                (&mut *context.err, Lines::default()),
            ],
        };
        spec.tells_output = !self.json;
        let result = luc_vm::run(&spec, &mut live);
        if result.is_err() {
            live.end()?;
        }
        let told = live.outputs.map(|(_, lines)| lines.told_bytes);
        let result = result.or_failure()?;
        let steps = || result.report.cells.iter().flat_map(|cell| &cell.steps);
        if self.json {
            let report = json!({
                "schema": 1,
                "success": result.success(),
                "kernel_version": result.kernel_version,
                "qemu_version": result.qemu_version,
                "report": result.report,
                "lines": result.lines,
                "log_problems": result.log_problems,
            });
            context.print_json(&report)?;
        } else {
            for step in steps() {
                context.out.write_all(rest(&step.stdout, told[0]))?;
                context.err.write_all(rest(&step.stderr, told[1]))?;
            }
            if self.lines {
                print_lines(&result.lines, context)?;
            }
        }
        if let Some(failed) = steps().find(|step| !step.success()) {
            return Err(command_failure(failed));
        }
        verdict(&result)
    }
}

/// Hands on the output of a command while it runs.
struct Live<'a> {
    bar: Bar,
    outputs: [(&'a mut dyn Write, Lines); 2],
}

impl Live<'_> {
    /// Hands on the last lines, which did not end.
    fn end(&mut self) -> io::Result<()> {
        let outputs = &mut self.outputs;
        self.bar.above(|| {
            for (to, lines) in outputs {
                to.write_all(&std::mem::take(&mut lines.begun))?;
                to.flush()?;
            }
            Ok(())
        })
    }
}

impl luc_vm::Progress for Live<'_> {
    fn stage(&mut self, text: &str) {
        self.bar.stage(text);
    }

    fn guest(&mut self, done: u32, total: u32, text: &str) {
        self.bar.guest(done, total, text);
    }

    fn output(&mut self, stdout: &[u8], stderr: &[u8]) {
        let outputs = &mut self.outputs;
        self.bar.above(|| {
            for ((to, lines), bytes) in outputs.iter_mut().zip([stdout, stderr]) {
                // Nobody may listen any more: the end of the run tells that.
                let _ = to.write_all(lines.take(bytes).as_bytes());
                let _ = to.flush();
            }
        });
    }

    fn note(&mut self, text: &str) {
        luc_vm::Progress::note(&mut self.bar, text);
    }
}

/// The part of a text behind its first `told` bytes.
fn rest(text: &str, told: usize) -> &[u8] {
    &text.as_bytes()[told.min(text.len())..]
}

/// Cuts output into whole lines.
#[derive(Default)]
struct Lines {
    /// A line that has not ended.
    begun: Vec<u8>,
    /// Length of the text of all whole lines.
    told_bytes: usize,
}

impl Lines {
    /// Adds bytes and returns the text of the lines that they end.
    fn take(&mut self, bytes: &[u8]) -> String {
        self.begun.extend(bytes);
        let end = self.begun.iter().rposition(|byte| *byte == b'\n');
        let rest = self.begun.split_off(end.map_or(0, |at| at + 1));
        let lines = std::mem::replace(&mut self.begun, rest);
        let text = String::from_utf8_lossy(&lines).into_owned();
        self.told_bytes += text.len();
        text
    }
}

/// Prints one row per group of calls, with figures per call.
fn print_lines(groups: &[LineGroup], context: &mut Context) -> Result<(), Failure> {
    let rows: Vec<[String; 6]> = (1..)
        .zip(groups)
        .map(|(number, group): (u32, _)| {
            let per_call = |sum| format!("{:.1}", group.per_call(sum));
            let lost = match group.lost {
                0 => String::new(),
                lost => format!(" (at least: {lost} accesses were not counted)"),
            };
            [
                number.to_string(),
                group.processors.to_string(),
                group.calls.to_string(),
                per_call(group.touched),
                per_call(group.written),
                per_call(group.moved) + &lost,
            ]
        })
        .collect();
    let heads = [
        "group",
        "CPUs",
        "calls",
        "lines used",
        "written",
        "moved, per call",
    ];
    units::table(context.out, heads, &rows)?;
    Ok(())
}

/// The failure of the user's command, which takes precedence over problems of the run. As in a
/// shell, a killed command has status 128 plus the signal's number.
fn command_failure(step: &StepResult) -> Failure {
    let (how, status) = match &step.status {
        Status::Exited(code) => (format!("exit status {code}"), u8::try_from(*code).ok()),
        Status::Signaled(signal) => (
            format!("killed by signal {signal}"),
            u8::try_from(128 + signal).ok(),
        ),
        Status::TimedOut => ("killed at its time limit".to_owned(), None),
        Status::NotStarted(why) => (format!("could not be started: {why}"), None),
    };
    Failure::Command {
        command: step.argv.first().cloned().unwrap_or_default(),
        how,
        status,
    }
}

fn verdict(result: &RunResult) -> Result<(), Failure> {
    clean_log(&result.log_problems)?;
    match result.failures().into_iter().next() {
        Some(why) => Err(Failure::coded(Code::Lab, why)),
        None => Ok(()),
    }
}

fn clean_log(problems: &[LogProblem]) -> Result<(), Failure> {
    let Some(first) = problems.first() else {
        return Ok(());
    };
    let count = units::counted(problems.len() as u64, "line", "lines");
    let line = format!(
        "the guest's kernel log has {count} that should not be there: \"{}\"; `--out DIR` keeps \
         the whole log, `--allow-log TEXT` allows lines that contain this substring",
        first.line
    );
    Err(Failure::coded(Code::KernelLog, line))
}

impl Verb for ListArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let list = KernelList::builtin().or_failure()?;
        if self.json {
            return context.print_json(&list.kernels);
        }
        let rows: Vec<[String; 5]> = list
            .kernels
            .iter()
            .map(|kernel| {
                let status = match kernel.status {
                    KernelStatus::Works => "works",
                    KernelStatus::Untested => "untested",
                    KernelStatus::Broken => "broken",
                };
                [
                    kernel.name.clone(),
                    status.to_owned(),
                    kernel.verified.clone().unwrap_or_else(|| "-".into()),
                    kernel.suites.join(", "),
                    kernel.note.clone(),
                ]
            })
            .collect();
        let heads = ["kernel", "status", "verified", "suites", "note"];
        units::table(context.out, heads, &rows)?;
        Ok(())
    }
}

impl Verb for FetchArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let list = KernelList::builtin().or_failure()?;
        let cache = Cache::open().or_failure()?;
        let names: Vec<&str> = if self.kernels.is_empty() {
            let works = |kernel: &&luc_vm::KernelSpec| {
                kernel.status == KernelStatus::Works && kernel.source.is_none()
            };
            let kernels = list.kernels.iter().filter(works);
            kernels.map(|kernel| kernel.name.as_str()).collect()
        } else {
            self.kernels.iter().map(String::as_str).collect()
        };
        for name in names {
            let kernel = list.get(name).or_failure()?;
            let mut bar = Bar::new();
            let tree = luc_vm::obtain::kernel(&cache, kernel, &mut bar).or_failure()?;
            drop(bar);
            writeln!(context.out, "{name}: {} ({})", tree.release, tree.version)?;
            context.out.flush()?;
        }
        Ok(())
    }
}

impl Verb for DebugKernelArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let list = KernelList::builtin().or_failure()?;
        let kernel = list.get(&self.kernel).or_failure()?;
        let cache = Cache::open().or_failure()?;
        let mut bar = Bar::new();
        let tree = luc_vm::debug_kernel::build(&cache, kernel, &mut bar).or_failure()?;
        drop(bar);
        let (name, release) = (&self.kernel, &tree.release);
        writeln!(context.out, "{name}: {release} ({})", tree.version)?;
        Ok(())
    }
}

/// Remove what the lab has downloaded and built
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab clean")]
pub struct CleanArgs;

impl Verb for CleanArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let cache = Cache::open().or_failure()?;
        let root = cache.path("");
        let bytes = size_of(&root)?;
        luc_vm::cache::remove_tree(&root).or_failure()?;
        writeln!(
            context.out,
            "{}: {} removed",
            root.display(),
            units::bytes(bytes)
        )?;
        Ok(())
    }
}

/// Bytes of all files below a folder; links are not followed.
fn size_of(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size_of(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}

impl Verb for BuildArgs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let source = source(self.source.as_deref())?;
        let mut bar = Bar::new();
        let file = module_of(&self.kernel, &source, &mut bar)?;
        drop(bar);
        writeln!(context.out, "{}", file.display())?;
        Ok(())
    }
}

fn module_of(kernel: &str, source: &Path, bar: &mut Bar) -> Result<PathBuf, Failure> {
    let list = KernelList::builtin().or_failure()?;
    luc_vm::build_module(&list, kernel, source, bar).or_failure()
}

#[cfg(test)]
mod tests {
    use luc_vm::{AllowList, log};

    use super::{Lines, clean_log};

    #[test]
    fn an_error_tells_how_allowed_lines_are_named() {
        let problems = |allow: &[&str]| {
            let allow = AllowList::new(allow.iter().copied());
            log::problems("WARNING: at fs/a.c:1 f+0x1/0x2\n", &allow)
        };
        let error = clean_log(&problems(&[])).expect_err("a warning");
        assert!(
            error.to_string().ends_with("that contain this substring"),
            "{error}"
        );
        clean_log(&problems(&["a.c:1 f+0x1"])).expect("a substring");
        clean_log(&problems(&["WARNING: .*"])).expect_err("a regular expression is none");
    }

    #[test]
    fn output_comes_in_whole_lines() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"one\ntw"), "one\n");
        assert_eq!(lines.take(b""), "");
        assert_eq!(lines.take(b"o\n\xff\nth"), "two\n\u{fffd}\n");
        assert_eq!(lines.begun, b"th");
        // The rest of a text, bad characters replaced, begins there.
        assert_eq!(lines.told_bytes, "one\ntwo\n\u{fffd}\n".len());
    }
}
