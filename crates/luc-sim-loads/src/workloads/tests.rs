//! Tests that every program ends and keeps its bounds, and compares figures with the lab's, if any.
//!
//! The lab's figures are for kernel 6.12 on one virtual processor: `docs/demo-results.jsonl` and
//! `docs/reproduction.md`. `docs/simulator.md` tells how well each agrees; the tests guard that.

use luc_workload::Outcome;
use proptest::prelude::*;

use crate::tests::{report, setup};
use crate::{Setup, load, run};
use luc_sim::kernel::{self, KERNELS};
use luc_sim::mount::Mount;

fn rate(text: &str, setup: &Setup) -> f64 {
    report(text, setup).outcome.found().figures().main.unwrap()
}

fn near(found: f64, lab: f64, share: f64) {
    assert!((found / lab - 1.0).abs() <= share, "{found}, not {lab}");
}

/// Short loads of each kind.
const LOADS: [&str; 16] = [
    "create-fsync --threads 5 --ops 20 --warmup-s 0.1 --bytes 9000",
    "burst --threads 5 --period-ms 20 --bursts 5 --warmup-bursts 1",
    "write-burst --threads 5 --period-ms 100 --bursts 5 --warmup-bursts 1",
    "write-delay --writers 9 --fsync-streams 2 --seconds 0.5 --warmup-s 0.1",
    "metarates --procs 6 --files 5 --create --stat --utime",
    "metarates --procs 3 --files 4 --utime --unique-dirs --no-fsync",
    "iozone -t 20 -s 64k -r 16k -e -c",
    "iozone -t 5 -s 2m -r 1m -x -e",
    "run varmail --preset paper -D nthreads=9 --seconds 0.5 --warmup-s 0.2",
    "run varmail -D nthreads=20 -D nfiles=200 --ops 300",
    "run oltp --preset paper -D nshadows=9 -D ndbwriters=2 -D usermode=500 -D filesize=1m --seconds 1",
    "run webserver -D nfiles=50 -D nthreads=9 --seconds 0.2",
    "run fileserver -D nfiles=300 -D nthreads=9 --seconds 0.2",
    "run shared-files -D nthreads=4 --seconds 0.5 --aio-wait half",
    "run open-loop -D nthreads=4 -D rate=200 --seconds 0.5",
    "run queue -D nthreads=4 --seconds 0.5",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The same input gives the same report; there are no more commits than the disk can do, and no
    /// processor is busy for longer than the run.
    #[test]
    fn every_program_ends_and_keeps_its_bounds(
        at in 0..LOADS.len(), cpus in 1_u16..5, exponent in 0_u32..4, luc in any::<bool>(),
        ordered in any::<bool>(), kernel in 0..KERNELS.len(),
    ) {
        let mips = 125.0 * f64::from(1 << exponent);
        let mut one = setup("2ms:4", cpus, mips, luc);
        one.mount.kernel = &KERNELS[kernel];
        one.mount.unwritten = !ordered;
        let found = report(LOADS[at], &one);
        prop_assert_eq!(&found, &report(LOADS[at], &one));
        let activity = found.activity.as_ref().unwrap();
        prop_assert_eq!(activity.processors.len(), usize::from(cpus));
        // Bursts count whole periods, although the last one ends earlier for the machine.
        prop_assert!(activity.elapsed_ns * 2 >= found.elapsed_ns, "{:?}", activity);
        prop_assert!(activity.elapsed_ns < 600_000_000_000, "{:?}", activity);
        for processor in &activity.processors {
            prop_assert!(processor.busy_ns() <= activity.elapsed_ns + 50_000_000, "{:?}", activity);
        }
        prop_assert!(activity.disks.busy_ns <= activity.elapsed_ns);
        let elapsed_s = found.elapsed_ns as f64 / 1e9;
        let commits = found.journal.unwrap().commits as f64;
        // A commit writes its log, then its record.
        prop_assert!(commits <= elapsed_s * 1e3 / 4.0 + 3.0, "{commits} in {elapsed_s} s");
        let syncs = found.outcome.found().figures().syncs.map_or(0, |it| it.max_ns);
        prop_assert!(syncs < 100_000_000_000, "one took {} ns", syncs);
        let busy_ns = found.cpu_busy_ns.unwrap();
        prop_assert!(busy_ns <= found.elapsed_ns * u64::from(cpus) + 10_000_000);
    }
}

