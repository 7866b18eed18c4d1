//! Points that re-implementations of Filebench get wrong, one test each.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl};

use super::super::park::Park;
use super::super::rotor::{Becomes, Entries, Pick, Want};
use super::{Rig, failed, file, file_text, list, once, plan};

/// Returns the size of the first file, bytes.
fn length(rig: &Rig) -> u64 {
    fs::metadata(rig.path(1)).expect("there").len()
}

/// Returns the position of the rotor of existing files.
fn rotor(rig: &Rig) -> u32 {
    let files = &rig.host.engine.filesets[0].files;
    files.rotor(Want::Existing).load(Ordering::Relaxed)
}

#[test]
fn point_1_open_delete_and_stat_share_a_rotor_in_index_order_and_create_has_its_own() {
    let entries = Entries::<Park>::new(200);
    for index in 0..150 {
        entries.set_existing(index);
    }
    let next = |want| match entries.pick_next(want, entries.rotor(want)) {
        Pick::Taken(index) => {
            entries.release(index, Becomes::Same, 0);
            index
        }
        other => panic!("{other:?}"),
    };
    let existing: Vec<_> = (0..152).map(|_| next(Want::Existing)).collect();
    assert_eq!(existing[..3], [0, 1, 2]);
    assert_eq!(
        existing[148..],
        [148, 149, 0, 1],
        "wraps at the last that exists"
    );
    let missing: Vec<_> = (0..52).map(|_| next(Want::Missing)).collect();
    assert_eq!((missing[0], missing[49], missing[50]), (150, 199, 150));

    // Through flowops: the open takes the first file, the delete the second, the stat the third.
    let plan = file(
        "entries=5,size=1,prealloc=100",
        "flowop openfile name=o,filesetname=set,fd=1\nflowop deletefile name=d,filesetname=set\n\
         flowop statfile name=s,filesetname=set\nflowop openfile name=o2,filesetname=set,fd=2",
    );
    let rig = Rig::new(&plan, "");
    let worker = rig.run_once();
    let held = |slot: usize| worker.slots[slot].file.map(|file| file.index);
    assert_eq!((held(1), held(2)), (Some(0), Some(3)));
    assert!(!rig.path(2).exists() && rig.path(3).exists());
    assert_eq!(rotor(&rig), 4);
}

#[test]
fn point_1_the_rotor_moves_past_what_was_found_even_if_that_was_busy() {
    let entries = Entries::<Park>::new(4);
    (0..4).for_each(|index| entries.set_existing(index));
    assert!(entries.take(0));
    let rotor = entries.rotor(Want::Existing);
    assert_eq!(entries.pick_next(Want::Existing, rotor), Pick::Taken(1));
    assert_eq!(rotor.load(Ordering::Relaxed), 1);
    entries.release(1, Becomes::Same, 0);
    assert_eq!(entries.pick_next(Want::Existing, rotor), Pick::Taken(1));
    for index in [2, 3] {
        assert!(entries.take(index));
    }
    assert_eq!(entries.pick_next(Want::Existing, rotor), Pick::Busy);
    assert_eq!(
        entries.pick_next(Want::Missing, entries.rotor(Want::Missing)),
        Pick::None
    );
}

#[test]
fn point_1_only_opennext_rotates_per_thread() {
    let plan = file(
        "entries=3,size=4k,prealloc=100",
        "flowop read name=r,filesetname=set,iosize=1k,random,opennext",
    );
    let rig = Rig::new(&plan, "");
    for _ in 0..2 {
        // Each worker begins with the first file, in its highest slot.
        let (mut worker, mut steps) = rig.worker();
        for _ in 0..4 {
            list(&mut worker, &mut steps).expect("runs");
        }
        let held: Vec<_> = [127, 126, 125, 124]
            .map(|slot| worker.slots[slot].file.map(|file| file.index))
            .into();
        assert_eq!(held, [Some(0), Some(1), Some(2), Some(0)]);
        for _ in 0..124 {
            list(&mut worker, &mut steps).expect("runs");
        }
        // 128 opens count as operations of the read; then the slots are reused.
        assert_eq!(worker.system.counted.stats[0].count, 256);
        list(&mut worker, &mut steps).expect("runs");
        assert_eq!(worker.system.counted.stats[0].count, 257);
    }
    assert_eq!(rotor(&rig), 0);
}

#[test]
fn point_2_a_created_file_holds_only_what_was_written_to_it() {
    let plan = file(
        "entries=1,size=100k,prealloc=100",
        "flowop deletefile name=d,filesetname=set\nflowop createfile name=c,filesetname=set,fd=1\n\
         flowop appendfile name=a,iosize=3k,fd=1",
    );
    let rig = Rig::new(&plan, "");
    assert_eq!(length(&rig), 100 << 10);
    rig.run_once();
    assert_eq!(length(&rig), 3 << 10);
    // For a flowop that asks the fileset, its size is still the one that was drawn.
    assert_eq!(rig.host.engine.filesets[0].tree.files[0].bytes, 100 << 10);
}

