//! The virtual machine.
//!
//! With virtual time one instruction takes 2^shift nanoseconds and an idle processor jumps to its
//! next timer, so the run is a function of its inputs: no device follows host time, every random
//! number comes from the seed, and the wall clock starts at a fixed date.
//!
//! Image, console and shared memory are anonymous memory files: a killed run
//! leaves nothing on disk, and QEMU dies with the process that started it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::FdFlags;

use crate::error::{LabError, Result};
use crate::machine::channel::{
    CHANNEL_BYTES, Head, OUTPUT_BYTES_MAX, OUTPUTS_AT, PAYLOAD_AT, PAYLOAD_BYTES_MAX,
};
use crate::tools::{capture, variable};

/// Environment variable that names another QEMU program.
pub const QEMU_VARIABLE: &str = "LUC_QEMU";
/// Oldest version trusted to count instructions.
const VERSION_MIN: (u32, u32) = (8, 2);
/// Shifts QEMU allows; shift 0 is 1000 million instructions per second.
const SHIFT_MAX: u32 = 10;
/// Start of the guest's wall clock.
const CLOCK_BASE: &str = "2024-01-01T00:00:00";

const FIRMWARE_LAST_WORDS: &str = "Booting from ROM";

/// A processor without the features that are slow to emulate (AVX, XSAVE, five
/// levels of page tables) or that exist to contain hardware bugs an emulator
/// does not have. Mitigations are left at the distribution's defaults for it.
const CPU_MODEL: &str = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand,+rdseed,+rdtscp,+smep,+arat,+fsgsbase,+bmi1,+bmi2";

/// Kernel command line of every guest. Fixed clock and timer rates keep the
/// kernel from measuring them against each other; the self-tests of the crypto
/// code and its jitter random source (a sixth of all boot instructions) only
/// cost time; `panic=-1` with `-no-reboot` makes a panic end QEMU.
const COMMAND_LINE: &str = "console=ttyS0 quiet loglevel=5 nokaslr norandmaps panic=-1 \
     random.trust_cpu=on tsc=reliable tsc_early_khz=1000000 cryptomgr.notests \
     initcall_blacklist=jent_mod_init log_buf_len=8M printk.time=1 net.ifnames=0 ipv6.disable=1";

/// The program that loads the kernel.
#[derive(Debug, Clone)]
pub enum Loader<'a> {
    /// QEMU loads this image with the initramfs.
    Qemu(&'a Path),
    /// A firmware starts a boot loader, which loads the kernel. The console takes keys.
    Firmware(&'a Firmware),
}

/// A UEFI firmware with Secure Boot.
#[derive(Debug, Clone)]
pub struct Firmware {
    /// Its code.
    pub code: PathBuf,
    /// Its variables, which it changes.
    pub variables: PathBuf,
    /// Folder that it sees as its system partition.
    pub partition: PathBuf,
}

/// A machine to boot.
#[derive(Debug, Clone)]
pub struct VmSpec<'a> {
    /// Loads the kernel.
    pub loader: Loader<'a>,
    /// Guest memory in MiB.
    pub memory_mib: u32,
    /// Virtual processors.
    pub vcpus: u32,
    /// Nanoseconds per instruction as a power of two; `None`: no virtual time.
    pub icount_shift: Option<u32>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Added to the kernel command line, if QEMU loads the kernel.
    pub extra_command_line: &'a str,
    /// Plugin that counts lines, see [`crate::machine::lines`].
    pub line_counter: Option<&'a Path>,
    /// Files that are its disks, vda first. With them virtual time is not deterministic.
    pub disks: &'a [&'a Path],
}

/// QEMU on this machine.
#[derive(Debug, Clone)]
pub struct Qemu {
    program: PathBuf,
    /// Version, for the record.
    pub version: String,
}

impl Qemu {
    /// Looks for QEMU and refuses versions that miscount.
    ///
    /// # Errors
    /// [`LabError::UnfitQemu`] or [`LabError::Tool`].
    pub fn find() -> Result<Self> {
        Self::at(variable(QEMU_VARIABLE).unwrap_or_else(|| "qemu-system-x86_64".into()))
    }

    fn at(program: PathBuf) -> Result<Self> {
        let text = capture(Command::new(&program).arg("--version"), "qemu-system-x86");
        let text = text.map_err(|error| match error {
            LabError::MissingTool { program, .. } => LabError::UnfitQemu {
                fault: format!("{program} not found"),
            },
            error => error,
        })?;
        let version = check_version(&text)?;
        Ok(Self { program, version })
    }
}

