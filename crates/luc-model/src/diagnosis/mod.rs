//! The diagnosis of a file system: which delay it has, what that costs, which processes cause it,
//! which suffer from it, and what would help.
//!
//! The time of threads in syncs, in writes and in other waits for the journal is booked to its
//! causes (`account.rs`). Causes that take enough of it become verdicts, ranked by their share
//! (`kinds/`, one file each, with its thresholds and their reasons). The gain from LUC comes from
//! the replay of the trace ([`crate::foretold`]).
//!
//! Every mean and every share has a 95 % confidence interval. Events depend on each other, so it
//! comes from batch means: the trace is cut into slices of equal length, each is judged like a
//! trace of its own, and the spread of the slices gives the error of the whole (`slices.rs`).
//!
//! Unknown quantities lower the confidence, with the reason in words, and are never guessed.

mod account;
mod advice;
mod confidence;
mod disk_work;
mod evidence;
mod facts;
mod gain;
mod glimpse;
mod kinds;
mod limits;
mod processes;
mod relief;
mod slices;
mod text;
mod unseen;
mod victims;
mod words;

pub use account::Account;
use advice::GAIN_MIN;
pub use advice::Help;
pub use confidence::{Confidence, Level};
pub use evidence::{Evidence, Verdict, VerdictKind};
pub use facts::{
    Busiest, BusyArray, CpuLimit, DiskWork, Facts, HinderingDevice, IoLimit, Limiter, Luc,
    ThreadWait, Work,
};
pub(crate) use gain::STOCK_ERROR_SHARE_MAX;
pub use gain::{Gain, Gains};
pub use glimpse::{Behind, Glimpse, ModuleCounts, glimpse, render_glimpse};
pub use processes::{Bulk, Processes, Sufferer, Syncer};
pub use relief::Relief;
pub use slices::Estimate;
pub use text::render;
pub use unseen::doubts;

use crate::blame::{By, Waiter, blame, waiting_groups};
use crate::lasting::LastingSyncs;
use crate::observed::{Observed, ObservedTable};
use crate::untimed::UntimedSyncs;
use evidence::Case;
use luc_control::Dev;
use luc_trace::{Event, Record, Sight, Trace, Unseen};
use serde::Serialize;
use slices::Slices;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The file system as the user named it, or else its device number.
    pub file_system: String,
    /// The verdicts, of which the first is the answer; never empty.
    pub verdicts: Vec<Verdict>,
    /// The gain from LUC; `None` if LUC already steers, or nothing can be said.
    pub gain: Option<Gain>,
    pub processes: Processes,
    /// Whom the processes waited for; `None` if that cannot be seen.
    pub waiters: Option<Vec<Waiter>>,
    /// The same by control group; `None` if no group is known, too.
    pub control_groups: Option<Vec<Waiter>>,
    /// Remedies besides LUC, one sentence each.
    pub advice: Vec<String>,
    /// The command to type next.
    pub next_command: Option<String>,
    pub relief: Relief,
    pub confidence: Confidence,
    pub luc_help: Help,
    /// The reason why LUC cannot run on that machine, if known.
    pub luc_obstacle: Option<String>,
    /// LUC's mode while the tracer ran.
    pub luc: Luc,
    #[serde(serialize_with = "unseen::as_words")]
    pub unseen: Unseen,
    pub account: Account,
    pub table: ObservedTable,
    pub lasting: LastingSyncs,
    pub untimed: UntimedSyncs,
    /// Fast commits during the watch; `None` if unknown.
    pub fast_commits: Option<u64>,
    /// The I/O limit that syncs wait for.
    pub io_limit: Option<IoLimit>,
    /// The limit on processor time that tasks which sync wait for.
    pub cpu_limit: Option<CpuLimit>,
    /// Requests that keep the disk busy while syncs wait for it.
    pub disk_work: Vec<DiskWork>,
}

impl Diagnosis {
    /// Tells whether a verdict names something that costs time.
    pub fn found_cost(&self) -> bool {
        self.verdicts.iter().any(Verdict::costs)
    }

    /// Tells whether LUC would help and can run there.
    fn luc_serves(&self) -> bool {
        self.luc_help == Help::Would && self.luc_obstacle.is_none()
    }

    /// Tells whether any verdict's kind satisfies `of`.
    fn any(&self, of: impl Fn(&kinds::Kind) -> bool) -> bool {
        self.verdicts.iter().any(|verdict| of(verdict.kind.row()))
    }

    /// Tells whether a verdict of this kind was given.
    pub fn has(&self, kind: VerdictKind) -> bool {
        self.verdicts.iter().any(|verdict| verdict.kind == kind)
    }
}

