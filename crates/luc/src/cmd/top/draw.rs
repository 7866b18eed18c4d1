//! The screen, which [`draw`] makes from the [`State`] alone.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use super::state::{Point, Sort, State, View};
use super::text::{self, BLAME_HEADS, GROUP_HEADS, JOURNAL_HEADS, PROCESS_HEADS};
use luc_cli::units::{counted, duration};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Minimum widths of the journals' columns, and the order in which a narrow screen keeps them. A
/// number is shown whole or not at all.
const JOURNAL_WIDTHS: [u16; 9] = [11, 9, 10, 7, 7, 8, 4, 9, 15];
const JOURNAL_ORDER: [usize; 9] = [0, 1, 2, 4, 8, 3, 6, 7, 5];
/// A table below the journals.
struct Listing {
    heads: [&'static str; 7],
    /// Minimum widths of the columns, and the order in which a narrow screen keeps them.
    widths: [u16; 7],
    order: &'static [usize],
    /// The column of the names, as wide as the longest.
    name: usize,
    /// The other columns of text.
    texts: &'static [usize],
    /// The columns by which [`Sort`] sorts, in its order.
    sorted: [usize; 4],
}

/// Column of the control groups, as wide as there is room.
const CGROUP: usize = 6;
const PROCESSES: Listing = Listing {
    heads: PROCESS_HEADS,
    widths: [7, 9, 9, 8, 10, 8, 14],
    order: &[1, 2, 5, 0, 4, 3, CGROUP],
    name: 1,
    texts: &[CGROUP],
    sorted: [2, 5, 1, CGROUP],
};
const BLAME_OF_PROCESSES: Listing = Listing {
    heads: BLAME_HEADS,
    widths: [9, 10, 7, 8, 7, 20, 14],
    order: &[0, 1, 3, 5, 2, 4, CGROUP],
    name: 0,
    texts: &[5, CGROUP],
    sorted: [1, 3, 0, CGROUP],
};
/// The control groups are the names.
const BLAME_OF_GROUPS: Listing = Listing {
    heads: GROUP_HEADS,
    order: &[0, 1, 3, 5, 2, 4],
    sorted: [1, 3, 0, 0],
    ..BLAME_OF_PROCESSES
};
/// Rows of the sparklines with their title. A tall screen adds one per [`ROWS_PER_SPARK_ROW`].
const SPARK_ROWS: u16 = 4;
const SPARK_ROWS_MAX: u16 = 9;
const ROWS_PER_SPARK_ROW: u16 = 4;
/// Height from which a screen is tall.
const TALL_FROM: u16 = 30;
/// Height from which there is room for sparklines.
const SPARK_FROM: u16 = 16;
/// The journals get at most one Nth of the screen's height.
const JOURNALS_SHARE: u16 = 3;

/// As many lines as a screen of 24 rows shows.
const HELP: [&str; 22] = [
    "q, Escape  quit",
    "arrows/jk  choose a journal",
    "tab/s      sort processes by fsyncs, time lost, name or control group",
    "/          show only processes with a text in their name or control group",
    "b          whose commits they wait for; by control group; the processes again",
    "p o        next policy of the chosen journal (as `luc set`); observe or steer",
    "space + -  pause or resume; longer, shorter interval",
    "h Ctrl-Z   hide this help; suspend, until the shell's fg",
    "commits/s  journal commits; below, those whose first sync was theirs",
    "per/set    fsyncs per commit, and the set point",
    "p50 p99    median and 99th percentile of fsync times",
    "slowest    the longest fsync of the interval; > before one that is going on",
    "late       share of fsyncs that waited for two commits or more",
    "delayed/s  writes that slept because a commit was writing their block",
    "LUC        policy, in () if it only observes, and why most commits started:",
    "           set point met; no more fsyncs came; time up; at once: nothing",
    "           to wait for; urgent: the commit may not be held",
    "in fsync/s time in fsync, of all threads, per second",
    "lost/s     time in waits inside operations, of all threads, per second",
    "waits/s    time in waits for commits and data of others, of all threads, per",
    "           second, and its share of the time in fsync; - unknown",
    "most for   the other that most of it was for",
];

pub fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    let lacks = state
        .snapshot
        .as_ref()
        .map_or(0, |snapshot| snapshot.lacks.len());
    let lacks = rows(lacks).min(if area.height >= SPARK_FROM { 2 } else { 0 });
    let (detail, sparks) = match area.height {
        _ if state.journals().is_empty() => (0, 0),
        ..SPARK_FROM => (0, 0),
        SPARK_FROM..TALL_FROM => (2, SPARK_ROWS),
        height => {
            let more = (height - TALL_FROM) / ROWS_PER_SPARK_ROW;
            (3, (SPARK_ROWS + more).min(SPARK_ROWS_MAX))
        }
    };
    // The head and every journal, as long as room is left for the rest.
    let most = if area.height >= SPARK_FROM {
        area.height / JOURNALS_SHARE
    } else {
        area.height.saturating_sub(2).max(2)
    };
    let journals = rows(state.journals().len().max(1)).saturating_add(1);
    let [head, notes, journals, detail, sparks, processes, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lacks),
        Constraint::Length(journals.min(most)),
        Constraint::Length(detail),
        Constraint::Length(sparks),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, state);
    draw_notes(frame, notes, state);
    draw_journals(frame, journals, state);
    draw_detail(frame, detail, state);
    draw_sparks(frame, sparks, state);
    if processes.height > 1 {
        match state.view {
            View::Processes => draw_processes(frame, processes, state),
            View::BlameOfProcesses | View::BlameOfGroups => draw_blame(frame, processes, state),
        }
    }
    draw_foot(frame, foot, state);
    if state.help {
        draw_help(frame, area);
    }
}

