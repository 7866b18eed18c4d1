//! Makes power cuts of a recorded disk, one after the other, and judges each.
//!
//! The recorded disk is a `lucdisk` of the lab's guest; a second one, the "replica", shows its
//! possible content after a cut. For every cut the replica is set to that content and mounted,
//! which recovers the journal. Then [`verify()`](crate::verify()) judges it, and e2fsck may check
//! it.
//!
//! ext4 writes its superblock outside the journal as well. A cut can tear it, and then the kernel
//! refuses the mount before it looks at the journal, with LUC or without. e2fsck repairs that and
//! replays the journal; then the promises are judged as after any cut.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};

use crate::kernel_log::KernelLog;
use crate::mark::{self, MarkError, Placed};
use crate::{DataMode, DirTree, History, verify};
use luc_base::random::next;

/// Where the driver keeps its disks.
const CONFIG_ROOT: &str = "/sys/kernel/config/lucdisk";

/// Which of the writes that were not durable survive a cut, in the driver's words.
const SURVIVALS: [&str; 6] = [
    "none",
    "all",
    "random",
    "random-whole",
    "latest-lost",
    "earliest-lost",
];

/// The kernel's message about a superblock that a cut has torn.
const TORN: &str = "invalid superblock checksum";
/// The first block of the second group, if groups have 8192 blocks.
const COPY: &str = "8192";

/// Where to cut, and how to judge the disk after a cut: arguments of `luc-lab promises cuts`.
#[derive(clap::Args, Clone, Debug)]
pub struct Cuts {
    /// Disk of the lab that was recorded, by name
    // Its recording is over.
    #[arg(long)]
    pub recorded: String,
    /// Disk of the lab, switched off, that will hold the state after a cut
    #[arg(long)]
    pub replica: String,
    /// Partition of that disk with the file system, such as p2
    // The whole disk if empty.
    #[arg(long, default_value = "")]
    pub partition: String,
    /// Partition of that disk with the journal, if the journal has its own device
    #[arg(long)]
    pub journal: Option<String>,
    /// Directory to mount it at
    #[arg(long, value_hint = clap::ValueHint::DirPath)]
    pub at: PathBuf,
    /// File system
    #[arg(long, default_value = "ext4")]
    pub fs_type: String,
    /// Mount options
    #[arg(long, default_value = "")]
    pub mount: String,
    /// How the file system was mounted
    #[arg(long, value_enum, default_value = "ordered")]
    pub data_mode: DataMode,
    /// Number of cuts
    // Every flush gives two places to cut, before and after its end. If these are too few, random
    // places fill up; if they are too many, a random choice is made.
    #[arg(long, default_value_t = 100)]
    pub cuts: u32,
    /// Check every Nth cut with e2fsck; 0: none
    #[arg(long, default_value_t = 1)]
    pub fsck_every: u32,
    /// Seed of the moments of the cuts, and of which writes survive them
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A broken promise at a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Log entry before which the power failed.
    pub index: u64,
    /// Which writes survived, in the driver's words.
    pub mode: String,
    /// Seed of the choice of survivors.
    pub seed: u64,
    pub what: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Loss {
            index,
            mode,
            seed,
            what,
        } = self;
        write!(f, "cut {index} {mode} {seed}: {what}")
    }
}

/// Result of all cuts together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Entries of the record.
    pub log_entries: u64,
    /// Flushes in it.
    pub flushes: u64,
    /// Cuts judged.
    pub cuts: u64,
    /// Acknowledged syncs before a cut, summed over the cuts.
    pub syncs_verified: u64,
    /// Syncs that were acknowledged to the workload.
    pub syncs: u64,
    /// Files looked at, over all cuts.
    pub files: u64,
    /// Runs of e2fsck that looked for damage.
    pub fscks: u64,
    /// Cuts that tore the superblock, judged once e2fsck had repaired it.
    #[serde(default)]
    pub torn: u64,
    pub losses: Vec<Loss>,
}

