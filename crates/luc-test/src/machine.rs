//! A fake machine: a tree of files as the kernel would show it, and a module behind it that keeps
//! the contract of `/sys/fs/luc`.

#![allow(clippy::format_collect)] // a few lines, once
#![allow(clippy::new_without_default)] // it makes a tree of files

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use luc_base::Stop;
use luc_cli::{Context, Program};
use luc_control::Dev;
use luc_host::{Located, Machine, System};
use rustix::io::Errno;

/// Release of the fake machine's kernel.
pub const RELEASE: &str = "6.12.95+deb12-cloud-amd64";

/// Replaces a file at once, as the kernel never shows a part of a value. Several threads may do so.
///
/// # Errors
/// It cannot be written, for example because its folder is gone.
pub fn put_whole(file: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    // Made in the folder of temporary files, as programs list the one of this file.
    let mut whole = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile()?;
    whole.write_all(content.as_ref())?;
    whole.persist(file)?;
    Ok(())
}

/// A file system of the fake machine.
pub struct Disk {
    pub device: &'static str,
    pub name: &'static str,
    pub point: &'static str,
    pub kind: &'static str,
    pub options: &'static str,
    pub journal: bool,
}

pub const DISKS: [Disk; 6] = [
    disk("254:1", "vda1", "/", "ext4", "rw,errors=remount-ro", true),
    disk("254:16", "vdb", "/srv/data", "ext4", "rw", true),
    disk("253:0", "dm-0", "/srv/mail", "ext3", "rw", true),
    disk("254:32", "vdc", "/srv/plain", "ext4", "rw", false),
    disk("254:48", "vdd", "/srv/frozen", "ext4", "ro", true),
    disk("254:64", "vde", "/srv/xfs", "xfs", "rw", true),
];

const fn disk(
    device: &'static str,
    name: &'static str,
    point: &'static str,
    kind: &'static str,
    options: &'static str,
    journal: bool,
) -> Disk {
    Disk {
        device,
        name,
        point,
        kind,
        options,
        journal,
    }
}

/// A fake machine for the program `P`: the tree, and how the kernel behind it behaves.
pub struct Pretended<P> {
    pub dir: tempfile::TempDir,
    machine: Machine,
    /// Error of every write to `attach`.
    pub attach_error: Option<Errno>,
    /// Error of every write to `detach`, after it has switched LUC off.
    pub detach_error: Option<Errno>,
    /// Error of every attempt to load the module.
    pub load_error: Option<Errno>,
    /// Raised when the module is loaded, as if Ctrl-C were pressed at that moment.
    pub interrupt_at_load: Option<Stop>,
    /// Reading panics while this file exists.
    pub panic_at: Option<PathBuf>,
    /// Whether the module refuses to be unloaded.
    pub pinned: bool,
    /// Every write, load and unload, in order.
    pub acts: std::cell::RefCell<Vec<String>>,
    program: PhantomData<fn() -> P>,
}

