//! The text of a diagnosis, for a terminal of 80 to 100 columns.

use super::advice::Help;
use super::facts::Luc;
use super::slices::Estimate;
use super::{Diagnosis, Processes, Sufferer, Verdict, VerdictKind, words};
use crate::blame::Waiter;
use luc_trace::{Sight, Unseen};

/// Columns of text; commands and paths are never broken.
const COLUMNS: usize = 98;
/// Most processes for which the text says whom they wait for.
const WAITERS_MAX: usize = 5;

/// Renders the diagnosis as plain text: the answer in the first line, a newline at the end.
pub fn render(diagnosis: &Diagnosis) -> String {
    let mut page = Page::default();
    if let Some(first) = diagnosis.verdicts.first() {
        page.line(
            "",
            &format!(
                "{}: {}",
                diagnosis.file_system,
                first.answer(&diagnosis.unseen)
            ),
        );
    }
    page.line("  ", &luc(diagnosis));
    if let Some(why) = obstacle(diagnosis) {
        page.line("  ", &format!("LUC cannot run on this machine: {why}."));
    }
    if let Some(command) = &diagnosis.next_command {
        page.row("  next: ", command);
    } else {
        page.line(
            "  ",
            if diagnosis.advice.is_empty() {
                "next: nothing"
            } else {
                "next: see the other remedies below"
            },
        );
    }
    for verdict in &diagnosis.verdicts {
        page.line("  ", &head(verdict, &diagnosis.unseen));
        for evidence in &verdict.evidence {
            page.line("    ", &evidence.text);
        }
    }
    processes(diagnosis, &mut page);
    waiters(diagnosis, &mut page);
    if !diagnosis.advice.is_empty() {
        page.line("  ", "other remedies:");
        for advice in &diagnosis.advice {
            page.line("    ", advice);
        }
    }
    let confidence = &diagnosis.confidence;
    let level = confidence.level.text();
    let shown = words::time(diagnosis.account.duration_ns);
    let commits = words::counted(diagnosis.table.commits, "commit", "commits");
    page.line(
        "  ",
        &format!("confidence: {level}, from {shown} with {commits}; ranges are 95% intervals"),
    );
    // Each doubt appears once: those about the gain are already in its line.
    let doubts = diagnosis.gain.as_ref().map(|gain| &gain.doubts);
    let told = |reason: &&String| doubts.is_some_and(|doubts| doubts.contains(*reason));
    for reason in confidence.reasons.iter().filter(|reason| !told(reason)) {
        page.line("    ", reason);
    }
    page.into_text()
}

/// Returns why LUC cannot run there, if it might help.
fn obstacle(diagnosis: &Diagnosis) -> Option<&str> {
    let needless = diagnosis.luc_help == Help::WouldNot || !diagnosis.found_cost();
    let why = diagnosis.luc_obstacle.as_deref();
    why.filter(|_| !needless)
}

fn head(verdict: &Verdict, unseen: &Unseen) -> String {
    let name = verdict.kind.row().name;
    if !verdict.kind.costs() {
        return format!("{name}:");
    }
    let bound = verdict.kind == VerdictKind::SyncDelays && unseen.contains(&Sight::Flushes);
    format!(
        "{name}, {}{} of {}:",
        if bound { "at most " } else { "" },
        words::share_range(verdict.cost_share),
        verdict.whole(unseen)
    )
}

fn luc(diagnosis: &Diagnosis) -> String {
    if diagnosis.luc == Luc::Steering {
        return "LUC already steers it.".into();
    }
    let Some(gain) = &diagnosis.gain else {
        let why = if diagnosis.table.commits == 0 {
            "no commit was seen"
        } else {
            "LUC could not have changed anything that was seen"
        };
        return format!("The gain from LUC is unknown: {why}.");
    };
    if diagnosis.luc_help == Help::WouldNot && Help::from_gain(Some(gain)) != Help::WouldNot {
        return format!(
            "LUC would not help: {} times the operations per second at most, as next to no time is \
             lost to others' commits.",
            words::three(diagnosis.account.gain_max())
        );
    }
    let times = words::times_range(Estimate {
        value: gain.ratio,
        low: gain.low,
        high: gain.high,
    });
    let verb = match diagnosis.luc_help {
        Help::Would => "LUC would give",
        Help::May => "LUC may help:",
        Help::WouldNot => "LUC would not help:",
        Help::Unknown => "LUC might give",
    };
    let needless = diagnosis.luc_help == Help::Would && !diagnosis.found_cost();
    let but = if needless {
        ", but no task waits enough to notice"
    } else {
        ""
    };
    let line = format!("{verb} {times} the operations per second{but}.");
    if gain.trusted {
        return line;
    }
    format!("{line} Do not trust it: {}", gain.doubts.join(" "))
}

