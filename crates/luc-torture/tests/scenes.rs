//! Small scenes: possible and impossible trees after a crash.

mod support;

use luc_torture::mark::{Durability, Event, Target};
use luc_torture::sector::SECTOR_BYTES;
use luc_torture::{DataMode, Kind};
use support::{MemTree, Scene, sector};

#[test]
fn a_promised_file_must_be_there_whole() {
    let mut scene = Scene::new();
    let ack = scene.kept(1, 10, "a/x");
    scene.fine();

    let gone = scene.spoiled(|tree| tree.names.clear());
    let said = gone.broken(Kind::NameLost, "a/x", Some(ack)).to_string();
    let expected = "name-lost: a/x: expected file 10 since mark 5, found nothing";
    assert_eq!(said, format!("{expected} (acknowledged by mark {ack})"));

    let cases: [(_, _, fn(&mut MemTree)); 5] = [
        (Kind::Size, "a/x", |tree| tree.data("a/x").truncate(1000)),
        (Kind::Size, "a/x", |tree| tree.data("a/x").clear()),
        (Kind::Zeroed, "a/x sector 1", |tree| {
            tree.put("a/x", 1, &[0; 512]);
        }),
        (Kind::Garbage, "a/x sector 1", |tree| {
            tree.data("a/x")[700] ^= 4;
        }),
        (Kind::Future, "a/x sector 0", |tree| {
            tree.put("a/x", 0, &sector(10, 0, 2));
        }),
    ];
    for (kind, at, spoil) in cases {
        scene.spoiled(spoil).broken(kind, at, Some(ack));
    }
    let grown = scene.spoiled(|tree| tree.data("a/x").push(0));
    grown.breaks(Kind::Size);
    scene.tree.broken.push("a/x".into());
    scene.breaks(Kind::Unreadable);
}

#[test]
fn what_is_not_promised_may_be_lost() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    scene.write(1, 10, 0, 2, 1);
    scene.spoiled(|tree| tree.names.clear()).fine();
    for size in [0, 1, 512, 700, 1024] {
        let mut part = scene.clone();
        part.tree.data("a/x").truncate(size);
        part.fine();
        part.tree.data("a/x").fill(0);
        part.fine();
    }
    scene.tree.data("a/x").extend([0; 512]);
    scene.broken(Kind::Size, "a/x", None);
}

#[test]
fn a_sector_may_not_be_older_than_promised_and_may_be_newer() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    scene.write(1, 10, 0, 1, 2);
    let ack = scene.datasynced(1, 10);
    scene.write(1, 10, 0, 1, 3);
    scene.write(1, 10, 0, 1, 4);
    for version in [2, 3, 4] {
        scene.tree.put("a/x", 0, &sector(10, 0, version));
        scene.fine();
    }
    scene.tree.put("a/x", 0, &sector(10, 0, 1));
    scene.broken(Kind::RolledBack, "a/x sector 0", Some(ack));
    scene.tree.put("a/x", 0, &sector(10, 0, 5));
    scene.broken(Kind::Future, "a/x sector 0", Some(ack));
}

#[test]
fn a_write_in_flight_may_be_torn_in_its_order_only() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    scene.write(1, 10, 0, 1, 2);
    scene.write(1, 10, 0, 1, 3);
    let mut torn = |begin: u64, rest: u64, fine: bool| {
        let mut bytes = sector(10, 0, rest);
        bytes[..200].copy_from_slice(&sector(10, 0, begin)[..200]);
        scene.tree.put("a/x", 0, &bytes);
        assert_eq!(scene.violations().is_empty(), fine, "{begin} over {rest}");
    };
    torn(2, 1, true);
    torn(3, 2, true);
    torn(1, 2, false);
    torn(3, 1, false);
    scene.synced(1, Target::File(10));
    let mut bytes = sector(10, 0, 2);
    bytes[..200].copy_from_slice(&sector(10, 0, 3)[..200]);
    scene.tree.put("a/x", 0, &bytes);
    scene.breaks(Kind::Garbage);
}

#[test]
fn data_of_others_is_never_shown() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    scene.kept(1, 11, "a/y");
    scene.create(1, 12, "a/new");
    scene.write(1, 12, 0, 3, 7);
    let swapped = scene.spoiled(|tree| tree.put("a/x", 1, &sector(11, 1, 1)));
    let violations = swapped.breaks(Kind::Foreign);
    assert_eq!(violations[0].path, "a/x sector 1");
    let moved = scene.spoiled(|tree| tree.put("a/x", 1, &sector(10, 0, 1)));
    moved.breaks(Kind::Misplaced);

    // A new block may show old data of another file only with data=writeback.
    scene.tree.put("a/new", 1, &sector(11, 1, 1));
    scene.broken(Kind::Foreign, "a/new sector 1", None);
    assert!(scene.report(DataMode::Writeback).violations.is_empty());
    scene.tree.put("a/x", 0, &sector(11, 0, 1));
    let violations = scene.report(DataMode::Writeback).violations;
    assert_eq!(
        violations.len(),
        1,
        "promised blocks are not new: {violations:?}"
    );
}

