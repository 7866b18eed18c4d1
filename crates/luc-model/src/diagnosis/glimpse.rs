//! A diagnosis from LUC's module alone, for hosts where nothing can be traced.
//!
//! Its counters tell how many syncs waited for commits, how long commits take, and how long writers
//! slept for metadata that a commit was writing. Its records of decisions bound the time that syncs
//! spend behind others' commits: the syncs that wait when a commit opens asked no later than the
//! latest of them, and no earlier than the close of the previous commit, which they would have
//! joined. A verdict is given only if both bounds agree.

use super::confidence::LOST_SHARE;
use super::evidence::{Evidence, LOST_PER_S_MIN_NS, PART_MIN, RARE_SYNCS_PER_S, VerdictKind};
use super::facts::{Facts, Luc};
use super::kinds::processor;
use super::slices::Estimate;
use super::{Relief, advice, luc_in, unseen, words};
use crate::stats::share;
use luc_control::{Dev, Step};
use luc_trace::{Event, Record};
use serde::Serialize;

/// Fewer commits with waiting syncs are too few for a share.
const COMMITS_MIN: u64 = 20;
/// If the waits of all syncs for commits take less than this share of the time, they do not matter;
/// the same threshold as for traced operations.
const BUSY_SHARE_MIN: f64 = 0.05;

/// Facts that the module never reports.
const UNKNOWN: [&str; 3] = [
    "how long syncs write their data before they wait for a commit",
    "waits for space in the journal, or for a locked transaction",
    "which processes make these syncs and writes, and the gain to expect from LUC",
];

/// The module's counts over the watched time. An older module or a recording lacks some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModuleCounts {
    pub duration_ns: u64,
    pub commits: Option<u64>,
    /// Syncs that waited for a commit.
    pub sync_events: Option<u64>,
    /// Operations that changed metadata.
    #[serde(rename = "writes")]
    pub handles: Option<u64>,
    /// Operations that slept because a commit was writing their metadata.
    pub writes_delayed: Option<u64>,
    pub write_delay_ns: Option<u64>,
    /// Average duration of a commit, ns, as jbd2 measures it.
    pub commit_avg_ns: Option<u64>,
}

impl ModuleCounts {
    /// Counts the events of a recording, which holds no counters.
    pub fn from_lines(lines: &[Record], dev: Dev) -> Self {
        let mut counts = Self {
            commits: Some(0),
            sync_events: Some(0),
            writes_delayed: Some(0),
            write_delay_ns: Some(0),
            ..Self::default()
        };
        let add = |count: &mut Option<u64>, more| *count = Some(count.unwrap_or(0) + more);
        let mut bounds_ns: Option<(u64, u64)> = None;
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        for line in lines {
            match &line.event {
                Event::Commit {
                    dev: of, events, ..
                } if *of == dev => {
                    add(&mut counts.commits, 1);
                    add(&mut counts.sync_events, number(*events));
                }
                Event::WriteDelay {
                    dev: of, delay_ns, ..
                } if *of == dev => {
                    add(&mut counts.writes_delayed, 1);
                    add(&mut counts.write_delay_ns, number(*delay_ns));
                }
                Event::Decision {
                    dev: of, decision, ..
                } if *of == dev => {
                    if decision.step == Step::Copyout.value() {
                        add(&mut counts.handles, number(decision.input.handles));
                    } else {
                        counts.commit_avg_ns = Some(number(decision.input.commit_avg_ns));
                    }
                }
                _ => continue,
            }
            let (first_ns, last_ns) = bounds_ns.unwrap_or((line.time_ns, line.time_ns));
            bounds_ns = Some((first_ns.min(line.time_ns), last_ns.max(line.time_ns)));
        }
        let (first_ns, last_ns) = bounds_ns.unwrap_or_default();
        counts.duration_ns = last_ns - first_ns;
        counts
    }
}

