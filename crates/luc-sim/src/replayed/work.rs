//! Measures the speed of the recorded machine.
//!
//! A recording tells times, but not which thread had a processor. So the samples are the operations
//! during which no other thread wanted one: while they lasted, no more threads were ready than
//! there are processors; or, on one processor, no other thread did anything at all.
//!
//! - **Speed.** An operation takes at least its cost ([`Costs`]). The shortest samples of one kind
//!   give the time of an instruction. The kind is the one whose samples have most of the work: a
//!   few creates may all have found a long directory, and a tracer sees less of a close than it
//!   costs.
//! - **More work.** A kind's mean time beyond its cost at that speed is additional work of this
//!   load: a long directory, or a tracer.
//! - **Turns.** Between two operations that mostly follow each other at once, for example a close
//!   and the next open, threads compute. A longer pause there is a wait for a processor, if all
//!   were taken.
//! - **Rests.** A thread that sleeps may wait for a processor when it wakes. If all were taken at
//!   the end of a rest, the rest is shortened by that time, but not below the shortest tenth of its
//!   kind.

use std::collections::BTreeMap;

use luc_trace::{CREATED, Span, SpanKind};

use super::operations::{Operation, Operations, Shares, Stretch, more_than, taken_ns};
use crate::costs::Costs;
use crate::files::pages;
use crate::node::TIMER_SLACK_NS;

/// The longest time between two operations in which a thread computes, ns: a thread that sleeps for
/// a set time sleeps longer, because the kernel lets timers be late by this much.
pub const COMPUTES_NS: u64 = TIMER_SLACK_NS;
/// Fewer samples of a kind tell nothing.
const SAMPLES_MIN: usize = 5;
/// One sample of a kind in this many is left out as too short.
const SHORTEST_OF: usize = 100;
/// Plausible speeds, million instructions per second.
const MIPS: (f64, f64) = (1.0, 100_000.0);
/// The speed without samples.
const MIPS_ASSUMED: f64 = 1000.0;

/// The kinds of operations whose work is known, in the order of [`Work::more`].
const KINDS: [&str; 4] = ["create", "open", "write", "close"];

/// The samples of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    pub samples: usize,
    /// Mean of the middle half of the samples, and its bounds, ns.
    pub mean_ns: f64,
    pub middle_ns: [f64; 2],
}

#[derive(Clone, Debug)]
pub(super) struct Work {
    pub cpus: Option<u16>,
    pub mips: Option<f64>,
    pub kinds: [Sampled; 4],
    /// Instructions of each kind beyond its cost.
    more: [u64; 4],
    /// For pairs of operations that follow each other at once, the time between them, ns.
    turns_ns: BTreeMap<(SpanKind, SpanKind), f64>,
    /// For pairs of operations, the shortest tenth of the rests between them does not exceed this,
    /// ns.
    rests_ns: BTreeMap<(SpanKind, SpanKind), u64>,
    /// When all processors were taken: stretches in order and disjoint.
    taken: Vec<Stretch>,
    /// The same, with stretches joined whose gap is at most [`COMPUTES_NS`].
    crowded: Vec<Stretch>,
    /// Processor time of threads that compute in the gaps between their operations.
    shares: Shares,
}

fn kind_of(span: &Span) -> Option<usize> {
    match span.kind {
        SpanKind::Open if span.flags & CREATED != 0 => Some(0),
        SpanKind::Open => Some(1),
        SpanKind::Write => Some(2),
        SpanKind::Close => Some(3),
        _ => None,
    }
}

/// Returns the pages that a write fills, up to a limit that few writes exceed.
pub(super) fn pages_of(span: &Span) -> u64 {
    const PAGES_MAX: u64 = 1 << 16;
    let bytes = u64::try_from(span.amount).unwrap_or(0);
    (pages(0, bytes).len() as u64).min(PAGES_MAX)
}

fn cost(kind: usize, span: &Span, costs: &Costs) -> u64 {
    match kind {
        0 => costs.create_before + costs.create_handle + costs.create_after,
        1 => costs.open,
        2 => costs.write_before + costs.write_page * pages_of(span) + costs.write_after,
        _ => costs.close,
    }
}

