//! `/proc/self/mountinfo`: which file system a path is on, and where a file
//! system is mounted.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use luc_control::Dev;

use crate::system::{Located, System};

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u64,
    /// Block device; a made-up number for file systems without one.
    pub device: Dev,
    /// Folder of the file system that is mounted; `/` unless it is a bind mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Type, such as `ext4`.
    pub kind: String,
    /// The source as the mount names it, such as `/dev/sda1`.
    pub source: String,
    /// Options of the file system, not of this mount of it, separated by commas.
    pub options: String,
    /// True if the file system itself, not just this mount of it, is read-only.
    pub read_only: bool,
    /// True if this mount of it is read-only.
    pub read_only_here: bool,
}

/// Every mount of this process, oldest first. Lines that cannot be read are
/// left out: a mount that nobody asked about must not fail the command.
///
/// # Errors
/// The mount table cannot be read.
pub fn mounts(system: &dyn System) -> std::io::Result<Vec<Mount>> {
    const FILE: &str = "/proc/self/mountinfo";
    let text = system.read(FILE).map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot read {FILE}: {error}"))
    })?;
    Ok(text.lines().filter_map(parse).collect())
}

/// The mounts that a process sees.
///
/// # Errors
/// The process is gone, or its mount table cannot be read.
pub fn of_process(system: &dyn System, pid: u32) -> std::io::Result<Vec<Mount>> {
    let text = system.read(&format!("/proc/{pid}/mountinfo"))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// `36 35 98:0 /root /point rw,noatime [optional]... - ext4 /dev/sda1 rw,errors=continue`
fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let device = mount.nth(1)?.parse().ok()?;
    let root = unescape(mount.next()?);
    let point = unescape(mount.next()?);
    let here = mount.next().unwrap_or_default();
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    let source = unescape(file_system.next()?).to_string_lossy().into_owned();
    let options = file_system.next().unwrap_or_default();
    Some(Mount {
        id,
        device,
        root,
        point,
        kind,
        source,
        options: options.to_owned(),
        read_only: is_read_only(options),
        read_only_here: is_read_only(here),
    })
}

fn is_read_only(options: &str) -> bool {
    options.split(',').any(|option| option == "ro")
}

/// Tells whether no file below `path` can be written, because of its mount.
pub fn is_read_only_at(system: &dyn System, path: &str) -> bool {
    let mounts = mounts(system).unwrap_or_default();
    deepest(&mounts, Path::new(path)).is_some_and(|mount| mount.read_only || mount.read_only_here)
}

/// The kernel writes blanks, tabs, newlines and backslashes as `\ooo`.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes
            .get(at + 1..at + 4)
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = octal {
            plain.push(byte);
            at += 4;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

/// The mount that a located path is on; for a block device, its first mount.
pub fn mount_of<'a>(mounts: &'a [Mount], located: &Located) -> Option<&'a Mount> {
    match located {
        Located::BlockDevice(device) => mounts.iter().find(|mount| mount.device == *device),
        Located::Inside {
            path,
            mount_id,
            device,
        } => mounts
            .iter()
            .find(|mount| Some(mount.id) == *mount_id)
            .or_else(|| mounts.iter().find(|mount| Some(mount.device) == *device))
            .or_else(|| deepest(mounts, path)),
    }
}

/// The deepest mount above `path`. Later mounts hide earlier ones on the same point, and
/// `max_by_key` returns the last of equals.
fn deepest<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Where the file system of `device` is mounted, whole mounts before bind mounts of its folders.
pub fn points_of(mounts: &[Mount], device: Dev) -> Vec<PathBuf> {
    let here = || mounts.iter().filter(move |mount| mount.device == device);
    let whole = here().filter(|mount| mount.root == Path::new("/"));
    let parts = here().filter(|mount| mount.root != Path::new("/"));
    let mut points: Vec<PathBuf> = Vec::new();
    for mount in whole.chain(parts) {
        if !points.contains(&mount.point) {
            points.push(mount.point.clone());
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
30 22 254:16 / /srv/my\\040data rw - ext4 /dev/vdb rw
31 22 254:16 /sub /export ro - ext4 /dev/vdb rw
32 22 0:40 / /srv/my\\040data/cache rw - tmpfs tmpfs rw,size=1k
33 22 254:32 / /backup ro - ext4 /dev/vdc ro
broken line
";

    fn table() -> Vec<Mount> {
        TABLE.lines().filter_map(parse).collect()
    }

    fn inside(path: &str) -> Located {
        Located::Inside {
            path: path.into(),
            mount_id: None,
            device: None,
        }
    }

    #[test]
    fn a_line_is_taken_apart() {
        let table = table();
        assert_eq!(table.len(), 5);
        assert_eq!(table[1].point, Path::new("/srv/my data"));
        assert!(!table[2].read_only, "only this mount of it is read-only");
        assert!(table[2].read_only_here && !table[1].read_only_here);
        assert!(table[4].read_only);
        assert_eq!(table[0].options, "rw,errors=remount-ro");
    }

    #[test]
    fn the_deepest_mount_wins() {
        let table = table();
        let find = |path| mount_of(&table, &inside(path)).map(|mount| mount.id);
        assert_eq!(find("/srv/my data/file"), Some(30));
        assert_eq!(find("/srv/my data/cache/x"), Some(32));
        assert_eq!(find("/srv/my database"), Some(22));
        assert_eq!(find("/export"), Some(31));
    }

    #[test]
    fn whole_mounts_come_first() {
        let device = Dev {
            major: 254,
            minor: 16,
        };
        assert_eq!(
            points_of(&table(), device),
            [PathBuf::from("/srv/my data"), PathBuf::from("/export")]
        );
    }
}
