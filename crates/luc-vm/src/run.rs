//! One run: prepare kernel and image, boot the machine, bring the results back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_base::Programs;

use crate::cache::{Cache, remove_tree, write_atomic};
use crate::disk::{DiskSpec, FsType};
use crate::error::{LabError, Result};
use crate::image::cpio;
use crate::image::{GuestFile, Image, LUC_MODULE_PATH};
use crate::kernels::fetch;
use crate::kernels::list::{KernelList, KernelTree};
use crate::kernels::modules::Modules;
use crate::kernels::obtain;
use crate::kernels::own_module::build_disk_module;
use crate::machine::channel::{Head, State};
use crate::machine::lines::{self, LineGroup};
use crate::machine::log::{self, AllowList, LogProblem};
use crate::machine::qemu::{Loader, Qemu, Vm, VmSpec, icount_shift};
use crate::plan::{
    self, Cell, GuestReport, KERNEL_LOG_NAME, ModuleLoad, OUT_PREFIX, Plan, REPORT_NAME, StepResult,
};
use crate::progress::Progress;
use crate::tools;

/// Modules of every guest: the disks, and the file system if it is not built in. crc32c comes first
/// because ext4 asks for it by algorithm name.
const MODULES: [&str; 6] = [
    "configfs",
    "null_blk",
    "crc32c_intel",
    "crc32c_generic",
    "jbd2",
    "ext4",
];
/// Modules among these that a kernel may lack altogether.
const MODULES_OPTIONAL: [&str; 2] = ["crc32c_intel", "crc32c_generic"];
/// Virtual time to wait before the first cell: the kernel's last start-up work (the choice of the
/// clock) ends a second after its first process starts.
const SETTLE_NS: u64 = 2_000_000_000;
/// Kernel, guest image and a small disk fit into this.
const MEMORY_MIB_MIN: u32 = 256;
const POLL: Duration = Duration::from_millis(50);

/// A run.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// Kernel, by its name in the list.
    pub kernel: String,
    /// List to look the kernel up in.
    pub kernels: KernelList,
    /// Speed in million instructions per second of virtual time: 1000 divided
    /// by a power of two up to 1024. Without virtual time it has no effect.
    pub cpu_mips: f64,
    /// Virtual processors. With virtual time they share one processor's time.
    pub vcpus: u32,
    /// Whether to count instructions (repeatable), or to run as fast as the host can, with virtual
    /// processors in parallel (for stress; never repeatable).
    pub virtual_time: bool,
    /// Guest memory in MiB, at least 256; it holds the data on the disks.
    pub memory_mib: u32,
    /// Experiments, in order.
    pub cells: Vec<Cell>,
    /// Files to add to the guest.
    pub files: Vec<GuestFile>,
    /// Modules to load before the first cell, in addition to those of every guest.
    pub modules: Vec<String>,
    /// Built module to put into the guest at [`LUC_MODULE_PATH`].
    pub luc_module: Option<PathBuf>,
    /// Parameters to load it with before the first cell; `None`: it is not loaded.
    pub luc_module_load: Option<String>,
    /// Built driver of the lab's own disk; if a cell needs one and none is given, this program's is
    /// built.
    pub disk_module: Option<PathBuf>,
    /// Added to the kernel command line.
    pub kernel_cmdline_extra: String,
    /// Seed of all randomness in the guest.
    pub seed: u64,
    /// Limit in seconds of host time.
    pub timeout_host_s: u64,
    /// Where results go; made if absent. `None` keeps them in memory only.
    pub out_dir: Option<PathBuf>,
    /// The program `luc-lab` for the guest, where it is process 1; this program itself by default.
    /// The guest's `luc` is the one beside it.
    pub luc_lab: Option<PathBuf>,
    /// Whether to count the cache lines that move between processors; not possible in virtual time.
    pub count_lines: bool,
    /// Whether the guest tells the host every second of virtual time what a step puts out, for
    /// [`Progress::output`]. It takes a little of the guest's time.
    pub tells_output: bool,
    /// Kernel log lines that are expected.
    pub allow: AllowList,
}

