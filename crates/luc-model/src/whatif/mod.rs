//! The threads of a trace, replayed under another rule.
//!
//! Every thread is a chain of steps (`chain.rs`); the journal is a small discrete-event model
//! (`engine.rs`). The assumptions:
//!
//! - A thread does the same again whatever it waited: its thinking and its data flushes take as long
//!   as in the trace.
//! - Inside operations, where it waits for nothing else, a thread works or waits for a processor:
//!   first come, first served, in turns of some ms (`processor.rs`). In old recordings, which lack
//!   the number of processors, that time passes as it did. Between operations that follow each other
//!   at once it computes; longer pauses pass as they did.
//! - A commit takes as long as the trace's commits did, by a line over its sync events, and never
//!   longer than the longest seen. While all processors are taken it slows down as much as in the
//!   trace ([`CommitTime`]). A batch larger than any in the trace is predicted a little too fast.
//! - One commit runs at a time. A sync belongs to the transaction that is open when it asks, or when
//!   its data flush began. It joins that until the lock, which comes the trace's median time after
//!   the commit could start.
//! - Commits without a sync (the periodic one, a full journal) take no time. Waits for locked
//!   transactions and for space stay as they were.
//! - Waits for buffers stay as they were, too, unless the rule takes them away. Fewer commits would
//!   mean fewer of them.
//! - The trace shows stock behaviour. A trace of LUC at work contains its holds, and `stock` would
//!   repeat them in part.
//! - Threads are closed loops: faster syncs mean more of them. A chain whose last operation ends
//!   sooner than in the trace begins again with its first, at most [`REPEATS_MAX`] times, up to the
//!   moment at which it ended there.
//! - An operation that is not whole in the trace counts as thinking.
//!
//! [`WhatIf::stock_error_share`] is the error of all that: the stock rule, simulated, against the
//! measured rates. No prediction is better. Batching is predicted as if it were always on: where it
//! comes out below 1, LUC's trial of holding would leave it off.

mod chain;
mod commit_time;
mod engine;
mod processor;

pub(crate) use chain::released;
pub use commit_time::CommitTime;

use crate::observed::{Observed, ObservedSync, is_sync};
use crate::stats::{Times, per_s, share};
use chain::{ReadyTimes, chains};
use engine::{Engine, Outcome};
use luc_control::Dev;
use luc_trace::{SpanKind, Trace};
use serde::Serialize;
use thiserror::Error;

/// A chain is walked at most so often: a larger gain is not trusted, and chains without time end.
pub const REPEATS_MAX: u32 = 32;

/// When a commit starts, and which tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// As soon as a sync asks and no commit runs.
    Stock,
    /// Held until all threads have asked that the last two commits released, for one mean commit time
    /// at most. A thread that waits for a buffer counts as coming, as in the kernel: its wait ends
    /// with the commit that writes the buffer.
    BestBatching,
    /// Held until no sync came for this long. It needs no limit: a task does not ask again before it
    /// is served.
    Delay { idle_ns: u64 },
    /// Stock, but no task waits for a buffer that a commit is writing.
    NoBlockedWrites,
    /// [`Rule::BestBatching`] within LUC's bounds, also for tasks inside a sync, and
    /// [`Rule::NoBlockedWrites`].
    Luc,
}

impl Rule {
    fn frees_writers(self) -> bool {
        matches!(self, Self::NoBlockedWrites | Self::Luc)
    }
}

/// The throughput of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Ended operations: open, write, sync, close.
    pub operations_per_s: f64,
    pub syncs_per_s: f64,
    pub writes_per_s: f64,
    /// Journal commits. Simulated: those for syncs alone.
    pub commits_per_s: f64,
    pub sync: Times,
}

/// The simulation of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub rule: Rule,
    pub rates: Rates,
    /// Operations per second over those of the simulated stock rule; 0 if that has none.
    pub gain: f64,
    /// The same of syncs.
    pub syncs_gain: f64,
    /// The same of writes.
    pub writes_gain: f64,
    /// Threads that walked their chain [`REPEATS_MAX`] times: the rates are
    /// lower bounds unless this is 0.
    pub threads_cut: u64,
}

