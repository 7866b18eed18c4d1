//! The machine as `luc` sees it: files below `/sys`, `/proc` and `/dev`, and
//! the few system calls about kernel modules.
//!
//! Everything goes through the trait [`System`], so that a tree of plain files can stand in for a
//! kernel: `--sysroot DIR` reads one, and the tests use one with a fake module.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use luc_control::Dev;

/// The kind of a path that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// A block device: its file system is meant, not the one its node is on.
    BlockDevice(Dev),
    /// Anything else.
    Inside {
        /// The path without symbolic links.
        path: PathBuf,
        /// Number of the mount, if the kernel tells it (since Linux 5.8, commit fa2fcf4f1df1).
        mount_id: Option<u64>,
        /// `st_dev`, unless a tree of files stands in for the machine.
        device: Option<Dev>,
    },
}

/// The machine. Paths are absolute, as on a real one.
pub trait System {
    /// A whole file.
    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Text of a whole file; invalid UTF-8 is replaced.
    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = self.read_bytes(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    /// Up to `length` bytes of a file from `offset`.
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;
    /// Writes a file that exists, in a single write: sysfs acts on each.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Target of a symbolic link.
    fn link(&self, path: &str) -> io::Result<PathBuf>;
    /// True if the path is there.
    fn exists(&self, path: &str) -> bool;
    /// The path by which `std::fs` reaches a file of the machine.
    fn path(&self, path: &str) -> PathBuf;
    /// The kind of a path that the user gave.
    fn locate(&self, path: &Path) -> io::Result<Located>;
    /// Loads a module file (`finit_module`).
    fn load_file(&self, file: &Path) -> io::Result<()>;
    /// Loads an installed module by name, with `modprobe`; `None` if there is no `modprobe`.
    fn modprobe(&self, name: &str) -> Option<io::Result<()>>;
    /// The `table` or the `status` of a device of device mapper, as `dmsetup` prints it; `None` if
    /// it cannot be read. In a tree of files it lies beside the node.
    fn device_mapper(&self, verb: &str, name: &str) -> Option<String>;
    /// Removes a module (`delete_module`).
    fn unload(&self, name: &str) -> io::Result<()>;
    /// The latest line of the kernel log that starts with `prefix`.
    fn kernel_log(&self, prefix: &str) -> Option<String>;
}

/// The machine that we run on, or a tree of files that looks like one.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine itself for `/`, the tree below `root` otherwise.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Machine { root: root.into() }
    }

    fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn pretended(&self, path: &Path) -> io::Result<Located> {
        let root = self.root.canonicalize()?;
        let full = self.at(path).canonicalize()?;
        let inside = Path::new("/").join(full.strip_prefix(&root).map_err(|_| {
            io::Error::other(format!("leads outside the tree {}", self.root.display()))
        })?);
        if let Some(name) = device_name(&inside) {
            let number = self.read(&format!("/sys/class/block/{name}/dev"));
            if let Some(device) = number.ok().and_then(|text| text.trim().parse().ok()) {
                return Ok(Located::BlockDevice(device));
            }
        }
        Ok(Located::Inside {
            path: inside,
            mount_id: None,
            device: None,
        })
    }
}

/// Unpacks a device number of the C library.
pub(crate) fn numbered(packed: u64) -> Dev {
    Dev {
        major: rustix::fs::major(packed),
        minor: rustix::fs::minor(packed),
    }
}

/// Serializes a device number as people write it.
///
/// # Errors
/// The serializer's.
pub fn as_text<S: serde::Serializer>(dev: &Dev, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(dev)
}

/// `dm-0` for `/dev/dm-0`.
fn device_name(path: &Path) -> Option<&str> {
    let mut parts = path.strip_prefix("/dev").ok()?.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => name.to_str(),
        _ => None,
    }
}

