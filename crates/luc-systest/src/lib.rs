//! Shared by the system tests: guests described in a few words, checks of
//! what comes back, and tests that count what they skip.
//!
//! The guest scripts in `guest/` print a line for each check: `ok ...` or `FAIL ...`. A cell passes
//! if it ran to its end without a FAIL line, and if its part of the kernel log has no problem
//! except those that the cell announced. Numbers come back as JSON files and are judged here.

pub mod cluster;
pub mod scripted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

use libtest_mimic::{Completion, Failed, Trial};
use luc_vm::{
    AllowList, Cell, Content, DiskSpec, GuestFile, KernelList, LabError, RunResult, RunSpec,
    Silent, Step, build_disk_module, build_module, log, run, tail,
};
use serde_json::Value;

/// Words that every guest script prints last.
const END: &str = "end of checks";
/// Marks the start of a cell in the kernel log.
const MARK: &str = "luc test cell ";

/// Kernel log lines of a disk that refuses to write.
pub const NULL_BLK_FAILS: &[&str] = &[
    "I/O error, dev nullb0",
    "Buffer I/O error on dev",
    "EXT4-fs error (device nullb0)",
    "EXT4-fs (nullb0)",
    "JBD2: ",
    "Aborting journal on device nullb0",
];

/// Kernel log lines of the lab's own disk when it fails or disappears.
pub const LUCDISK_FAILS: &[&str] = &[
    "I/O error, dev lucdisk0",
    "Buffer I/O error on dev",
    "EXT4-fs error (device lucdisk0)",
    "EXT4-fs (lucdisk0)",
    "EXT4-fs warning (device lucdisk0)",
    "JBD2: ",
    "Aborting journal on device lucdisk0",
];

/// Why a test did not pass.
#[derive(Debug)]
pub enum Trouble {
    /// This machine lacks what the test needs.
    Skip(String),
    /// It lacks something optional, which is no failure in CI either.
    Optional(String),
    /// The test failed.
    Fail(String),
}

impl From<LabError> for Trouble {
    fn from(error: LabError) -> Self {
        if error.is_missing_prerequisite() {
            Self::Skip(error.to_string())
        } else {
            Self::Fail(error.to_string())
        }
    }
}

/// Outcome of a test.
pub type Outcome = Result<(), Trouble>;

/// A failure with its reason.
pub fn fail<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Fail(why.into()))
}

/// A failure for an error of this machine.
pub fn failed(error: impl Display) -> Trouble {
    Trouble::Fail(error.to_string())
}

/// Fails with `what` unless the condition holds.
pub fn check(condition: bool, what: impl Display) -> Outcome {
    if condition {
        Ok(())
    } else {
        fail(what.to_string())
    }
}

/// Locked for reading by tests that share the processors, for writing by one that runs alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test with its name.
pub fn test(name: impl Into<String>, body: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    trial(name.into(), false, body)
}

/// A test in host time that needs the whole machine: no other test runs meanwhile.
pub fn test_alone(
    name: impl Into<String>,
    body: impl FnOnce() -> Outcome + Send + 'static,
) -> Trial {
    trial(name.into(), true, body)
}

fn trial(name: String, alone: bool, body: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    Trial::ignorable_test(name.clone(), move || {
        let _alone = alone.then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
        let _shared = (!alone).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
        concluded(&name, body)
    })
}

/// A test on a kernel; only `make test-all` runs it if the kernel is not `quick`.
pub fn test_on(
    what: &str,
    kernel: &str,
    body: impl FnOnce(&str) -> Outcome + Send + 'static,
) -> Trial {
    let left = !kernels("quick").iter().any(|quick| quick == kernel);
    let name = format!("{what}_on_{kernel}");
    let kernel = kernel.to_owned();
    test(name, move || body(&kernel)).with_ignored_flag(left)
}

/// Tells whether tests run on all kernels, and some of them in their long form.
pub fn is_whole() -> bool {
    std::env::args().any(|word| word == "--include-ignored")
}

/// Names of the kernels with this tag in `kernels.toml`.
///
/// # Panics
/// If that list cannot be read.
pub fn kernels(tag: &str) -> Vec<String> {
    KernelList::builtin()
        .expect("the own list is good")
        .tagged(tag)
}