#[test]
fn point_3_a_random_append_of_nothing_is_an_operation_and_appends_go_to_the_end() {
    let plan = file(
        "entries=1,size=10k,prealloc=100",
        "flowop appendfilerand name=nothing,filesetname=set,iosize=1,fd=1,iters=5\n\
         flowop openfile name=o,filesetname=set,fd=1\n\
         flowop appendfilerand name=some,iosize=2k,fd=1,iters=50\n\
         flowop write name=on,iosize=1k,fd=1",
    );
    let rig = Rig::new(&plan, "");
    let worker = rig.run_once();
    let stats = &worker.system.counted.stats;
    // The file is not touched, not even opened.
    assert_eq!((stats[0].count, stats[0].bytes, stats[1].count), (5, 0, 1));
    assert_eq!(stats[2].count, 50);
    assert!(
        stats[2].bytes > 0 && stats[2].bytes < 50 * 2047,
        "{}",
        stats[2].bytes
    );
    assert_eq!(length(&rig), (10 << 10) + stats[2].bytes + 1024);
    let flags = fcntl_getfl(worker.slots[1].open.as_ref().expect("open")).expect("flags");
    assert!(!flags.contains(OFlags::APPEND), "{flags:?}");
}

#[test]
fn point_4_reading_a_whole_file_is_one_operation() {
    let plan = file(
        "entries=1,size=10k,prealloc=100",
        "flowop openfile name=o,filesetname=set,fd=1\n\
         flowop readwholefile name=r,iosize=1k,fd=1,iters=3\n\
         flowop readwholefile name=all,fd=1",
    );
    let (flow, counts) = once(&plan);
    flow.expect("runs");
    assert_eq!(counts, [(1, 0), (3, 30 << 10), (1, 10 << 10)]);
}

#[test]
fn point_5_writing_a_whole_file_overshoots() {
    for (size, iosize, written) in [
        ("2560k", "1m", 3 << 20),
        ("2m", "1m", 2 << 20),
        ("100", "1m", 100),
        ("1025k", "1m", 2 << 20),
        ("5k", "0", 5 << 10),
        ("0", "0", 0),
    ] {
        let plan = file(
            &format!("entries=1,size={size},prealloc=0"),
            &format!(
                "flowop createfile name=c,filesetname=set,fd=1\n\
                 flowop writewholefile name=w,srcfd=1,fd=1,iosize={iosize}"
            ),
        );
        let rig = Rig::new(&plan, "");
        let worker = rig.run_once();
        let stats = &worker.system.counted.stats[1];
        assert_eq!(
            (stats.count, stats.bytes),
            (1, written),
            "{size} by {iosize}"
        );
        assert_eq!(length(&rig), written);
    }
}

#[test]
fn point_6_a_create_looks_at_the_parent_and_does_not_truncate() {
    let plan = file(
        "entries=2,size=1k,prealloc=0",
        "flowop createfile name=c,filesetname=set,fd=1",
    );
    let rig = Rig::new(&plan, "");
    fs::write(rig.path(1), "kept").expect("writes");
    rig.run_once();
    assert_eq!(fs::read_to_string(rig.path(1)).expect("reads"), "kept");

    fs::remove_dir_all(rig.dir.path().join("set")).expect("removes");
    let (mut worker, mut steps) = rig.worker();
    let line = failed(list(&mut worker, &mut steps));
    assert!(
        line.contains("find the directory") && line.contains("set/00000001:"),
        "{line}"
    );
}

#[test]
fn point_7_a_delete_leaves_files_alone_that_are_open_and_does_not_count() {
    let plan = file(
        "entries=1,size=1k,prealloc=100",
        "flowop openfile name=o,filesetname=set,fd=1\nflowop deletefile name=d,filesetname=set\n\
         flowop closefile name=c,fd=1\nflowop deletefile name=d2,filesetname=set",
    );
    let (flow, counts) = once(&plan);
    flow.expect("runs");
    assert_eq!(counts, [(1, 0), (0, 0), (1, 0), (1, 0)]);
}

#[test]
fn point_7_a_delete_by_a_closed_fd_leaves_a_file_alone_that_is_open_elsewhere() {
    let plan = file(
        "entries=1,size=1k,prealloc=0",
        "flowop createfile name=c,filesetname=set,fd=1\nflowop closefile name=c2,fd=1\n\
         flowop openfile name=o,filesetname=set,fd=2\n\
         flowop deletefile name=d,filesetname=set,fd=1",
    );
    let (flow, counts) = once(&plan);
    flow.expect("runs");
    assert_eq!(counts, [(1, 0), (1, 0), (1, 0), (0, 0)]);
}