/// Why cuts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// A call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Call {
        /// A verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The record is unusable.
    #[error("the record of {disk} {why}")]
    Record { disk: String, why: String },
    /// A mark makes no sense.
    #[error(transparent)]
    Mark(#[from] MarkError),
}

fn call(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CutError {
    let path = path.to_owned();
    move |source| CutError::Call {
        action,
        path,
        source,
    }
}

/// A place to cut, and the choice of survivors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    index: u64,
    survival: usize,
    seed: u64,
}

impl Cuts {
    fn attribute(disk: &str, name: &str) -> PathBuf {
        [CONFIG_ROOT, disk, name].iter().collect()
    }

    fn set(disk: &str, name: &str, value: &str) -> Result<(), CutError> {
        let path = Self::attribute(disk, name);
        fs::write(&path, value).map_err(call("write", &path))
    }

    fn text(disk: &str, name: &str) -> Result<String, CutError> {
        let path = Self::attribute(disk, name);
        fs::read_to_string(&path).map_err(call("read", &path))
    }

    fn number(disk: &str, name: &str) -> Result<u64, CutError> {
        let text = Self::text(disk, name)?;
        text.trim().parse().map_err(|_| CutError::Record {
            disk: disk.to_owned(),
            why: format!("has an invalid {name}: {:?}", text.trim()),
        })
    }

    fn device(&self, partition: &str) -> PathBuf {
        PathBuf::from(format!("/dev/{}{partition}", self.replica))
    }

    /// Makes all cuts.
    ///
    /// # Errors
    /// A disk refuses an operation. A loss is no error: it is in the summary.
    pub fn run(&self) -> Result<Summary, CutError> {
        let wrong = |why: String| CutError::Record {
            disk: self.recorded.clone(),
            why,
        };
        let lost = Self::number(&self.recorded, "log_lost")?;
        if lost > 0 {
            return Err(wrong(format!("lost {lost} entries; give it more memory")));
        }
        let entries = Self::number(&self.recorded, "log_entries")?;
        let flushes: Vec<u64> = Self::text(&self.recorded, "log_flushes")?
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect();
        let log = PathBuf::from(format!("/dev/{}-log", self.recorded));
        let marks = mark::read(&fs::read(&log).map_err(call("read", &log))?)?;
        let Some(first) = marks.first() else {
            return Err(wrong("contains no marks".to_owned()));
        };
        let cuts = places(&flushes, first.index..entries, self.cuts, self.seed);
        Self::set(&self.replica, "replica", &self.recorded)?;
        Self::set(&self.replica, "power", "1")?;
        let mut run = Run {
            cuts: self,
            device: self.device(&self.partition),
            journal: self.journal.as_deref().map(|part| self.device(part)),
            history: History::new(),
            ahead: &marks,
            summary: Summary {
                log_entries: entries,
                flushes: flushes.len() as u64,
                ..Summary::default()
            },
        };
        fs::create_dir_all(&self.at).map_err(call("make", &self.at))?;
        for cut in cuts {
            run.judge(cut)?;
        }
        let mut all = run.history;
        for placed in run.ahead {
            all.push(placed)?;
        }
        run.summary.syncs = all.syncs();
        Self::set(&self.replica, "power", "0")?;
        Ok(run.summary)
    }
}

/// Chooses `most` places to cut within the range, in order: around the end of every flush, the rest
/// anywhere. Each place takes the next survival in turn, so that none is left out.
fn places(flushes: &[u64], range: std::ops::Range<u64>, most: u32, seed: u64) -> Vec<Cut> {
    let mut random = seed;
    let mut indices: Vec<u64> = flushes
        .iter()
        // Just before the flush is done, and just after.
        .flat_map(|&end| [end, end + 1])
        .filter(|index| range.contains(index))
        .collect();
    let most = most as usize;
    // A partial shuffle draws the places to keep, if there are too many.
    for taken in 0..indices.len().min(most) {
        let left = indices.len() - taken;
        let other = taken + usize::try_from(next(&mut random) % left as u64).unwrap_or(0);
        indices.swap(taken, other);
    }
    indices.truncate(most);
    let width = range.end.saturating_sub(range.start).max(1);
    while indices.len() < most {
        indices.push(range.start + next(&mut random) % width);
    }
    indices.sort_unstable();
    let cut = |(turn, index)| Cut {
        index,
        survival: turn % SURVIVALS.len(),
        seed: next(&mut random),
    };
    indices.into_iter().enumerate().map(cut).collect()
}