/// Returns the test for every kernel that everything runs on.
pub fn tests_on_every(what: &str, body: fn(&str) -> Outcome) -> Vec<Trial> {
    let every = kernels("every");
    every
        .iter()
        .map(|kernel| test_on(what, kernel, body))
        .collect()
}

/// Runs one test, notes how long it took, and prints at once why it failed, as the summary comes
/// half an hour later. If `CI` is set, a skipped test counts as failed, unless it lacks something
/// optional.
fn concluded(name: &str, body: impl FnOnce() -> Outcome) -> Result<Completion, Failed> {
    let begin = Instant::now();
    let outcome = body();
    let took_s = begin.elapsed().as_secs_f64();
    luc_test::took(name, took_s);
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(Trouble::Skip(why)) if luc_test::may_skip() => {
            luc_test::skip(name, &why);
            Ok(Completion::ignored_with(why))
        }
        Err(Trouble::Optional(why)) => {
            luc_test::skip_expected(name, &why);
            Ok(Completion::ignored_with(why))
        }
        Err(Trouble::Skip(why) | Trouble::Fail(why)) => {
            eprintln!("FAIL {name} ({took_s:.0} s): {why}");
            Err(why.into())
        }
    }
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A folder or file of `guest/`.
pub fn guest_source(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/guest")).join(name)
}

/// A file of `guest/` as the guest finds it, below `/t`.
pub fn script(name: &str) -> GuestFile {
    GuestFile::new(format!("/t/{name}"), Content::Host(guest_source(name)))
}

/// This machine's `dmsetup`.
pub fn dmsetup() -> GuestFile {
    const PATH: &str = "/usr/sbin/dmsetup";
    GuestFile::new(PATH, Content::Program(PATH.into()))
}

/// A C program of `guest/` as the guest finds it.
pub fn program(guest_path: &str, source: &str) -> Result<GuestFile, Trouble> {
    let content = Content::Program(c_program(source)?);
    Ok(GuestFile::new(guest_path, content))
}

/// The `luc-lab` program, for the host and the guest; it lies beside `luc`.
pub fn lab_binary() -> PathBuf {
    luc_binary().with_file_name("luc-lab")
}

/// The `luc` program, for the host and the guest: `LUC_BIN`, or the one that `make` built.
pub fn luc_binary() -> PathBuf {
    std::env::var_os("LUC_BIN")
        .filter(|path| !path.is_empty())
        .map_or_else(
            || root().join("target/x86_64-unknown-linux-gnu/release/luc"),
            PathBuf::from,
        )
}

/// A folder for what tests build, kept from run to run.
pub fn scratch() -> PathBuf {
    root().join("target/systest")
}

/// A module built for a kernel from the sources below `source`.
pub fn module(kernel: &str, source: &Path) -> Result<PathBuf, Trouble> {
    // Two builds for one kernel would wait for each other in the cache anyway.
    static BUILDS: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDS.lock();
    Ok(build_module(
        &KernelList::builtin()?,
        kernel,
        source,
        &mut Silent,
    )?)
}

