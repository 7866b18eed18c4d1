//! A report as plain text for a terminal.

use std::fmt::Write;

use super::document::{Chart, Document, Entry, Spot, Table, Tone};

/// Adds escape sequences around a text with a tone, if colours are wanted.
fn paint(entry: &Entry, padded: &str, colour: bool) -> String {
    match (colour, entry.tone) {
        (true, Tone::Good) => format!("\x1b[32m{padded}\x1b[0m"),
        (true, Tone::Bad) => format!("\x1b[31m{padded}\x1b[0m"),
        _ => padded.to_owned(),
    }
}

/// The whole report; `colour` adds escape sequences.
pub fn render(document: &Document, colour: bool) -> String {
    let mut out = String::new();
    heading(&mut out, &document.title, "=");
    paragraph(&mut out, &document.intro);
    for section in document.sections.iter().filter(|section| section.is_text()) {
        out.push('\n');
        heading(&mut out, &section.title, "-");
        paragraph(&mut out, &section.note);
        for chart in &section.charts {
            out.push('\n');
            out += &plot(chart);
        }
        if !section.table.groups.is_empty() {
            out.push('\n');
            out += &table(&section.table, colour);
        }
        if !section.commands.is_empty() {
            out.push('\n');
            for line in &section.commands {
                command(&mut out, line);
            }
        }
    }
    out.push('\n');
    paragraph(&mut out, &document.verdict);
    out
}

fn heading(out: &mut String, text: &str, rule: &str) {
    let _ = writeln!(out, "{text}\n{}", rule.repeat(text.chars().count()));
}

/// Longest line of running text, columns.
const WIDTH: usize = 100;

fn paragraph(out: &mut String, text: &str) {
    for part in text.lines() {
        fill(out, part, 0);
    }
}

/// Breaks a text into lines of at most `WIDTH` columns; all but the first are indented.
pub fn fill(out: &mut String, text: &str, indent: usize) {
    fill_within(out, text, indent, WIDTH);
}

/// Breaks a text into lines of at most `width` columns; all but the first are indented.
pub fn fill_within(out: &mut String, text: &str, indent: usize, width: usize) {
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

/// Writes a shell command, in several lines if it is long, but never broken within quotes.
fn command(out: &mut String, line: &str) {
    const INDENT: &str = "    ";
    let mut used = 0;
    let mut is_quoted = false;
    let parts = line.split_inclusive(' ').map(str::trim_end);
    for (at, part) in parts.enumerate() {
        let length = part.chars().count();
        // Leave room for " \" at the end of the line.
        if at > 0 && !is_quoted && used + 1 + length + 2 > WIDTH && !line.starts_with('#') {
            let _ = write!(out, " \\\n{INDENT}");
            used = INDENT.len();
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(part);
        used += length;
        is_quoted ^= part.matches('\'').count() % 2 == 1;
    }
    out.push('\n');
}

fn table(table: &Table, colour: bool) -> String {
    let rows = || table.groups.iter().flatten();
    let widths: Vec<usize> = (0..table.headings.len())
        .map(|column| {
            let heading = table.headings[column].chars().count();
            let entries = rows().map(|row| row[column].text.chars().count());
            entries.fold(heading, usize::max)
        })
        .collect();
    let pad = |text: &str, column: usize| {
        let space = " ".repeat(widths[column] - text.chars().count());
        if column < table.left {
            format!("{text}{space}")
        } else {
            format!("{space}{text}")
        }
    };
    let mut out = String::new();
    let mut line = |texts: Vec<String>| {
        let _ = writeln!(out, "{}", texts.join("  ").trim_end());
    };
    let headings = table.headings.iter().enumerate();
    line(headings.map(|(column, text)| pad(text, column)).collect());
    for (index, group) in table.groups.iter().enumerate() {
        if index > 0 {
            line(Vec::new());
        }
        for row in group {
            let entries = row.iter().enumerate();
            let painted =
                entries.map(|(column, entry)| paint(entry, &pad(&entry.text, column), colour));
            line(painted.collect());
        }
    }
    out
}

/// Height of a plot's field, characters.
const ROWS: usize = 12;
/// Characters from one position to the next.
const STEP: usize = 14;

/// Marks of the lines, in their order.
const MARKS: [char; 5] = ['o', '#', '+', 'x', '*'];

fn plot(chart: &Chart) -> String {
    let top = nice_top(chart.y_max());
    let width = STEP * chart.x.len().saturating_sub(1) + 1;
    let mut field = vec![vec![' '; width]; ROWS + 1];
    let row = |value: f64| -> usize {
        let from_top = (1.0 - value / top).clamp(0.0, 1.0) * ROWS as f64;
        // Between 0 and ROWS by the clamp.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let row = from_top.round() as usize;
        row
    };
    for line in &chart.lines {
        for (position, pair) in line.spots.windows(2).enumerate() {
            let (Some(Spot { y: from, .. }), Some(Spot { y: to, .. })) = (pair[0], pair[1]) else {
                continue;
            };
            for step in 1..STEP {
                let value = from + (to - from) * step as f64 / STEP as f64;
                let spot = &mut field[row(value)][position * STEP + step];
                if *spot == ' ' {
                    *spot = '.';
                }
            }
        }
    }
    // Marks come last, so that a point covers the path of another line.
    let marked = || chart.lines.iter().zip(MARKS.into_iter().cycle());
    for (line, mark) in marked() {
        for (position, spot) in line.spots.iter().enumerate() {
            if let Some(spot) = spot {
                let place = &mut field[row(spot.y)][position * STEP];
                let taken = MARKS.contains(place) && *place != mark;
                *place = if taken { '@' } else { mark };
            }
        }
    }
    let labels: Vec<String> = (0..=ROWS)
        .map(|row| match row % (ROWS / 2) {
            0 => axis(top * (ROWS - row) as f64 / ROWS as f64),
            _ => String::new(),
        })
        .collect();
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let mut out = format!("{}\n{}\n", chart.title, chart.y_label);
    for (label, line) in labels.iter().zip(&field) {
        let text: String = line.iter().collect();
        let _ = writeln!(out, "{label:>margin$} |{}", text.trim_end());
    }
    let _ = writeln!(out, "{:margin$} +{}", "", "-".repeat(width + 2));
    let mut names = String::new();
    for (position, name) in chart.x.iter().enumerate() {
        let at = (position * STEP + margin + 2).saturating_sub(name.len() / 2);
        let space = at.saturating_sub(names.chars().count());
        let _ = write!(names, "{:space$}{name}", "");
    }
    let _ = writeln!(out, "{names}  {}", chart.x_label);
    let keys: Vec<String> = marked()
        .map(|(line, mark)| format!("{mark} {}", line.name))
        .collect();
    let _ = writeln!(out, "{:margin$}  {}   (@ both)", "", keys.join("   "));
    out
}

/// The end of an axis from 0 that contains `value`: 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a
/// power of ten.
pub fn nice_top(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

/// A value on an axis, without trailing zeros.
pub fn axis(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{axis, nice_top};

    #[test]
    fn axes_end_at_round_values() {
        for (value, top) in [
            (0.0, 1.0),
            (0.47, 0.5),
            (1.0, 1.0),
            (479.0, 500.0),
            (1826.0, 2000.0),
        ] {
            assert!(
                (nice_top(value) - top).abs() < 1e-9,
                "{value}: {}",
                nice_top(value)
            );
        }
        assert_eq!(axis(0.0), "0");
        assert_eq!(axis(0.125), "0.125");
        assert_eq!(axis(1500.0), "1500");
    }
}