impl Work {
    /// Measures the work. `waits` are each thread's waits in order, `ready` the stretches in which
    /// threads were ready.
    pub fn measure(
        operations: &Operations,
        waits: &BTreeMap<u32, Vec<Stretch>>,
        ready: &[Stretch],
        cpus: Option<u16>,
    ) -> Self {
        let costs = Costs::default();
        let alone = Alone::measure(operations, ready, cpus);
        let mut samples: [Vec<(f64, f64)>; 4] = Default::default();
        let mut turns: BTreeMap<(SpanKind, SpanKind), Vec<f64>> = BTreeMap::new();
        let mut rests: BTreeMap<(SpanKind, SpanKind), Vec<u64>> = BTreeMap::new();
        let mut wanted = ready.to_vec();
        for (pid, of_thread) in operations {
            let waits = waits.get(pid).map_or(&[][..], Vec::as_slice);
            for operation in of_thread {
                let stretch = (operation.span.begin_ns, operation.end_ns);
                let waits = super::operations::waited(waits, stretch).is_some();
                if let Some(kind) = kind_of(&operation.span)
                    && !waits
                    && alone.is_sample(*pid, stretch, 1)
                {
                    let cost = cost(kind, &operation.span, &costs) as f64;
                    samples[kind].push((operation.duration_ns() as f64, cost));
                }
            }
            for pair in of_thread.windows(2) {
                let rest_ns = pair[1].span.begin_ns - pair[0].end_ns;
                rests.entry(pair_of(pair)).or_default().push(rest_ns);
                let stretch = (pair[0].end_ns, pair[1].span.begin_ns);
                wanted.push(stretch);
                if alone.is_sample(*pid, stretch, 0) {
                    let between = turns.entry(pair_of(pair)).or_default();
                    between.push((stretch.1 - stretch.0) as f64);
                }
            }
        }
        let ns = ns_of_instruction(&samples);
        let (least, most) = MIPS;
        let mips = ns.map(|ns| (1e3 / ns).clamp(least, most));
        let more = std::array::from_fn(|kind| {
            let ns = 1e3 / mips.unwrap_or(MIPS_ASSUMED);
            let beyond = samples[kind].iter().map(|(took, cost)| took - cost * ns);
            whole(middle_mean(beyond.collect()) / ns)
        });
        let kinds =
            samples.map(|of_kind| Sampled::from_times(of_kind.iter().map(|it| it.0).collect()));
        let turns_ns = turns.into_iter().filter_map(|(pair, mut between)| {
            between.sort_unstable_by(f64::total_cmp);
            let computes = between[between.len() / 2] <= COMPUTES_NS as f64;
            computes.then(|| (pair, middle_mean(between)))
        });
        let taken = cpus.map_or_else(Vec::new, |cpus| more_than(ready, usize::from(cpus) - 1));
        Self {
            cpus,
            mips,
            kinds,
            more,
            turns_ns: turns_ns.collect(),
            rests_ns: rests
                .into_iter()
                .map(|(pair, of_pair)| (pair, tenth(of_pair)))
                .collect(),
            crowded: joined(&taken),
            taken,
            // If the number of processors is unknown, each thread has its own.
            shares: Shares::from_stretches(&wanted, cpus.unwrap_or(u16::MAX)),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, Sampled)> {
        KINDS.into_iter().zip(self.kinds)
    }

    pub fn mips(&self) -> f64 {
        self.mips.unwrap_or(MIPS_ASSUMED)
    }

    /// Returns the costs of the replay. The cost of a directory's names is part of the work beyond.
    pub fn costs(&self) -> Costs {
        let mut costs = Costs {
            create_entry: 0,
            ..Costs::default()
        };
        let [create, open, write, close] = self.more;
        costs.create_handle += create;
        costs.open += open;
        costs.write_before += write;
        costs.close += close;
        costs
    }

    /// Returns how many instructions take this time on a processor.
    pub fn instructions(&self, ns: f64) -> u64 {
        whole(ns * self.mips() / 1e3)
    }

    /// Returns how long a thread computes between two operations; `None` if it sleeps, or does
    /// something that is not traced.
    pub fn turn_ns(&self, pair: &[Operation]) -> Option<f64> {
        let stretch = (pair[0].end_ns, pair[1].span.begin_ns);
        let took_ns = stretch.1 - stretch.0;
        let mean_ns = self.turns_ns.get(&pair_of(pair)).copied();
        if took_ns <= COMPUTES_NS {
            let own_ns = took_ns as f64;
            return Some(mean_ns.map_or(own_ns, |mean_ns| own_ns.min(mean_ns)));
        }
        let idle_ns = took_ns - taken_ns(&self.taken, stretch);
        mean_ns.filter(|_| idle_ns <= COMPUTES_NS)
    }

    /// Returns the instructions between two operations if the thread computes all the time, as far
    /// as it has a processor.
    pub fn computed(&self, pair: &[Operation]) -> u64 {
        let stretch = (pair[0].end_ns, pair[1].span.begin_ns);
        self.instructions(self.shares.time_ns(stretch))
    }

    /// Returns how long a thread rests between two operations, without its wait for a processor.
    pub fn rest_ns(&self, pair: &[Operation]) -> u64 {
        let (from_ns, to_ns) = (pair[0].end_ns, pair[1].span.begin_ns);
        let near_ns = to_ns.saturating_sub(COMPUTES_NS);
        let crowded = &self.crowded;
        let at = crowded.partition_point(|(_, end_ns)| *end_ns < near_ns);
        let since_ns = crowded.get(at).map_or(to_ns, |it| it.0.min(to_ns));
        let least_ns = self.rests_ns.get(&pair_of(pair)).copied();
        let rest_ns = since_ns.saturating_sub(from_ns);
        rest_ns.max(least_ns.unwrap_or(0)).min(to_ns - from_ns)
    }
}

/// Joins stretches that are no farther apart than a thread computes between two operations.
fn joined(stretches: &[Stretch]) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = Vec::new();
    for &(begin_ns, end_ns) in stretches {
        match all.last_mut() {
            Some(last) if begin_ns - last.1 <= COMPUTES_NS => last.1 = end_ns,
            _ => all.push((begin_ns, end_ns)),
        }
    }
    all
}

