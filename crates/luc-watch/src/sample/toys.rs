//! Made-up readings, for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use luc_bpf::{Counts, TaskCounts};
use luc_control::Dev;
use luc_host::health::Health;
use luc_trace::Process;

use super::{JournalReading, ModuleReading, ProcessReading, Reading, Snapshot, WaitingSyncs};

const MS: u64 = 1_000_000;

/// A machine with two journals and two processes after N rounds of the same
/// work, one per second; LUC is on for the first journal.
pub fn reading(rounds: u64) -> Reading {
    let mut counts = Counts {
        syncs: 80 * rounds,
        sync_ns: 80 * rounds * 8 * MS,
        syncs_by_commits: [0, 76 * rounds, 4 * rounds, 0],
        commits: 10 * rounds,
        commit_ns: 10 * rounds * 7 * MS,
        waits: [5 * rounds, rounds, 0],
        wait_ns: [5 * rounds * 3 * MS, rounds * MS, 0],
        ..Counts::default()
    };
    for _ in 0..rounds {
        (0..76).for_each(|_| counts.sync_hist.record(8 * MS));
        (0..4).for_each(|_| counts.sync_hist.record(15 * MS));
    }
    let n = |each: i64| each * i64::try_from(rounds).unwrap_or(0);
    let module = ModuleReading {
        policy: "luc".into(),
        mode: "steer".into(),
        setpoint_asked: Some(0),
        counters: BTreeMap::from([
            ("commits", n(10)),
            ("sync_events", n(80)),
            ("commits_held", n(6)),
            ("held_ns", n(6 * 300_000)),
            ("closed_now", n(2)),
            ("closed_setpoint", n(8)),
            ("writes_delayed", n(5)),
            ("write_delay_ns", n(5 * 3_000_000)),
            ("copies", n(20)),
            ("setpoint_events", 8),
            ("batch_events", 7),
            ("hold_ns", 250_000),
        ]),
    };
    let journal = |name: &str, minor, point: &str, counts, module| JournalReading {
        device: Dev { major: 254, minor },
        name: name.into(),
        kind: "ext4".into(),
        mount_points: vec![point.into()],
        health: Health::Sound,
        counts: Some(counts),
        fast_commits: None,
        waiting: Some(WaitingSyncs {
            syncs: 1,
            longest_ns: 3 * MS,
        }),
        module,
    };
    let process = |name: &str, syncs, wait_ns| ProcessReading {
        process: Process {
            name: name.into(),
            cgroup: Some(format!("/system.slice/{name}.service")),
        },
        counts: TaskCounts {
            syncs: syncs * rounds,
            sync_ns: syncs * rounds * 8 * MS,
            syncs_late: 2 * rounds,
            wait_ns: wait_ns * rounds,
        },
    };
    Reading {
        at: Duration::from_secs(rounds),
        module_version: Some("0.1.0".into()),
        module_loaded: true,
        hooks: [("tracepoint", 5), ("fentry", 1), ("kprobe", 2)]
            .map(|(means, hooks)| (means.to_owned(), hooks))
            .into(),
        generation: Some(1),
        lost: Some(3 * rounds),
        journals: vec![
            journal("vdb", 16, "/srv/data", counts, Some(module)),
            journal("vda1", 1, "/", Counts::default(), None),
        ],
        processes: BTreeMap::from([
            (40, process("mailer", 60, MS)),
            (50, process("database", 20, 15 * MS)),
        ]),
        ..Reading::default()
    }
}

/// One second of that work.
pub fn sample_of() -> Snapshot {
    Snapshot::between("6.12.95", Some(&reading(1)), &reading(2))
}