impl RunSpec {
    /// A run with usual values: 1000 MIPS, one processor, 1 GiB, 10 minutes.
    ///
    /// # Errors
    /// When the built-in list of kernels is damaged.
    pub fn new(kernel: &str, cells: Vec<Cell>) -> Result<Self> {
        Ok(Self {
            kernel: kernel.to_owned(),
            kernels: KernelList::builtin()?,
            cpu_mips: 1000.0,
            vcpus: 1,
            virtual_time: true,
            memory_mib: 1024,
            cells,
            files: Vec::new(),
            modules: Vec::new(),
            luc_module: None,
            luc_module_load: None,
            disk_module: None,
            kernel_cmdline_extra: String::new(),
            seed: 1,
            timeout_host_s: 600,
            out_dir: None,
            luc_lab: None,
            count_lines: false,
            tells_output: false,
            allow: AllowList::default(),
        })
    }

    fn check(&self) -> Result<()> {
        plan::check_cells(&self.cells)?;
        let bad = |what: &str, why: &str| Err(LabError::bad_input(what, why));
        if !(1..=64).contains(&self.vcpus) {
            return bad("processors", "must be 1 to 64");
        }
        if self.kernel_cmdline_extra.contains(['\n', '\0']) {
            return bad("kernel command line", "it must be one line");
        }
        // Disks are sparse: only written data takes memory.
        if self.memory_mib < MEMORY_MIB_MIN {
            let why = format!("must be at least {MEMORY_MIB_MIN} MiB");
            return bad(&format!("memory of {} MiB", self.memory_mib), &why);
        }
        if self.count_lines && self.virtual_time {
            return bad(
                "counting lines",
                "QEMU cannot tell processors apart in virtual time",
            );
        }
        if self.luc_module_load.is_some() && self.luc_module.is_none() {
            return bad("module", "no module was given to load");
        }
        Ok(())
    }
}

/// Results of a run.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The guest's answer.
    pub report: GuestReport,
    /// Files the steps wrote below `$LUC_OUT`, as `CELL/PATH`, sorted.
    pub files: Vec<(String, Vec<u8>)>,
    /// The whole kernel log.
    pub kernel_log: String,
    /// All output on the console.
    pub console: String,
    /// Cache lines, if they were counted: the groups in order.
    pub lines: Vec<LineGroup>,
    /// Lines of the kernel log that should not be there.
    pub log_problems: Vec<LogProblem>,
    /// Debian version of the kernel.
    pub kernel_version: String,
    /// Version of QEMU.
    pub qemu_version: String,
    /// Host time from start to end of the machine.
    pub host_time: Duration,
    /// Host time from start to process 1.
    pub boot_host_time: Duration,
}

impl RunResult {
    /// Whether every step that must succeed did and the kernel log is clean.
    pub fn success(&self) -> bool {
        self.failures().is_empty()
    }

    /// One line for each thing that went wrong, in order.
    pub fn failures(&self) -> Vec<String> {
        let mut list = Vec::new();
        list.extend(
            self.report
                .error
                .iter()
                .map(|error| format!("guest: {error}")),
        );
        for cell in &self.report.cells {
            let name = &cell.name;
            let failed = |step: &&StepResult| !step.success() && !step.allow_failure;
            for step in cell.steps.iter().filter(failed) {
                let (command, reason) = (step.argv.join(" "), tools::tail(&step.stderr, 1));
                list.push(format!(
                    "cell {name}: {command:?} {:?}: {reason}",
                    step.status
                ));
            }
            list.extend(
                cell.error
                    .iter()
                    .map(|error| format!("cell {name}: {error}")),
            );
        }
        let dropped = self.report.files_dropped.iter();
        list.extend(dropped.map(|file| format!("result file {file} did not fit")));
        for LogProblem { line_number, line } in &self.log_problems {
            list.push(format!("kernel log line {line_number}: {line}"));
        }
        list
    }
}