/// A C program of `guest/`, built for this machine with a compiler that
/// every build of this project needs, to be copied into the guest.
pub fn c_program(source: &str) -> Result<PathBuf, Trouble> {
    // Tests that run in parallel build the same file.
    static BUILDS: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDS.lock();
    let source = guest_source(source);
    let name = source.file_stem().unwrap_or_default();
    let program = scratch().join(name);
    fs::create_dir_all(scratch()).map_err(failed)?;
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .map_err(|error| Trouble::Skip(format!("no C compiler cc: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return fail(format!("{}: {}", source.display(), said.trim()));
    }
    Ok(program)
}

/// The driver of the lab's disk, built for a kernel.
pub fn disk_module(kernel: &str) -> Result<PathBuf, Trouble> {
    Ok(build_disk_module(
        &KernelList::builtin()?,
        kernel,
        &mut Silent,
    )?)
}

/// A file, a text that occurs in it once, and its replacement.
pub type Replacement = (&'static str, &'static str, &'static str);

/// Writes the module's sources with these changes below `dir`.
pub fn broken_sources(dir: &Path, changes: &[Replacement]) -> Result<(), String> {
    for folder in ["kmod", "control", "abi"] {
        let to = dir.join(folder);
        fs::create_dir(&to).map_err(|e| e.to_string())?;
        for entry in fs::read_dir(root().join(folder)).map_err(|e| e.to_string())? {
            let from = entry.map_err(|e| e.to_string())?.path();
            if let (true, Some(name)) = (from.is_file(), from.file_name()) {
                fs::copy(&from, to.join(name)).map_err(|e| e.to_string())?;
            }
        }
    }
    for (file, find, replacement) in changes {
        let path = dir.join(file);
        let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        if text.matches(find).count() != 1 {
            return Err(format!("{file} must contain this exactly once: {find}"));
        }
        fs::write(&path, text.replace(find, replacement)).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// A cell that runs `guest/SCRIPT.sh`, and the kernel log lines that it may cause.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Name of the cell.
    pub name: &'static str,
    /// Name of its script.
    pub script: &'static str,
    pub disks: Vec<DiskSpec>,
    /// Added to the environment of the script.
    pub env: Vec<(&'static str, String)>,
    /// Texts of kernel log lines that its fault causes.
    pub allow: Vec<&'static str>,
}

impl Job {
    /// A job on disks given as in `luc-lab run --disk`.
    pub fn new(name: &'static str, disks: &[&str]) -> Result<Self, Trouble> {
        Ok(Self {
            name,
            script: name,
            disks: disks.iter().map(|d| d.parse()).collect::<Result<_, _>>()?,
            ..Self::default()
        })
    }

    /// Allows kernel log lines with one of these texts, too, which the fault causes.
    #[must_use]
    pub fn allow(mut self, texts: &[&'static str]) -> Self {
        self.allow.extend(texts);
        self
    }

    /// Runs a script of another name, for cells that differ only in disks and environment.
    #[must_use]
    pub fn script(mut self, script: &'static str) -> Self {
        self.script = script;
        self
    }

    /// Sets an environment variable of the script.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Sets arguments for mkfs on the last disk.
    #[must_use]
    pub fn mkfs(mut self, args: &[&str]) -> Self {
        if let Some(disk) = self.disks.last_mut() {
            disk.mkfs_args = args.iter().map(|a| (*a).to_owned()).collect();
        }
        self
    }

    fn cell(&self) -> Cell {
        let mark = format!("echo '<5>{MARK}{}' > /dev/kmsg", self.name);
        let script = format!("/t/{}.sh", self.script);
        let mut step = Step::new(["sh", "-c", &format!("{mark}; exec sh {script}")]);
        // A script that fails has said why on its own output.
        step.allow_failure = true;
        Cell {
            name: self.name.into(),
            disks: self.disks.clone(),
            env: self
                .env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            steps: vec![step],
        }
    }
}

/// Jobs with faults that can be caused on any kernel with `null_blk`.
pub fn fault_jobs() -> Result<Vec<Job>, Trouble> {
    Ok(vec![
        Job::new("unmount", &["1ms:8:64M"])?,
        Job::new("freeze", &["1ms:8:64M"])?,
        Job::new("abort", &["1ms:8:64M"])?.allow(NULL_BLK_FAILS),
        Job::new("full", &["200us:8:32M"])?,
        Job::new("journal", &["200us:8:128M"])?.mkfs(&["-J", "size=4"]),
    ])
}

/// A guest with the module for its kernel and the scripts of the jobs.
pub fn guest(kernel: &str, jobs: &[Job]) -> Result<RunSpec, Trouble> {
    let mut spec = RunSpec::new(kernel, jobs.iter().map(Job::cell).collect())?;
    spec.luc_lab = Some(lab_binary());
    spec.luc_module = Some(module(kernel, root())?);
    spec.timeout_host_s = 900;
    let scripts: BTreeSet<_> = jobs.iter().map(|job| job.script).collect();
    for name in std::iter::once("lib").chain(scripts) {
        spec.files.push(script(&format!("{name}.sh")));
    }
    if let Some(dir) = std::env::var_os("LUC_TEST_OUT") {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let stamp = time.map_or(0, |t| t.as_millis());
        spec.out_dir = Some(Path::new(&dir).join(format!("{kernel}-{stamp}")));
    }
    Ok(spec)
}

/// The answer of a run, with every cell's checks already judged.
pub struct Answer {
    /// The lab's own result.
    pub result: RunResult,
}

/// Runs the jobs and judges outputs and kernel log.
pub fn run_jobs(spec: &RunSpec, jobs: &[Job]) -> Result<Answer, Trouble> {
    let result = run(spec, &mut Silent)?;
    let mut wrong = Vec::new();
    wrong.extend(result.report.error.clone());
    for job in jobs {
        wrong.extend(cell_troubles(&result, job));
    }
    wrong.extend(log_troubles(&result.kernel_log, jobs));
    let answer = Answer { result };
    if wrong.is_empty() {
        return Ok(answer);
    }
    // The measured values may say why.
    for line in answer.told() {
        println!("  {} {line}", spec.kernel);
    }
    fail(format!("\n  {}", wrong.join("\n  ")))
}

/// FAIL lines of a cell, or why it has none and yet did not pass.
fn cell_troubles(result: &RunResult, job: &Job) -> Vec<String> {
    let name = job.name;
    let Some(cell) = result.report.cells.iter().find(|cell| cell.name == name) else {
        return vec![format!("{name}: never ran")];
    };
    let mut wrong = Vec::new();
    wrong.extend(cell.error.iter().map(|error| format!("{name}: {error}")));
    for step in &cell.steps {
        wrong.extend(verdict(name, &step.stdout));
        if !has_ended(&step.stdout) {
            let said = tail(&step.stderr, 5);
            wrong.push(format!("{name}: {:?}: {said}", step.status));
        }
    }
    wrong
}

/// FAIL lines of a script's output, or why it has none and yet did not pass.
pub fn verdict(name: &str, said: &str) -> Vec<String> {
    let lines = || said.lines();
    let fails = lines().filter(|line| line.starts_with("FAIL"));
    let mut wrong: Vec<_> = fails.map(|line| format!("{name}: {line}")).collect();
    if !has_ended(said) {
        let last = lines().last().unwrap_or("nothing");
        wrong.push(format!("{name}: ended early after {last:?}"));
    }
    if !lines().any(|line| line.starts_with("ok ")) {
        wrong.push(format!("{name}: checked nothing"));
    }
    wrong
}

fn has_ended(said: &str) -> bool {
    said.lines().last() == Some(END)
}

/// Problems in each cell's part of the kernel log that it did not announce.
fn log_troubles(kernel_log: &str, jobs: &[Job]) -> Vec<String> {
    let mut parts: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = "boot";
    for line in kernel_log.lines() {
        if let Some((_, name)) = line.split_once(MARK) {
            current = name.trim();
        }
        let part = parts.entry(current).or_default();
        part.push_str(line);
        part.push('\n');
    }
    let mut wrong = Vec::new();
    for (name, part) in parts {
        let allow = jobs.iter().find(|job| job.name == name);
        // A fault may make the kernel log a line, but never LUC.
        let allow =
            AllowList::new(allow.map_or(&[][..], |job| &job.allow).iter().copied()).except("[luc]");
        for problem in log::problems(&part, &allow) {
            wrong.push(format!("{name}: kernel log: {}", problem.line));
        }
    }
    wrong
}

impl Answer {
    /// The `tell ...` lines of the scripts, which are not checks.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let steps = |cell: &luc_vm::CellResult| {
            let lines = cell.steps.iter().flat_map(|step| step.stdout.lines());
            let told = lines.filter_map(|line| line.strip_prefix("tell "));
            told.map(|line| format!("{}: {line}", cell.name))
                .collect::<Vec<_>>()
        };
        let cells = &self.result.report.cells;
        cells.iter().flat_map(steps).collect::<Vec<_>>().into_iter()
    }

    /// A file that a cell left in its `$LUC_OUT`.
    pub fn text(&self, cell: &str, file: &str) -> Result<String, Trouble> {
        let path = format!("{cell}/{file}");
        let found = self.result.files.iter().find(|(name, _)| *name == path);
        match found {
            Some((_, data)) => Ok(String::from_utf8_lossy(data).into_owned()),
            None => fail(format!("no file {path} came back")),
        }
    }

    /// A JSON file of that kind.
    pub fn json(&self, cell: &str, file: &str) -> Result<Value, Trouble> {
        let text = self.text(cell, &format!("{file}.json"))?;
        serde_json::from_str(&text).or_else(|error| fail(format!("{cell}/{file}.json: {error}")))
    }

    /// A number in such a file.
    pub fn number(&self, cell: &str, file: &str, pointer: &str) -> Result<f64, Trouble> {
        let value = self.json(cell, file)?;
        match value.pointer(pointer).and_then(Value::as_f64) {
            Some(number) => Ok(number),
            None => fail(format!("{cell}/{file}.json has no number {pointer}")),
        }
    }
}
