//! A report as one HTML page that needs nothing else: no network, no script.

use std::fmt::Write;

use super::document::{Chart, Document, Section, Table, Tone};
use super::svg;
use crate::error::Result;

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --soft: #5b6470; --grid: #dfe3e8;
  --good: #1a7f37; --bad: #c62828; --band: #f4f6f8;
  --line0: #c2410c; --line1: #0b6bcb; --line2: #6d28d9; --line3: #0f766e; --line4: #a16207; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e6e8eb; --soft: #9aa4b0;
  --grid: #333a42; --good: #5cc879; --bad: #ff7b72; --band: #1d2127;
  --line0: #ff9d5c; --line1: #6cb6ff; --line2: #c4a7ff; --line3: #5fd3c4; --line4: #e3b341; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p { max-width: 48rem; margin: .4rem 0; } .note { color: var(--soft); }
.verdict { border-left: 4px solid var(--line1); padding: 0 0 0 .8rem; margin: .3rem 0;
  font-size: 1.1rem; }
footer { border-top: 1px solid var(--grid); margin-top: 2.5rem; padding-top: .5rem;
  color: var(--soft); }
footer p { overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; margin: .8rem 0; }
figure { margin: 0; flex: 1 1 26rem; max-width: 34rem; } figcaption { font-weight: 600; }
figure svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .7rem; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid var(--grid); font-weight: 600; vertical-align: bottom; }
th.l, td.l { text-align: left; } tbody { border-bottom: 1px solid var(--grid); }
tbody tr:hover { background: var(--band); }
.decides { font-weight: 600; }
@media (max-width: 45rem) {
  body { padding: 1rem; }
  table, tbody { display: block; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: .1rem .9rem; padding: .5rem 0;
    border-top: 1px solid var(--grid); }
  td { padding: 0; font-size: 1rem; white-space: normal; text-align: left; }
  td:empty { display: none; }
  td[data-name]::before { content: attr(data-name) ' '; color: var(--soft); font-weight: 400; }
  .decides { order: -3; } .decided { order: -2; }
  tr::before { content: ''; order: -1; flex-basis: 100%; }
}
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
";

/// The whole page.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn render(document: &Document) -> Result<String> {
    let title = escape(&document.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    // A reader sees the outcome without scrolling; the conditions come after it.
    let top = match document.lead.as_slice() {
        [] => document.verdict.clone(),
        sentences => sentences.join("\n"),
    };
    paragraphs(&mut out, &top, " class=\"verdict\"");
    let first = document.first_chart();
    if let Some(chart) = first {
        figure(&mut out, chart)?;
    }
    paragraphs(&mut out, &document.intro, " class=\"note\"");
    for section in &document.sections {
        self::section(&mut out, section, first)?;
    }
    if !document.foot.is_empty() {
        out.push_str("<footer>\n");
        paragraphs(&mut out, &document.foot.join("\n"), "");
        out.push_str("</footer>\n");
    }
    out.push_str("</body>\n</html>\n");
    Ok(out)
}

/// A section, without the chart `above`, which the top of the page shows.
fn section(out: &mut String, section: &Section, above: Option<&Chart>) -> Result<()> {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&section.title));
    paragraphs(out, &section.note, " class=\"note\"");
    let mut charts = section
        .all_charts()
        .filter(|chart| !above.is_some_and(|above| std::ptr::eq(*chart, above)))
        .peekable();
    if charts.peek().is_some() {
        out.push_str("<div class=\"charts\">\n");
        for chart in charts {
            figure(out, chart)?;
        }
        out.push_str("</div>\n");
    }
    if !section.table.groups.is_empty() {
        table(out, &section.table);
    }
    if !section.commands.is_empty() {
        let lines = escape(&section.commands.join("\n"));
        let _ = writeln!(out, "<pre class=\"scroll\">{lines}</pre>");
    }
    out.push_str("</section>\n");
    Ok(())
}

fn figure(out: &mut String, chart: &Chart) -> Result<()> {
    let caption = escape(&chart.title);
    let drawing = svg::render(chart)?;
    let _ = writeln!(
        out,
        "<figure><figcaption>{caption}</figcaption>\n{drawing}\n</figure>"
    );
    Ok(())
}

fn table(out: &mut String, table: &Table) {
    // An entry without a heading judges the figure before it.
    let judges = |column: usize| table.headings[column].is_empty();
    let side = |column: usize| match table.deciding {
        Some(deciding) if column == deciding => "r decides",
        Some(deciding) if column == deciding + 1 && judges(column) => "r decided",
        _ if column < table.left => "l",
        _ => "r",
    };
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, heading) in table.headings.iter().enumerate() {
        let (side, heading) = (side(column), escape(heading));
        let _ = write!(out, "<th class=\"{side}\">{heading}</th>");
    }
    out.push_str("</tr></thead>\n");
    for group in &table.groups {
        out.push_str("<tbody>\n");
        for row in group {
            out.push_str("<tr>");
            for (column, entry) in row.iter().enumerate() {
                let tone = match entry.tone {
                    Tone::Plain => "",
                    Tone::Good => " good",
                    Tone::Bad => " bad",
                };
                let text = escape(&entry.text);
                let name = match table.headings[column].as_str() {
                    "" => String::new(),
                    name => format!(" data-name=\"{}\"", escape(name)),
                };
                let side = side(column);
                let _ = write!(out, "<td class=\"{side}{tone}\"{name}>{text}</td>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table></div>\n");
}

fn paragraphs(out: &mut String, text: &str, class: &str) {
    for part in text.lines().filter(|part| !part.trim().is_empty()) {
        let _ = writeln!(out, "<p{class}>{}</p>", escape(part));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
