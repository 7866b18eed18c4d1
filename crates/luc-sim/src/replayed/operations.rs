//! The operations of a recording's threads, and when each thread was ready to work.

use std::collections::BTreeMap;

use luc_trace::{CREATED, Span, SpanKind};

/// Begin and end, ns.
pub(super) type Stretch = (u64, u64);

/// The latest change of a file since it was last synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Nothing,
    Created,
    Written,
}

/// An open, write, sync or close.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub span: Span,
    /// Its end, or the start of the thread's next operation if that comes first: a write with
    /// `O_SYNC` lasts until its own sync ends.
    pub end_ns: u64,
    /// For a sync, what it makes durable.
    pub since: Since,
}

impl Operation {
    pub fn is_sync(&self) -> bool {
        self.span.kind.is_file_sync()
    }

    pub fn needs_commit(&self) -> bool {
        self.is_sync() && self.span.tid != 0 && self.span.commits_ahead() > 0
    }

    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.span.begin_ns
    }

    /// Returns begin and end of its data flush; if it has none, both are the time when it asked.
    pub fn flush_ns(&self) -> Stretch {
        let asked_ns = self.within(self.span.asked_ns());
        match self.span.flush_ns() {
            Some((begin_ns, _)) if self.since == Since::Written => {
                (self.within(begin_ns).min(asked_ns), asked_ns)
            }
            _ => (asked_ns, asked_ns),
        }
    }

    fn within(&self, at_ns: u64) -> u64 {
        at_ns.clamp(self.span.begin_ns, self.end_ns)
    }
}

/// Operations by thread, in the order of their start.
pub(super) type Operations = BTreeMap<u32, Vec<Operation>>;

/// Collects the operations of spans, which are in the order of their start.
pub(super) fn operations(spans: &[Span]) -> Operations {
    let mut files: BTreeMap<u64, Since> = BTreeMap::new();
    let mut all = Operations::new();
    for span in spans.iter().filter(|span| span.kind.is_operation()) {
        let file = files.entry(span.object).or_insert(Since::Nothing);
        let mut since = Since::Nothing;
        match span.kind {
            SpanKind::Open if span.flags & CREATED != 0 => *file = Since::Created,
            SpanKind::Write if span.amount > 0 => *file = Since::Written,
            kind if kind.is_file_sync() => since = std::mem::replace(file, Since::Nothing),
            _ => {}
        }
        let of_thread = all.entry(span.pid).or_default();
        if let Some(before) = of_thread.last_mut() {
            before.end_ns = before.end_ns.min(span.begin_ns);
        }
        of_thread.push(Operation {
            span: *span,
            end_ns: span.end_ns.max(span.begin_ns),
            since,
        });
    }
    all
}

/// Returns the ends of commits, by transaction.
pub(super) fn commit_ends(spans: &[Span]) -> BTreeMap<u32, u64> {
    let commits = spans.iter().filter(|span| span.kind == SpanKind::Commit);
    commits.map(|span| (span.tid, span.end_ns)).collect()
}

/// Returns the times in which operations wait for nothing that the recording shows: their threads
/// work, or wait for a processor. `waits` are each thread's waits in order, `commits` the ends of
/// commits.
pub(super) fn ready(
    waits: &BTreeMap<u32, Vec<Stretch>>,
    operations: &Operations,
    commits: &BTreeMap<u32, u64>,
) -> Vec<Stretch> {
    let mut ready = Vec::new();
    for (pid, of_thread) in operations {
        let waits = waits.get(pid).map_or(&[][..], Vec::as_slice);
        for operation in of_thread {
            let (begin_ns, end_ns) = (operation.span.begin_ns, operation.end_ns);
            let (from_ns, to_ns) = if operation.is_sync() {
                let released_ns = commits.get(&operation.span.tid);
                let released_ns = released_ns.filter(|_| operation.needs_commit());
                (
                    operation.flush_ns().0,
                    released_ns.map_or(end_ns, |at_ns| operation.within(*at_ns)),
                )
            } else {
                waited(waits, (begin_ns, end_ns)).unwrap_or((end_ns, end_ns))
            };
            ready.push((begin_ns, from_ns));
            ready.push((to_ns, end_ns));
        }
    }
    ready.retain(|(begin_ns, end_ns)| begin_ns < end_ns);
    ready
}

/// Returns the time from the first wait within an operation to the end of the last one.
pub(super) fn waited(waits: &[Stretch], (begin_ns, end_ns): Stretch) -> Option<Stretch> {
    let first = waits.partition_point(|(wait_ns, _)| *wait_ns < begin_ns);
    let inside = waits[first..].iter();
    let mut inside = inside.take_while(|(wait_ns, _)| *wait_ns < end_ns);
    let (from_ns, mut to_ns) = *inside.next()?;
    for (_, wait_end_ns) in inside {
        to_ns = to_ns.max(*wait_end_ns);
    }
    Some((from_ns, to_ns.clamp(from_ns, end_ns)))
}

