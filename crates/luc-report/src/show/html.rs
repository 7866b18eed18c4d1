//! A report as one HTML page that needs nothing else: no network, no script.

use std::fmt::Write;

use super::document::{Document, Section, Table, Tone};
use super::svg::{self, DARK, LIGHT, escape};

const STYLE: &str = "
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p { max-width: 48rem; margin: .4rem 0; } .note { color: var(--soft); }
.verdict { border-left: 4px solid var(--line1); padding: .15rem 0 .15rem .8rem; margin: 0;
  font-size: 1.1rem; } .verdict + .charts { margin-top: 1.2rem; }
footer { border-top: 1px solid var(--grid); margin-top: 2.5rem; padding-top: .5rem;
  color: var(--soft); }
footer p { overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: .8rem 0; }
figure { margin: 0; flex: 1 1 26rem; min-width: 0; } figcaption { font-weight: 600; }
figure > svg { display: block; font-size: .85rem; fill: var(--ink); overflow: visible; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .7rem; text-align: right; }
.ends { display: inline-block; white-space: nowrap; color: var(--soft); font-weight: 400; }
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
pub fn render(document: &Document) -> String {
    let title = escape(&document.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>:root {{ color-scheme: light dark; {LIGHT} }}\n\
         @media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n"
    );
    paragraphs(&mut out, &document.head.join(" \u{b7} "), " class=\"note\"");
    // A reader sees the outcome without scrolling; the conditions come after it.
    let top = match document.lead.as_slice() {
        [] => document.verdict.clone(),
        sentences => sentences.join("\n"),
    };
    paragraphs(&mut out, &top, " class=\"verdict\"");
    let first = document.sections.iter().position(Section::has_charts);
    if let Some(first) = first {
        charts(&mut out, &document.sections[first]);
    }
    paragraphs(&mut out, &document.intro, " class=\"note\"");
    for (index, section) in document.sections.iter().enumerate() {
        self::section(&mut out, section, first == Some(index));
    }
    if !document.foot.is_empty() {
        out.push_str("<footer>\n");
        paragraphs(&mut out, &document.foot.join("\n"), "");
        out.push_str("</footer>\n");
    }
    out + "</body>\n</html>\n"
}

/// A section, without its charts if the top of the page shows them.
fn section(out: &mut String, section: &Section, is_above: bool) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&section.title));
    paragraphs(out, &section.note, " class=\"note\"");
    if !is_above && section.has_charts() {
        charts(out, section);
    }
    if !section.table.groups.is_empty() {
        table(out, &section.table);
    }
    if !section.commands.is_empty() {
        let lines = escape(&section.commands.join("\n"));
        let _ = writeln!(out, "<pre class=\"scroll\">{lines}</pre>");
    }
    out.push_str("</section>\n");
}

fn charts(out: &mut String, section: &Section) {
    out.push_str("<div class=\"charts\">\n");
    for chart in section.all_charts() {
        let (caption, drawing) = (escape(&chart.title), svg::render(chart));
        let _ = writeln!(
            out,
            "<figure><figcaption>{caption}</figcaption>\n{drawing}\n</figure>"
        );
    }
    out.push_str("</div>\n");
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
                let mut text = escape(&entry.text);
                // A narrow column has the interval below the figure.
                if let Some((figure, ends)) = text.split_once(" (").filter(|_| column >= table.left)
                {
                    text = format!("{figure} <span class=\"ends\">({ends}</span>");
                }
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
