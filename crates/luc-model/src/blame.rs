//! Whose journal it is: for each process, how long its syncs waited for commits that others asked
//! for, and for data that others wrote.
//!
//! A commit belongs to the process whose sync asked for it first; one that no sync asked for, such
//! as the timer's, belongs to nobody. A sync waits behind the commits that run before its own. Its
//! own commit writes the data of files first (data=ordered): that time is divided among the
//! processes that wrote to the file system since the commit before, by their bytes. The kernel
//! writes some of these bytes earlier, and overwritten ones never in a commit, so this part is an
//! estimate. A write that sleeps on a buffer waits for the commit that runs then.

use std::collections::{BTreeMap, HashMap};

use luc_base::words::{bytes, three, time};
use luc_trace::{Process, SpanKind, Trace};
use serde::Serialize;

use crate::observed::{Observed, ObservedCommit, Service, end_of};
use crate::stats::share;
use crate::writeback::Names;

/// The waits of a process for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waiter {
    pub name: String,
    /// `None` if unknown.
    pub cgroup: Option<String>,
    /// Syncs that a commit served.
    pub syncs: u64,
    /// Commits that it was the first to ask for.
    pub commits_asked: u64,
    /// Time in these syncs, ns.
    pub sync_ns: f64,
    /// Time of its writes in waits for commits, ns.
    pub write_delay_ns: f64,
    /// The others that it waited for, the most time first.
    pub waited_for: Vec<WaitedFor>,
}

/// Waits for what another process asked for or wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitedFor {
    /// `None` for commits that no sync asked for.
    pub name: Option<String>,
    pub cgroup: Option<String>,
    /// Time in syncs behind its commits, ns.
    pub commits_ns: f64,
    /// Time in syncs while their own commit wrote its data, ns.
    pub data_ns: f64,
    /// Time of writes that slept on buffers of its commits, ns.
    pub write_delay_ns: f64,
    /// Bytes that it wrote between the commits before these syncs' and theirs. Each commit counts
    /// once.
    pub data_bytes: u64,
}

impl WaitedFor {
    /// All of this time, ns.
    pub fn total_ns(&self) -> f64 {
        self.commits_ns + self.data_ns + self.write_delay_ns
    }

    /// The part of it in syncs, ns.
    pub fn sync_ns(&self) -> f64 {
        self.commits_ns + self.data_ns
    }
}

/// A smaller share of the sync time is not worth a line.
const TOLD_SHARE_MIN: f64 = 0.05;
/// Shorter delays of writes are not, either: 1 ms in all.
const TOLD_DELAY_NS_MIN: f64 = 1e6;
/// Most others that are told of for one process.
const TOLD_MAX: usize = 3;

impl Waiter {
    /// Tells in sentences whom it waited for, where that matters.
    pub fn told(&self) -> Vec<String> {
        let matters = |other: &&WaitedFor| {
            self.sync_share(other) >= TOLD_SHARE_MIN || other.write_delay_ns >= TOLD_DELAY_NS_MIN
        };
        let others = self.waited_for.iter().filter(matters).take(TOLD_MAX);
        others.map(|other| self.sentence(other)).collect()
    }

    fn sentence(&self, other: &WaitedFor) -> String {
        let [me, name] = told_apart(
            (&self.name, &self.cgroup),
            (other.name.as_deref().unwrap_or_default(), &other.cgroup),
        );
        let commits = match &other.name {
            Some(_) => format!("commits that {name} asked for"),
            None => "commits that no sync asked for".into(),
        };
        let mut parts = Vec::new();
        let share = self.sync_share(other);
        if share >= TOLD_SHARE_MIN {
            let data = if other.data_ns > 0.0 {
                format!(" and {} of its data", bytes(other.data_bytes))
            } else {
                String::new()
            };
            parts.push(format!(
                "{}% of its sync time for {commits}{data}",
                three(share * 100.0)
            ));
        }
        if other.write_delay_ns >= TOLD_DELAY_NS_MIN {
            let delay = time(other.write_delay_ns);
            parts.push(format!("{delay} in writes, blocked by {commits}"));
        }
        format!("{me} waited {}.", parts.join(", and "))
    }