/// Runs and brings back the results. A step that fails or a problem in the
/// kernel log is not an error here: see [`RunResult::success`].
///
/// # Errors
/// Bad input, missing tools or packages, a guest that panics, hangs or ends
/// without an answer.
pub fn run(spec: &RunSpec, progress: &mut dyn Progress) -> Result<RunResult> {
    spec.check()?;
    let shift = icount_shift(spec.cpu_mips)?;
    let kernel_spec = spec.kernels.get(&spec.kernel)?;
    let qemu = Qemu::find()?;
    let cache = Cache::open()?;
    let kernel = obtain::kernel(&cache, kernel_spec, progress)?;
    progress.stage("making the guest image");
    let initramfs = image(&cache, spec, &kernel, progress)?;
    let boot = boot_file(&cache, &kernel)?;
    let counter = spec
        .count_lines
        .then(|| lines::plugin(&cache))
        .transpose()?;
    let command_line = format!("{} {}", kernel_spec.cmdline, spec.kernel_cmdline_extra);
    let machine = VmSpec {
        loader: Loader::Qemu(&boot),
        memory_mib: spec.memory_mib,
        vcpus: spec.vcpus,
        icount_shift: spec.virtual_time.then_some(shift),
        seed: spec.seed,
        extra_command_line: command_line.trim(),
        line_counter: counter.as_deref(),
        disks: &[],
    };
    let mut starts = 0;
    let (vm, finished, host_time) = loop {
        starts += 1;
        progress.stage("booting");
        let begin = Instant::now();
        let mut vm = Vm::start(&qemu, &machine, &initramfs)?;
        let finished = watch(&mut vm, spec, progress);
        match &finished {
            Err(error) if starts < STARTS && !spec.virtual_time && error.is_qemus_own() => {
                progress.note(&format!("QEMU failed; starting it again: {error}"));
            }
            _ => break (vm, finished, begin.elapsed()),
        }
    };
    let console = vm.console();
    if let Some(dir) = &spec.out_dir {
        // Evidence first: the next steps may fail.
        write_atomic(&dir.join("console.log"), console.as_bytes())?;
    }
    let (head, boot_host_time) = finished?;
    let (report, files, kernel_log) = unpack(&vm.payload(head.payload_len)?)?;
    let result = RunResult {
        lines: lines::parse(&vm.lines())?,
        log_problems: log::problems(&kernel_log, &spec.allow),
        report,
        files,
        kernel_log,
        console,
        kernel_version: kernel.version,
        qemu_version: qemu.version,
        host_time,
        boot_host_time,
    };
    if let Some(dir) = &spec.out_dir {
        save(dir, &result)?;
    }
    Ok(result)
}

fn image(
    cache: &Cache,
    spec: &RunSpec,
    kernel: &KernelTree,
    progress: &mut dyn Progress,
) -> Result<Vec<u8>> {
    let programs = Programs::beside(spec.luc_lab.as_deref())
        .map_err(LabError::io("find", "the programs of LUC"))?;
    let mut image = Image::new();
    image.add_ext_tools()?;
    image.add_luc(&programs)?;
    image.add_busybox(&fetch::busybox(cache, &spec.kernels.guest, progress)?)?;
    let modules = Modules::open(&kernel.image_root, &kernel.release)?;
    let mut drivers = Vec::new();
    for fs_type in file_systems(spec) {
        if let (Some(module), Some((maker, package))) = (fs_type.module(), fs_type.maker()) {
            image.add_host_tool(maker, package)?;
            drivers.push(module.to_owned());
        }
    }
    let names: Vec<String> = MODULES
        .into_iter()
        .filter(|name| !MODULES_OPTIONAL.contains(name) || modules.has(name))
        .map(str::to_owned)
        .chain(drivers)
        .chain(spec.modules.iter().cloned())
        .collect();
    let folder = format!("/lib/modules/{}", kernel.release);
    let load = |path: String, params: &str| ModuleLoad {
        path,
        params: params.to_owned(),
    };
    let mut loads = Vec::new();
    for module in modules.in_load_order(&names)? {
        let path = format!("{folder}/kernel/{}.ko", module.name);
        image.file(&path, 0o644, module.data);
        loads.push(match module.name.as_str() {
            // Devices come from configfs alone.
            "null_blk" => load(path, "nr_devices=0"),
            _ => load(path, ""),
        });
    }
    if let Some(path) = &spec.luc_module {
        let at = format!("{folder}/extra/luc.ko");
        image.add_module(&at, path)?;
        image.link(LUC_MODULE_PATH, &at);
        // `modprobe luc` finds it too.
        let found_by = format!("{folder}/modules.dep");
        image.file(&found_by, 0o644, b"extra/luc.ko:\n".to_vec());
        loads.extend(
            spec.luc_module_load
                .iter()
                .map(|params| load(at.clone(), params)),
        );
    }
    if let Some(path) = disk_module(spec, progress)? {
        let at = format!("{folder}/extra/lucdisk.ko");
        image.add_module(&at, &path)?;
        loads.push(load(at, ""));
    }
    for file in &spec.files {
        image.add_guest_file(file)?;
    }
    let plan = Plan {
        modules: loads,
        settle_ns: SETTLE_NS,
        tells_output: spec.tells_output,
        cells: spec.cells.clone(),
    };
    image.add_plan(
        serde_json::to_vec(&plan).map_err(|e| LabError::bad_input("plan", e.to_string()))?,
    );
    image.pack()
}