#[test]
fn two_files_cannot_change_places() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    let ack = scene.kept(1, 11, "a/y");
    scene.tree.names.insert("a/x".into(), 11);
    scene.tree.names.insert("a/y".into(), 10);
    let violations = scene.violations();
    assert_eq!(violations.len(), 2, "{violations:?}");
    let mut kinds = violations.iter().map(|violation| violation.kind);
    assert!(kinds.all(|kind| kind == Kind::NameWrong));
    assert_eq!(violations[1].ack, Some(ack));
}

#[test]
fn rename_is_whole_or_not_at_all() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/old");
    scene.kept(1, 11, "a/new");
    let before = scene.tree.clone();
    let begun = scene.rename(1, "a/new", "a/old");
    scene.fine();
    let after = std::mem::replace(&mut scene.tree, before.clone());
    scene.fine();
    // Neither old nor new.
    scene.tree = after.clone();
    scene.tree.names.remove("a/old");
    let violation = scene.broken(Kind::NameLost, "a/old", None);
    let since = format!("mark {begun}");
    assert!(violation.expected.contains(&since), "{violation}");
    // Both.
    scene.tree = after.clone();
    scene.tree.names.insert("a/new".into(), 11);
    scene.broken(Kind::NameBack, "a/new", None);
    // The sync of the renamed file promises it, and so does that of the directory.
    for target in [Target::File(11), Target::Dir("a".into())] {
        let mut scene = scene.clone();
        scene.tree = after.clone();
        let ack = scene.synced(1, target);
        scene.fine();
        scene.tree = before.clone();
        let violations = scene.violations();
        let mut acks = violations.iter().map(|violation| violation.ack);
        assert!(acks.all(|known| known == Some(ack)));
        assert_eq!(violations.len(), 2, "{violations:?}");
    }
    // Neither fdatasync nor a sync of the file that was replaced promises it.
    scene.tree = before;
    scene.datasynced(1, 11);
    scene.synced(1, Target::File(10));
    scene.fine();
}

#[test]
fn what_is_unlinked_may_come_back_until_the_directory_is_synced() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    let before = scene.tree.clone();
    scene.unlink(1, "a/x");
    scene.fine();
    scene.tree = before.clone();
    scene.fine();
    // Its promised content holds as long as the name does.
    scene.tree.data("a/x").truncate(512);
    scene.breaks(Kind::Size);
    scene.tree = before;
    let ack = scene.synced(1, Target::Dir("a".into()));
    scene.broken(Kind::NameBack, "a/x", Some(ack));
    scene.tree.names.clear();
    scene.fine();
}

#[test]
fn names_are_of_one_moment() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/first");
    // Thread 1's mark tells that its file was made before thread 2 began.
    scene.mark(1, Event::SyncRange { file: 10 });
    scene.create(2, 20, "b/second");
    scene.fine();
    let both = scene.tree.clone();
    scene.tree.names.remove("b/second");
    scene.fine();
    scene.tree = both.clone();
    scene.tree.names.remove("a/first");
    scene.broken(Kind::Moments, "names of thread 1", None);
    // Within one thread, the order of its changes is known.
    scene.tree = both;
    scene.create(1, 11, "a/third");
    scene.tree.names.remove("a/first");
    scene.breaks(Kind::NameLost);
}

#[test]
fn a_sync_promises_what_others_had_done_before() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/first");
    scene.mark(1, Event::SyncRange { file: 10 });
    let ack = scene.synced(2, Target::Dir("a".into()));
    scene.tree.names.remove("a/first");
    scene.broken(Kind::NameLost, "a/first", Some(ack));
    // But not a call that was still running.
    let mut scene = Scene::new();
    scene.create(1, 10, "a/first");
    scene.synced(2, Target::Dir("a".into()));
    scene.tree.names.remove("a/first");
    scene.fine();
}

#[test]
fn shared_data_is_promised_by_the_sync_of_another_thread() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/shared");
    scene.write(1, 10, 0, 1, 1);
    scene.write(1, 10, 2, 1, 2);
    // The second write may still be running while thread 2 syncs.
    let ack = scene.datasynced(2, 10);
    scene.tree.put("a/shared", 2, &[0; 512]);
    scene.tree.data("a/shared").truncate(512);
    scene.fine();
    scene.tree.put("a/shared", 0, &[0; 512]);
    scene.broken(Kind::Zeroed, "a/shared sector 0", Some(ack));
}