fn rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn draw_head(frame: &mut Frame, area: Rect, state: &State) {
    let interval = state.interval.as_secs_f64();
    let mut parts = vec!["luc top".to_owned()];
    if let Some(snapshot) = &state.snapshot {
        parts.push(format!("Linux {}", snapshot.kernel));
        parts.push(text::luc_state(snapshot));
    }
    parts.push(format!("every {interval} s"));
    if !state.filter.is_empty() {
        parts.push(format!("filter: {}", state.filter));
    }
    if state.paused {
        // The pause must be seen on a narrow screen, too.
        parts.insert(1, "PAUSED".into());
    }
    if let Some(lost @ 1..) = state.snapshot.as_ref().and_then(|one| one.events_lost) {
        parts.push(counted(lost, "event lost", "events lost"));
    }
    frame.render_widget(Paragraph::new(parts.join("  ")).style(HEAD), area);
}

fn draw_notes(frame: &mut Frame, area: Rect, state: &State) {
    let lacks = state.snapshot.iter().flat_map(|snapshot| &snapshot.lacks);
    let lines: Vec<Line> = lacks.map(|lack| Line::raw(lack.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).style(DIM), area);
}

/// Cuts a long name to its end, which tells more than its start.
fn end_of(name: &str, width: u16) -> String {
    let (length, width) = (name.chars().count(), usize::from(width));
    if length <= width {
        return name.to_owned();
    }
    let rest = name
        .chars()
        .skip(length.saturating_sub(width.saturating_sub(1)));
    std::iter::once('…').chain(rest).collect()
}

/// A number's cell. A number too long for its column becomes `#`: it would lose digits.
fn number_cell(text: String, width: u16) -> Cell<'static> {
    let width = usize::from(width);
    let text = if text.chars().count() > width {
        "#".repeat(width)
    } else {
        text
    };
    Cell::from(Line::from(text).alignment(Alignment::Right))
}

/// The columns that fit, in their order on the screen.
fn columns(widths: &[u16], order: &[usize], width: u16) -> Vec<usize> {
    let mut taken = Vec::new();
    let mut used = 0;
    for at in order {
        let gap = u16::from(!taken.is_empty());
        if used + gap + widths[*at] <= width || taken.is_empty() {
            used += gap + widths[*at];
            taken.push(*at);
        }
    }
    taken.sort_unstable();
    taken
}

