//! Syncs that are going on, from `/proc`: the tracer sees the start of a call only if it was
//! attached by then.

use std::collections::BTreeMap;

use luc_bpf::EarlierSync;
use luc_control::Dev;
use luc_trace::SpanKind;
use rustix::time::{ClockId, clock_gettime};

use crate::mounts;
use crate::system::System;

/// Calls that make data durable, with the kind of their span.
const SYNCS: [(i64, SpanKind); 3] = [
    (libc::SYS_fsync, SpanKind::Fsync),
    (libc::SYS_fdatasync, SpanKind::Fdatasync),
    (libc::SYS_syncfs, SpanKind::Sync),
];

/// Calls that do so if the file is open for synchronous writes.
const WRITES: [i64; 5] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
];

/// Reads the syncs on these file systems in which tasks sleep; `None` if the kernel does not let
/// this process see the calls of others.
pub fn syncs(system: &dyn System, devs: &[Dev]) -> Option<Vec<EarlierSync>> {
    let mounts = mounts::mounts(system).unwrap_or_default();
    let devices: BTreeMap<u64, Dev> = mounts
        .iter()
        .map(|mount| (mount.id, mount.device))
        .collect();
    let clock = Clock::read(system);
    let (mut found, mut readable) = (Vec::new(), false);
    for (tgid, pid) in threads(system) {
        let task = format!("/proc/{tgid}/task/{pid}");
        let Ok(call) = system.read(&format!("{task}/syscall")) else {
            continue;
        };
        readable |= !is_self(tgid);
        let Some((kind, file)) = sync(&call, &task, system) else {
            continue;
        };
        let device = devices.get(&file.mount_id).copied();
        let device = device.or_else(|| elsewhere(system, tgid, file.mount_id));
        let Some(dev) = device.filter(|dev| devs.contains(dev)) else {
            continue;
        };
        found.push(EarlierSync {
            pid,
            name: name(system, &task),
            tgid,
            dev,
            inode: if kind == SpanKind::Sync {
                0
            } else {
                file.inode
            },
            kind,
            begin_ns: clock.asleep_since_ns(system, &task),
        });
    }
    readable.then_some(found)
}

/// A thread's name; empty once it has ended.
fn name(system: &dyn System, task: &str) -> String {
    let name = system.read(&format!("{task}/comm")).unwrap_or_default();
    name.trim_end_matches('\n').to_owned()
}

fn is_self(tgid: u32) -> bool {
    tgid == std::process::id()
}

/// All threads, each with its process.
fn threads(system: &dyn System) -> impl Iterator<Item = (u32, u32)> {
    let numbers = |path: &str| {
        let names = system.list(path).unwrap_or_default();
        names.into_iter().filter_map(|name| name.parse().ok())
    };
    numbers("/proc").flat_map(move |tgid: u32| {
        numbers(&format!("/proc/{tgid}/task")).map(move |pid| (tgid, pid))
    })
}

/// An open file.
#[derive(Debug, Default, PartialEq, Eq)]
struct OpenFile {
    flags: u32,
    mount_id: u64,
    inode: u64,
}

impl OpenFile {
    /// Parses `fdinfo`.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim)
        };
        Some(Self {
            flags: u32::from_str_radix(value("flags:")?, 8).ok()?,
            mount_id: value("mnt_id:")?.parse().ok()?,
            // Since Linux 5.14 (commit 3845f256a8b5).
            inode: value("ino:")
                .and_then(|inode| inode.parse().ok())
                .unwrap_or(0),
        })
    }

    /// The kind of sync that ends each write to the file, if one surely does: direct I/O that
    /// overwrites may make the disk write through instead, and its end is not seen.
    fn synced(&self) -> Option<SpanKind> {
        let set = |flag: i32| self.flags & flag.cast_unsigned() == flag.cast_unsigned();
        if set(libc::O_DIRECT) {
            None
        } else if set(libc::O_SYNC) {
            Some(SpanKind::Fsync)
        } else {
            set(libc::O_DSYNC).then_some(SpanKind::Fdatasync)
        }
    }
}

