//! The diagnosis: which delay it is that a file system has, what it costs, who
//! causes it and who suffers, and what would help.
//!
//! All time that threads spent in syncs, in writes and in waits for the
//! journal elsewhere is booked to what it was spent on (`account.rs`). Causes
//! that take enough of it become verdicts, and are ranked by the share that
//! they take (`kinds/`, a file each, with its thresholds and their reasons).
//! What LUC would give comes from the replay of the trace ([`crate::what_if`]).
//!
//! Every mean and every share stands with a 95 % interval. A trace is one
//! sample of a system whose events depend on each other, so the interval is
//! that of batch means: the trace is cut into slices of equal length, each is
//! judged like a trace of its own, and the spread of the slices says how much
//! the whole could be off (`slices.rs`).
//!
//! What cannot be known lowers the confidence, with the reason in words, and
//! is never made up for by a guess.

mod account;
mod advice;
mod confidence;
mod evidence;
mod facts;
mod gain;
mod glimpse;
mod kinds;
mod processes;
mod slices;
mod text;
mod unseen;
mod words;

pub use account::Account;
pub use advice::Help;
pub use confidence::{Confidence, Level};
pub use evidence::{Evidence, Verdict, VerdictKind};
pub use facts::{Facts, Luc};
pub use gain::{Gain, Gains};
pub use glimpse::{Behind, Glimpse, ModuleCounts, glimpse, render_glimpse};
pub use processes::{Cause, Processes, Sufferer};
pub use slices::Estimate;
pub use text::render;
pub use unseen::doubts;

use crate::observed::{Observed, Table};
use evidence::Case;
use luc_control::Dev;
use luc_trace::{Event, Record, Trace, Unseen};
use serde::Serialize;
use slices::Slices;

/// What a trace says of one file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The file system, as the user named it; its device number otherwise.
    pub file_system: String,
    /// The first is the answer; never empty.
    pub verdicts: Vec<Verdict>,
    /// What LUC would give; None if it acts already, or nothing can be said.
    pub gain: Option<Gain>,
    /// Who causes it, and who suffers.
    pub processes: Processes,
    /// What else would help, a sentence each.
    pub advice: Vec<String>,
    /// What to type next; None: nothing.
    pub next_command: Option<String>,
    /// How far to believe all this.
    pub confidence: Confidence,
    /// Whether LUC would help, by both ends of the gain's interval.
    pub luc_help: Help,
    /// Why LUC cannot run on that machine, if that is known.
    pub luc_obstacle: Option<String>,
    /// What LUC did while it was traced.
    pub luc: Luc,
    /// Kinds of events that could not be seen.
    #[serde(serialize_with = "unseen::as_words")]
    pub unseen: Unseen,
    /// Where the time went.
    pub account: Account,
    /// The quantities of the model.
    pub table: Table,
}

impl Diagnosis {
    /// Whether there is something to do: a command to type or advice to follow.
    pub fn advises(&self) -> bool {
        self.next_command.is_some() || !self.advice.is_empty()
    }

    /// Whether a verdict names something that costs.
    pub fn found_cost(&self) -> bool {
        self.verdicts.iter().any(|verdict| verdict.kind.costs())
    }

    /// Whether a verdict is of such a kind.
    fn any(&self, of: impl Fn(&kinds::Kind) -> bool) -> bool {
        self.verdicts.iter().any(|verdict| of(verdict.kind.row()))
    }

    /// Whether a verdict holds.
    pub fn has(&self, kind: VerdictKind) -> bool {
        self.verdicts.iter().any(|verdict| verdict.kind == kind)
    }
}

/// The diagnosis of the file system on `dev`. O(n log n) in the spans.
pub fn diagnose(trace: &Trace, dev: Dev, facts: &Facts) -> Diagnosis {
    let observed = Observed::of(trace, dev);
    let luc = luc_state(trace, dev, facts);
    let slices = Slices::of(trace, dev, &observed, facts);
    let mut gains = Gains::of(trace, &slices, facts, luc);
    let processes = Processes::of(trace, &observed);
    let verdicts = kinds::verdicts(&Case {
        slices: &slices,
        gains: &gains,
        unseen: &trace.unseen,
        facts,
    });
    if verdicts
        .iter()
        .any(|it| it.kind == VerdictKind::JournalTooSmall)
    {
        gains.doubt("LUC mostly stands aside while the journal has no space.");
    }
    let confidence = Confidence::of(trace, &observed, &slices, &verdicts, facts, luc);
    let luc_help = Help::of(gains.luc.as_ref());
    let mut diagnosis = Diagnosis {
        file_system: facts.path.clone().unwrap_or_else(|| dev.to_string()),
        verdicts,
        gain: gains.luc,
        processes,
        advice: Vec::new(),
        next_command: None,
        confidence,
        luc_help,
        luc_obstacle: facts.luc_obstacle.clone(),
        luc,
        unseen: trace.unseen.clone(),
        account: slices.whole.account,
        table: slices.whole.table,
    };
    diagnosis.advice = advice::advice(&diagnosis, facts);
    diagnosis.next_command = advice::next_command(&diagnosis, facts);
    diagnosis
}

/// A recording knows better than the machine that reads it.
fn luc_state(trace: &Trace, dev: Dev, facts: &Facts) -> Luc {
    luc_in(&trace.lines, dev).max(facts.luc).unwrap_or_default()
}

/// What the module's lines say of it; None without any.
fn luc_in(lines: &[Record], dev: Dev) -> Option<Luc> {
    let mut state = None;
    for line in lines {
        if let Event::Commit { dev: of, steer, .. } = line.event
            && of == dev
        {
            let now = if steer { Luc::Steering } else { Luc::Observing };
            state = state.max(Some(now));
        }
    }
    state
}