#[test]
fn durable_writes_promise_themselves_alone() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    scene.write(1, 10, 0, 2, 1);
    let ack = scene.write_as(1, 10, 4, 2, 2, Durability::Data);
    scene.tree.put("a/x", 0, &[0; 1024]);
    scene.fine();
    let short = scene.spoiled(|tree| tree.data("a/x").truncate(2560));
    short.broken(Kind::Size, "a/x", Some(ack));
    scene.tree.put("a/x", 5, &[0; 512]);
    scene.broken(Kind::Zeroed, "a/x sector 5", Some(ack));
    // It makes the new file's name durable, but not a later one; O_SYNC does both.
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    let first = scene.tree.clone();
    scene.rename(1, "a/x", "a/y");
    scene.write_as(1, 10, 0, 1, 1, Durability::Data);
    let after = std::mem::replace(&mut scene.tree, first);
    scene.tree.put("a/x", 0, &sector(10, 0, 1));
    scene.fine();
    scene.tree.names.clear();
    scene.breaks(Kind::NameLost);
    scene.write_as(1, 10, 0, 1, 2, Durability::Full);
    scene.tree = after;
    scene.tree.put("a/y", 0, &sector(10, 0, 2));
    scene.fine();
    let inode = scene.tree.names.remove("a/y").unwrap();
    scene.tree.names.insert("a/x".into(), inode);
    assert!(!scene.violations().is_empty());
}

/// ext4's own fault: see `FileHistory::synced_range`.
#[test]
fn a_durable_write_below_an_unsynced_end_does_not_promise_the_size() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    let kept = scene.tree.clone();
    scene.write(1, 10, 16, 1, 2);
    scene.write_as(1, 10, 2, 1, 3, Durability::Full);
    scene.fine();
    let long = std::mem::replace(&mut scene.tree, kept.clone());
    scene.fine();
    // The data is promised where the file is as long as that.
    scene.tree = long;
    scene
        .spoiled(|tree| tree.put("a/x", 2, &[0; 512]))
        .breaks(Kind::Zeroed);
    // A sync of the whole file promises the size.
    scene.synced(1, Target::File(10));
    scene.fine();
    scene.tree = kept;
    scene.breaks(Kind::Size);
}

#[test]
fn truncation_leaves_nothing_behind() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    let before = scene.tree.clone();
    scene.truncate(1, 10, 700);
    scene.truncate(1, 10, 3000);
    scene.fine();
    let after = std::mem::replace(&mut scene.tree, before.clone());
    scene.fine();
    scene.tree.data("a/x").truncate(700);
    scene.fine();
    scene.tree.data("a/x").truncate(600);
    scene.broken(Kind::Size, "a/x", scene.violations()[0].ack);
    // 3000 bytes show that the truncation is done: the tail may not be back.
    scene.tree = before;
    scene.tree.data("a/x").resize(3000, 0);
    let violations = scene.breaks(Kind::Stale);
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].path, "a/x sector 1");
    scene.tree = after;
    let ack = scene.synced(1, Target::File(10));
    scene.fine();
    scene.tree.data("a/x").truncate(700);
    scene.broken(Kind::Size, "a/x", Some(ack));
}

#[test]
fn truncation_does_not_write_back_what_it_leaves() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    scene.write(1, 10, 0, 1, 1);
    scene.truncate(1, 10, 300);
    scene.truncate(1, 10, 2000);
    scene.fine();
    scene.tree.put("a/x", 0, &[0; 512]);
    scene.fine();
    scene.tree.put("a/x", 0, &sector(10, 0, 1));
    scene.broken(Kind::Stale, "a/x sector 0", None);
    // A durable write elsewhere promises the truncation, not the data.
    scene.tree.put("a/x", 0, &[0; 512]);
    scene.write_as(1, 10, 8, 1, 2, Durability::Data);
    scene.fine();
    let ack = scene.synced(1, Target::File(10));
    scene.broken(Kind::Zeroed, "a/x sector 0", Some(ack));
}

#[test]
fn truncation_to_nothing_and_growth_show_no_old_version() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    scene.truncate(1, 10, 0);
    scene.write(1, 10, 0, 4, 2);
    scene.tree.put("a/x", 1, &[0; 512]);
    scene.fine();
    scene.tree.put("a/x", 1, &sector(10, 1, 1));
    let violation = scene.broken(Kind::Stale, "a/x sector 1", scene.violations()[0].ack);
    assert!(violation.found.contains("version 1"));
}

