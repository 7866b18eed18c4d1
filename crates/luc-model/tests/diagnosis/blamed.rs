//! Advice that names a process names the one that causes the delay, not the one that waits.

use crate::common::{DEV, MS, commit, span};
use crate::facts;
use crate::text::check_text;
use luc_model::blame::Waiter;
use luc_model::diagnosis::{Diagnosis, VerdictKind, diagnose};
use luc_trace::{BlockKind, MetadataBlock, Span, SpanKind, Task, Trace};

/// Processes by their threads: the one that waits, the one that others wait for, one that syncs.
const VICTIM: u32 = 10;
const CULPRIT: u32 = 20;
const BYSTANDER: u32 = 30;
/// Rounds of 20 ms, 10 s in all.
const ROUNDS: u32 = 500;

fn span_by(pid: u32, kind: SpanKind, begin_ms: u64, end_ms: u64) -> Span {
    Span {
        tgid: pid,
        ..span(kind, pid, begin_ms * MS, end_ms * MS)
    }
}

/// A sync that waits for this transaction, after the one before it has been committed.
fn sync(pid: u32, begin_ms: u64, end_ms: u64, tid: u32, done_tid: u32) -> Span {
    Span {
        tid,
        done_tid,
        ..span_by(pid, SpanKind::Fsync, begin_ms, end_ms)
    }
}

/// Repeats a round, which begins at a time in ms after a transaction.
fn rounds(round: impl Fn(u64, u32) -> Vec<Span>) -> Trace {
    let spans = (0..ROUNDS).flat_map(|number| round(u64::from(number) * 20, 5 * number));
    let mut trace = Trace::from_spans(spans);
    for (pid, name) in [
        (VICTIM, "victim"),
        (CULPRIT, "culprit"),
        (BYSTANDER, "bystander"),
    ] {
        let task = Task {
            name: name.into(),
            tgid: pid,
            cgroup: 0,
        };
        trace.tasks.insert(pid, task);
    }
    trace
}

fn judged(trace: &Trace, kind: VerdictKind) -> Diagnosis {
    let got = diagnose(trace, DEV, &facts());
    check_text(&got);
    assert!(got.has(kind), "{got:?}");
    got
}

/// The victim asks while the culprit's long commit runs, and each makes some syncs of its own.
fn delayed(at_ms: u64, tid: u32, more_by: u32) -> Vec<Span> {
    let ms = |ms: u64| (at_ms + ms) * MS;
    let mut round = vec![
        commit(tid + 1, ms(0), ms(10)),
        sync(CULPRIT, at_ms, at_ms + 10, tid + 1, tid),
        commit(tid + 2, ms(10), ms(11)),
        sync(VICTIM, at_ms + 1, at_ms + 11, tid + 2, tid),
    ];
    for more in 0..3 {
        let begin_ms = 12 + 2 * u64::from(more);
        let end_ms = begin_ms + 1;
        let (before, this) = (tid + 2 + more, tid + 3 + more);
        round.push(commit(this, ms(begin_ms), ms(end_ms)));
        let (begin_ms, end_ms) = (at_ms + begin_ms, at_ms + end_ms);
        round.push(sync(more_by, begin_ms, end_ms, this, before));
    }
    round
}

#[test]
fn the_process_whose_commits_others_wait_for_is_told_to_sync_less() {
    let trace = rounds(|at_ms, tid| delayed(at_ms, tid, CULPRIT));
    let advice = judged(&trace, VerdictKind::SyncDelays).advice.join(" ");
    let wanted = "Give culprit its own file system, or let it sync less often.";
    assert!(advice.contains(wanted), "{advice}");
}

/// Most syncs are of a process whose commits nobody waits for, or of the victim itself.
#[test]
fn a_process_that_only_syncs_often_is_not_blamed() {
    for often in [BYSTANDER, VICTIM] {
        let trace = rounds(|at_ms, tid| delayed(at_ms, tid, often));
        let advice = judged(&trace, VerdictKind::SyncDelays).advice.join(" ");
        assert!(!advice.contains("sync less"), "{advice}");
        assert!(!advice.contains("Give "), "{advice}");
    }
}

#[test]
fn writers_that_a_commit_blocks_are_not_told_to_sync_less() {
    let trace = rounds(|at_ms, tid| {
        let mut round = vec![
            commit(tid + 1, at_ms * MS, (at_ms + 15) * MS),
            sync(CULPRIT, at_ms, at_ms + 15, tid + 1, tid),
            span_by(VICTIM, SpanKind::Write, at_ms + 1, at_ms + 15),
        ];
        round.push(Span {
            within: SpanKind::Write,
            ..span_by(VICTIM, SpanKind::WaitBuffer, at_ms + 2, at_ms + 14)
        });
        round
    });
    let advice = judged(&trace, VerdictKind::WriteDelays).advice.join(" ");
    assert!(advice.contains("Give culprit "), "{advice}");
    assert!(!advice.contains("Give victim"), "{advice}");
}