/// The sync that a task is in, and its file. `call` is `running`, or the number of a call and its
/// arguments, `74 0x3 0x0 ...`.
fn sync(call: &str, task: &str, system: &dyn System) -> Option<(SpanKind, OpenFile)> {
    let mut words = call.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let by_call = SYNCS.iter().find(|(sync, _)| *sync == number);
    if by_call.is_none() && !WRITES.contains(&number) {
        return None;
    }
    let first = words.next()?.strip_prefix("0x")?;
    let descriptor = u64::from_str_radix(first, 16).ok()?;
    let file = system.read(&format!("{task}/fdinfo/{descriptor}")).ok()?;
    let file = OpenFile::parse(&file)?;
    let kind = by_call.map(|(_, kind)| *kind).or_else(|| file.synced())?;
    Some((kind, file))
}

/// The device of a mount in another namespace.
fn elsewhere(system: &dyn System, tgid: u32, mount_id: u64) -> Option<Dev> {
    let mounts = mounts::of_process(system, tgid).ok()?;
    let mount = mounts.iter().find(|mount| mount.id == mount_id)?;
    Some(mount.device)
}

/// The scheduler's clock, which differs from the monotonic one: it may stop while a hypervisor
/// runs something else.
struct Clock {
    now_ns: u64,
    scheduler_ns: Option<u64>,
}

impl Clock {
    fn read(system: &dyn System) -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let ns = time
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(time.tv_nsec);
        Self {
            now_ns: u64::try_from(ns).unwrap_or(0),
            scheduler_ns: last_ran_ns(system, "/proc/thread-self"),
        }
    }

    /// Returns since when a task has slept, ns of the monotonic clock; now if that is unknown.
    fn asleep_since_ns(&self, system: &dyn System, task: &str) -> u64 {
        let last_ns = last_ran_ns(system, task);
        let asleep = self.scheduler_ns.zip(last_ns);
        let asleep_ns = asleep.map_or(0, |(now, last)| now.saturating_sub(last));
        self.now_ns.saturating_sub(asleep_ns)
    }
}

/// When a task last ran, ns of the scheduler's clock.
fn last_ran_ns(system: &dyn System, task: &str) -> Option<u64> {
    let text = system.read(&format!("{task}/sched")).ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.exec_start"))?;
    let (ms, below_ns) = line.split_once(':')?.1.trim().split_once('.')?;
    let (ms, below_ns): (u64, u64) = (ms.parse().ok()?, below_ns.parse().ok()?);
    ms.checked_mul(1_000_000)?.checked_add(below_ns)
}

/// Functions in the stack of a task that syncs, with the words for what it waits for. The first
/// that the stack holds counts.
const OF_SYNCS: [(&str, &str); 7] = [
    ("__jbd2_log_wait_for_space", "space in the journal"),
    ("wait_transaction_locked", "a journal commit"),
    ("jbd2_log_wait_commit", "a journal commit"),
    ("blkdev_issue_flush", "the flush of the disk's cache"),
    ("file_write_and_wait_range", "its data to be written"),
    ("filemap_fdatawait", "data to be written"),
    ("writeback_inodes", "data to be written"),
];

/// The same for the thread of a journal.
const OF_JOURNALS: [(&str, &str); 2] = [
    ("jbd2_journal_wait_updates", "operations that are going on"),
    ("jbd2_journal_commit_transaction", "the disk"),
];

/// Names the cause of a task's sleep in a sync, if the kernel shows its stack.
pub fn sync_waits_for(system: &dyn System, tgid: u32, pid: u32) -> Option<&'static str> {
    named(system, &format!("/proc/{tgid}/task/{pid}/stack"), &OF_SYNCS)
}

/// Names the cause of the sleep of a journal's thread in a commit, if the kernel shows its stack.
pub fn commit_waits_for(system: &dyn System, thread: u32) -> Option<&'static str> {
    named(system, &format!("/proc/{thread}/stack"), &OF_JOURNALS)
}