/// The answer of [`what_if`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    pub measured: Rates,
    /// The stock rule, simulated.
    pub stock: Prediction,
    /// Error of its operations per second, as a share of the measured.
    pub stock_error_share: f64,
    /// In the order of the rules.
    pub predictions: Vec<Prediction>,
    pub commit_time: CommitTime,
}

impl WhatIf {
    /// The rule that LUC would follow. It copies out wherever that frees writers, but holds commits
    /// only where its trial finds that to pay.
    pub fn luc(&self) -> Option<&Prediction> {
        let own = |it: &&Prediction| matches!(it.rule, Rule::Luc | Rule::NoBlockedWrites);
        let faster = |a: &&Prediction, b: &&Prediction| a.gain.total_cmp(&b.gain);
        self.predictions.iter().filter(own).max_by(faster)
    }
}

/// A trace that cannot be walked again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WhatIfError {
    /// No span of the file system, or none that lasted.
    #[error(
        "the trace has nothing of {dev} that took time; record for longer, or name another file system"
    )]
    Nothing { dev: Dev },
    /// No commit: how long one would take is unknown.
    #[error("the trace has no journal commit of {dev}; record while something syncs")]
    NoCommits { dev: Dev },
}

/// Simulates rules on a trace. O(n log n) per rule and walk of the trace.
pub fn what_if(trace: &Trace, observed: &Observed, rules: &[Rule]) -> Result<WhatIf, WhatIfError> {
    let dev = observed.dev;
    let duration_ns = observed.duration_ns();
    if duration_ns == 0 {
        return Err(WhatIfError::Nothing { dev });
    }
    let cpus = chain::cpus(trace);
    let ready = cpus.map_or_else(ReadyTimes::new, |cpus| chain::ready(trace, observed, cpus));
    let taken = cpus.map_or_else(Vec::new, |cpus| chain::taken(&ready, cpus));
    let commit_time = CommitTime::of(observed, &taken).ok_or(WhatIfError::NoCommits { dev })?;
    let chains = chains(trace, observed, &ready);
    let simulate =
        |rule| Engine::new(rule, &chains, commit_time, duration_ns, cpus.unwrap_or(1)).run();

    let measured = measured(trace, observed);
    let outcome = simulate(Rule::Stock);
    let base = rates(&outcome, duration_ns);
    let predict = |rule, outcome: &Outcome| {
        let rates = rates(outcome, duration_ns);
        Prediction {
            rule,
            rates,
            gain: share(rates.operations_per_s, base.operations_per_s),
            syncs_gain: share(rates.syncs_per_s, base.syncs_per_s),
            writes_gain: share(rates.writes_per_s, base.writes_per_s),
            threads_cut: outcome.threads_cut,
        }
    };
    let stock = predict(Rule::Stock, &outcome);
    let off = (stock.rates.operations_per_s - measured.operations_per_s).abs();
    Ok(WhatIf {
        measured,
        stock,
        stock_error_share: share(off, measured.operations_per_s),
        predictions: rules
            .iter()
            .map(|rule| predict(*rule, &simulate(*rule)))
            .collect(),
        commit_time,
    })
}

fn rates(outcome: &Outcome, duration_ns: u64) -> Rates {
    let rate = |count: u64| per_s(count as f64, duration_ns);
    Rates {
        operations_per_s: rate(outcome.operations),
        syncs_per_s: rate(outcome.sync_times_ns.len() as u64),
        writes_per_s: rate(outcome.writes),
        commits_per_s: rate(outcome.commits),
        sync: Times::of(outcome.sync_times_ns.iter().copied()),
    }
}

fn measured(trace: &Trace, observed: &Observed) -> Rates {
    let operation = |kind| {
        let file = matches!(kind, SpanKind::Open | SpanKind::Write | SpanKind::Close);
        file || is_sync(kind)
    };
    let operations = trace
        .on(observed.dev)
        .filter(|span| operation(span.kind))
        .count();
    let times_ns = observed.syncs.iter().map(ObservedSync::duration_ns);
    let outcome = Outcome {
        operations: operations as u64,
        writes: observed.writes.len() as u64,
        commits: observed.commits.len() as u64,
        sync_times_ns: times_ns.collect(),
        threads_cut: 0,
    };
    rates(&outcome, observed.duration_ns())
}