/// The victim waits for a block of inodes that the culprit's commit writes. Its own file is in that
/// commit, or not.
#[test]
fn writers_that_share_only_a_block_can_be_kept_apart() {
    const BLOCK: u64 = 1057;
    let advice = |kind, victims_file: u64| {
        let mut trace = rounds(|at_ms, tid| {
            let mut round = vec![
                commit(tid + 1, (at_ms + 3) * MS, (at_ms + 18) * MS),
                Span {
                    object: 131,
                    amount: 4096,
                    ..span_by(CULPRIT, SpanKind::Write, at_ms, at_ms + 1)
                },
                sync(CULPRIT, at_ms + 3, at_ms + 18, tid + 1, tid),
            ];
            // A write is in the commit after the one that it waited for.
            if tid % 2 == 0 {
                round.push(Span {
                    object: victims_file,
                    amount: 4096,
                    ..span_by(VICTIM, SpanKind::Write, at_ms + 4, at_ms + 18)
                });
                round.push(Span {
                    within: SpanKind::Write,
                    object: BLOCK,
                    ..span_by(VICTIM, SpanKind::WaitBuffer, at_ms + 5, at_ms + 17)
                });
            }
            round
        });
        let mut block = MetadataBlock::plain(kind);
        (block.first_inode, block.inodes) = (129, 16);
        trace.blocks.insert((DEV, BLOCK), block);
        let mut facts = facts();
        facts.block_bytes = Some(4096);
        facts.luc_obstacle = Some("no module".into());
        let got = diagnose(&trace, DEV, &facts);
        assert!(got.has(VerdictKind::WriteDelays), "{got:?}");
        check_text(&got);
        got.advice.join(" ")
    };
    let said = advice(BlockKind::InodeTable, 130);
    assert!(said.contains("`mke2fs -I 4096`"), "{said}");
    for (kind, file) in [(BlockKind::InodeTable, 131), (BlockKind::Directory, 130)] {
        let said = advice(kind, file);
        assert!(!said.contains("mke2fs"), "{said}");
    }
}

/// The victim's small writes wait for the disk, which is busy with the culprit's.
#[test]
fn a_sync_beside_bulk_writes_is_not_told_to_write_less() {
    let written = |by: u32, bytes: i64| {
        rounds(|at_ms, tid| {
            let flushed_ns = (at_ms + 16) * MS;
            vec![
                Span {
                    amount: bytes,
                    ..span_by(by, SpanKind::Write, at_ms, at_ms + 1)
                },
                Span {
                    amount: 4096,
                    ..span_by(VICTIM, SpanKind::Write, at_ms, at_ms + 1)
                },
                commit(tid + 1, flushed_ns, flushed_ns + MS),
                Span {
                    marks_ns: [(at_ms + 1) * MS, flushed_ns, 0],
                    ..sync(VICTIM, at_ms + 1, at_ms + 17, tid + 1, tid)
                },
            ]
        })
    };
    let beside = judged(&written(CULPRIT, 1 << 20), VerdictKind::DataFlush);
    let advice = beside.advice.join(" ");
    assert!(advice.contains("Give culprit another disk"), "{advice}");
    assert!(!advice.contains("before each sync"), "{advice}");
    // Where it writes the data itself, it can help itself.
    let alone = judged(&written(VICTIM, 1 << 20), VerdictKind::DataFlush);
    let advice = alone.advice.join(" ");
    assert!(
        advice.contains("Write less data before each sync"),
        "{advice}"
    );
    assert_eq!(alone.processes.bulk, None);
}

/// The victim waits for its own commits on a disk that the culprit fills.
#[test]
fn a_disk_that_somebody_fills_is_not_only_slow() {
    let filled = |bytes: i64| {
        rounds(|at_ms, tid| {
            let begin_ns = (at_ms + 1) * MS;
            vec![
                Span {
                    amount: bytes,
                    ..span_by(CULPRIT, SpanKind::Write, at_ms, at_ms + 1)
                },
                commit(tid + 1, begin_ns + MS, begin_ns + 16 * MS),
                Span {
                    marks_ns: [begin_ns, begin_ns + MS / 2, 0],
                    ..sync(VICTIM, at_ms + 1, at_ms + 17, tid + 1, tid)
                },
            ]
        })
    };
    let advice = |bytes| judged(&filled(bytes), VerdictKind::Device).advice.join(" ");
    let said = advice(1 << 20);
    assert!(said.contains("Give culprit another disk"), "{said}");
    let said = advice(4096);
    assert!(!said.contains("culprit"), "{said}");

    // A burst in a long quiet watch does not fill the disk.
    let trace = filled(1 << 20);
    let (_, end_ns) = trace.bounds_ns().unwrap();
    let per_s = |watched_ns| {
        let mut facts = facts();
        facts.watched_ns = Some((0, watched_ns));
        diagnose(&trace, DEV, &facts)
            .processes
            .bulk
            .unwrap()
            .bytes_per_s
    };
    let (short, long) = (per_s(end_ns), per_s(100 * end_ns));
    assert!((99 * long..101 * long).contains(&short), "{short} {long}");
}

/// Two processes of one name are told apart by their control groups.
#[test]
fn processes_of_one_name_are_told_apart() {
    let mut trace = rounds(|at_ms, tid| delayed(at_ms, tid, CULPRIT));
    for (pid, cgroup) in [(VICTIM, 1), (CULPRIT, 2)] {
        let task = Task {
            name: "dd".into(),
            tgid: pid,
            cgroup,
        };
        trace.tasks.insert(pid, task);
    }
    trace
        .cgroups
        .extend([(1, "/low".into()), (2, "/high".into())]);
    let got = judged(&trace, VerdictKind::SyncDelays);
    let advice = got.advice.join(" ");
    let wanted = "Give dd in /high its own file system, or let it sync less often.";
    assert!(advice.contains(wanted), "{advice}");
    let told: Vec<String> = got
        .waiters
        .iter()
        .flatten()
        .flat_map(Waiter::told)
        .collect();
    let told = told.join(" ");
    assert!(told.contains("dd in /low waited "), "{told}");
    assert!(
        told.contains("commits that dd in /high asked for"),
        "{told}"
    );
}