#[test]
fn names_of_one_file_are_of_one_inode() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    let (file, path) = (10, "a/y".into());
    scene.event(1, Event::Link { file, path });
    scene.synced(1, Target::File(10));
    scene.fine();
    scene.tree.names.insert("a/y".into(), 99);
    scene.tree.inodes.insert(99, vec![]);
    let links = |scene: &Scene| {
        let mut kinds = scene
            .violations()
            .into_iter()
            .map(|violation| violation.kind);
        kinds.any(|kind| kind == Kind::Links)
    };
    assert!(links(&scene));
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    scene.create(1, 11, "a/y");
    scene.tree.names.insert("a/y".into(), 10);
    assert!(links(&scene));
}

#[test]
fn strangers_are_named_and_lost_and_found_is_none() {
    let mut scene = Scene::new();
    scene.tree.dirs.push("lost+found".into());
    scene.fine();
    scene.tree.names.insert("lost+found/#12".into(), 12);
    scene.tree.inodes.insert(12, vec![1]);
    scene.broken(Kind::Unexplained, "lost+found/#12", None);
}

#[test]
fn directories_are_names_like_others() {
    let mut scene = Scene::new();
    scene.event(1, Event::MakeDir { path: "a/d".into() });
    let ack = scene.synced(1, Target::Dir("a/d".into()));
    scene.fine();
    let gone = scene.spoiled(|tree| tree.dirs.retain(|dir| dir != "a/d"));
    gone.broken(Kind::NameLost, "a/d", Some(ack));
    scene.event(1, Event::RemoveDir { path: "a/d".into() });
    scene.fine();
    let ack = scene.synced(1, Target::Dir("a".into()));
    scene.tree.dirs.push("a/d".into());
    scene.broken(Kind::NameBack, "a/d", Some(ack));
}

#[test]
fn what_failed_may_have_happened_and_is_never_promised() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    scene.unlink(1, "a/x");
    scene.mark(1, Event::Failed { errno: 5 });
    scene.synced(2, Target::All);
    scene.fine();
    scene.tree.names.insert("a/x".into(), 10);
    scene.fine();
}

#[test]
fn a_failed_sync_promises_nothing() {
    let mut scene = Scene::new();
    scene.create(1, 10, "a/x");
    scene.write(1, 10, 0, 1, 1);
    scene.mark(1, support::sync(Target::File(10), false));
    scene.mark(1, Event::Failed { errno: 5 });
    scene.fine();
    scene.tree.data("a/x").fill(0);
    scene.fine();
    scene.tree.names.clear();
    scene.fine();
}

#[test]
fn an_intent_alone_explains_and_promises_nothing() {
    let mut scene = Scene::new();
    scene.kept(1, 10, "a/x");
    let before = scene.tree.clone();
    scene.write(1, 10, 1, 3, 2);
    scene.fine();
    scene.tree = before;
    scene.fine();
    scene.mark(1, support::sync(Target::File(10), false));
    scene.fine();
}

/// A file without any label may be under its old name or its new one. A fault in it gets its own
/// kind of violation, and not that of a wrong name.
#[test]
fn what_no_file_can_hold_is_no_wrong_name() {
    let mut scene = Scene::new();
    for (file, path) in [(1, "a/one"), (2, "a/two")] {
        scene.create(1, file, path);
        scene.truncate(1, file, 5337);
    }
    scene.synced(1, Target::All);
    // Marked, but it has not happened.
    let (from, to) = ("a/two".into(), "a/one".into());
    scene.mark(1, Event::Rename { from, to });
    let long = scene.spoiled(|tree| tree.data("a/two").resize(9999, 0));
    let violations = long.breaks(Kind::Size);
    assert_eq!(violations.len(), 1, "{violations:#?}");
    let mut garbage = [0; SECTOR_BYTES];
    garbage[100] = 1;
    scene.tree.put("a/two", 3, &garbage);
    scene.broken(Kind::Garbage, "a/two sector 3", None);
}

/// Files without any label are told apart by their links.
#[test]
fn an_empty_file_is_not_taken_for_another_with_the_same_name() {
    let mut scene = Scene::new();
    scene.create(1, 1, "a/one");
    scene.create(1, 2, "a/two");
    scene.synced(1, Target::All);
    // Marked, but it has not happened.
    let (file, path) = (2, "a/three".into());
    scene.mark(1, Event::Link { file, path });
    let (from, to) = ("a/three".into(), "a/one".into());
    scene.mark(1, Event::Rename { from, to });
    scene.fine();
}