/// The share of threads that were blocked while they wrote, and the commits of 40 bursts.
#[test]
fn write_burst_blocks_as_many_as_the_lab() {
    let text = "write-burst --threads 16 --spread-us 5000 --bursts 40 --seed 1";
    for (mips, lab_share, lab_commits) in [
        (125.0, 0.005, 81.0),
        (250.0, 0.006, 112.0),
        (500.0, 0.089, 119.0),
        (1000.0, 0.113, 120.0),
    ] {
        let found = report(text, &setup("4ms:8", 1, mips, false));
        let Outcome::WriteBurst(figures) = &found.outcome else {
            panic!("{found:?}");
        };
        let share = figures.blocked_share;
        assert!(
            (share - lab_share).abs() < 0.02,
            "{mips}: {share}, not {lab_share}"
        );
        near(found.journal.unwrap().commits as f64, lab_commits, 0.3);
    }
    // With copies, almost no thread waits: only in the first commits, which have none yet.
    let found = report(text, &setup("4ms:8", 1, 1000.0, true));
    let Outcome::WriteBurst(figures) = &found.outcome else {
        panic!("{found:?}");
    };
    assert!(figures.blocked_share < 0.005, "{figures:?}");
    near(figures.write.mean_ns, 32_322.0, 0.05);
}

/// If a commit waits for its data, one commit does what otherwise takes two, because blocks need
/// not be marked as written afterwards.
#[test]
fn ordered_data_needs_fewer_commits() {
    let text = "write-burst --threads 16 --spread-us 5000 --bursts 40 --seed 1";
    let mut one = setup("4ms:8", 1, 250.0, false);
    let commits = |one: &Setup| report(text, one).journal.unwrap().commits;
    let unwritten = commits(&one);
    one.mount = "dioread_lock".parse().unwrap();
    let ordered = commits(&one);
    assert!(ordered * 3 <= unwritten * 2, "{ordered} of {unwritten}");
}

#[test]
fn iozone_beside_the_lab() {
    // From 500 MIPS on, a few blocked children more or less decide the rate:
    // docs/figures/simulator.md.
    for (mips, lab_bytes_per_s, write_ns) in [(125.0, 13.4e9, 391e3), (250.0, 35.4e9, 196e3)] {
        let text = "iozone -t 256 -s 128k -r 32k -x";
        let found = report(text, &setup("hdd-7200", 1, mips, false));
        let Outcome::Iozone(figures) = &found.outcome else {
            panic!("{found:?}");
        };
        near(figures.children_bytes_per_s, lab_bytes_per_s, 0.2);
        near(figures.write.p50_ns as f64, write_ns, 0.1);
    }
}

/// Under CFS, a faster processor lets a process ask for its commit before most of the others have
/// written; under EEVDF, few are blocked at any speed.
#[test]
fn the_scheduler_decides_whom_the_first_commit_blocks() {
    let blocked = |kernel, mips| {
        let mut one = setup("sandybridge-hdd", 4, mips, false);
        one.mount = Mount::new(kernel::named(kernel).unwrap(), "").unwrap();
        one.machine.past_ns = Some(500_000);
        let count = |seed| {
            one.seed = seed;
            let found = report("iozone -t 256 -s 128k -r 32k -x", &one);
            let Outcome::Iozone(figures) = found.outcome else {
                panic!("another benchmark");
            };
            figures.blocked
        };
        (1..=6).map(count).sum::<u64>() / 6
    };
    for kernel in ["3.4", "6.1"] {
        let (slow, fast) = (blocked(kernel, 800.0), blocked(kernel, 1600.0));
        assert!(slow < 2 && fast > 70, "{kernel}: {slow} {fast}");
    }
    let fast = blocked("6.12", 1600.0);
    assert!(fast < 25, "{fast}");
}

#[test]
fn varmail_beside_the_lab() {
    let text =
        "run varmail --preset paper -D nthreads=64 --seconds 6 --warmup-s 6 --settle --seed 2";
    // Seeds differ by 12% at 500 MIPS.
    let median = |mips, luc| {
        let mut rates = [1, 2, 3].map(|seed| {
            let one = setup("hdd-7200", 1, mips, luc);
            rate(text, &Setup { seed, ..one })
        });
        rates.sort_by(f64::total_cmp);
        rates[1]
    };
    for (mips, stock, ratio) in [(250.0, 4859.0, 1.41), (500.0, 5882.0, 1.56)] {
        let found = median(mips, false);
        near(found, stock, 0.12);
        near(median(mips, true) / found, ratio, 0.15);
    }
}