fn draw_journals(frame: &mut Frame, area: Rect, state: &State) {
    if state.journals().is_empty() {
        let text = if state.snapshot.is_some() {
            "no ext4 journal is mounted read-write"
        } else {
            "waiting for the first interval"
        };
        return frame.render_widget(Paragraph::new(text), area);
    }
    let shown = columns(&JOURNAL_WIDTHS, &JOURNAL_ORDER, area.width);
    let (first, last) = (0, JOURNAL_WIDTHS.len() - 1);
    let used = shown.iter().map(|at| JOURNAL_WIDTHS[*at]).sum::<u16>() + rows(shown.len()) - 1;
    let spare = area.width.saturating_sub(used);
    let longest = state
        .journals()
        .iter()
        .map(|one| text::place(one).chars().count());
    let longest = rows(longest.max().unwrap_or(0));
    // Spare columns go to the names first, then to LUC's words.
    let name = JOURNAL_WIDTHS[first].min(area.width)
        + spare.min(longest.saturating_sub(JOURNAL_WIDTHS[first]));
    let widths = shown.iter().map(|at| match *at {
        at if at == first => Constraint::Length(name),
        at if at == last => Constraint::Fill(1),
        at => Constraint::Length(JOURNAL_WIDTHS[at]),
    });
    let row = |cells: [String; 9]| {
        Row::new(shown.iter().map(|at| match *at {
            at if at == first => Cell::from(end_of(&cells[at], name)),
            at if at == last => Cell::from(cells[at].clone()),
            at => number_cell(cells[at].clone(), JOURNAL_WIDTHS[at]),
        }))
    };
    let journals = state.journals().iter().map(text::journal_cells);
    let table = Table::new(journals.map(row), widths)
        .header(row(JOURNAL_HEADS.map(str::to_owned)).style(BOLD))
        .row_highlight_style(HEAD);
    let mut chosen = TableState::default().with_selected(state.chosen_at());
    frame.render_stateful_widget(table, area, &mut chosen);
}

fn draw_detail(frame: &mut Frame, area: Rect, state: &State) {
    let Some(journal) = state.chosen() else {
        return;
    };
    let place = end_of(&text::place(journal), area.width / 2);
    let parts = std::iter::once(text::luc_line(journal)).chain(text::events_line(journal));
    let line = format!("{place}: {}", parts.collect::<Vec<_>>().join("; "));
    let paragraph = Paragraph::new(line).wrap(Wrap { trim: true });
    frame.render_widget(paragraph, area);
}

fn draw_sparks(frame: &mut Frame, area: Rect, state: &State) {
    let [left, _, right] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Fill(1),
    ])
    .areas(area);
    let syncs = |point: &Point| point.syncs_per_s;
    let p99 = |point: &Point| point.p99_us;
    let per_s = |most: u64| format!("fsyncs/s, at most {}", text::rate(most as f64));
    let time = |most_us: u64| {
        let most = duration(most_us.saturating_mul(1000));
        format!("fsync p99, at most {most}")
    };
    draw_spark(frame, left, state, syncs, per_s);
    draw_spark(frame, right, state, p99, time);
}

/// Draws the latest samples, the newest at the right.
fn draw_spark(
    frame: &mut Frame,
    area: Rect,
    state: &State,
    value: impl Fn(&Point) -> u64,
    title: impl Fn(u64) -> String,
) {
    let [head, bars] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let width = usize::from(bars.width);
    let points = state.history();
    let skipped = points.len().saturating_sub(width);
    let shown: Vec<u64> = points.skip(skipped).map(value).collect();
    let most = shown.iter().copied().max().unwrap_or(0);
    let mut data = vec![0; width.saturating_sub(shown.len())];
    data.extend(shown);
    frame.render_widget(Paragraph::new(title(most)).style(DIM), head);
    frame.render_widget(Sparkline::default().max(most.max(1)).data(data), bars);
}

fn draw_processes(frame: &mut Frame, area: Rect, state: &State) {
    let traced = state
        .snapshot
        .as_ref()
        .is_some_and(|snapshot| snapshot.tracing);
    if !traced {
        return;
    }
    let processes = state.processes().into_iter().take(area.height.into());
    let processes = processes.map(text::process_cells).collect();
    draw_listing(frame, area, &PROCESSES, processes, state.sort);
}

