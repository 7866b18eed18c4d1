//! Whose journal it is: for each process or control group, the commits that it caused, and how long
//! its syncs waited for commits that others asked for, and for data that others wrote.
//!
//! A commit belongs to the process whose sync, or other operation that waits for a commit, asked
//! for it first; one for which nobody asked, such as the timer's, belongs to nobody. If a sync that
//! was seen in part may have asked for it, its owner is unknown. A sync waits behind the commits
//! that run before its own. Its own commit writes the data of files first (data=ordered): that time
//! is divided among the processes that wrote to the file system since the commit before, in
//! proportion to their bytes. The kernel writes some of these bytes before the commit, and
//! overwrites of allocated blocks never in one, so this part is an estimate. A write that sleeps on
//! a buffer waits for the commit that runs then.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{AddAssign, RangeInclusive};

use luc_base::words::{bytes, three, time};
use luc_control::Dev;
use luc_trace::export::Askers;
use luc_trace::{Process, Sight, SpanKind, Trace};
use serde::Serialize;

use crate::observed::{Observed, ObservedCommit, ObservedSync, Service, end_of, is_sync};
use crate::stats::share;
use crate::writeback::Names;

/// The parties of a blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Processes of one name and control group.
    Process,
    /// Control groups, whose paths stand for their names.
    ControlGroup,
}

/// The waits of a party for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waiter {
    pub name: String,
    /// `None` if unknown, and where the party is a control group itself.
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

/// The one who asked for a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Asker {
    /// A party that is known.
    Known,
    /// No sync: the timer, a full transaction, lack of journal space.
    #[default]
    Nobody,
    /// Perhaps a sync that was seen in part.
    Unknown,
}

/// Time in waits for what another party asked for or wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitedTime {
    /// Time in syncs behind its commits, ns.
    pub commits_ns: f64,
    /// Time in syncs while their own commit wrote its data, ns.
    pub data_ns: f64,
    /// Time of writes that slept on buffers of its commits, ns.
    pub write_delay_ns: f64,
}

impl AddAssign for WaitedTime {
    fn add_assign(&mut self, more: Self) {
        self.commits_ns += more.commits_ns;
        self.data_ns += more.data_ns;
        self.write_delay_ns += more.write_delay_ns;
    }
}

/// Waits for what another party asked for or wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitedFor {
    pub asker: Asker,
    /// `None` unless the asker is known.
    pub name: Option<String>,
    pub cgroup: Option<String>,
    #[serde(flatten)]
    pub time: WaitedTime,
    /// Bytes that it wrote between the commits before these syncs' and theirs. Each commit counts
    /// once.
    pub data_bytes: u64,
}

impl WaitedFor {
    /// All of this time, ns.
    pub fn total_ns(&self) -> f64 {
        self.sync_ns() + self.time.write_delay_ns
    }

    /// The part of it in syncs, ns.
    pub fn sync_ns(&self) -> f64 {
        self.time.commits_ns + self.time.data_ns
    }
}

/// A smaller share of the sync time is not worth a line.
const TOLD_SHARE_MIN: f64 = 0.05;
/// Shorter delays of writes are not, either: 1 ms in all.
const TOLD_DELAY_NS_MIN: f64 = 1e6;
/// Most others that are listed for one party.
const TOLD_MAX: usize = 3;
/// Most parties that are listed as askers.
const ASKERS_MAX: usize = 5;
/// Stands for the name of a control group that was removed, or was not among those searched.
pub const UNKNOWN_GROUP: &str = "an unknown control group";

impl Waiter {
    /// Says in sentences whom it waited for, where that matters.
    pub fn told(&self) -> Vec<String> {
        let matters = |other: &&WaitedFor| {
            self.sync_share(other) >= TOLD_SHARE_MIN
                || other.time.write_delay_ns >= TOLD_DELAY_NS_MIN
        };
        let others = self.waited_for.iter().filter(matters).take(TOLD_MAX);
        others.map(|other| self.sentence(other)).collect()
    }

