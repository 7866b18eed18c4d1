//! The model compared with a recording, and the predicted effect of other rules: the answer of
//! `luc trace model`.

use std::collections::BTreeSet;

use luc_base::Latency;
use luc_control::Dev;
use luc_sim::replayed::{Calibration, Parameter, Unreplayable};
use luc_trace::Trace;
use serde::Serialize;

use crate::algorithms::{Accuracy, CreationRate, FsyncModel, WriteModel, fsync_model, write_model};
use crate::diagnosis::doubts;
use crate::foretold::{Foretold, Prediction, Rates, Rule};
use crate::observed::{Observed, ObservedTable};
use crate::stats;

/// The default for the fixed delay of one of the rules, microseconds.
pub const DELAY_US: u32 = 1000;

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub schema: u32,
    pub spans_lost: u64,
    pub damage: Option<String>,
    pub file_systems: Vec<FileSystem>,
}

impl Comparison {
    /// Compares each file system of the trace; `delay_us` is the fixed delay of one of the rules.
    pub fn from_trace(trace: &Trace, delay_us: u32) -> Self {
        let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
        Self {
            schema: 1,
            spans_lost: trace.spans_lost,
            damage: trace.damage.clone(),
            file_systems: devs
                .iter()
                .map(|dev| FileSystem::from_trace(trace, *dev, delay_us))
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct FileSystem {
    pub device: String,
    /// Its mount point, if the recording tells it.
    pub mount_point: Option<String>,
    pub duration_ns: u64,
    pub threads: u64,
    /// Algorithm 4.1.
    pub fsync: Fsync,
    /// Equations 3 and 8.
    pub creation: CreationRate,
    /// Algorithm 4.2; `None` if writes or their waits were not seen.
    pub writes: Option<WriteModel>,
    pub write_delays: Option<WriteDelays>,
    /// Other rules on the same load; if `None`, see `what_if_refused`.
    pub what_if: Option<Rules>,
    /// The reason why `what_if` is `None`.
    pub what_if_refused: Option<String>,
}

/// The cost of commits for all writes, including those that no sync follows, which Algorithm 4.2
/// leaves out.
#[derive(Debug, Serialize)]
pub struct WriteDelays {
    pub writes: u64,
    pub delayed: u64,
    pub delay_mean_ns: f64,
}

/// Times of the syncs that waited for a commit.
#[derive(Debug, Serialize)]
pub struct Fsync {
    pub measured: Latency,
    pub predicted: Latency,
    /// Syncs that waited, but to which the algorithm assigns no commit.
    pub unpredicted: u64,
    #[serde(flatten)]
    pub accuracy: Accuracy,
}

impl Fsync {
    fn from_model(model: &FsyncModel) -> Self {
        Self {
            measured: stats::times(model.syncs.iter().map(|sync| sync.measured_ns)),
            predicted: stats::times(model.syncs.iter().map(|sync| sync.predicted_ns)),
            unpredicted: model.unpredicted,
            accuracy: model.accuracy,
        }
    }
}

/// The recording's threads, run again on stock and with LUC.
#[derive(Debug, Serialize)]
pub struct Rules {
    pub measured: Rates,
    /// The recording simulated unchanged: gains are relative to this.
    pub stock: Prediction,
    /// Error of `stock`, as a share of the measured rate.
    pub stock_error_share: f64,
    /// LUC's batching only.
    pub best_batching: Option<Prediction>,
    /// LUC's copy-out only.
    pub no_blocked_writes: Option<Prediction>,
    pub delay: Option<Prediction>,
    pub luc: Option<Prediction>,
    /// The simulated disk, in the syntax of `luc-lab sim run --disk`.
    pub disk: String,
    /// Figures of the recording's machine.
    pub machine: Vec<Parameter>,
}

impl Rules {
    fn from_trace(trace: &Trace, dev: Dev, rules: &[Rule]) -> Result<Self, Unreplayable> {
        let machine = Calibration::measure(trace, dev)?;
        let answer = Foretold::new(&machine, rules);
        let find = |wanted: fn(Rule) -> bool| answer.find(wanted).cloned();
        Ok(Self {
            measured: answer.measured,
            stock_error_share: answer.stock_error_share,
            best_batching: find(|rule| rule == Rule::BestBatching),
            no_blocked_writes: find(|rule| rule == Rule::NoBlockedWrites),
            delay: find(|rule| matches!(rule, Rule::Delay { .. })),
            luc: find(|rule| rule == Rule::Luc),
            stock: answer.stock,
            disk: machine.disk().to_owned(),
            machine: machine.parameters(),
        })
    }
}

impl FileSystem {
    fn from_trace(trace: &Trace, dev: Dev, delay_us: u32) -> Self {
        let observed = Observed::from_trace(trace, dev);
        let model = fsync_model(trace, &observed);
        let idle_ns = u64::from(delay_us) * 1000;
        let rules = [
            Rule::BestBatching,
            Rule::NoBlockedWrites,
            Rule::Delay { idle_ns },
            Rule::Luc,
        ];
        let doubts = doubts(&trace.unseen);
        let what_if = if doubts.is_empty() {
            Rules::from_trace(trace, dev, &rules).map_err(|why| why.to_string())
        } else {
            Err(doubts.join(" "))
        };
        let (what_if, what_if_refused) = match what_if {
            Ok(rules) => (Some(rules), None),
            Err(why) => (None, Some(why)),
        };
        let writes_seen = !ObservedTable::unknown(&trace.unseen).contains(&"writes_delayed");
        let table = observed.table();
        Self {
            device: dev.to_string(),
            mount_point: trace.header.mount_point(dev).map(str::to_owned),
            duration_ns: observed.duration_ns(),
            threads: table.threads,
            fsync: Fsync::from_model(&model),
            creation: model.creation,
            writes: writes_seen.then(|| write_model(trace, &observed)),
            write_delays: writes_seen.then_some(WriteDelays {
                writes: table.writes,
                delayed: table.writes_delayed,
                delay_mean_ns: table.write_delay_mean_ns,
            }),
            what_if,
            what_if_refused,
        }
    }
}
