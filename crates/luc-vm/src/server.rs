//! A Debian server on a virtual disk: systemd, apt, dkms and the headers of its kernel. It boots
//! its own kernel and initrd as often as asked, and keeps its state. Each boot runs a script from a
//! second disk, then powers off. QEMU loads the kernel, or a firmware with Secure Boot does through
//! shim and GRUB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cache::Cache;
use crate::error::{LabError, Result};
use crate::kernels::list::{KernelList, KernelSpec};
use crate::kernels::tree::{Debian, as_root};
use crate::machine::qemu::{Firmware, Loader, Qemu, Vm, VmSpec, command_line};
use crate::progress::Progress;
use crate::tools::{self, capture, digest};

/// Packages besides the kernel that a server has before LUC is installed.
const PACKAGES: [&str; 7] = [
    "systemd-sysv",
    "udev",
    "kmod",
    "e2fsprogs",
    "dkms",
    "openssl",
    "mokutil",
];

/// Unpacks the packages for Secure Boot, for the host to read. They are not installed: their
/// scripts look at the firmware of the machine that makes the server.
const UNPACK_FIRMWARE: &str = r#"
chroot "$1" sh -ec '
mkdir /opt/firmware
cd /opt/firmware
apt-get -q download ovmf shim-signed shim-helpers-amd64-signed grub-efi-amd64-signed
for package in *.deb; do
	dpkg -x "$package" .
	rm "$package"
done'
"#;