/// The file systems that the cells ask for.
fn file_systems(spec: &RunSpec) -> BTreeSet<FsType> {
    let disks = spec.cells.iter().flat_map(|cell| &cell.disks);
    disks.map(|disk| disk.fs_type).collect()
}

/// The driver of the lab's own disk, if anything asks for it.
fn disk_module(spec: &RunSpec, progress: &mut dyn Progress) -> Result<Option<PathBuf>> {
    let mut disks = spec.cells.iter().flat_map(|cell| &cell.disks);
    if spec.disk_module.is_some() || !disks.any(DiskSpec::needs_driver) {
        return Ok(spec.disk_module.clone());
    }
    build_disk_module(&spec.kernels, &spec.kernel, progress).map(Some)
}

/// The kernel as an ELF file if it can be unpacked here, so that the guest does not decompress it
/// at every boot.
fn boot_file(cache: &Cache, kernel: &KernelTree) -> Result<PathBuf> {
    let mut packed = kernel
        .image_root
        .join(format!("boot/vmlinuz-{}", kernel.release));
    if !packed.exists() {
        let inside = format!("usr/lib/modules/{}/vmlinuz", kernel.release);
        packed = kernel.image_root.join(inside);
    }
    let data = fs::read(&packed).map_err(LabError::io("read", &packed))?;
    let key = format!("kernels/{}-{}/vmlinux", kernel.release, kernel.version);
    let Some(payload) = payload(&data) else {
        return Ok(packed);
    };
    let unpacked = cache.entry(&key, |dir| {
        let vmlinux = match payload {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => crate::kernels::modules::unzstd(payload),
            _ => crate::kernels::modules::unxz(payload),
        }
        .map_err(LabError::io("decompress", &packed))?;
        write_atomic(&dir.join("vmlinux"), &vmlinux)
    });
    unpacked.map(|dir| dir.join("vmlinux"))
}

/// The compressed kernel in a bzImage, if its format is known here.
/// Offsets are those of the kernel's x86 boot protocol.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = match image[0x1f1] {
        0 => 4,
        n => usize::from(n),
    };
    let begin = (setup_sectors + 1) * 512 + word(0x248)?;
    let payload = image.get(begin..begin.checked_add(word(0x24c)?)?)?;
    let known =
        payload.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || payload.starts_with(b"\xfd7zXZ\0");
    known.then_some(payload)
}

/// Most starts of a machine. With several processors at the same time QEMU's own threads race: now
/// and then QEMU aborts at boot, with "`iotlb_to_section`: Assertion
/// ``section_index < d->map.sections_nb' failed``" (10.0.2).
const STARTS: u32 = 3;