impl System for Machine {
    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.at(path))
    }

    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        use std::os::unix::fs::FileExt as _;
        let file = fs::File::open(self.at(path))?;
        let mut bytes = vec![0; length];
        let got = file.read_at(&mut bytes, offset)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).truncate(true).open(self.at(path))?;
        let written = file.write(text.as_bytes())?;
        if written == text.len() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::WriteZero,
            format!("only {written} of {} bytes were written", text.len()),
        ))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn link(&self, path: &str) -> io::Result<PathBuf> {
        fs::read_link(self.at(path))
    }

    fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.at(path)
    }

    fn locate(&self, path: &Path) -> io::Result<Located> {
        if !self.is_real() {
            return self.pretended(path);
        }
        let path = path.canonicalize()?;
        let metadata = fs::metadata(&path)?;
        if metadata.file_type().is_block_device() {
            return Ok(Located::BlockDevice(numbered(metadata.rdev())));
        }
        // The mount number tells bind mounts and stacked mounts apart, which
        // neither the path nor st_dev does. Kernels before 5.8 leave it out (kernel commit
        // fa2fcf4f1df1 adds it).
        let mount_id = rustix::fs::statx(
            rustix::fs::CWD,
            &path,
            rustix::fs::AtFlags::empty(),
            rustix::fs::StatxFlags::MNT_ID,
        )
        .ok()
        .filter(|found| found.stx_mask & rustix::fs::StatxFlags::MNT_ID.bits() != 0)
        .map(|found| found.stx_mnt_id);
        Ok(Located::Inside {
            path,
            mount_id,
            device: Some(numbered(metadata.dev())),
        })
    }

    fn load_file(&self, file: &Path) -> io::Result<()> {
        refuse_unless(self.is_real())?;
        let file = fs::File::open(file)?;
        rustix::system::finit_module(&file, c"", 0)?;
        Ok(())
    }

    fn modprobe(&self, name: &str) -> Option<io::Result<()>> {
        if !self.is_real() {
            return None;
        }
        let output = match Command::new(tool("modprobe")?).arg(name).output() {
            Ok(output) => output,
            Err(error) => return Some(Err(error)),
        };
        if output.status.success() {
            return Some(Ok(()));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().last().unwrap_or("modprobe failed").trim();
        Some(Err(error_of_modprobe(line)))
    }

    fn device_mapper(&self, verb: &str, name: &str) -> Option<String> {
        if !self.is_real() {
            return self.read(&format!("/dev/mapper/{name}.{verb}")).ok();
        }
        // Without --noflush, a status may wait for a device that does not answer.
        let output = Command::new(tool("dmsetup")?)
            .args([verb, "--noflush", name])
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn unload(&self, name: &str) -> io::Result<()> {
        refuse_unless(self.is_real())?;
        let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
        rustix::system::delete_module(&name, libc_o_nonblock())?;
        Ok(())
    }

    fn kernel_log(&self, prefix: &str) -> Option<String> {
        let path = self.at("/dev/kmsg");
        if !self.is_real() {
            let text = fs::read_to_string(path).ok()?;
            return last_record(text.lines(), prefix);
        }
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let log = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
        let mut log = fs::File::from(log);
        let mut records = Vec::new();
        let mut record = [0; 8192];
        loop {
            match log.read(&mut record) {
                Ok(0) => break,
                Ok(length) => records.push(String::from_utf8_lossy(&record[..length]).into_owned()),
                // A record was overwritten while we read: read on with the next one.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        last_record(records.iter().flat_map(|record| record.lines()), prefix)
    }
}

/// The system's text of an error, without the number that Rust adds.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Finds a program for administrators, whose shells often lack the sbin directories.
fn tool(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin"].into_iter();
    let mut tools = folders.map(|folder| Path::new(folder).join(name));
    tools.find(|tool| tool.exists())
}

fn refuse_unless(real: bool) -> io::Result<()> {
    if real {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "a tree of files has no kernel",
    ))
}

/// `O_NONBLOCK` as `delete_module` wants it: do not wait for users to leave.
fn libc_o_nonblock() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// A record of `/dev/kmsg` is `priority,sequence,time,flags;text`.
fn last_record<'a>(lines: impl Iterator<Item = &'a str>, prefix: &str) -> Option<String> {
    lines
        .filter_map(|line| line.split_once(';').map(|(_, text)| text))
        .filter_map(|text| text.strip_prefix(prefix))
        .last()
        .map(|text| text.trim().to_owned())
}

/// Turns modprobe's text back into an error number, so that the rest of the program need not care
/// how the module was loaded.
fn error_of_modprobe(line: &str) -> io::Error {
    use rustix::io::Errno;
    const REASONS: [(&str, Errno); 7] = [
        ("Exec format error", Errno::NOEXEC),
        ("Operation not supported", Errno::OPNOTSUPP),
        ("Operation not permitted", Errno::PERM),
        ("Key was rejected", Errno::KEYREJECTED),
        ("Required key not available", Errno::NOKEY),
        ("not found", Errno::NOENT),
        ("No such file", Errno::NOENT),
    ];
    REASONS
        .iter()
        .find(|(text, _)| line.contains(text))
        .map_or_else(
            || io::Error::other(line.to_owned()),
            |(_, errno)| io::Error::from(*errno),
        )
}