fn e2fsck(how: &[&str], device: &Path, journal: Option<&Path>) -> Result<Output, CutError> {
    let path = Path::new("/sbin/e2fsck");
    Command::new(path)
        .args(how)
        .args(journal.iter().flat_map(|path| [Path::new("-j"), path]))
        .arg(device)
        .stdin(Stdio::null())
        .output()
        .map_err(call("run", path))
}

/// Lets e2fsck repair everything and replay the journal; true if it could. It takes a copy of the
/// superblock, and looks for it where groups have their usual size; with smaller groups there is
/// one at [`COPY`].
fn repair(device: &Path, journal: Option<&Path>) -> Result<bool, CutError> {
    for how in [&["-fy"][..], &["-fy", "-b", COPY, "-B", "4096"]] {
        if let Some(0 | 1) = e2fsck(how, device, journal)?.status.code() {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Run<'a> {
    cuts: &'a Cuts,
    device: PathBuf,
    journal: Option<PathBuf>,
    history: History,
    /// Marks after the last cut.
    ahead: &'a [Placed],
    summary: Summary,
}

impl Run<'_> {
    fn judge(&mut self, cut: Cut) -> Result<(), CutError> {
        let text = format!("{} {} {}", cut.index, SURVIVALS[cut.survival], cut.seed);
        Cuts::set(&self.cuts.replica, "cut", &text)?;
        while let Some((placed, rest)) = self.ahead.split_first() {
            if placed.index >= cut.index {
                break;
            }
            self.history.push(placed)?;
            self.ahead = rest;
        }
        self.summary.cuts += 1;
        self.summary.syncs_verified += self.history.syncs();
        let log = KernelLog::from_now();
        if let Err(error) = self.mount() {
            let said = log.said().unwrap_or_default();
            let torn = said.contains(TORN);
            if !(torn && repair(&self.device, self.journal.as_deref())? && self.mount().is_ok()) {
                self.lost(cut, format!("does not mount: {error}: {said}"));
                return Ok(());
            }
            self.summary.torn += 1;
        }
        let tree = DirTree::new(&self.cuts.at);
        let judged = verify(&tree, &self.history, self.cuts.data_mode);
        unmount(&self.cuts.at, UnmountFlags::empty())
            .map_err(|e| call("unmount", &self.cuts.at)(e.into()))?;
        match judged {
            Ok(report) => {
                self.summary.files += report.files as u64;
                for violation in report.violations {
                    self.lost(cut, violation.to_string());
                }
            }
            Err(error) => self.lost(cut, format!("cannot be read: {error}")),
        }
        let every = u64::from(self.cuts.fsck_every);
        if every > 0 && self.summary.cuts.is_multiple_of(every) {
            self.fsck(cut)?;
        }
        Ok(())
    }

    /// Mounts writable, as after a crash: a read-only mount recovers the journal too, but ext4's
    /// replay of fast commits trips over it (`ext4_journal_check_start` warns and refuses).
    fn mount(&self) -> rustix::io::Result<()> {
        let journal = self.journal.iter();
        let journal = journal.map(|path| format!("journal_path={}", path.display()));
        let options = [self.cuts.mount.clone()].into_iter().chain(journal);
        let options: Vec<_> = options.filter(|option| !option.is_empty()).collect();
        let options = options.join(",");
        let options = std::ffi::CString::new(options).unwrap_or_default();
        let (fs_type, options) = (self.cuts.fs_type.as_str(), Some(options.as_c_str()));
        mount(
            &self.device,
            &self.cuts.at,
            fs_type,
            MountFlags::empty(),
            options,
        )
    }

    fn fsck(&mut self, cut: Cut) -> Result<(), CutError> {
        let output = e2fsck(&["-fn"], &self.device, self.journal.as_deref())?;
        self.summary.fscks += 1;
        if output.status.code() != Some(0) {
            let said = String::from_utf8_lossy(&output.stdout);
            let said = said.lines().filter(|line| !line.starts_with("Pass"));
            let said = said.collect::<Vec<_>>().join("; ");
            self.lost(cut, format!("e2fsck: {said} ({})", output.status));
        }
        Ok(())
    }

    fn lost(&mut self, cut: Cut, what: String) {
        self.summary.losses.push(Loss {
            index: cut.index,
            mode: SURVIVALS[cut.survival].to_owned(),
            seed: cut.seed,
            what,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn every_flush_is_a_place_to_cut_and_every_survival_has_its_turn() {
        let cuts = places(&[10, 20, 30], 5..100, 20, 1);
        assert_eq!(cuts.len(), 20);
        for end in [10, 20, 30] {
            for index in [end, end + 1] {
                assert!(cuts.iter().any(|cut| cut.index == index), "{index}");
            }
        }
        for (survival, name) in SURVIVALS.iter().enumerate() {
            assert!(cuts.iter().any(|cut| cut.survival == survival), "{name}");
        }
        assert!(cuts.is_sorted_by_key(|cut| cut.index));
        assert!(cuts.iter().all(|cut| (5..100).contains(&cut.index)));
        assert_eq!(cuts, places(&[10, 20, 30], 5..100, 20, 1));
        assert_ne!(cuts, places(&[10, 20, 30], 5..100, 20, 2));
    }

    /// A file system that was never unmounted, half of whose superblock is from another one.
    #[test]
    fn a_torn_superblock_is_repaired_and_its_journal_replayed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (image, block) = (dir.path().join("image"), dir.path().join("block"));
        let run = |program: &str, args: &[&str]| {
            let ran = Command::new(program).args(args).arg(&image).output();
            ran.is_ok_and(|output| output.status.success())
        };
        let file = File::create(&image).expect("an image");
        file.set_len(64 << 20).expect("room");
        let made = ["-q", "-F", "-b", "4096", "-g", "8192", "-t", "ext4"];
        if !run("/sbin/mke2fs", &made) {
            luc_test::skip("a_torn_superblock", "mke2fs is missing: install e2fsprogs");
            return;
        }
        // The journal alone holds the new content of a block.
        let (new, at) = ([0x5a; 4096], 12_000_u64);
        fs::write(&block, new).expect("a block");
        let commands = dir.path().join("commands");
        let words = format!("jo\njw -b {at} {}\njc\n", block.display());
        fs::write(&commands, words).expect("commands");
        assert!(run(
            "/sbin/debugfs",
            &["-w", "-f", commands.to_str().expect("text")]
        ));
        let read = |at: u64, bytes: &mut [u8]| {
            let file = File::open(&image).expect("the image");
            file.read_exact_at(bytes, at).expect("read");
        };
        let mut found = [0; 4096];
        read(at * 4096, &mut found);
        assert_ne!(found, new);
        // Change the time of the last write, in the first sector; the checksum is in the second.
        let file = File::options().write(true).open(&image);
        file.expect("the image")
            .write_all_at(&[0x11; 2], 1024 + 48)
            .expect("written");
        assert!(
            !e2fsck(&["-fn"], &image, None)
                .expect("ran")
                .status
                .success()
        );

        assert!(repair(&image, None).expect("ran"));
        read(at * 4096, &mut found);
        assert_eq!(found, new);
        assert!(
            e2fsck(&["-fn"], &image, None)
                .expect("ran")
                .status
                .success()
        );
    }

    #[test]
    fn too_many_flushes_are_drawn_from_all() {
        let flushes: Vec<u64> = (0..1000).collect();
        let cuts = places(&flushes, 0..1000, 50, 3);
        assert_eq!(cuts.len(), 50);
        assert!(cuts.iter().any(|cut| cut.index > 900) && cuts.iter().any(|cut| cut.index < 100));
    }
}
