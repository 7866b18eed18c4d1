//! Counts journal commits from `/proc/fs/jbd2/<journal>/info`, which every stock kernel has.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, stat};
use serde::{Deserialize, Serialize};

use crate::{Result, WorkloadError};

/// The work of a journal between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalCounts {
    /// Commits that ended.
    pub commits: u64,
    /// Commits that a task asked for (fsync and the like); the others ran by the timer.
    pub requested: u64,
}

/// The journal of a file system.
pub struct Journal {
    info: PathBuf,
}

impl Journal {
    /// Finds the journal of the file system that holds `dir`.
    pub fn below(dir: &Path) -> Option<Self> {
        let device = stat(dir).ok()?.st_dev;
        let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        let target = fs::read_link(link).ok()?;
        // The kernel writes '/' as '!' in names, and so does the link.
        let name = target.file_name()?.to_str()?.to_owned();
        Self::named(Path::new("/proc/fs/jbd2"), &name)
    }

    /// Finds the journal of a device. A journal inside the file system is called DEVICE-INODE, one
    /// on its own device DEVICE.
    fn named(root: &Path, device: &str) -> Option<Self> {
        let entry = fs::read_dir(root).ok()?.flatten().find(|entry| {
            entry.file_name().to_str().is_some_and(|name| {
                name.strip_prefix(device).is_some_and(|rest| {
                    rest.is_empty()
                        || rest.strip_prefix('-').is_some_and(|inode| {
                            !inode.is_empty() && inode.bytes().all(|b| b.is_ascii_digit())
                        })
                })
            })
        })?;
        Some(Self {
            info: entry.path().join("info"),
        })
    }

    /// Returns the blocks that the journal holds: four times the most that a transaction may have.
    pub fn blocks(&self) -> Option<u64> {
        let info = fs::read_to_string(&self.info).ok()?;
        let (_, rest) = info.lines().next()?.split_once("each up to ")?;
        rest.split_once(' ')?
            .0
            .parse()
            .ok()
            .map(|most: u64| 4 * most)
    }

    /// Reads the counts since the mount; `None` when the file cannot be read (it needs root).
    pub fn counts(&self) -> Option<JournalCounts> {
        parse(&fs::read_to_string(&self.info).ok()?)
    }
}

/// Length at which the kernel cuts the name of a task.
const COMM_BYTES: usize = 15;

/// The kernel thread that commits a journal.
pub struct Thread {
    schedstat: PathBuf,
}

impl Journal {
    /// Finds the journal's thread: the only task of its name. `None` if two names are equal once
    /// the kernel has cut them.
    pub fn thread(&self) -> Option<Thread> {
        let journal = self.info.parent()?.file_name()?.to_str()?;
        let mut name = format!("jbd2/{journal}");
        name.truncate(COMM_BYTES);
        let is_it = |task: &fs::DirEntry| {
            let comm = fs::read_to_string(task.path().join("comm"));
            comm.is_ok_and(|comm| comm.trim_end() == name)
        };
        let mut tasks = fs::read_dir("/proc").ok()?.flatten().filter(is_it);
        let task = tasks.next()?;
        tasks.next().is_none().then(|| Thread {
            schedstat: task.path().join("schedstat"),
        })
    }
}

impl Thread {
    pub fn run_ns(&self) -> Result<u64> {
        let text = fs::read_to_string(&self.schedstat);
        let text = text.map_err(|e| WorkloadError::call("read", &self.schedstat, e))?;
        // The fields are: time on a processor, time waiting for one, turns.
        let first = text.split(' ').next().and_then(|ns| ns.parse().ok());
        Ok(first.unwrap_or(0))
    }
}

/// Parses the first line: `N transactions (M requested), each up to B blocks`.
fn parse(info: &str) -> Option<JournalCounts> {
    let (commits, rest) = info.lines().next()?.split_once(" transactions (")?;
    let (requested, _) = rest.split_once(" requested)")?;
    Some(JournalCounts {
        commits: commits.trim().parse().ok()?,
        requested: requested.trim().parse().ok()?,
    })
}

impl JournalCounts {
    /// Returns the difference from `earlier`; 0 if a counter went back (a remount in between).
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits.saturating_sub(earlier.commits),
            requested: self.requested.saturating_sub(earlier.requested),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Journal, JournalCounts, parse};

    const INFO: &str = "512 transactions (498 requested), each up to 2048 blocks\naverage: \n  \
                        0ms waiting for transaction\n";

    #[test]
    fn reads_the_kernels_text() {
        let counts = parse(INFO).expect("well formed");
        assert_eq!(
            counts,
            JournalCounts {
                commits: 512,
                requested: 498
            }
        );
        let earlier = JournalCounts {
            commits: 500,
            requested: 500,
        };
        assert_eq!(counts.since(earlier).commits, 12);
        assert_eq!(counts.since(earlier).requested, 0);
        for bad in [
            "",
            "x transactions (1 requested)",
            "1 transactions",
            "\n1 transactions (1 requested)",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn finds_the_journal_of_exactly_that_device() {
        let root = tempfile::tempdir().expect("temporary directory");
        for name in ["sda1-8", "sda10-8", "sdb", "nullb0-8", "sda-x"] {
            std::fs::create_dir(root.path().join(name)).expect("directory");
            std::fs::write(root.path().join(name).join("info"), INFO).expect("file");
        }
        let found = |device: &str| {
            Journal::named(root.path(), device).map(|j| {
                let dir = j.info.parent().expect("has one").to_owned();
                dir.file_name().expect("has one").to_owned()
            })
        };
        assert_eq!(found("sda1"), Some("sda1-8".into()));
        assert_eq!(found("sdb"), Some("sdb".into()));
        assert_eq!(found("sda"), None);
        assert_eq!(found("nullb"), None);
        assert!(
            Journal::named(root.path(), "sdb")
                .expect("there")
                .counts()
                .is_some()
        );
    }
}