/// Checks the first line of `--version`: `QEMU emulator version 10.0.2 (Debian ...)`.
fn check_version(text: &str) -> Result<String> {
    let version = text
        .split_once("version ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .unwrap_or_default();
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < VERSION_MIN {
        let found = match version {
            "" => "of unknown version".to_owned(),
            version => version.to_owned(),
        };
        let fault = format!("QEMU {found} corrupts cmpxchg16b when it counts instructions");
        return Err(LabError::UnfitQemu { fault });
    }
    Ok(version.to_owned())
}

/// The shift of a processor speed in million instructions per second of
/// virtual time: 1000, 500, 250, 125, 62.5 and so on.
///
/// # Errors
/// [`LabError::BadInput`] lists the possible speeds.
#[allow(clippy::float_cmp)] // The allowed values are exact in binary.
pub fn icount_shift(cpu_mips: f64) -> Result<u32> {
    let mips = |shift: u32| 1000.0 / f64::from(1_u32 << shift);
    (0..=SHIFT_MAX)
        .find(|&shift| mips(shift) == cpu_mips)
        .ok_or_else(|| {
            let allowed = (0..=SHIFT_MAX).map(|shift| mips(shift).to_string());
            let allowed = allowed.collect::<Vec<_>>().join(", ");
            let what = format!("CPU speed {cpu_mips} MIPS");
            LabError::bad_input(what, format!("possible speeds are {allowed}"))
        })
}

/// A running virtual machine; killed when dropped.
#[derive(Debug)]
pub struct Vm {
    child: Child,
    console: File,
    channel: File,
    stderr: File,
    lines: File,
}

impl Vm {
    /// Starts a machine with this initramfs.
    ///
    /// # Errors
    /// QEMU cannot be started or memory is short.
    pub fn start(qemu: &Qemu, machine: &VmSpec<'_>, initramfs: &[u8]) -> Result<Self> {
        let mut image = memory_file("initramfs")?;
        image
            .write_all(initramfs)
            .map_err(LabError::io("fill", "guest image"))?;
        let console = memory_file("console")?;
        let stderr = memory_file("stderr")?;
        let channel = memory_file("channel")?;
        channel
            .set_len(CHANNEL_BYTES as u64)
            .map_err(LabError::io("size", "shared memory"))?;
        let lines = memory_file("lines")?;
        let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut command = Command::new(&qemu.program);
        let files = [&image, &console, &channel].map(path);
        command.args(arguments(machine, &files));
        if let Some(plugin) = machine.line_counter {
            let option = format!("{},out={}", plugin.display(), path(&lines));
            command.args(["-plugin", &option]);
        }
        let keys = match machine.loader {
            Loader::Qemu(_) => Stdio::null(),
            Loader::Firmware(_) => Stdio::piped(),
        };
        command.stdin(keys).stdout(Stdio::null());
        let errors = stderr
            .try_clone()
            .map_err(LabError::io("share", "error output"))?;
        command.stderr(errors);
        let shared: Vec<OwnedFd> = [&image, &console, &channel, &lines]
            .into_iter()
            .map(|file| file.as_fd().try_clone_to_owned())
            .collect::<std::io::Result<_>>()
            .map_err(LabError::io("share", "memory files"))?;
        let numbers = [&image, &console, &channel, &lines].map(AsRawFd::as_raw_fd);
        let parent = rustix::process::getpid();
        let keep = move || {
            for (file, number) in shared.iter().zip(numbers) {
                keep_open(file, number)?;
            }
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // The parent may have died before the line above took effect.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only:
        // it neither allocates nor takes a lock.
        unsafe {
            command.pre_exec(keep);
        }
        let child = command
            .spawn()
            .map_err(LabError::io("run", &qemu.program))?;
        Ok(Self {
            child,
            console,
            channel,
            stderr,
            lines,
        })
    }

    /// The exit status once QEMU has ended.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .map_err(LabError::io("wait for", "QEMU"))
    }

    /// Presses these keys on the console of a machine with firmware.
    ///
    /// # Errors
    /// QEMU has ended, or its console takes no keys.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        let console = self.child.stdin.as_mut();
        let typed = console.ok_or_else(|| std::io::ErrorKind::Unsupported.into());
        typed
            .and_then(|console| console.write_all(keys.as_bytes()))
            .map_err(LabError::io("type on", "the machine's console"))
    }

    /// Ends QEMU now.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The guest's state and current work.
    ///
    /// # Errors
    /// Shared memory cannot be read.
    pub fn head(&self) -> Result<Head> {
        let mut page = [0; PAYLOAD_AT];
        self.channel
            .read_exact_at(&mut page, 0)
            .map_err(LabError::io("read", "shared memory"))?;
        Ok(Head::decode(&page))
    }

    /// The guest's answer.
    ///
    /// # Errors
    /// Its length is impossible.
    pub fn payload(&self, len: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > PAYLOAD_BYTES_MAX {
            return Err(LabError::BadResults(format!("a length of {len} bytes")));
        }
        self.read(PAYLOAD_AT, len)
    }

    /// The bytes between two lengths of a step's standard output (0) or error (1).
    ///
    /// # Errors
    /// The lengths are impossible.
    pub fn output(&self, stream: usize, from: u64, to: u64) -> Result<Vec<u8>> {
        if from > to || to > OUTPUT_BYTES_MAX as u64 {
            return Err(LabError::BadResults(format!("an output of {to} bytes")));
        }
        let at = |len: u64| usize::try_from(len).unwrap_or(OUTPUT_BYTES_MAX);
        self.read(OUTPUTS_AT[stream] + at(from), at(to) - at(from))
    }

    fn read(&self, at: usize, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.channel
            .read_exact_at(&mut bytes, at as u64)
            .map_err(LabError::io("read", "shared memory"))?;
        Ok(bytes)
    }

    /// All output of the guest on its console.
    pub fn console(&self) -> String {
        let text = read_all(&self.console).replace('\r', "");
        // The firmware clears a screen that is not there, then says this.
        match text.split_once(FIRMWARE_LAST_WORDS) {
            Some((_, kernel)) => kernel.trim_start_matches('.').trim_start().to_owned(),
            None => text,
        }
    }

    /// Output of the plugin that counts lines.
    pub fn lines(&self) -> String {
        read_all(&self.lines)
    }

    /// All output of QEMU on its standard error.
    pub fn errors(&self) -> String {
        read_all(&self.stderr)
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps a file open across exec. Files are close-on-exec, so that no other child inherits them;
/// this child keeps its four under the numbers in QEMU's arguments.
fn keep_open(file: &OwnedFd, number: i32) -> std::io::Result<()> {
    debug_assert_ne!(file.as_raw_fd(), number);
    // SAFETY: after fork the number still belongs to the original file, which
    // nothing in this child closes before exec.
    let original = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(original, FdFlags::empty())?;
    Ok(())
}

fn memory_file(name: &'static str) -> Result<File> {
    memfd_create(name, MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|e| LabError::io("create memory file", name)(e.into()))
}

fn read_all(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut file = file;
    // Nothing else uses this offset: QEMU opened the file separately.
    if file.seek(SeekFrom::Start(0)).is_ok() {
        let _ = file.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The kernel's command line with these words at its end.
pub fn command_line(extra: &str) -> String {
    format!("{COMMAND_LINE} {extra}").trim().to_owned()
}

/// Writes a path for an option of QEMU.
fn value(path: &Path) -> String {
    // A comma ends a value; two stand for one comma in it.
    path.display().to_string().replace(',', ",,")
}

fn arguments(machine: &VmSpec<'_>, [image, console, channel]: &[String; 3]) -> Vec<String> {
    let (accel, clock) = match machine.icount_shift {
        Some(_) => ("tcg,thread=single", "vm"),
        None => ("tcg,thread=multi", "host"),
    };
    // Devices that nothing needs cost boot time and may follow host time.
    let board = "q35,hpet=off,smbus=off,sata=off,vmport=off,i8042=off,usb=off,graphics=off";
    let mut list = ["-nodefaults", "-no-user-config", "-no-reboot"]
        .map(str::to_owned)
        .to_vec();
    let keys = match machine.loader {
        Loader::Qemu(_) => "",
        Loader::Firmware(_) => ",input-path=/dev/stdin",
    };
    for (name, value) in [
        ("-M", board.to_owned()),
        ("-accel", accel.to_owned()),
        ("-cpu", CPU_MODEL.to_owned()),
        ("-display", "none".to_owned()),
        ("-rtc", format!("base={CLOCK_BASE},clock={clock}")),
        ("-seed", machine.seed.to_string()),
        ("-m", format!("{}M", machine.memory_mib)),
        ("-smp", machine.vcpus.to_string()),
        ("-chardev", format!("file,id=console,path={console}{keys}")),
        ("-serial", "chardev:console".to_owned()),
        (
            "-object",
            format!(
                "memory-backend-file,id=channel,mem-path={channel},share=on,size={CHANNEL_BYTES}"
            ),
        ),
        ("-device", "ivshmem-plain,memdev=channel".to_owned()),
    ] {
        list.extend([name.to_owned(), value]);
    }
    for disk in machine.disks {
        // The host's cache outlives the machine: flushing it proves nothing here.
        let drive = format!("file={},format=raw,if=virtio,cache=unsafe", value(disk));
        list.extend(["-drive".to_owned(), drive]);
    }
    let loader = match machine.loader {
        Loader::Qemu(kernel) => [
            ("-kernel", kernel.display().to_string()),
            ("-initrd", image.to_owned()),
            ("-append", command_line(machine.extra_command_line)),
        ]
        .to_vec(),
        Loader::Firmware(firmware) => {
            let Firmware {
                code,
                variables,
                partition,
            } = firmware;
            let drive = |option, path, more| ("-drive", format!("{option}={},{more}", value(path)));
            [
                // The firmware resets the machine through the keyboard controller.
                ("-M", "i8042=on".to_owned()),
                // The kernel changes the variables through the firmware alone.
                (
                    "-global",
                    "driver=cfi.pflash01,property=secure,value=on".to_owned(),
                ),
                drive("file", code, "format=raw,if=pflash,readonly=on"),
                drive("file", variables, "format=raw,if=pflash"),
                drive("driver=vvfat,dir", partition, "if=virtio,readonly=on"),
            ]
            .to_vec()
        }
    };
    for (name, value) in loader {
        list.extend([name.to_owned(), value]);
    }
    if let Some(shift) = machine.icount_shift {
        list.extend(["-icount".to_owned(), format!("shift={shift},sleep=off")]);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_powers_of_two_below_1000() {
        assert_eq!(icount_shift(1000.0).unwrap(), 0);
        assert_eq!(icount_shift(125.0).unwrap(), 3);
        assert_eq!(icount_shift(62.5).unwrap(), 4);
        for bad in [0.0, 2000.0, 300.0, -1.0, f64::NAN] {
            let error = icount_shift(bad).unwrap_err().to_string();
            assert!(error.contains("1000, 500, 250, 125, 62.5"), "{error}");
        }
    }

    #[test]
    fn disks_come_in_their_order() {
        let machine = VmSpec {
            loader: Loader::Qemu(Path::new("kernel")),
            memory_mib: 64,
            vcpus: 1,
            icount_shift: None,
            seed: 1,
            extra_command_line: "",
            line_counter: None,
            disks: &[Path::new("/a,b"), Path::new("/c")],
        };
        let list = arguments(&machine, &["i", "c", "m"].map(str::to_owned));
        let drives = list.iter().filter_map(|word| word.strip_prefix("file="));
        let files: Vec<_> = drives
            .filter_map(|drive| drive.strip_suffix(",format=raw,if=virtio,cache=unsafe"))
            .collect();
        assert_eq!(files, ["/a,,b", "/c"]);
    }

    /// The version that an error asks for is one that is taken.
    fn asks_for_a_version_that_is_taken(error: &LabError) {
        let error = error.to_string();
        let rest = error.split_once("install QEMU ").expect("a remedy").1;
        let (version, rest) = rest.split_once(' ').expect("a version");
        check_version(&format!("QEMU emulator version {version}.0")).expect(version);
        // Debian 12 itself has 7.2.
        let backports = "(on Debian 12: `apt install -t bookworm-backports qemu-system-x86`)";
        assert!(rest.ends_with(backports), "{error}");
    }

    #[test]
    fn old_qemu_is_refused_with_the_remedy() {
        assert_eq!(
            check_version("QEMU emulator version 10.0.2 (Debian 1:10)\n").unwrap(),
            "10.0.2"
        );
        for old in [
            "QEMU emulator version 7.2.19 (Debian)",
            "QEMU emulator version 8.1.0",
            "nonsense",
        ] {
            asks_for_a_version_that_is_taken(&check_version(old).unwrap_err());
        }
    }

    #[test]
    fn a_missing_qemu_has_the_same_remedy() {
        let error = Qemu::at("/nowhere/qemu".into()).expect_err("no such program");
        assert!(error.to_string().starts_with("/nowhere/qemu not found"));
        asks_for_a_version_that_is_taken(&error);
    }
}