    /// Returns the share of its sync time that it waited for another.
    pub fn sync_share(&self, other: &WaitedFor) -> f64 {
        share(other.sync_ns(), self.sync_ns)
    }
}

/// Names two processes, with their control groups if the names are equal.
pub(crate) fn told_apart(a: (&str, &Option<String>), b: (&str, &Option<String>)) -> [String; 2] {
    [a, b].map(|(name, cgroup)| match cgroup {
        Some(cgroup) if a.0 == b.0 => format!("{name} in {cgroup}"),
        _ => name.to_owned(),
    })
}

/// Number of a process; `None` for nobody.
type Owner = Option<usize>;

/// The commits of a file system, with what belongs to whom.
struct Ownership<'a> {
    commits: &'a [ObservedCommit],
    /// The process that asked for each.
    asked_by: Vec<Owner>,
    /// Time that each spent on data, ns.
    data_ns: Vec<f64>,
    /// Bytes that each process wrote since the commit before.
    bytes: Vec<BTreeMap<usize, u64>>,
}

impl<'a> Ownership<'a> {
    fn of(trace: &Trace, observed: &'a Observed, processes: &Processes) -> Self {
        let commits = &observed.commits;
        let mut first: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for sync in &observed.syncs {
            if let Service::Commit(place) = sync.service {
                let asked = (sync.asked_ns, processes.of_thread(sync.pid));
                let earliest = first.entry(place).or_insert(asked);
                *earliest = asked.min(*earliest);
            }
        }
        let asked_by = (0..commits.len()).map(|place| first.get(&place).map(|(_, by)| *by));
        let phases: HashMap<(u32, u64), f64> = trace
            .on(observed.dev)
            .filter(|span| span.kind == SpanKind::Commit)
            .map(|span| {
                let [_, data_ns, log_ns] = span.marks_ns;
                let known = data_ns > 0 && span.begin_ns <= data_ns && log_ns <= end_of(span);
                let ns = if known {
                    log_ns.saturating_sub(data_ns)
                } else {
                    0
                };
                ((span.tid, span.begin_ns), ns as f64)
            })
            .collect();
        let data_ns = commits.iter().map(|commit| {
            let phase = phases.get(&(commit.tid, commit.begin_ns));
            phase.copied().unwrap_or(0.0)
        });
        let mut bytes: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); commits.len()];
        for write in observed.writes.iter().filter(|write| write.bytes > 0) {
            let next = commits.partition_point(|commit| commit.locked_ns < write.end_ns);
            if let Some(written) = bytes.get_mut(next) {
                let bytes: &mut u64 = written.entry(processes.of_thread(write.pid)).or_default();
                *bytes = bytes.saturating_add(write.bytes);
            }
        }
        Self {
            commits,
            asked_by: asked_by.collect(),
            data_ns: data_ns.collect(),
            bytes,
        }
    }

    /// The commits that run in a stretch of time, each with its part of it, ns.
    fn running(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (usize, f64)> {
        // Only one runs at a time, so their ends are in the order of their starts.
        let first = self
            .commits
            .partition_point(|commit| commit.end_ns <= from_ns);
        let after = self.commits[first..].iter();
        let inside = after.take_while(move |commit| commit.begin_ns < to_ns);
        (first..).zip(inside).map(move |(place, commit)| {
            let part_ns = commit
                .end_ns
                .min(to_ns)
                .saturating_sub(commit.begin_ns.max(from_ns));
            (place, part_ns as f64)
        })
    }
}

/// The processes of a file system's threads.
struct Processes {
    all: Vec<Process>,
    by_thread: HashMap<u32, usize>,
}

impl Processes {
    fn of(trace: &Trace, observed: &Observed) -> Self {
        let names = Names::of(trace, observed.dev);
        let mut numbers: BTreeMap<Process, usize> = BTreeMap::new();
        let mut by_process: HashMap<u32, usize> = HashMap::new();
        let mut by_thread = HashMap::new();
        for span in trace
            .on(observed.dev)
            .filter(|span| span.kind != SpanKind::Commit)
        {
            by_thread.entry(span.pid).or_insert_with(|| {
                *by_process.entry(span.tgid).or_insert_with(|| {
                    let next = numbers.len();
                    *numbers
                        .entry(names.process(span.tgid, span.pid))
                        .or_insert(next)
                })
            });
        }
        let mut all = vec![Process::default(); numbers.len()];
        for (process, number) in numbers {
            all[number] = process;
        }
        Self { all, by_thread }
    }