/// Bounds of the time that syncs waited before their own commit opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Behind {
    /// Commits with waiting syncs, after a known commit.
    pub commits: u64,
    /// Syncs that waited for these commits when they opened.
    pub events: u64,
    /// Lower bound, ns, summed over all syncs.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Duration of the syncs' own commits by jbd2's average, ns, summed over all syncs.
    pub own_ns: f64,
}

impl Behind {
    /// Computes the bounds from the records of decisions about one file system, in order of time.
    fn from_lines(lines: &[Record], dev: Dev) -> Self {
        let mut behind = Self::default();
        let mut closed_ns = None;
        for line in lines {
            let Event::Decision {
                dev: of, decision, ..
            } = &line.event
            else {
                if matches!(line.event, Event::Lost { .. }) {
                    // The last close may be among the lost records.
                    closed_ns = None;
                }
                continue;
            };
            if *of != dev {
                continue;
            }
            let input = &decision.input;
            if decision.step == Step::Open.value() && input.events > 0 {
                if let Some(closed_ns) = closed_ns {
                    behind.add(input, closed_ns);
                }
            } else if decision.step == Step::Close.value() {
                closed_ns = Some(input.now_ns);
            }
        }
        behind
    }

    fn add(&mut self, input: &luc_control::Input, closed_ns: i64) {
        let positive = |ns: i64| ns.max(0) as f64;
        let events = input.events as f64;
        let commit_ns = positive(input.commit_avg_ns);
        // No sync waits behind the previous commit before that begins.
        let since_ns = positive(input.now_ns.saturating_sub(closed_ns));
        let latest_ns = positive(input.now_ns.saturating_sub(input.last_event_ns));
        let low_ns = latest_ns.min(since_ns);
        // A sync that asks while no commit runs starts one at once, so it waits for at most one
        // commit.
        let high_ns = since_ns.min(commit_ns).max(low_ns);
        self.commits += 1;
        self.events += u64::try_from(input.events).unwrap_or(0);
        // Only the latest sync's moment is known; the others asked earlier.
        self.low_ns += low_ns * events;
        self.high_ns += low_ns + high_ns * (events - 1.0);
        self.own_ns += commit_ns * events;
    }

    fn low_share(&self) -> f64 {
        share(self.low_ns, self.low_ns + self.own_ns)
    }

    fn high_share(&self) -> f64 {
        share(self.high_ns, self.high_ns + self.own_ns)
    }
}

/// A diagnosis without a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Glimpse {
    /// The file system as the user named it, or else its device number.
    pub file_system: String,
    /// The kinds of verdicts, the most costly first; never empty.
    pub kinds: Vec<VerdictKind>,
    pub evidence: Vec<Evidence>,
    pub unknown: Vec<String>,
    /// The command to type next.
    pub next_command: Option<String>,
    pub relief: Relief,
    /// LUC's mode over the watched time.
    pub luc: Luc,
    pub counts: ModuleCounts,
    /// Bounds of sync delays; `None` without records of decisions.
    pub behind: Option<Behind>,
}