#[test]
fn oltp_beside_the_lab() {
    let text = "run oltp --preset paper -D nshadows=41 -D ndbwriters=6 -D usermode=5000 \
                -D filesize=1m --aio-wait half --seconds 60 --warmup-s 10 --settle --seed 1";
    let rate = |mips| rate(text, &setup("hdd-7200", 1, mips, false));
    // The lab's figures are means of three runs.
    near(rate(125.0), 725.0, 0.1);
    near(rate(1000.0), 805.0, 0.1);
}

/// A write puts the inode into a newer transaction while a sync waits for the one it asked for: the
/// sync ends with that one, whether or not a task asks for the newer.
#[test]
fn a_sync_waits_for_no_newer_transaction() {
    let text = "run oltp --preset paper -D nshadows=41 -D ndbwriters=6 -D usermode=5000 \
                -D filesize=1m --aio-wait half --seconds 4 --warmup-s 1";
    for cpus in [2, 4] {
        let found = rate(text, &setup("hdd-7200", cpus, 1000.0, false));
        assert!(found > 500.0, "{cpus}: {found}");
    }
}

#[test]
fn commands_of_a_workload_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("system.f");
    let words = format!("run {} --ops 10", file.display());
    let with = |command: &str| {
        let text = format!(
            "define fileset name=a,path=/x,entries=5,size=4k,prealloc
            define process name=p {{ thread name=t,memsize=4k {{
            flowop readwholefile name=r,filesetname=a }} }}
            create files
            system \"{command}\"
            run 1
            "
        );
        std::fs::write(&file, text).unwrap();
        let loaded = load(words.split_whitespace());
        loaded.and_then(|it| run(&it, &setup("4ms:1", 1, 1000.0, false)))
    };
    for (command, notes) in [("sync", 0), ("sync; echo 1 > /proc/sys/vm/drop_caches", 1)] {
        let Outcome::Wml(found) = with(command).unwrap().outcome else {
            panic!("another benchmark");
        };
        assert_eq!(
            (found.ops, found.notes.len()),
            (10, notes),
            "{:?}",
            found.notes
        );
    }
    let refused = with("umount /mnt").unwrap_err().to_string();
    assert!(
        refused.contains("line 5") && refused.contains("umount /mnt"),
        "{refused}"
    );
}

#[test]
fn what_the_simulator_lacks_is_told() {
    let refused = |text: &str| {
        let loaded = load(text.split_whitespace());
        let loaded = loaded.and_then(|it| run(&it, &setup("4ms:1", 1, 1000.0, false)));
        let error = loaded.unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    for (text, why) in [
        ("run nosuch.f", "nosuch.f"),
        ("run varmail --preset none", "invalid value"),
        ("run webserver --preset paper", "only varmail and oltp"),
        ("run varmail -D nosuch=4", "nosuch"),
        ("run varmail --prepare-only", "--prepare-only"),
        ("run oltp -D directio=1 --seconds 1", "directio"),
        // The last message is deleted before one is delivered.
        (
            "run varmail -D nfiles=1 -D nthreads=2 --seconds 1",
            "flowop",
        ),
        ("iozone -s 100k -r 32k", "not a whole number of records"),
    ] {
        let error = refused(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// A faster processor halves the instructions' time, not the memory's.
#[test]
fn memory_takes_its_time_at_any_speed() {
    const PAGES: f64 = 8.0;
    let write_ns = |kernel, mips, memory_page_ns| {
        let mut one = setup("4ms:1", 1, mips, false);
        one.mount = Mount::new(kernel::named(kernel).unwrap(), "").unwrap();
        one.machine.memory_page_ns = memory_page_ns;
        let found = report("iozone -t 1 -s 128k -r 32k -x", &one);
        let Outcome::Iozone(figures) = found.outcome else {
            panic!("another benchmark");
        };
        figures.write.p50_ns as f64
    };
    for kernel in ["3.4", "6.12"] {
        for mips in [500.0, 2000.0] {
            let memory_ns = write_ns(kernel, mips, 1500) - write_ns(kernel, mips, 0);
            near(memory_ns, 1500.0 * PAGES, 0.02);
        }
        near(
            write_ns(kernel, 500.0, 0),
            4.0 * write_ns(kernel, 2000.0, 0),
            0.02,
        );
    }
}