/// Diagnoses the file system on `dev`. O(n log n) in the spans.
pub fn diagnose(trace: &Trace, dev: Dev, facts: &Facts) -> Diagnosis {
    let observed = Observed::from_trace(trace, dev);
    let luc = luc_state(trace, dev, facts);
    let slices = Slices::from_trace(trace, &observed, facts);
    let mut gains = Gains::from_trace(trace, dev, &slices, facts, luc);
    let asking_seen = !trace.unseen.contains(&Sight::Flushes);
    let waiters = asking_seen.then(|| blame(trace, &observed, By::Process).waiters);
    let groups = asking_seen.then(|| waiting_groups(trace, &observed));
    let control_groups = groups.flatten();
    let account = &slices.whole.account;
    let processes = Processes::from_trace(trace, &observed, account, waiters.as_deref());
    let lasting = LastingSyncs::from_trace(trace, dev);
    let untimed = UntimedSyncs::from_trace(trace, dev);
    let lasting_process = lasting
        .longest
        .map(|sync| trace.process(sync.tgid, sync.pid).name);
    let io_limit = limits::reached(trace, &observed, account, facts);
    let cpu_limit = limits::throttling(trace, &observed, facts);
    let mut verdicts = kinds::verdicts(&Case {
        slices: &slices,
        gains: &gains,
        unseen: &trace.unseen,
        facts,
        lasting: &lasting,
        cpu_limit: cpu_limit.as_ref(),
        untimed: &untimed,
        lasting_process: &lasting_process.unwrap_or_default(),
    });
    verdicts.extend(victims::verdicts(
        trace,
        &observed,
        facts,
        cpu_limit.as_ref(),
        &verdicts,
    ));
    // Where nothing costs the whole anything, the verdict on a process is the answer.
    verdicts.sort_by_key(|verdict| !verdict.kind.costs());
    if let (Some(limit), Some(first)) = (&io_limit, verdicts.first_mut()) {
        first.limited_by(limit);
    }
    let mut kinds = verdicts.iter().map(|verdict| verdict.kind);
    if kinds.any(|kind| kind == VerdictKind::JournalTooSmall) {
        gains.doubt("LUC mostly does nothing while the journal has no space.");
    }
    let mut confidence = Confidence::new(trace, &observed, &slices, &verdicts, facts, luc);
    confidence.lower_by_untimed(&untimed, slices.whole.table.sync.count);
    let foretold = Help::from_gain(gains.luc.as_ref());
    // Where the replay does not know, the account may, if it misses nothing.
    let doubtful = gains.luc.is_some() && matches!(foretold, Help::May | Help::Unknown);
    let all_seen = asking_seen && !unseen::any_wait(&trace.unseen);
    let sure = all_seen && confidence.level != Level::Low;
    let luc_help = if doubtful && sure && account.gain_max() < GAIN_MIN {
        Help::WouldNot
    } else {
        foretold
    };
    let mut diagnosis = Diagnosis {
        file_system: facts.path.clone().unwrap_or_else(|| dev.to_string()),
        verdicts,
        gain: gains.luc,
        processes,
        waiters,
        control_groups,
        advice: Vec::new(),
        next_command: None,
        relief: Relief::None,
        confidence,
        luc_help,
        luc_obstacle: facts.luc_obstacle.clone(),
        luc,
        unseen: trace.unseen.clone(),
        account: slices.whole.account,
        table: slices.whole.table,
        lasting,
        untimed,
        fast_commits: facts.fast_commits,
        io_limit,
        cpu_limit,
        disk_work: disk_work::competing(facts),
    };
    diagnosis.advice = advice::advice(&diagnosis, facts);
    diagnosis.next_command = advice::next_command(&diagnosis, facts);
    diagnosis.relief = Relief::new(&diagnosis, facts);
    diagnosis
}

/// Returns LUC's mode during the recording. The higher mode counts, whether from the recording or
/// from the facts.
fn luc_state(trace: &Trace, dev: Dev, facts: &Facts) -> Luc {
    luc_in(&trace.lines, dev).max(facts.luc).unwrap_or_default()
}

/// Reads the mode from the module's lines; `None` without any.
fn luc_in(lines: &[Record], dev: Dev) -> Option<Luc> {
    let states = lines.iter().filter_map(|line| match line.event {
        Event::Commit { dev: of, steer, .. } if of == dev => {
            Some(if steer { Luc::Steering } else { Luc::Observing })
        }
        _ => None,
    });
    states.max()
}