impl<P: Program> Pretended<P> {
    /// Makes a cloud machine that can run LUC; the module is installed, not loaded.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let pretended = Pretended {
            machine: Machine::new(dir.path()),
            dir,
            attach_error: None,
            detach_error: None,
            load_error: None,
            interrupt_at_load: None,
            panic_at: None,
            pinned: false,
            acts: std::cell::RefCell::default(),
            program: PhantomData,
        };
        pretended.put("/proc/sys/kernel/osrelease", RELEASE);
        pretended.put("/proc/sys/kernel/arch", "x86_64\n");
        pretended.put("/proc/sys/kernel/ftrace_enabled", "1\n");
        pretended.put("/proc/sys/kernel/modules_disabled", "0\n");
        pretended.put(
            "/proc/self/status",
            "Name:\tluc\nCapEff:\t000001ffffffffff\n",
        );
        pretended.put(
            &format!("/boot/config-{RELEASE}"),
            "CONFIG_MODULES=y\nCONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y\n",
        );
        pretended.put("/sys/kernel/security/lockdown", "[none] integrity\n");
        let functions: String = luc_control::hooked_functions()
            .iter()
            .map(|it| format!("{}\n", it.name))
            .collect();
        let tracing = "/sys/kernel/tracing";
        pretended.put(&format!("{tracing}/available_filter_functions"), &functions);
        pretended.put(&format!("{tracing}/enabled_functions"), "");
        let modules = format!("/lib/modules/{RELEASE}");
        pretended.put(&format!("{modules}/extra/luc.ko"), "\x7fELF");
        pretended.put(&format!("{modules}/modules.dep"), "extra/luc.ko:\n");
        pretended.put(&format!("{modules}/build/Makefile"), "");
        for disk in &DISKS {
            pretended.add(disk);
        }
        let mounts: String = DISKS
            .iter()
            .enumerate()
            .map(|(at, disk)| {
                format!(
                    "{} 1 {} / {} rw,relatime shared:1 - {} /dev/{} {}\n",
                    20 + at,
                    disk.device,
                    disk.point,
                    disk.kind,
                    disk.name,
                    disk.options
                )
            })
            .collect();
        pretended.put("/proc/self/mountinfo", &mounts);
        pretended
    }

    fn add(&self, disk: &Disk) {
        fs::create_dir_all(self.at(disk.point)).expect("mount point");
        self.put(&format!("/sys/class/block/{}/dev", disk.name), disk.device);
        let links = self.at("/sys/dev/block");
        fs::create_dir_all(&links).expect("links");
        std::os::unix::fs::symlink(
            format!("../../class/block/{}", disk.name),
            links.join(disk.device),
        )
        .expect("link");
        if disk.kind != "xfs" {
            let task = if disk.journal { "77\n" } else { "<none>\n" };
            self.put(&format!("/sys/fs/ext4/{}/journal_task", disk.name), task);
        }
        let mut block = vec![0_u8; 2048];
        block[1024 + 0x38..1024 + 0x3a].copy_from_slice(&[0x53, 0xef]);
        block[1024 + 0x5c] = if disk.journal { 4 } else { 0 };
        block[1024 + 0x5d] = if disk.name == "dm-0" { 4 } else { 0 };
        block[1024 + 0xfd] = u8::from(disk.journal);
        let size = (64_u32 << 20).to_le_bytes();
        block[1024 + 0x14c..1024 + 0x150].copy_from_slice(&size);
        self.put(&format!("/dev/{}", disk.name), block);
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        put_whole(&path, content).expect("file");
    }

    pub fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() {
            // A test's load may create a counter there meanwhile.
            let gone = (0..100).any(|_| fs::remove_dir_all(&path).is_ok() || !path.exists());
            assert!(gone, "remove {}", path.display());
        } else {
            fs::remove_file(path).expect("remove");
        }
    }

    /// Creates the files of a loaded module.
    pub fn load(&self) {
        self.put("/sys/fs/luc/version", "0.1.0\n");
        self.put("/sys/fs/luc/attach", "");
        self.put("/sys/fs/luc/detach", "");
        let hooks: String = luc_control::hooked_functions()
            .iter()
            .map(|it| {
                let optional = if it.needed { "" } else { " optional" };
                format!("{} detached{optional}\n", it.name)
            })
            .collect();
        self.put("/sys/fs/luc/hooks", hooks);
    }

    pub fn hook(&self, function: &str, state: &str) {
        let file = "/sys/fs/luc/hooks";
        let text = self.machine.read(file).expect("hooks");
        let before = format!("{function} detached");
        assert!(text.contains(&before), "{function} is a hook");
        self.put(file, text.replace(&before, &format!("{function} {state}")));
    }

    fn attach(&self, line: &str) -> Result<(), Errno> {
        let mut words = line.split_whitespace();
        let device = words.next().ok_or(Errno::INVAL)?;
        let disk = DISKS
            .iter()
            .find(|disk| disk.device == device)
            .ok_or(Errno::NODEV)?;
        let dir = format!("/sys/fs/luc/{}", disk.name);
        if self.exists(&dir) {
            return Err(Errno::EXIST);
        }
        let mut values: Vec<(&str, String)> = luc_control::knobs()
            .iter()
            .map(|knob| (knob.name, knob.format(knob.default)))
            .collect();
        for word in words {
            let (name, text) = word.split_once('=').ok_or(Errno::INVAL)?;
            let value = Self::check(name, text)?;
            for row in values.iter_mut().filter(|row| row.0 == name) {
                row.1.clone_from(&value);
            }
        }
        self.put(&format!("{dir}/device"), format!("{device}\n"));
        for (name, value) in values {
            self.put(&format!("{dir}/knobs/{name}"), format!("{value}\n"));
        }
        for counter in luc_control::counters() {
            self.put(&format!("{dir}/counters/{}", counter.name), "0\n");
        }
        Ok(())
    }

    fn check(name: &str, text: &str) -> Result<String, Errno> {
        let knob = luc_control::knob(name).map_err(|_| Errno::INVAL)?;
        match knob.parse(text) {
            Ok(value) => Ok(knob.format(value)),
            Err(luc_control::KnobError::OutOfBounds { .. }) => Err(Errno::RANGE),
            Err(_) => Err(Errno::INVAL),
        }
    }

    /// Sets counters of a file system that LUC is on for.
    pub fn count(&self, name: &str, values: &[(&str, i64)]) {
        for (counter, value) in values {
            assert!(luc_control::counter(counter).is_some(), "{counter}");
            self.put(
                &format!("/sys/fs/luc/{name}/counters/{counter}"),
                format!("{value}\n"),
            );
        }
    }

    /// Runs a command line in this process; returns what a terminal would
    /// show, standard output first, and the exit code.
    pub fn run(&self, words: &[&str]) -> String {
        self.run_until(words, Stop::new())
    }

    pub fn run_until(&self, words: &[&str], stop: Stop) -> String {
        let name = P::command().get_name().to_owned();
        luc_cli::set_name(&name);
        let line = std::iter::once(name.as_str()).chain(words.iter().copied());
        let program = P::try_parse_from(line).expect("a valid command line");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = program.verb().run(&mut Context {
            system: self,
            out: &mut out,
            err: &mut err,
            stop,
        });
        let mut shown = String::from_utf8(out).expect("text");
        shown += &String::from_utf8(err).expect("text");
        match outcome {
            Ok(()) => shown,
            Err(failure) => format!("{shown}{name}: {failure}\n[exit {}]\n", failure.exit_code()),
        }
    }
}

