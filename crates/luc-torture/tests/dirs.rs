//! The workload in a real directory: no violation without a change, and one for every change.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_torture::mark::{Event, Placed, read};
use luc_torture::tree::{Entry, Tree as _, Type};
use luc_torture::{DataMode, DirTree, History, Kind, Report, Work, verify, work};

fn nobody(_: u32) -> Command {
    unreachable!("one process does it all")
}

struct Ground {
    _top: tempfile::TempDir,
    work: Work,
}

impl Ground {
    fn new(seed: u64, operations: u64, sync_at_end: bool) -> Self {
        let top = tempfile::tempdir().expect("temporary folder");
        let dir = top.path().join("tree");
        fs::create_dir(&dir).expect("folder");
        let work = Work {
            dir,
            acks: top.path().join("marks"),
            processes: 1,
            threads: 4,
            seed,
            ops: operations,
            seconds: None,
            sync_at_end,
            files_only: false,
        };
        Self { _top: top, work }
    }

    fn worked(seed: u64, operations: u64, sync_at_end: bool) -> Self {
        let ground = Self::new(seed, operations, sync_at_end);
        let done = work(&ground.work, &nobody).expect("it works");
        assert_eq!(done.failures, Vec::<String>::new());
        assert!(done.operations >= operations * 4 && done.syncs > operations / 10);
        ground
    }

    fn marks(&self) -> Vec<Placed> {
        read(&fs::read(&self.work.acks).expect("marks")).expect("marks")
    }

    fn judge(&self) -> Report {
        let history = History::from_marks(&self.marks()).expect("sensible marks");
        verify(&DirTree::new(&self.work.dir), &history, DataMode::Ordered).expect("a tree")
    }

    /// Files with one name and at least this many bytes.
    fn files(&self, bytes: u64) -> Vec<PathBuf> {
        let listing = DirTree::new(&self.work.dir).list().expect("a tree");
        let mut entries = listing.entries;
        entries.retain(|it| it.kind == Type::File && it.links == 1 && it.bytes >= bytes);
        let paths = entries.into_iter().map(|entry| entry.path);
        paths.map(|path| self.work.dir.join(path)).collect()
    }

    fn kinds(&self) -> BTreeSet<Kind> {
        let violations = self.judge().violations;
        violations.iter().map(|violation| violation.kind).collect()
    }
}

fn copy_back(path: &Path, data: &[u8]) {
    fs::write(path, data).expect("written back");
}

#[test]
fn what_was_worked_is_clean() {
    for (seed, sync_at_end) in [(1, false), (2, true)] {
        let ground = Ground::worked(seed, 400, sync_at_end);
        let report = ground.judge();
        assert_eq!(report.violations, vec![]);
        assert!(report.files > 8 && report.sectors > 100, "{report:?}");
    }
}

#[test]
fn a_thread_does_the_same_for_the_same_seed() {
    let events = |seed: u64| {
        let ground = Ground::worked(seed, 100, false);
        let of = |thread: u32| {
            let mut marks = ground.marks();
            marks.retain(|placed| placed.mark.thread == thread);
            marks
                .into_iter()
                .map(|placed| placed.mark)
                .collect::<Vec<_>>()
        };
        [of(0), of(1), of(4)]
    };
    assert_eq!(events(7), events(7));
    assert_ne!(events(7), events(8));
}

#[test]
fn every_kind_of_operation_is_done() {
    let ground = Ground::worked(3, 600, false);
    let kind = |event: &Event| {
        let text = format!("{event:?}");
        let end = text.find([' ', '{']).unwrap_or(text.len());
        text[..end].to_owned()
    };
    let kinds: BTreeSet<String> = ground.marks().iter().map(|m| kind(&m.mark.event)).collect();
    let all = "Start Create MakeDir RemoveDir Link Rename Unlink Write Truncate Sync SyncRange Synced \
               Done";
    for wanted in all.split(' ') {
        assert!(kinds.contains(wanted), "{wanted} is missing in {kinds:?}");
    }
}