/// Files below /opt/firmware, and where the host keeps them: the firmware, its variables with
/// Microsoft's keys and Secure Boot on, and the files on its system partition.
const FIRMWARE: [(&str, &str); 5] = [
    ("usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "code"),
    ("usr/share/OVMF/OVMF_VARS_4M.ms.fd", "variables"),
    (
        "usr/lib/shim/shimx64.efi.signed",
        "partition/EFI/BOOT/BOOTX64.EFI",
    ),
    (
        "usr/lib/shim/mmx64.efi.signed",
        "partition/EFI/BOOT/mmx64.efi",
    ),
    (
        "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
        "partition/EFI/BOOT/grubx64.efi",
    ),
];

/// Unit that runs the script of a boot, after all others were started.
const STEP: &str = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\n\
    TimeoutStartSec=infinity\n\
    ExecStart=/bin/sh -c 'mount -o ro /dev/vdb /mnt && exec sh /mnt/step.sh >/dev/ttyS0 2>&1'\n\
    ExecStopPost=/bin/systemctl --no-block poweroff\n";

/// Makes initrds contain only the modules that find the disk: with all modules an emulated
/// processor is busy for minutes.
const SMALL_INITRD: &str = r#"
sed -i 's/^MODULES=.*/MODULES=list/' "$1/etc/initramfs-tools/initramfs.conf" &&
printf 'virtio_pci\nvirtio_blk\next4\n' >> "$1/etc/initramfs-tools/modules" &&
chroot "$1" update-initramfs -u
"#;

/// Makes a disk from an archive of the root. Arguments: archive, disk.
const TO_DISK: &str = r#"
mkdir "$1.d" &&
tar -xpf "$1" --numeric-owner -C "$1.d" &&
rm "$1" &&
mke2fs -q -t ext4 -d "$1.d" "$2" 4G &&
rm -r "$1.d"
"#;

/// Command line of a server. A login would take the console from the script. Kernel messages would
/// break up its lines, so the script prints them at its end. Without virtual time the TSC runs at
/// the host's rate.
const COMMAND_LINE: &str = "root=/dev/vda rw tsc_early_khz=0 systemd.mask=serial-getty@ttyS0.service systemd.show_status=0 loglevel=1";

const POLL: Duration = Duration::from_millis(100);

/// How a server boots.
#[derive(Debug, Clone, Copy)]
pub enum Boot<'a> {
    /// QEMU loads the kernel, with these words on its command line.
    Plain(&'a str),
    /// A firmware with Secure Boot on starts shim, GRUB and the kernel. When a text appears on the
    /// console, the keys paired with it are pressed.
    Secure(&'a [(&'a str, &'a str)]),
}

/// A server.
#[derive(Debug)]
pub struct Server {
    qemu: Qemu,
    dir: TempDir,
}

impl Server {
    /// Makes a server that runs `kernel` and holds the packages of `later`, with headers: no
    /// network is needed to install them.
    ///
    /// # Errors
    /// This machine lacks a program, a mirror or disk space.
    pub fn new(
        list: &KernelList,
        kernel: &str,
        later: &str,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let qemu = Qemu::find()?;
        let fresh = fresh(list.get(kernel)?, list.get(later)?, progress)?;
        let dir = tempfile::Builder::new()
            .prefix("luc-server-")
            .tempdir()
            .map_err(LabError::io("create", "temporary folder"))?;
        // Holes stay holes; if the file system can share blocks, nothing is copied at all.
        let mut copy = Command::new("cp");
        copy.args(["--sparse=always", "--reflink=auto"]);
        capture(copy.arg(fresh).arg(dir.path().join("disk")), "coreutils")?;
        Ok(Self { qemu, dir })
    }

    /// Boots the newest kernel, runs `step.sh` of the `files`, which are in /mnt, and returns the
    /// console's output until the machine powered off or would have rebooted.
    ///
    /// # Errors
    /// The kernel panicked, an expected text did not appear, QEMU failed, or the time limit passed.
    pub fn boot(&self, files: &[(&str, &Path)], boot: Boot<'_>, limit: Duration) -> Result<String> {
        let (kernel, firmware);
        let mut initrd = Vec::new();
        let (loader, words, mut keys) = match boot {
            Boot::Plain(words) => {
                kernel = self.linked("/vmlinuz", "kernel")?;
                let image = self.linked("/initrd.img", "initrd")?;
                initrd = fs::read(&image).map_err(LabError::io("read", image))?;
                (Loader::Qemu(&kernel), words, &[][..])
            }
            Boot::Secure(keys) => {
                firmware = self.firmware()?;
                (Loader::Firmware(&firmware), "", keys)
            }
        };
        let command_line = format!("{COMMAND_LINE} {words}");
        let machine = VmSpec {
            loader,
            memory_mib: 2048,
            vcpus: 2,
            icount_shift: None,
            seed: 1,
            extra_command_line: &command_line,
            line_counter: None,
            disks: &[&self.at("disk"), &self.side(files)?],
        };
        let mut vm = Vm::start(&self.qemu, &machine, &initrd)?;
        let begin = Instant::now();
        let mut seen = 0;
        let status = loop {
            if let Some(status) = vm.try_wait()? {
                break status;
            }
            if begin.elapsed() > limit {
                vm.kill();
                return Err(LabError::HostTimeout {
                    limit_s: limit.as_secs(),
                    progress: "a server".to_owned(),
                    tail: tools::tail(&vm.console(), 20),
                });
            }
            if let Some(((text, pressed), rest)) = keys.split_first() {
                // Text from before the last keys does not ask for the next ones.
                let console = vm.console();
                let new = console.get(seen..).unwrap_or_default();
                if let Some(at) = new.find(text) {
                    seen += at + text.len();
                    vm.press(pressed)?;
                    keys = rest;
                }
            }
            std::thread::sleep(POLL);
        };
        let console = vm.console();
        if console.contains("Kernel panic") {
            return Err(LabError::GuestPanic {
                progress: "a server".to_owned(),
                oops: tools::oops(&console),
            });
        }
        if !status.success() || !keys.is_empty() {
            let asked = keys
                .first()
                .map(|(text, _)| format!(", which never printed {text:?}"));
            return Err(LabError::NoResults {
                progress: format!("a server{}", asked.unwrap_or_default()),
                qemu: format!("{}, {status}", tools::tail(&vm.errors(), 3)),
                tail: tools::tail(&console, 20),
            });
        }
        // The kernel's last message follows the script's output.
        let said = match console.rsplit_once("reboot: Power down") {
            Some((before, _)) => before.rsplit_once('\n').map_or(before, |(said, _)| said),
            None => &console,
        };
        Ok(format!("{said}\n"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Copies the server's file that a link in its root points to.
    fn linked(&self, link: &str, name: &str) -> Result<PathBuf> {
        let stat = debugfs(&self.at("disk"), &format!("stat {link}"))?;
        let target = stat
            .split_once("Fast link dest: \"")
            .and_then(|(_, rest)| rest.split_once('"'));
        let Some((target, _)) = target else {
            return Err(LabError::bad_input(link, "the server has no such link"));
        };
        self.copy(&format!("/{target}"), name)
    }

    /// Copies a file of the server.
    fn copy(&self, file: &str, name: &str) -> Result<PathBuf> {
        let to = self.at(name);
        debugfs(&self.at("disk"), &format!("dump {file} {}", to.display()))?;
        if !to.exists() {
            return Err(LabError::bad_input(file, "the server has no such file"));
        }
        Ok(to)
    }

    /// The firmware, which keeps its variables from boot to boot.
    fn firmware(&self) -> Result<Firmware> {
        let partition = self.at("partition");
        if !partition.exists() {
            for dir in ["BOOT", "debian"] {
                let dir = partition.join("EFI").join(dir);
                fs::create_dir_all(&dir).map_err(LabError::io("create", dir))?;
            }
            for (file, name) in FIRMWARE {
                self.copy(&format!("/opt/firmware/{file}"), name)?;
            }
            let menu = format!(
                "search --set=root --file /vmlinuz\nlinux /vmlinuz {}\ninitrd /initrd.img\nboot\n",
                command_line(COMMAND_LINE)
            );
            let file = partition.join("EFI/debian/grub.cfg");
            fs::write(&file, menu).map_err(LabError::io("write", file))?;
        }
        Ok(Firmware {
            code: self.at("code"),
            variables: self.at("variables"),
            partition,
        })
    }

    /// Makes the second disk, with `files`.
    fn side(&self, files: &[(&str, &Path)]) -> Result<PathBuf> {
        let dir = tempfile::tempdir_in(self.dir.path())
            .map_err(LabError::io("create a folder in", self.dir.path()))?;
        for (name, file) in files {
            fs::copy(file, dir.path().join(name)).map_err(LabError::io("copy", *file))?;
        }
        let side = self.at("side");
        let mut make = Command::new("mke2fs");
        make.args(["-q", "-F", "-t", "ext4", "-d"]).arg(dir.path());
        capture(make.arg(&side).arg("256M"), "e2fsprogs")?;
        Ok(side)
    }
}

fn debugfs(disk: &Path, request: &str) -> Result<String> {
    let mut command = Command::new("debugfs");
    capture(command.args(["-R", request]).arg(disk), "e2fsprogs")
}

/// The disk of a server that was never booted, in the cache.
fn fresh(kernel: &KernelSpec, later: &KernelSpec, progress: &mut dyn Progress) -> Result<PathBuf> {
    let mut suites: Vec<&str> = kernel.suites.iter().map(String::as_str).collect();
    suites.extend(later.suites.iter().map(String::as_str));
    let mut packages = PACKAGES.to_vec();
    packages.extend([kernel.image.as_str(), &kernel.headers]);
    let later_suite = later.suites.first().map_or("", String::as_str);
    let hooks = [
        format!("cat > \"$1/etc/systemd/system/luc-step.service\" <<'END'\n{STEP}END"),
        "chroot \"$1\" systemctl add-wants multi-user.target luc-step.service".to_owned(),
        SMALL_INITRD.to_owned(),
        UNPACK_FIRMWARE.to_owned(),
        format!(
            "chroot \"$1\" apt-get -q -y --no-install-recommends --download-only \
             -t {later_suite} install {} {}",
            later.image, later.headers
        ),
    ];
    let versions = [kernel, later].map(|spec| spec.verified.as_deref().unwrap_or("newest"));
    let decides = suites.iter().chain(&packages).chain(&versions).copied();
    let decides = decides.chain(hooks.iter().map(String::as_str));
    let key = format!("servers/{}-{}", kernel.name, digest(decides));
    let entry = Cache::open()?.entry(&key, |side| {
        progress.stage("making a server (once)");
        let (archive, disk) = (side.join("root.tar"), side.join("disk"));
        let system = Debian {
            variant: "minbase",
            suites: &suites,
            packages: &packages,
            hooks: &hooks,
            ..Debian::default()
        };
        system.make(&archive)?;
        capture(as_root(TO_DISK).arg(archive).arg(disk), "util-linux")?;
        Ok(())
    })?;
    Ok(entry.join("disk"))
}
