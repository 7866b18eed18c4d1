//! Marks are read as they were written, or refused in one line.

use luc_torture::mark::{Durability, Event, MARK_BYTES_MAX, Mark, MarkError, Placed, Target, read};
use luc_torture::plan::Planner;
use proptest::prelude::*;

fn events() -> Vec<Event> {
    let path = || "t1/f0".to_owned();
    let sync = |target, data_only| Event::Sync { target, data_only };
    let (file, session, threads, bytes) = (7, u64::MAX, 3, 1 << 40);
    let (from, to) = (path(), "ü".into());
    let nothing = String::new();
    vec![
        Event::Start { session, threads },
        Event::Create { file, path: path() },
        Event::MakeDir { path: path() },
        Event::RemoveDir { path: path() },
        Event::Link { file, path: path() },
        Event::Rename { from, to },
        Event::Unlink { path: nothing },
        Event::Write {
            file: 1,
            sector: 2,
            sectors: 3,
            version: 4,
            durability: Durability::Full,
        },
        Event::Truncate { file, bytes },
        sync(Target::File(3), true),
        sync(Target::Dir(path()), false),
        sync(Target::All, false),
        Event::SyncRange { file: 3 },
        Event::Synced,
        Event::Failed { errno: 28 },
        Event::Done,
    ]
}

fn marks() -> Vec<Mark> {
    let number = |(number, event)| Mark {
        thread: 2,
        number,
        event,
    };
    (0..).zip(events()).map(number).collect()
}

fn plain(marks: &[Mark]) -> Vec<u8> {
    marks
        .iter()
        .flat_map(|mark| mark.encode().unwrap())
        .collect()
}

fn log(marks: &[Mark]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, mark) in (100u64..).zip(marks) {
        let mark = mark.encode().unwrap();
        bytes.extend(u32::try_from(mark.len()).unwrap().to_ne_bytes());
        bytes.extend(at.to_ne_bytes());
        bytes.extend(mark);
    }
    bytes
}

fn placed(first: u64, marks: Vec<Mark>) -> Vec<Placed> {
    let place = |(index, mark)| Placed { index, mark };
    (first..).zip(marks).map(place).collect()
}

#[test]
fn marks_come_back_from_a_file_and_from_a_log() {
    assert_eq!(read(&plain(&marks())), Ok(placed(0, marks())));
    assert_eq!(read(&log(&marks())), Ok(placed(100, marks())));
    assert_eq!(read(&[]), Ok(vec![]));
}

#[test]
fn every_changed_bit_is_noticed() {
    for bytes in marks().iter().map(|mark| mark.encode().unwrap()) {
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&changed).is_err(), "bit {bit} of {bytes:?}");
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    for whole in [plain(&marks()), log(&marks())] {
        let mut complete = 0;
        for end in 0..whole.len() {
            match read(&whole[..end]) {
                Ok(marks) => {
                    assert_eq!(marks.len(), complete, "cut at {end}");
                    complete += 1;
                }
                Err(error) => assert!(
                    matches!(error, MarkError::CutOff { .. } | MarkError::NoMarks),
                    "cut at {end}: {error}"
                ),
            }
        }
        assert_eq!(complete, marks().len());
    }
}

#[test]
fn what_is_no_mark_is_refused_in_words() {
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(said(b"hello").contains("contains no marks"));
    let mut bytes = plain(&marks()[..1]);
    bytes.extend([7; 64]);
    assert_eq!(
        said(&bytes),
        "mark 1 is damaged: it does not start like a mark"
    );
    bytes = plain(&marks()[..1]);
    bytes[4] = 9;
    assert!(said(&bytes).contains("version 9"));
    let path = "x".repeat(MARK_BYTES_MAX);
    let long = Mark {
        thread: 0,
        number: 0,
        event: Event::MakeDir { path },
    };
    assert!(matches!(long.encode(), Err(MarkError::TooLong { .. })));
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), log in any::<bool>()) {
        let mut all = if log { vec![0; 12] } else { vec![] };
        all.extend(b"LUCM\x01");
        all.extend(bytes);
        prop_assert!(read(&all).is_err());
    }
}

/// Syncs of directories and of the file system, which hurry a commit, become syncs of files.
#[test]
fn a_plan_for_files_only_syncs_nothing_else() {
    let syncs = |files_only| {
        let mut planner = Planner::new(1, 2, 6).files_only(files_only);
        let events = (0..2000).map(|_| planner.next_event());
        let targets = events.filter_map(|event| match event {
            Event::Sync { target, .. } => Some(matches!(target, Target::File(_))),
            _ => None,
        });
        let (files, others): (Vec<_>, Vec<_>) = targets.partition(|is_file| *is_file);
        (files.len(), others.len())
    };
    let (files, others) = syncs(false);
    assert!(files > 100 && others > 100, "{files} {others}");
    let (more_files, others) = syncs(true);
    assert!(more_files > files && others == 0, "{more_files} {others}");
}