#[test]
fn point_7_a_delete_by_fd_takes_the_file_that_was_there() {
    let plan = file(
        "entries=3,size=1k,prealloc=0",
        "flowop createfile name=c,filesetname=set,fd=1\nflowop closefile name=c2,fd=1\n\
         flowop deletefile name=d,filesetname=set,fd=1\n\
         flowop createfile name=c3,filesetname=set,fd=1\n\
         flowop deletefile name=open,filesetname=set,fd=1",
    );
    let rig = Rig::new(&plan, "");
    let worker = rig.run_once();
    // All are gone: a thread may delete a file that only it has open.
    assert!(
        worker
            .system
            .counted
            .stats
            .iter()
            .all(|stats| stats.count == 1)
    );
    assert!((1..=3).all(|name| !rig.path(name).exists()));
}

#[test]
fn point_11_dsync_is_o_sync_and_aiowait_does_not_wait() {
    let plan = file(
        "entries=1,size=1m,prealloc=100",
        "flowop aiowrite name=w,filesetname=set,iosize=4k,random,dsync,fd=1,iters=10\n\
         flowop aiowait name=wait",
    );
    let rig = Rig::new(&plan, "");
    let (mut worker, mut steps) = rig.worker();
    list(&mut worker, &mut steps).expect("runs");
    let flags = fcntl_getfl(worker.slots[1].open.as_ref().expect("open")).expect("flags");
    assert!(flags.contains(OFlags::SYNC), "{flags:?}");
    // The open counts as one of the writes.
    assert_eq!(
        (
            worker.system.counted.stats[0].count,
            worker.system.counted.stats[1].count
        ),
        (11, 1)
    );
    assert_eq!(worker.system.counted.stats[0].bytes, 40 << 10);
    // Each wait forgets at most half of them; in the end all are forgotten.
    assert!(worker.pending.len() >= 5);
    let pool = rig.host.pools[0].as_ref().expect("a pool");
    let started = Instant::now();
    while !worker.pending.is_empty() && started.elapsed() < Duration::from_secs(20) {
        list(&mut worker, &mut steps[1..]).expect("polls");
    }
    assert!(worker.pending.is_empty());
    assert!(pool.failed().is_none());

    let mut unsafe_rig = Rig::new(&plan, "");
    unsafe_rig.host.engine.no_fsync = true;
    let worker = unsafe_rig.run_once();
    let flags = fcntl_getfl(worker.slots[1].open.as_ref().expect("open")).expect("flags");
    assert!(!flags.contains(OFlags::SYNC), "{flags:?}");
}

#[test]
fn aiowait_waits_for_half_of_the_writes_where_that_is_asked_for() {
    let plan = file(
        "entries=1,size=1m,prealloc=100",
        "flowop aiowrite name=w,filesetname=set,iosize=4k,random,dsync,fd=1,iters=10\n\
         flowop aiowait name=wait",
    );
    let rig = Rig::new(&plan, "--aio-wait half");
    let (mut worker, mut steps) = rig.worker();
    // However slow the writes are, every wait halves the rest.
    list(&mut worker, &mut steps).expect("runs");
    for left in [5, 3, 2, 1, 0, 0] {
        assert_eq!(worker.pending.len(), left);
        list(&mut worker, &mut steps[1..]).expect("waits");
    }
}

#[test]
fn errors_name_the_flowop_and_what_to_do() {
    for (flowops, words) in [
        (
            "flowop closefile name=c,fd=1\nflowop openfile name=o,filesetname=set,fd=1",
            "no file is open in fd 1",
        ),
        (
            "flowop fsync name=f,fd=1\nflowop openfile name=o,filesetname=set,fd=1",
            "no file is open in fd 1",
        ),
        (
            "flowop openfile name=o,filesetname=set,fd=1,iters=2",
            "fd 1 already holds an open file",
        ),
    ] {
        let (flow, _) = once(&file("entries=2,size=4k,prealloc=100", flowops));
        let line = failed(flow);
        assert!(line.contains(words) && line.contains("(line 3)"), "{line}");
    }

    // A drawn size can be too small for the file's operations.
    let text = file_text(
        "entries=2,size=$size,prealloc=100",
        "flowop read name=r,filesetname=set,iosize=8k,random",
    );
    let size = "set $size=cvar(type=cvar-uniform,parameters=lower:4096;upper:4096.5)\n";
    let (flow, _) = once(&plan(&(size.to_owned() + &text)));
    let line = failed(flow);
    assert!(
        line.contains("a file of 4096 bytes is smaller than its iosize of 8192"),
        "{line}"
    );
}
