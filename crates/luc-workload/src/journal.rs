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
    /// The folder of its thread; `None` in a namespace that does not show it.
    thread: Option<PathBuf>,
}

impl Journal {
    /// Finds the journal of the file system that holds `dir`, by its thread.
    pub fn below(dir: &Path) -> Option<Self> {
        let device = stat(dir).ok()?.st_dev;
        let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        let target = fs::read_link(link).ok()?;
        // The kernel writes '/' as '!' in names, and so does the link.
        let name = target.file_name()?.to_str()?;
        let task = fs::read_to_string(format!("/sys/fs/ext4/{name}/journal_task")).ok();
        let thread = task.map(|task| Path::new("/proc").join(task.trim()));
        let comm = thread
            .as_ref()
            .map(|it| fs::read_to_string(it.join("comm")));
        let comm = comm.and_then(std::result::Result::ok);
        // Where the thread is not shown, the journal is taken for one inside the file system.
        let called = comm.clone().unwrap_or_else(|| format!("jbd2/{name}-"));
        let info = Self::info(Path::new("/proc/fs/jbd2"), called.trim_end())?;
        let thread = thread.filter(|_| comm.is_some());
        Some(Self { info, thread })
    }

    /// Finds the file of the journal with this thread. The thread of a journal inside the file
    /// system is called `jbd2/DEVICE-INODE`, that of one on a device of its own `jbd2/DEVICE`.
    fn info(root: &Path, thread: &str) -> Option<PathBuf> {
        let name = thread.strip_prefix("jbd2/")?;
        let whole = root.join(name).join("info");
        if whole.exists() {
            return Some(whole);
        }
        // Before Linux 5.17 (kernel commit d6986ce24fc0) the name was cut after 15 bytes.
        let entries = fs::read_dir(root).ok()?.flatten();
        let mut alike = entries.filter(|it| it.file_name().to_string_lossy().starts_with(name));
        let found = alike.next()?;
        alike.next().is_none().then(|| found.path().join("info"))
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

/// The kernel thread that commits a journal.
pub struct Thread {
    schedstat: PathBuf,
}

impl Journal {
    pub fn thread(&self) -> Option<Thread> {
        let schedstat = self.thread.as_ref()?.join("schedstat");
        Some(Thread { schedstat })
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
    fn finds_the_journal_of_exactly_that_thread() {
        let root = tempfile::tempdir().expect("temporary directory");
        for name in ["sda1-8", "sda10-8", "sdb", "nvme0n1p2-8", "nvme0n1p12-8"] {
            std::fs::create_dir(root.path().join(name)).expect("directory");
            std::fs::write(root.path().join(name).join("info"), INFO).expect("file");
        }
        for (thread, name) in [
            ("jbd2/sda1-8", Some("sda1-8")),
            ("jbd2/sdb", Some("sdb")),
            ("jbd2/nvme0n1p2-8", Some("nvme0n1p2-8")),
            // Cut.
            ("jbd2/nvme0n1p2-", Some("nvme0n1p2-8")),
            ("jbd2/nvme0n1p1", Some("nvme0n1p12-8")),
            // The thread is not shown.
            ("jbd2/sda1-", Some("sda1-8")),
            ("jbd2/nvme0n1p", None),
            ("jbd2/sdc-8", None),
            ("bash", None),
        ] {
            let info = name.map(|name| root.path().join(name).join("info"));
            assert_eq!(Journal::info(root.path(), thread), info, "{thread}");
        }
    }
}