/// Judges the counts of the module and its records, if there are any.
pub fn glimpse(counts: ModuleCounts, lines: Option<&[Record]>, dev: Dev, facts: &Facts) -> Glimpse {
    let behind = lines.map(|lines| Behind::from_lines(lines, dev));
    let luc = luc_in(lines.unwrap_or_default(), dev)
        .max(facts.luc)
        .unwrap_or_default();
    let mut evidence = Vec::new();
    let mut unknown: Vec<String> = UNKNOWN.iter().map(|what| (*what).to_owned()).collect();
    let mut kinds = Vec::new();

    let per_s = |ns: f64| share(ns * 1e9, counts.duration_ns as f64);
    match syncs(&counts) {
        Some(syncs) => evidence.push(syncs),
        None => unknown.push("how many syncs wait for commits".into()),
    }
    evidence.extend(writes(&counts));
    match counts.write_delay_ns {
        Some(ns) if per_s(ns as f64) >= LOST_PER_S_MIN_NS => kinds.push(VerdictKind::WriteDelays),
        Some(_) => {}
        None => unknown.push("whether writes wait for commits".into()),
    }
    // No sync waits longer than for the rest of one commit and its own.
    let waits_ns = counts.sync_events.zip(counts.commit_avg_ns);
    let waits_ns = waits_ns.map(|(events, ns)| events as f64 * 2.0 * ns as f64);
    let idle = waits_ns.is_some_and(|ns| share(ns, counts.duration_ns as f64) < BUSY_SHARE_MIN);
    let rare = counts
        .sync_events
        .is_some_and(|events| per_s(events as f64) < RARE_SYNCS_PER_S);
    let fast = facts.fast_commits.unwrap_or(0);
    let fast_share = share(
        fast as f64,
        fast as f64 + counts.commits.unwrap_or(0) as f64,
    );
    let fast_matter = fast_share > LOST_SHARE;
    if fast_matter {
        let shown = unseen::fast_commits(fast, fast_share);
        unknown.push(format!("how long syncs waited for {shown}"));
    } else if facts.fast_commits.is_none() && facts.fast_commit == Some(true) {
        unknown.push("how many fast commits there are, and how long syncs wait for them".into());
    }
    let quiet = (idle || rare) && !fast_matter;
    match behind {
        _ if quiet => {}
        Some(behind) if behind.commits >= COMMITS_MIN => {
            evidence.push(delays(&behind));
            let low = behind.low_share() >= PART_MIN && per_s(behind.low_ns) >= LOST_PER_S_MIN_NS;
            if low {
                // The cost that is certainly larger comes first.
                let first = behind.low_ns > counts.write_delay_ns.unwrap_or(0) as f64;
                kinds.insert(if first { 0 } else { kinds.len() }, VerdictKind::SyncDelays);
            } else if behind.high_share() < PART_MIN {
                let busy_ns =
                    counts.commits.unwrap_or(0) as f64 * counts.commit_avg_ns.unwrap_or(0) as f64;
                let busy_share = share(busy_ns, counts.duration_ns as f64);
                let waits = processor::glimpsed(facts, busy_share);
                kinds.push(
                    waits
                        .as_ref()
                        .map_or(VerdictKind::Device, |_| VerdictKind::Processor),
                );
                evidence.extend(waits);
            } else {
                unknown.push("whether syncs wait for the commits of others: they may".into());
            }
        }
        _ => unknown.push("whether syncs wait for the commits of others".into()),
    }
    if kinds.is_empty() {
        kinds.push(if quiet {
            VerdictKind::NoPressure
        } else {
            VerdictKind::Unclear
        });
    }
    let delays = kinds.iter().any(|kind| kind.row().of_luc);
    let path = advice::path(facts);
    let next_command = delays.then(|| match luc {
        Luc::Observing => format!("luc set {path} mode steer"),
        Luc::Steering => format!("luc status {path}"),
        Luc::Off => format!("luc on {path}"),
    });
    let relief = Relief::of_kinds(&kinds, luc);
    Glimpse {
        file_system: facts.path.clone().unwrap_or_else(|| dev.to_string()),
        kinds,
        evidence,
        unknown,
        next_command,
        relief,
        luc,
        counts,
        behind,
    }
}