fn named(
    system: &dyn System,
    stack: &str,
    causes: &[(&str, &'static str)],
) -> Option<&'static str> {
    let stack = system.read(stack).ok()?;
    let holds = |function: &str| {
        let names = stack.lines().filter_map(|line| line.split_once("] "));
        names
            .into_iter()
            .any(|(_, name)| name.split('+').next() == Some(function))
    };
    let cause = causes.iter().find(|(function, _)| holds(function))?;
    Some(cause.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    const MOUNTS: &str = "30 1 254:16 / /srv rw - ext4 /dev/vdb rw\n";

    #[test]
    fn syncs_are_found_by_their_calls() {
        let fsync = format!("{} 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f0a", libc::SYS_fsync);
        let write = format!(
            "{} 0x4 0x55 0x1000 0x0 0x0 0x0 0x7ffd 0x7f0a",
            libc::SYS_write
        );
        let data = "pos:\t0\nflags:\t0100001\nmnt_id:\t30\nino:\t12\n";
        let dsync = "pos:\t0\nflags:\t0110001\nmnt_id:\t77\nino:\t13\n";
        let direct = "pos:\t0\nflags:\t0150001\nmnt_id:\t30\nino:\t14\n";
        let (_tree, machine) = tree(&[
            ("proc/self/mountinfo", MOUNTS),
            (
                "proc/thread-self/sched",
                "se.exec_start     :     5000.000250\n",
            ),
            ("proc/7/task/8/syscall", &fsync),
            ("proc/7/task/8/fdinfo/3", data),
            (
                "proc/7/task/8/sched",
                "se.exec_start     :     2000.000100\n",
            ),
            // In another mount namespace, by a write to a file with O_DSYNC.
            ("proc/9/task/9/syscall", &write),
            ("proc/9/task/9/fdinfo/4", dsync),
            (
                "proc/9/mountinfo",
                "77 1 254:16 / /data rw - ext4 /dev/vdb rw\n",
            ),
            // A plain write, one with direct I/O, a call of no file, and a task that runs.
            ("proc/10/task/10/syscall", &write),
            ("proc/10/task/10/fdinfo/4", data),
            ("proc/14/task/14/syscall", &write),
            ("proc/14/task/14/fdinfo/4", direct),
            ("proc/11/task/11/syscall", "35 0x0 0x0"),
            ("proc/12/task/12/syscall", "running\n"),
            ("proc/13/task/13/comm", "no call can be read"),
        ]);
        let dev = Dev {
            major: 254,
            minor: 16,
        };
        let found = syncs(&machine, &[dev]).expect("calls can be read");
        let kinds: Vec<_> = found
            .iter()
            .map(|it| (it.tgid, it.pid, it.inode, it.kind))
            .collect();
        assert_eq!(
            kinds,
            [(7, 8, 12, SpanKind::Fsync), (9, 9, 13, SpanKind::Fdatasync)]
        );
        let asleep_ns = found[1].begin_ns - found[0].begin_ns;
        assert_eq!(asleep_ns, 3_000_000_150);
        assert_eq!(syncs(&machine, &[]), Some(Vec::new()));
    }

    #[test]
    fn calls_that_nobody_shows_are_unknown() {
        let (_tree, machine) = tree(&[("proc/7/task/7/comm", "x"), ("proc/self/mountinfo", "")]);
        assert_eq!(syncs(&machine, &[]), None);
    }

    #[test]
    fn stacks_name_causes() {
        let flushes = "[<0>] folio_wait_bit+0x12/0x30\n[<0>] __filemap_fdatawait_range+0x8/0x9\n\
                       [<0>] file_write_and_wait_range+0x9e/0xd0\n[<0>] ext4_sync_file+0x1/0x2\n";
        // The kernel leaves out functions of its scheduler.
        let commits = "[<0>] jbd2_journal_commit_transaction+0x1/0x2 [jbd2]\n\
                       [<0>] kjournald2+0x1/0x2 [jbd2]\n";
        let (_tree, machine) = tree(&[
            ("proc/7/task/8/stack", flushes),
            ("proc/20/stack", commits),
            ("proc/21/stack", "[<0>] kjournald2+0x1/0x2 [jbd2]\n"),
        ]);
        let cause = sync_waits_for(&machine, 7, 8);
        assert_eq!(cause, Some("its data to be written"));
        assert_eq!(commit_waits_for(&machine, 20), Some("the disk"));
        assert_eq!(commit_waits_for(&machine, 21), None);
        assert_eq!(commit_waits_for(&machine, 22), None);
    }
}