    fn sentence(&self, other: &WaitedFor) -> String {
        let [me, name] = told_apart(
            (&self.name, &self.cgroup),
            (other.name.as_deref().unwrap_or_default(), &other.cgroup),
        );
        let commits = match other.asker {
            Asker::Known => format!("commits that {name} asked for"),
            Asker::Nobody => "commits that no sync asked for".into(),
            Asker::Unknown => "commits of which it is unknown who asked for them".into(),
        };
        let mut parts = Vec::new();
        let share = self.sync_share(other);
        if share >= TOLD_SHARE_MIN {
            let data = if other.time.data_ns > 0.0 {
                format!(" and {} of its data", bytes(other.data_bytes))
            } else {
                String::new()
            };
            parts.push(format!(
                "{}% of its sync time for {commits}{data}",
                three(share * 100.0)
            ));
        }
        if other.time.write_delay_ns >= TOLD_DELAY_NS_MIN {
            let delay = time(other.time.write_delay_ns);
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

/// The owner of a commit: the number of a party, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Party(usize),
    Nobody,
    Unknown,
}

/// The number of commits by their askers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Commits {
    pub all: u64,
    /// Those for which no sync asked.
    pub unasked: u64,
    /// Those whose asker is unknown.
    pub unknown: u64,
}

impl Commits {
    /// Lists the parties that asked for them, with their shares, the most first; and the commits
    /// that are nobody's or unknown.
    pub fn askers(&self, waiters: &[Waiter]) -> Vec<String> {
        let Self {
            all,
            unasked,
            unknown,
        } = *self;
        let of_all = |commits: u64| {
            let percent = three(share(commits as f64, all as f64) * 100.0);
            format!("{commits} ({percent}%)")
        };
        let mut askers: Vec<&Waiter> = waiters.iter().collect();
        askers.retain(|it| it.commits_asked > 0);
        askers.sort_by_key(|it| std::cmp::Reverse(it.commits_asked));
        let twice = |name: &str| askers.iter().filter(|it| it.name == name).count() > 1;
        let named = askers.iter().map(|it| {
            let commits = of_all(it.commits_asked);
            match &it.cgroup {
                Some(cgroup) if twice(&it.name) => format!("{} in {cgroup} {commits}", it.name),
                _ => format!("{} {commits}", it.name),
            }
        });
        let others = [("no sync", unasked), ("unknown", unknown)];
        let others = others.into_iter().filter(|(_, commits)| *commits > 0);
        let others = others.map(|(name, commits)| format!("{name} {}", of_all(commits)));
        let named: Vec<String> = named.take(ASKERS_MAX).collect();
        named.into_iter().chain(others).collect()
    }
}

/// Whom the parties of a file system waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Blame {
    /// Those that lost most time first.
    pub waiters: Vec<Waiter>,
    pub commits: Commits,
}

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
    fn new(trace: &Trace, observed: &'a Observed, parties: &Parties) -> Self {
        let commits = &observed.commits;
        let asked_by = askers(trace, observed, parties);
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
                let bytes: &mut u64 = written.entry(parties.of_thread(write.pid)).or_default();
                *bytes = bytes.saturating_add(write.bytes);
            }
        }
        Self {
            commits,
            asked_by,
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

/// Names the process that asked for each commit of a recording, as far as it is known.
pub fn askers_of(trace: &Trace) -> Askers {
    let devs: BTreeSet<Dev> = trace.each_span().map(|span| span.dev).collect();
    let mut all = Askers::new();
    for dev in devs {
        let observed = Observed::from_trace(trace, dev);
        let parties = Parties::from_trace(trace, &observed, By::Process);
        let owners = askers(trace, &observed, &parties);
        let named = observed
            .commits
            .iter()
            .zip(owners)
            .filter_map(|(commit, owner)| {
                let name = match owner {
                    Owner::Party(party) => parties.all.get(party)?.to_string(),
                    Owner::Nobody => "no sync".into(),
                    Owner::Unknown => return None,
                };
                Some(((dev, commit.begin_ns), name))
            });
        // Without the moments when syncs ask, nothing is known.
        if !trace.unseen.contains(&Sight::Flushes) {
            all.extend(named);
        }
    }
    all
}

/// Finds the owner of each commit: the first that asked for it.
fn askers(trace: &Trace, observed: &Observed, parties: &Parties) -> Vec<Owner> {
    let commits = &observed.commits;
    let mut first: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
    let mut ask = |place: usize, asked: (u64, usize)| {
        let earliest = first.entry(place).or_insert(asked);
        *earliest = asked.min(*earliest);
    };
    for sync in &observed.syncs {
        // A sync that joins a running commit has not caused it.
        if let Service::Commit(place) = sync.service
            && sync.asked_ns <= commits[place].begin_ns
        {
            ask(place, (sync.asked_ns, parties.of_thread(sync.pid)));
        }
    }
    let partial = || trace.partial.iter().filter(|span| span.dev == observed.dev);
    // Such an operation is a part of the running transaction, which cannot be locked before.
    for other in partial().filter(|span| span.is_untimed()) {
        let next = commits.partition_point(|commit| commit.locked_ns < other.begin_ns);
        ask(next, (other.begin_ns, parties.of_thread(other.pid)));
    }
    let in_part: Vec<(u64, u64)> = partial()
        .filter(|span| !span.is_untimed() && is_sync(span.kind))
        .map(|span| (span.begin_ns, end_of(span)))
        .collect();
    let owner = |(place, commit): (usize, &ObservedCommit)| {
        if let Some((_, by)) = first.get(&place) {
            return Owner::Party(*by);
        }
        let may_ask = |(begin_ns, end_ns): &(u64, u64)| {
            *begin_ns < commit.locked_ns && commit.begin_ns < *end_ns
        };
        if in_part.iter().any(may_ask) {
            Owner::Unknown
        } else {
            Owner::Nobody
        }
    };
    commits.iter().enumerate().map(owner).collect()
}

/// The parties of a file system's threads.
struct Parties {
    all: Vec<Process>,
    by_thread: HashMap<u32, usize>,
}

impl Parties {
    fn from_trace(trace: &Trace, observed: &Observed, by: By) -> Self {
        let names = Names::from_trace(trace, observed.dev);
        let party = |tgid, thread| {
            let process = names.process(tgid, thread);
            match by {
                By::Process => process,
                By::ControlGroup => Process {
                    name: process.cgroup.unwrap_or_else(|| UNKNOWN_GROUP.into()),
                    cgroup: None,
                },
            }
        };
        let mut numbers: BTreeMap<Process, usize> = BTreeMap::new();
        let mut by_process: HashMap<u32, usize> = HashMap::new();
        let mut by_thread = HashMap::new();
        let untimed = trace
            .partial
            .iter()
            .filter(|span| span.dev == observed.dev && span.is_untimed());
        for span in trace
            .on(observed.dev)
            .filter(|span| span.kind != SpanKind::Commit)
            .chain(untimed)
        {
            by_thread.entry(span.pid).or_insert_with(|| {
                *by_process.entry(span.tgid).or_insert_with(|| {
                    let next = numbers.len();
                    *numbers.entry(party(span.tgid, span.pid)).or_insert(next)
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

/// Sums of one party by owner.
#[derive(Default)]
struct Tally {
    waiter: Waiter,
    others: BTreeMap<Owner, WaitedFor>,
    /// Commits whose bytes are counted already.
    counted: BTreeMap<Owner, usize>,
}

/// The waiters of [`blame`] by control group; `None` if no group is known.
pub fn waiting_groups(trace: &Trace, observed: &Observed) -> Option<Vec<Waiter>> {
    let waiters = blame(trace, observed, By::ControlGroup).waiters;
    let is_known = |waiter: &Waiter| waiter.name != UNKNOWN_GROUP;
    waiters.iter().any(is_known).then_some(waiters)
}

/// Finds for each party the commits that it caused, and how long it waited for others.
/// O(n log n), and O(commits) for each sync that was seen in part.
pub fn blame(trace: &Trace, observed: &Observed, by: By) -> Blame {
    blame_within(trace, observed, by, &(0..=u64::MAX))
}

/// Like [`blame`], but counts only syncs, commits and waits that ended within this time, ns. The
/// trace should begin earlier: what ran before may be what they waited for.
pub fn blame_within(
    trace: &Trace,
    observed: &Observed,
    by: By,
    ended_ns: &RangeInclusive<u64>,
) -> Blame {
    let parties = Parties::from_trace(trace, observed, by);
    let ownership = Ownership::new(trace, observed, &parties);
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    let counted = |sync: &&ObservedSync| ended_ns.contains(&sync.end_ns);
    for sync in observed.syncs.iter().filter(counted) {
        let Service::Commit(place) = sync.service else {
            continue;
        };
        let me = parties.of_thread(sync.pid);
        let tally = tallies.entry(me).or_default();
        tally.waiter.syncs += 1;
        tally.waiter.sync_ns += sync.duration_ns() as f64;
        let own_begin_ns = ownership.commits[place]
            .begin_ns
            .clamp(sync.asked_ns, sync.end_ns);
        for (place, ns) in ownership.running(sync.asked_ns, own_begin_ns) {
            let owner = ownership.asked_by[place];
            if owner != Owner::Party(me) {
                tally.others.entry(owner).or_default().time.commits_ns += ns;
            }
        }
        tally.add_data(me, place, &ownership);
    }
    let mut commits = Commits::default();
    let asked = observed.commits.iter().zip(&ownership.asked_by);
    for (_, owner) in asked.filter(|(commit, _)| ended_ns.contains(&commit.end_ns)) {
        commits.all += 1;
        match owner {
            Owner::Party(party) => tallies.entry(*party).or_default().waiter.commits_asked += 1,
            Owner::Nobody => commits.unasked += 1,
            Owner::Unknown => commits.unknown += 1,
        }
    }
    let waits = trace.on(observed.dev);
    let waits = waits.filter(|span| span.kind == SpanKind::WaitBuffer);
    for wait in waits.filter(|wait| ended_ns.contains(&end_of(wait))) {
        let me = parties.of_thread(wait.pid);
        let tally = tallies.entry(me).or_default();
        for (place, ns) in ownership.running(wait.begin_ns, end_of(wait)) {
            tally.waiter.write_delay_ns += ns;
            let owner = ownership.asked_by[place];
            if owner != Owner::Party(me) {
                tally.others.entry(owner).or_default().time.write_delay_ns += ns;
            }
        }
    }
    let mut waiters: Vec<Waiter> = tallies
        .into_iter()
        .map(|(number, tally)| tally.told(&parties.all, number))
        .collect();
    let lost_ns = |waiter: &Waiter| -> f64 {
        let others = waiter.waited_for.iter();
        others.map(WaitedFor::total_ns).sum()
    };
    waiters.sort_by(|a, b| lost_ns(b).total_cmp(&lost_ns(a)));
    Blame { waiters, commits }
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
            let owner = Owner::Party(*owner);
            let other = self.others.entry(owner).or_default();
            other.time.data_ns += part_ns;
            if self.counted.insert(owner, place) != Some(place) {
                other.data_bytes = other.data_bytes.saturating_add(*bytes);
            }
        }
    }

    fn told(self, parties: &[Process], number: usize) -> Waiter {
        let named = |owner: Owner| match owner {
            Owner::Party(number) => parties.get(number).cloned(),
            Owner::Nobody | Owner::Unknown => None,
        };
        let mut waited_for: Vec<WaitedFor> = self
            .others
            .into_iter()
            .map(|(owner, other)| {
                let process = named(owner);
                WaitedFor {
                    asker: match owner {
                        Owner::Party(_) => Asker::Known,
                        Owner::Nobody => Asker::Nobody,
                        Owner::Unknown => Asker::Unknown,
                    },
                    cgroup: process.as_ref().and_then(|process| process.cgroup.clone()),
                    name: process.map(|process| process.name),
                    ..other
                }
            })
            .collect();
        waited_for.sort_by(|a, b| b.total_ns().total_cmp(&a.total_ns()));
        let process = named(Owner::Party(number)).unwrap_or_default();
        Waiter {
            name: process.name,
            cgroup: process.cgroup,
            waited_for,
            ..self.waiter
        }
    }
}