fn processes(diagnosis: &Diagnosis, page: &mut Page) {
    let Processes {
        causes, sufferers, ..
    } = &diagnosis.processes;
    let causes = if diagnosis.found_cost() {
        &causes[..]
    } else {
        &[]
    };
    if !causes.is_empty() {
        page.line("  ", "processes that sync:");
    }
    for cause in causes {
        let first = cause.commits_asked.filter(|asked| *asked > 0);
        let first = first.map_or_else(String::new, |asked| {
            let commits = words::counted(asked, "commit", "commits");
            format!(", first to ask for {commits}")
        });
        let text = format!(
            "{:<16} {} ({}){first}",
            cause.name,
            words::counted(cause.syncs, "sync", "syncs"),
            words::share(cause.syncs_share)
        );
        process(page, &text, cause.cgroup.as_deref());
    }
    // Every process loses some microseconds; only a verdict makes them worth a list.
    let lost = diagnosis.any(|kind| kind.has_sufferers);
    let sufferers = sufferers.as_deref().filter(|_| lost).unwrap_or_default();
    if !sufferers.is_empty() {
        page.line("  ", "processes that lose time:");
    }
    for sufferer in sufferers {
        let text = format!(
            "{:<16} {} ({}){}",
            sufferer.name,
            words::time(sufferer.lost_ns),
            words::share(sufferer.lost_share),
            in_syncs(sufferer)
        );
        process(page, &text, sufferer.cgroup.as_deref());
    }
}

/// Tells whom processes and control groups waited for, if the file system loses time.
fn waiters(diagnosis: &Diagnosis, page: &mut Page) {
    if !diagnosis.found_cost() {
        return;
    }
    let all = [
        ("whose commits they wait for:", &diagnosis.waiters),
        ("the same by control group:", &diagnosis.control_groups),
    ];
    for (head, waiters) in all {
        let waiters = waiters.iter().flatten().take(WAITERS_MAX);
        let told: Vec<String> = waiters.flat_map(Waiter::told).collect();
        if told.is_empty() {
            continue;
        }
        page.line("  ", head);
        for sentence in told {
            page.line("    ", &sentence);
        }
    }
}

/// Writes a process with its control group, which gets a line of its own if one line is too short
/// for both.
fn process(page: &mut Page, text: &str, cgroup: Option<&str>) {
    let Some(cgroup) = cgroup else {
        return page.row("    ", text);
    };
    let both = format!("{text}, in {cgroup}");
    if both.chars().count() + 4 <= COLUMNS {
        return page.row("    ", &both);
    }
    page.row("    ", &format!("{text},"));
    page.row("      ", &format!("in {cgroup}"));
}

/// Says which part was lost in syncs. Without other losses both sums add the same numbers in the
/// same order, and are equal.
fn in_syncs(sufferer: &Sufferer) -> String {
    let Sufferer {
        lost_ns,
        sync_delay_ns,
        ..
    } = *sufferer;
    if sync_delay_ns <= 0.0 {
        String::new()
    } else if sync_delay_ns >= lost_ns {
        ", all of it in syncs".into()
    } else {
        format!(", {} of it in syncs", words::time(sync_delay_ns))
    }
}

#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// Writes text, broken between words; lines after a break are indented by two more columns.
    pub(super) fn line(&mut self, indent: &str, text: &str) {
        let mut width = 0;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if width == 0 {
                self.text.push_str(indent);
                width = indent.len();
            } else if width + 1 + length > COLUMNS {
                self.text.push('\n');
                self.text.push_str(indent);
                self.text.push_str("  ");
                width = indent.len() + 2;
            } else {
                self.text.push(' ');
                width += 1;
            }
            self.text.push_str(word);
            width += length;
        }
        self.text.push('\n');
    }

    /// Writes a line that is never broken.
    pub(super) fn row(&mut self, indent: &str, text: &str) {
        self.text.push_str(indent);
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