    fn of_thread(&self, pid: u32) -> usize {
        self.by_thread.get(&pid).copied().unwrap_or(0)
    }
}

/// Sums of one process by owner.
#[derive(Default)]
struct Tally {
    waiter: Waiter,
    others: BTreeMap<Owner, WaitedFor>,
    /// Commits whose bytes are counted already.
    counted: BTreeMap<Owner, usize>,
}

/// Tells for each process that waited how long it waited for others, those that lost most first.
/// O(n log n).
pub fn blame(trace: &Trace, observed: &Observed) -> Vec<Waiter> {
    let processes = Processes::of(trace, observed);
    let ownership = Ownership::of(trace, observed, &processes);
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    for sync in &observed.syncs {
        let Service::Commit(place) = sync.service else {
            continue;
        };
        let me = processes.of_thread(sync.pid);
        let tally = tallies.entry(me).or_default();
        tally.waiter.syncs += 1;
        tally.waiter.sync_ns += sync.duration_ns() as f64;
        let own_begin_ns = ownership.commits[place]
            .begin_ns
            .clamp(sync.asked_ns, sync.end_ns);
        for (place, ns) in ownership.running(sync.asked_ns, own_begin_ns) {
            let owner = ownership.asked_by[place];
            if owner != Some(me) {
                tally.others.entry(owner).or_default().commits_ns += ns;
            }
        }
        tally.add_data(me, place, &ownership);
    }
    for owner in ownership.asked_by.iter().flatten() {
        tallies.entry(*owner).or_default().waiter.commits_asked += 1;
    }
    let waits = trace.on(observed.dev);
    for wait in waits.filter(|span| span.kind == SpanKind::WaitBuffer) {
        let me = processes.of_thread(wait.pid);
        let tally = tallies.entry(me).or_default();
        for (place, ns) in ownership.running(wait.begin_ns, end_of(wait)) {
            tally.waiter.write_delay_ns += ns;
            let owner = ownership.asked_by[place];
            if owner != Some(me) {
                tally.others.entry(owner).or_default().write_delay_ns += ns;
            }
        }
    }
    let mut waiters: Vec<Waiter> = tallies
        .into_iter()
        .map(|(number, tally)| tally.told(&processes.all, number))
        .collect();
    let lost_ns = |waiter: &Waiter| -> f64 {
        let others = waiter.waited_for.iter();
        others.map(WaitedFor::total_ns).sum()
    };
    waiters.sort_by(|a, b| lost_ns(b).total_cmp(&lost_ns(a)));
    waiters
}

impl Tally {
    /// Divides the time that the own commit spent on data among those who wrote it.
    fn add_data(&mut self, me: usize, place: usize, ownership: &Ownership<'_>) {
        let written = &ownership.bytes[place];
        let all = written
            .values()
            .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        for (owner, bytes) in written.iter().filter(|(owner, _)| **owner != me) {
            let part_ns = ownership.data_ns[place] * share(*bytes as f64, all as f64);
            if part_ns <= 0.0 {
                continue;
            }
            let owner = Some(*owner);
            let other = self.others.entry(owner).or_default();
            other.data_ns += part_ns;
            if self.counted.insert(owner, place) != Some(place) {
                other.data_bytes = other.data_bytes.saturating_add(*bytes);
            }
        }
    }