/// Waits until the guest ends; returns its last head and the host time of its boot.
fn watch(vm: &mut Vm, spec: &RunSpec, progress: &mut dyn Progress) -> Result<(Head, Duration)> {
    let begin = Instant::now();
    let limit = Duration::from_secs(spec.timeout_host_s);
    let mut boot = None;
    let mut shown = None;
    loop {
        let ended = vm.try_wait()?;
        let head = vm.head()?;
        if head.state >= State::Running {
            boot.get_or_insert_with(|| begin.elapsed());
            if shown.as_ref() != Some(&head) {
                hand_on(vm, shown.as_ref(), &head, progress)?;
                progress.guest(head.done, head.total, &head.text);
                shown = Some(head.clone());
            }
        }
        if let Some(status) = ended {
            if head.state == State::Done {
                return Ok((head, boot.unwrap_or_default()));
            }
            return Err(no_results(vm, &head, &status.to_string()));
        }
        if begin.elapsed() > limit {
            vm.kill();
            return Err(LabError::HostTimeout {
                limit_s: spec.timeout_host_s,
                progress: doing(&head),
                tail: tools::tail(&vm.console(), 20),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Hands on what a step has put out between two heads. A shorter output is another step's.
fn hand_on(vm: &Vm, before: Option<&Head>, now: &Head, progress: &mut dyn Progress) -> Result<()> {
    let more = |stream: usize| {
        let from = before.map_or(0, |head| head.output_lens[stream]);
        let to = now.output_lens[stream];
        vm.output(stream, if from > to { 0 } else { from }, to)
    };
    let (stdout, stderr) = (more(0)?, more(1)?);
    if !(stdout.is_empty() && stderr.is_empty()) {
        progress.output(&stdout, &stderr);
    }
    Ok(())
}

fn no_results(vm: &Vm, head: &Head, status: &str) -> LabError {
    let console = vm.console();
    let progress = doing(head);
    if console.contains("Kernel panic") {
        return LabError::GuestPanic {
            progress,
            oops: tools::oops(&console),
        };
    }
    LabError::NoResults {
        progress,
        qemu: format!("{}, {status}", tools::tail(&vm.errors(), 3)),
        tail: tools::tail(&console, 20),
    }
}

fn doing(head: &Head) -> String {
    if head.state == State::Booting {
        return "before its first process".to_owned();
    }
    format!(
        "{} of {} cells done, at {}",
        head.done, head.total, head.text
    )
}

type Answer = (GuestReport, Vec<(String, Vec<u8>)>, String);

fn unpack(payload: &[u8]) -> Result<Answer> {
    let mut report = None;
    let mut kernel_log = String::new();
    let mut files = Vec::new();
    for (path, data) in cpio::read(payload).map_err(LabError::BadResults)? {
        if path == REPORT_NAME {
            let parsed = serde_json::from_slice(&data);
            report = Some(parsed.map_err(|e| LabError::BadResults(e.to_string()))?);
        } else if path == KERNEL_LOG_NAME {
            kernel_log = String::from_utf8_lossy(&data).into_owned();
        } else if let Some(name) = path.strip_prefix(OUT_PREFIX) {
            files.push((name.to_owned(), data));
        }
    }
    let report = report.ok_or_else(|| LabError::BadResults("the report is missing".into()))?;
    Ok((report, files, kernel_log))
}

/// Writes `result.json`, `kernel.log`, and the steps' files below `files/`; if there are several
/// cells, each has a folder of its name there.
fn save(dir: &Path, result: &RunResult) -> Result<()> {
    let json = serde_json::to_vec_pretty(&result.report)
        .map_err(|e| LabError::BadResults(e.to_string()))?;
    write_atomic(&dir.join("result.json"), &json)?;
    write_atomic(&dir.join("kernel.log"), result.kernel_log.as_bytes())?;
    let files = dir.join("files");
    remove_tree(&files)?;
    let only = match &result.report.cells[..] {
        [cell] => Some(format!("{}/", cell.name)),
        _ => None,
    };
    for (name, data) in &result.files {
        let name = only
            .as_deref()
            .and_then(|cell| name.strip_prefix(cell))
            .unwrap_or(name);
        let safe = Path::new(name)
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        if !safe {
            return Err(LabError::BadResults(format!("a file named {name:?}")));
        }
        write_atomic(&files.join(name), data)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CellResult;

    #[test]
    fn the_files_of_a_lone_cell_lie_right_below_files() {
        let cell = |name: &str| CellResult {
            name: name.to_owned(),
            error: None,
            steps: Vec::new(),
        };
        let mut result = RunResult {
            report: GuestReport {
                kernel_release: String::new(),
                clocksource: String::new(),
                ready_ns: 0,
                error: None,
                cells: vec![cell("run")],
                files_dropped: Vec::new(),
            },
            files: vec![("run/a/b".to_owned(), b"kept".to_vec())],
            kernel_log: String::new(),
            console: String::new(),
            lines: Vec::new(),
            log_problems: Vec::new(),
            kernel_version: String::new(),
            qemu_version: String::new(),
            host_time: Duration::ZERO,
            boot_host_time: Duration::ZERO,
        };
        let dir = tempfile::tempdir().unwrap();
        let kept = |path: &str| std::fs::read(dir.path().join(path)).ok();
        save(dir.path(), &result).unwrap();
        assert_eq!(kept("files/a/b").as_deref(), Some(&b"kept"[..]));
        result.report.cells.push(cell("other"));
        save(dir.path(), &result).unwrap();
        assert_eq!(kept("files/run/a/b").as_deref(), Some(&b"kept"[..]));
        assert_eq!(kept("files/a/b"), None, "an earlier run's");
    }
}