type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn every_change_to_what_is_promised_is_noticed() {
    let ground = Ground::worked(4, 300, true);
    let files = ground.files(600);
    assert!(files.len() > 5, "{files:?}");
    for path in &files {
        let data = fs::read(path).expect("content");
        let sector = data.chunks(512).position(|bytes| bytes[0] != 0);
        let zeros = sector.map_or(0..0, |at| at * 512..data.len().min((at + 1) * 512));
        let changes: [(Kind, Change<'_>); 6] = [
            (Kind::Size, &|data| data.truncate(data.len() - 1)),
            (Kind::Size, &|data| data.push(0)),
            (Kind::Garbage, &|data| data[0] ^= 0x10),
            (Kind::Garbage, &|data| data[511] ^= 0x10),
            (Kind::Garbage, &|data| {
                *data.last_mut().expect("a byte") ^= 0x10;
            }),
            (Kind::Zeroed, &|data| data[zeros.clone()].fill(0)),
        ];
        for (number, (kind, change)) in changes.iter().enumerate() {
            let mut other = data.clone();
            change(&mut other);
            copy_back(path, &other);
            let kinds = ground.kinds();
            let is_noticed = kinds.contains(kind) || other == data;
            assert!(is_noticed, "change {number} of {path:?}: {kinds:?}");
        }
        fs::remove_file(path).expect("removed");
        assert!(ground.kinds().contains(&Kind::NameLost), "{path:?}");
        let elsewhere = path.with_file_name("elsewhere");
        copy_back(&elsewhere, &data);
        let kinds = ground.kinds();
        assert!(kinds.contains(&Kind::NameLost) && kinds.contains(&Kind::Unexplained));
        fs::remove_file(&elsewhere).expect("removed");
        copy_back(path, &data);
        assert_eq!(ground.kinds(), BTreeSet::new(), "{path:?} is as it was");
    }
}

#[test]
fn a_second_name_that_is_a_copy_is_noticed() {
    let ground = Ground::worked(6, 500, true);
    let listing = DirTree::new(&ground.work.dir).list().expect("a tree");
    let mut entries = listing.entries.iter();
    let linked = |it: &&Entry| it.kind == Type::File && it.links > 1 && it.bytes > 0;
    let entry = entries.find(linked).expect("a file with two names");
    let path = ground.work.dir.join(&entry.path);
    let data = fs::read(&path).expect("content");
    fs::remove_file(&path).expect("removed");
    copy_back(&path, &data);
    assert_ne!(fs::metadata(&path).expect("there").ino(), entry.inode);
    let kinds = ground.kinds();
    assert!(kinds.contains(&Kind::Links), "{kinds:?}");
}

/// The judge could not tell older content from that of the run.
#[test]
fn work_goes_only_into_an_empty_directory_and_new_marks() {
    let ground = Ground::worked(9, 20, false);
    let refused = |work: &Work| self::work(work, &nobody).expect_err("refused").to_string();
    let again = refused(&ground.work);
    assert!(again.contains("is not empty"), "{again}");
    let other = Ground::new(9, 20, false);
    fs::write(&other.work.acks, "x").expect("marks");
    let again = refused(&other.work);
    assert!(again.contains("is not empty; marks"), "{again}");
    let mut none = Ground::new(9, 20, false).work;
    for threads in [0, u32::MAX] {
        none.threads = threads;
        refused(&none);
    }
}

/// On a full file system the work reports the failure, and the files are still right.
#[test]
fn failures_are_reported_and_leave_nothing_wrong() {
    luc_test::with_tmpfs("size=64k", |path| {
        let mut ground = Ground::new(10, 400, false);
        ground.work.dir = path.to_owned();
        let done = work(&ground.work, &nobody).expect("marks are elsewhere");
        assert!(!done.failures.is_empty(), "{done:?}");
        assert!(done.failures[0].contains("No space"), "{done:?}");
        let report = ground.judge();
        assert_eq!(report.violations, vec![]);
        drop(ground);
    });
}

/// Marks of a real run with one of them missing are refused, whichever it is.
#[test]
fn a_lost_mark_is_noticed() {
    let ground = Ground::worked(11, 40, false);
    let marks = ground.marks();
    // The last mark of a thread may be missing: the crash may have come before it.
    for lost in 0..marks.len() {
        let thread = marks[lost].mark.thread;
        let mut later = marks[lost + 1..].iter().map(|placed| placed.mark.thread);
        if !later.any(|other| other == thread) {
            continue;
        }
        let mut rest = marks.clone();
        rest.remove(lost);
        assert!(History::from_marks(&rest).is_err(), "without mark {lost}");
    }
}