fn evidence(text: String, numbers: impl IntoIterator<Item = (&'static str, f64)>) -> Evidence {
    let numbers = numbers.into_iter();
    Evidence {
        text,
        numbers: numbers
            .map(|(name, value)| (name, Estimate::exact(value)))
            .collect(),
    }
}

fn syncs(counts: &ModuleCounts) -> Option<Evidence> {
    let (events, commits) = (counts.sync_events?, counts.commits?);
    let rate = share(events as f64 * 1e9, counts.duration_ns as f64);
    let each = share(events as f64, commits as f64);
    let commit_ns = counts.commit_avg_ns.map(|ns| ns as f64);
    let takes = |before: &str| {
        let takes = |ns| format!("{before} takes {} on average", words::time(ns));
        commit_ns
            .filter(|_| commits > 0)
            .map(takes)
            .unwrap_or_default()
    };
    let text = if events == 0 {
        format!("No sync waits for a commit{}.", takes("; a commit"))
    } else {
        format!(
            "{} syncs per second wait for commits, {} per commit{}.",
            words::three(rate),
            words::three(each),
            takes(", which")
        )
    };
    let numbers = [
        ("syncs_per_s", rate),
        ("sync_events_per_commit_events", each),
    ];
    let commit = commit_ns.map(|ns| ("commit_mean_ns", ns));
    Some(evidence(text, numbers.into_iter().chain(commit)))
}

/// Returns `None` if no write was delayed, or the number is not known.
fn writes(counts: &ModuleCounts) -> Option<Evidence> {
    let (delayed @ 1.., delay_ns) = (counts.writes_delayed?, counts.write_delay_ns?) else {
        return None;
    };
    let each_ns = share(delay_ns as f64, delayed as f64);
    let lost_ns = share(delay_ns as f64 * 1e9, counts.duration_ns as f64);
    // A recording without copy-out decisions lacks the number of all writes.
    let of_all = counts
        .handles
        .map(|all| share(delayed as f64, all as f64).min(1.0));
    let who = of_all.map_or_else(
        || {
            let (one, many) = ("change of metadata waits", "changes of metadata wait");
            words::counted(delayed, one, many)
        },
        |of_all| format!("{} of the changes of metadata wait", words::share(of_all)),
    );
    let text = format!(
        "{who} for a commit that is writing it, {} each: {} per second over all tasks.",
        words::time(each_ns),
        words::time(lost_ns)
    );
    let numbers = [
        ("write_delay_mean_ns", each_ns),
        ("blocked_per_s_ns", lost_ns),
    ];
    let of_all = of_all.map(|share| ("writes_delayed_share", share));
    Some(evidence(text, of_all.into_iter().chain(numbers)))
}

fn delays(behind: &Behind) -> Evidence {
    let (low, high) = (behind.low_share(), behind.high_share());
    let (least, most) = (words::share(low), words::share(high));
    let passes = if least == most {
        format!("{least} passes")
    } else {
        format!("between {least} and {most} pass")
    };
    evidence(
        format!(
            "Of the time from asking for a commit to its end, {passes} before the commit begins."
        ),
        [("behind_share_min", low), ("behind_share_max", high)],
    )
}

/// Renders plain text: the answer in the first line, a newline at the end.
pub fn render_glimpse(glimpse: &Glimpse) -> String {
    let untold = match glimpse.counts.sync_events {
        None => "the cause of the syncs' waits is unknown",
        Some(_) => "there are syncs, but the cause of their waits is unknown",
    };
    let rows = glimpse.kinds.iter().map(|kind| kind.row());
    let answer: Vec<&str> = rows
        .map(|row| if row.by_module { row.what } else { untold })
        .collect();
    let mut page = super::text::Page::default();
    page.line(
        "",
        &format!(
            "{}: {}, as far as LUC's module can tell",
            glimpse.file_system,
            answer.join("; ")
        ),
    );
    page.line(
        "  ",
        match glimpse.luc {
            Luc::Steering => "LUC steers: these are the remaining delays.",
            Luc::Observing => "LUC observes and changes nothing.",
            Luc::Off => "LUC is off now.",
        },
    );
    match &glimpse.next_command {
        Some(command) => page.row("  next: ", command),
        None => page.line("  ", "next: the module's counters suggest nothing"),
    }
    for evidence in &glimpse.evidence {
        page.line("  ", &evidence.text);
    }
    page.line("  ", "not known without tracing:");
    for unknown in &glimpse.unknown {
        page.line("    ", unknown);
    }
    let commits = glimpse.counts.commits;
    let commits = commits.map(|commits| words::counted(commits, "commit", "commits"));
    let with = commits.map_or_else(String::new, |commits| format!(" with {commits}"));
    let watched = words::time(glimpse.counts.duration_ns as f64);
    page.line("  ", &format!("from {watched}{with}"));
    page.into_text()
}