impl<P: Program> System for Pretended<P> {
    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        let panics = self.panic_at.as_ref().is_some_and(|file| file.exists());
        assert!(!panics, "as was asked for");
        self.machine.read_bytes(path)
    }

    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.machine.read_at(path, offset, length)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.acts.borrow_mut().push(format!("{path} {text}"));
        match path {
            "/sys/fs/luc/attach" => match self.attach_error {
                Some(errno) => Err(errno.into()),
                None => Ok(self.attach(text)?),
            },
            "/sys/fs/luc/detach" => {
                let disk = DISKS.iter().find(|disk| disk.device == text);
                let dir = format!("/sys/fs/luc/{}", disk.ok_or(Errno::NOENT)?.name);
                if !self.exists(&dir) {
                    return Err(Errno::NOENT.into());
                }
                self.remove(&dir);
                self.detach_error.map_or(Ok(()), |errno| Err(errno.into()))
            }
            knob if knob.starts_with("/sys/fs/luc/") => {
                let name = knob.rsplit('/').next().expect("a name");
                let value = Self::check(name, text)?;
                self.machine.write(path, &value)
            }
            _ => self.machine.write(path, text),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.machine.list(path)
    }

    fn link(&self, path: &str) -> io::Result<PathBuf> {
        self.machine.link(path)
    }

    fn exists(&self, path: &str) -> bool {
        self.machine.exists(path)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.machine.path(path)
    }

    fn locate(&self, path: &Path) -> io::Result<Located> {
        self.machine.locate(path)
    }

    fn load_file(&self, file: &Path) -> io::Result<()> {
        self.acts
            .borrow_mut()
            .push(format!("load {}", file.display()));
        if let Some(errno) = self.load_error {
            return Err(errno.into());
        }
        if !self.at(&file.to_string_lossy()).exists() {
            return Err(Errno::NOENT.into());
        }
        self.load();
        if let Some(stop) = &self.interrupt_at_load {
            stop.set();
        }
        Ok(())
    }

    fn modprobe(&self, _name: &str) -> Option<io::Result<()>> {
        None
    }

    fn device_mapper(&self, verb: &str, name: &str) -> Option<String> {
        self.machine.device_mapper(verb, name)
    }

    fn unload(&self, name: &str) -> io::Result<()> {
        self.acts.borrow_mut().push(format!("unload {name}"));
        if self.pinned {
            return Err(Errno::AGAIN.into());
        }
        if !self.exists("/sys/fs/luc") {
            return Err(Errno::NOENT.into());
        }
        self.remove("/sys/fs/luc");
        Ok(())
    }

    fn kernel_log(&self, prefix: &str) -> Option<String> {
        self.machine.kernel_log(prefix)
    }
}

pub fn device(name: &str) -> Dev {
    let disk = DISKS.iter().find(|disk| disk.name == name);
    let device = disk.expect("a disk").device.parse();
    device.expect("a device number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_replace_a_file_beside_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("value");
        std::thread::scope(|scope| {
            for value in ["1\n", "22\n"] {
                let file = &file;
                scope.spawn(move || (0..500).for_each(|_| put_whole(file, value).unwrap()));
            }
        });
        let found = fs::read_to_string(&file).unwrap();
        assert!(["1\n", "22\n"].contains(&found.as_str()), "{found:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