/// Returns a time that the shortest tenth of the rests does not exceed; 0 if all are computing.
fn tenth(mut rests_ns: Vec<u64>) -> u64 {
    rests_ns.retain(|ns| *ns > COMPUTES_NS);
    rests_ns.sort_unstable();
    rests_ns.get(rests_ns.len() / 10).copied().unwrap_or(0)
}

fn pair_of(pair: &[Operation]) -> (SpanKind, SpanKind) {
    (pair[0].span.kind, pair[1].span.kind)
}

/// Tells during which stretches no other thread wanted a processor.
struct Alone {
    /// When at least as many threads were ready as there are processors; and when more were.
    over: [Vec<Stretch>; 2],
    /// On one processor, when threads began or ended an operation.
    steps: Option<Vec<(u64, u32)>>,
}

impl Alone {
    fn measure(operations: &Operations, ready: &[Stretch], cpus: Option<u16>) -> Self {
        let over = cpus.map(usize::from).map(|cpus| {
            let all = more_than(ready, cpus - 1);
            [all, more_than(ready, cpus)]
        });
        let steps = (cpus == Some(1)).then(|| {
            let of_thread = |(pid, of_thread): (&u32, &Vec<Operation>)| {
                let pid = *pid;
                let each = |it: &Operation| [it.span.begin_ns, it.end_ns].map(|at| (at, pid));
                of_thread.iter().flat_map(each).collect::<Vec<_>>()
            };
            let mut steps: Vec<_> = operations.iter().flat_map(of_thread).collect();
            steps.sort_unstable();
            steps
        });
        Self {
            over: over.unwrap_or_default(),
            steps,
        }
    }

    /// Tells whether a stretch is a sample; `own` is 1 if its own thread was ready, else 0.
    fn is_sample(&self, pid: u32, stretch: Stretch, own: usize) -> bool {
        if taken_ns(&self.over[own], stretch) == 0 {
            return true;
        }
        let Some(steps) = &self.steps else {
            return false;
        };
        let first = steps.partition_point(|(at_ns, _)| *at_ns <= stretch.0);
        let mut within = steps[first..].iter();
        within
            .by_ref()
            .take_while(|(at_ns, _)| *at_ns < stretch.1)
            .all(|(_, of)| *of == pid)
    }
}

impl Sampled {
    pub fn from_times(mut times_ns: Vec<f64>) -> Self {
        if times_ns.is_empty() {
            return Self::default();
        }
        times_ns.sort_unstable_by(f64::total_cmp);
        let samples = times_ns.len();
        Self {
            samples,
            middle_ns: [times_ns[samples / 4], times_ns[samples - 1 - samples / 4]],
            mean_ns: middle_mean(times_ns),
        }
    }
}

/// Returns the time of an instruction, from the shortest samples of the kind with most of the work.
fn ns_of_instruction(samples: &[Vec<(f64, f64)>; 4]) -> Option<f64> {
    let known = samples.iter().filter(|it| it.len() >= SAMPLES_MIN);
    let work = |of_kind: &[(f64, f64)]| of_kind.iter().map(|it| it.1).sum::<f64>();
    let most = known.max_by(|a, b| work(a).total_cmp(&work(b)))?;
    let mut each: Vec<f64> = most.iter().map(|(took, cost)| took / cost).collect();
    let at = each.len() / SHORTEST_OF;
    let ns = *each.select_nth_unstable_by(at, f64::total_cmp).1;
    (ns > 0.0).then_some(ns)
}

/// Returns the mean of the middle half, which a few long waits do not shift; 0 without values.
fn middle_mean(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 4;
    let middle = &values[cut..values.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Converts to instructions, at least 0; a cast from float saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.round().clamp(0.0, 1e15) as u64
}