/// Returns the stretches, in order and disjoint, in which more than `limit` of these overlap.
pub(super) fn more_than(stretches: &[Stretch], limit: usize) -> Vec<Stretch> {
    let begins = stretches.iter().map(|(begin_ns, _)| (*begin_ns, 1_i8));
    let ends = stretches.iter().map(|(_, end_ns)| (*end_ns, -1));
    let mut edges: Vec<(u64, i8)> = begins.chain(ends).collect();
    // At equal times, ends come before begins.
    edges.sort_unstable();
    let (mut found, mut count, mut since_ns) = (Vec::new(), 0_usize, None);
    for (at_ns, change) in edges {
        count = count.saturating_add_signed(isize::from(change));
        match since_ns {
            None if count > limit => since_ns = Some(at_ns),
            Some(begin_ns) if count <= limit => {
                found.push((begin_ns, at_ns));
                since_ns = None;
            }
            _ => {}
        }
    }
    found
}

/// Returns how much of a stretch these cover, which are in order and disjoint, ns.
pub(super) fn taken_ns(stretches: &[Stretch], (from_ns, to_ns): Stretch) -> u64 {
    let first = stretches.partition_point(|(_, end_ns)| *end_ns <= from_ns);
    let within = stretches[first..].iter();
    let within = within.take_while(|(begin_ns, _)| *begin_ns < to_ns);
    within
        .map(|(begin_ns, end_ns)| (*end_ns).min(to_ns) - (*begin_ns).max(from_ns))
        .sum()
}

/// The processor time of each thread that wants one, if they share the processors evenly.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    /// From each moment on, the share of a processor; and that time up to the moment, ns.
    steps: Vec<(u64, f64, f64)>,
}

impl Shares {
    /// `wanted` are the times in which threads want a processor.
    pub fn from_stretches(wanted: &[Stretch], cpus: u16) -> Self {
        let begins = wanted.iter().map(|(begin_ns, _)| (*begin_ns, 1_i32));
        let ends = wanted.iter().map(|(_, end_ns)| (*end_ns, -1));
        let mut edges: Vec<(u64, i32)> = begins.chain(ends).collect();
        edges.sort_unstable();
        let mut steps: Vec<(u64, f64, f64)> = Vec::new();
        let mut count = 0;
        for (at_ns, change) in edges {
            count += change;
            let share = (f64::from(cpus) / f64::from(count.max(1))).min(1.0);
            let had_ns = steps.last().map_or(0.0, |step| had_ns(step, at_ns));
            steps.push((at_ns, share, had_ns));
        }
        Self { steps }
    }

    /// Returns the processor time that a thread had if it wanted one throughout, ns.
    pub fn time_ns(&self, (from_ns, to_ns): Stretch) -> f64 {
        let until = |at_ns: u64| {
            let after = self.steps.partition_point(|step| step.0 <= at_ns);
            let step = after.checked_sub(1).map(|at| &self.steps[at]);
            step.map_or(0.0, |step| had_ns(step, at_ns))
        };
        until(to_ns) - until(from_ns)
    }
}

fn had_ns(&(since_ns, share, had_ns): &(u64, f64, f64), at_ns: u64) -> f64 {
    had_ns + share * (at_ns - since_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_upon_each_other() {
        let all = [(0, 10), (5, 20), (20, 30), (8, 9)];
        assert_eq!(more_than(&all, 0), [(0, 20), (20, 30)]);
        assert_eq!(more_than(&all, 1), [(5, 10)]);
        assert_eq!(more_than(&all, 2), [(8, 9)]);
        assert_eq!(taken_ns(&[(5, 10), (20, 30)], (8, 25)), 7);
        assert_eq!(taken_ns(&[(5, 10)], (10, 25)), 0);
    }

    #[test]
    fn waits_within_an_operation() {
        let waits = [(1, 2), (10, 12), (14, 30), (40, 50)];
        assert_eq!(waited(&waits, (5, 20)), Some((10, 20)));
        assert_eq!(waited(&waits, (5, 13)), Some((10, 12)));
        assert_eq!(waited(&waits, (31, 39)), None);
    }

    #[test]
    fn threads_share_the_processors() {
        let shares = Shares::from_stretches(&[(0, 10), (0, 10), (4, 8), (4, 8)], 2);
        for (stretch, ns) in [((0, 4), 4.0), ((0, 10), 8.0), ((5, 7), 1.0), ((4, 8), 2.0)] {
            let found_ns = shares.time_ns(stretch);
            assert!((found_ns - ns).abs() < 1e-9, "{stretch:?}: {found_ns}");
        }
    }
}