    fn told(self, processes: &[Process], number: usize) -> Waiter {
        let named = |owner: Owner| owner.and_then(|number| processes.get(number)).cloned();
        let mut waited_for: Vec<WaitedFor> = self
            .others
            .into_iter()
            .map(|(owner, other)| {
                let process = named(owner);
                WaitedFor {
                    cgroup: process.as_ref().and_then(|process| process.cgroup.clone()),
                    name: process.map(|process| process.name),
                    ..other
                }
            })
            .collect();
        waited_for.sort_by(|a, b| b.total_ns().total_cmp(&a.total_ns()));
        let process = named(Some(number)).unwrap_or_default();
        Waiter {
            name: process.name,
            cgroup: process.cgroup,
            waited_for,
            ..self.waiter
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_control::Dev;
    use luc_trace::{Span, Task};

    /// Commit 7 (100 to 180) is asked for by `dpkg`; commit 8 (180 to 280), which writes data from
    /// 190 to 250, by `etcd` at 110. Before commit 8 is locked, `dpkg` writes 300 bytes and `etcd`
    /// 100. A write of `mail` sleeps from 150 to 200: 30 for dpkg's commit, 20 for etcd's.
    #[test]
    fn waits_are_divided_by_hand() {
        let of = |pid, kind, begin_ns, end_ns| Span {
            pid,
            tgid: pid,
            ..Span::of(kind, begin_ns, end_ns)
        };
        let commit = |tid, begin_ns, end_ns, marks_ns| Span {
            tid,
            marks_ns,
            ..of(1, SpanKind::Commit, begin_ns, end_ns)
        };
        let sync = |pid, begin_ns, end_ns, tid| Span {
            tid,
            done_tid: 6,
            ..of(pid, SpanKind::Fsync, begin_ns, end_ns)
        };
        let write = |pid, begin_ns, end_ns, amount| Span {
            amount,
            ..of(pid, SpanKind::Write, begin_ns, end_ns)
        };
        let mut trace = Trace::of([
            commit(7, 100, 180, [100, 110, 120]),
            commit(8, 180, 280, [180, 190, 250]),
            sync(20, 90, 185, 7),
            sync(30, 110, 290, 8),
            write(20, 105, 106, 300),
            write(30, 107, 108, 100),
            write(40, 140, 210, 8),
            Span {
                within: SpanKind::Write,
                ..of(40, SpanKind::WaitBuffer, 150, 200)
            },
        ]);
        for (pid, name) in [(20, "dpkg"), (30, "etcd"), (40, "mail")] {
            let task = Task {
                name: name.into(),
                tgid: pid,
                cgroup: 0,
            };
            trace.tasks.insert(pid, task);
        }
        let waiters = blame(&trace, &Observed::of(&trace, Dev::default()));
        let find = |name: &str| waiters.iter().find(|it| it.name == name).expect("known");
        let etcd = find("etcd");
        assert_eq!((etcd.syncs, etcd.commits_asked), (1, 1));
        let by = &etcd.waited_for[0];
        assert_eq!(by.name.as_deref(), Some("dpkg"));
        assert_eq!(
            (by.commits_ns, by.data_ns, by.data_bytes),
            (70.0, 45.0, 300)
        );
        let error = etcd.sync_share(by) - 115.0 / 180.0;
        assert!(error.abs() < 1e-12, "{etcd:?}");
        assert_eq!(
            etcd.told(),
            [
                "etcd waited 63.9% of its sync time for commits that dpkg asked for and 300 bytes of \
              its data."
            ]
        );
        let mail = find("mail");
        let delays: Vec<_> = mail
            .waited_for
            .iter()
            .map(|by| (by.name.as_deref(), by.write_delay_ns))
            .chain([(None, mail.write_delay_ns)])
            .collect();
        assert_eq!(
            delays,
            [(Some("dpkg"), 30.0), (Some("etcd"), 20.0), (None, 50.0)]
        );
        // Its own commit comes first; nobody wrote data for it before.
        assert!(find("dpkg").waited_for.is_empty());
    }

    /// A commit of the timer belongs to nobody.
    #[test]
    fn the_timers_commits_have_no_name() {
        let commit = |tid, begin_ns, end_ns| Span {
            tid,
            ..Span::of(SpanKind::Commit, begin_ns, end_ns)
        };
        let sync = Span {
            pid: 20,
            tgid: 20,
            tid: 8,
            done_tid: 6,
            ..Span::of(SpanKind::Fsync, 50, 190)
        };
        let trace = Trace::of([commit(7, 10, 100), commit(8, 100, 180), sync]);
        let waiters = blame(&trace, &Observed::of(&trace, Dev::default()));
        let by = &waiters[0].waited_for[0];
        assert_eq!((by.name.as_deref(), by.commits_ns), (None, 50.0));
    }
}