fn draw_blame(frame: &mut Frame, area: Rect, state: &State) {
    let [head, area] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let Some((sample, blame)) = state.blame() else {
        let line = "whose commits they wait for: waiting for the first interval";
        return frame.render_widget(Paragraph::new(line).style(DIM), head);
    };
    let line = text::blame_line(sample, &blame.commits);
    frame.render_widget(Paragraph::new(line).style(DIM), head);
    let covered_s = sample.covered.as_secs_f64();
    let waiters = state.waiters().into_iter().take(area.height.into());
    let cells = waiters.map(|it| text::blame_cells(it, covered_s, blame.commits.all));
    let listing = match state.view {
        View::BlameOfGroups => &BLAME_OF_GROUPS,
        _ => &BLAME_OF_PROCESSES,
    };
    draw_listing(frame, area, listing, cells.collect(), state.sort);
}

fn draw_listing(
    frame: &mut Frame,
    area: Rect,
    listing: &Listing,
    rows_of_cells: Vec<[String; 7]>,
    sort: Sort,
) {
    let Listing { widths, name, .. } = *listing;
    let longest = rows_of_cells
        .iter()
        .map(|cells| cells[name].chars().count());
    let longest = rows(longest.max().unwrap_or(0));
    let spare = |shown: &[usize]| {
        let used = shown.iter().map(|at| widths[*at]).sum::<u16>() + rows(shown.len()) - 1;
        area.width.saturating_sub(used)
    };
    let mut shown = columns(&widths, listing.order, area.width);
    // Whole names come before control groups.
    if spare(&shown) < longest.saturating_sub(widths[name]) {
        shown.retain(|at| *at != CGROUP);
    }
    let spare = spare(&shown);
    // No wider than the names, so that the numbers stand beside them.
    let name_spare = spare.min(longest.saturating_sub(widths[name]));
    let width = |at: usize| match at {
        at if at == name => widths[name].min(area.width) + name_spare,
        CGROUP => widths[CGROUP] + spare - name_spare,
        at => widths[at],
    };
    let row = |cells: [String; 7]| {
        Row::new(shown.iter().map(|at| match *at {
            at if at == name || listing.texts.contains(&at) => {
                Cell::from(end_of(&cells[at], width(at)))
            }
            at => number_cell(cells[at].clone(), width(at)),
        }))
    };
    let mut heads = listing.heads.map(str::to_owned);
    heads[listing.sorted[sort as usize]].insert(0, '▾');
    let constraints = shown.iter().map(|at| Constraint::Length(width(*at)));
    let cells = rows_of_cells.into_iter();
    let table = Table::new(cells.map(row), constraints).header(row(heads).style(BOLD));
    frame.render_widget(table, area);
}

fn draw_foot(frame: &mut Frame, area: Rect, state: &State) {
    let keys = "q quit  jk journal  s sort  / filter  b blame  p policy  o observe  h help";
    let filter = format!("filter: {}_  enter keeps it, escape drops it", state.filter);
    // On a narrow screen the keys to more help come first.
    let few = "q quit  h help  s sort  p policy";
    let (text, style) = match &state.message {
        Some(message) if message.bad => (message.text.as_str(), BOLD.fg(Color::Red)),
        Some(message) => (message.text.as_str(), BOLD),
        None if state.typing => (filter.as_str(), BOLD),
        None if keys.len() <= usize::from(area.width) => (keys, DIM),
        None => (few, DIM),
    };
    frame.render_widget(Paragraph::new(text).style(style), area);
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let lines: Vec<Line> = HELP.iter().copied().map(Line::raw).collect();
    // The line that tells how to quit stays, however small the screen is.
    let inner = Rect {
        y: area.y + u16::from(area.height > 2),
        height: area
            .height
            .saturating_sub(2 * u16::from(area.height > 2))
            .min(rows(lines.len())),
        ..area
    };
    frame.render_widget(Clear, inner);
    frame.render_widget(Paragraph::new(lines), inner);
}
