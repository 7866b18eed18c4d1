//! The answer as two pages of Markdown. The page has the rules, the verdict of each figure and the
//! plots; its appendix the numbers of the plots, each claim with our numbers, and the versions that
//! measured them. The points behind them are in the report of the same run.

use std::fmt::Write as _;

use luc_report::show::document::Chart;
use luc_report::text::fill;

use super::document::{
    Answered, AnsweredClaim, claims_text, heading, rules, source, tally_text, why,
};
use super::published::Published;
use super::verdict::ClaimVerdict;
use crate::figures::PointResults;
use crate::show::{self, Shown};

/// Returns the page. `plots` has the names of their files, `appendix` is the path of the appendix.
pub fn page(
    published: &Published,
    all: &[Answered<'_>],
    shown: Option<&Shown<'_>>,
    plots: &[(String, Chart)],
    appendix: &str,
) -> String {
    let mut out = String::from("# The documents' figures compared with ours\n\n");
    for text in [&published.question, &rules(published), &tally_text(all)] {
        block(&mut out, text);
    }
    if let Some(shown) = shown {
        block(&mut out, &missing(shown));
    }
    let text = format!(
        "[The appendix]({appendix}) has each claim with its numbers, those behind the plots, and \
         the versions that measured them."
    );
    block(&mut out, &text);
    out.push_str("## Verdicts\n\n");
    let headings = ["figure", "verdict", "claims"].map(String::from);
    let rows: Vec<Vec<String>> = all.iter().map(verdict_row).collect();
    table(&mut out, &headings, &rows);
    for (file, chart) in plots {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "## {}\n\n![{}]({file})\n", chart.title, chart.y_label);
    }
    ended(out)
}

/// Returns the appendix of the page.
pub fn appendix(
    published: &Published,
    all: &[Answered<'_>],
    shown: Option<&Shown<'_>>,
    plots: &[(String, Chart)],
    page: &str,
) -> String {
    let mut out = String::from("# The documents' figures, claim by claim\n\n");
    block(
        &mut out,
        &format!("The numbers behind [the documents' figures]({page})."),
    );
    out.push_str("## Claims\n\n");
    block(&mut out, &published.columns);
    for figure in all {
        of_figure(&mut out, figure);
    }
    for (_, chart) in plots {
        of_chart(&mut out, chart);
    }
    if let Some(shown) = shown {
        out.push_str("## Where the numbers come from\n\n");
        for line in shown.foot() {
            fill(&mut out, &format!("- {line}"), 2);
        }
    }
    ended(out)
}

/// Returns a page that ends with one newline.
fn ended(mut page: String) -> String {
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn verdict_row(figure: &Answered<'_>) -> Vec<String> {
    vec![
        heading(figure),
        figure.verdict.name().to_owned(),
        claims_text(figure),
    ]
}

/// A note on missing points; empty if there are none.
fn missing(shown: &Shown<'_>) -> String {
    let points = shown.all();
    let has_results = |it: &&PointResults<'_>| !it.repeats.is_empty();
    let measured = points.iter().filter(has_results).count();
    if measured == points.len() {
        return String::new();
    }
    format!(
        "This sweep is not complete: {measured} of {} points are measured. `luc-lab reproduce` \
         measures the rest.",
        points.len()
    )
}

/// Writes the numbers of a plot.
fn of_chart(out: &mut String, chart: &Chart) {
    let _ = writeln!(out, "## {}\n", chart.title);
    block(out, &format!("{}:", chart.y_label));
    let headings = chart.lines.iter().map(|line| line.name.clone());
    let headings = std::iter::once(chart.x_label.clone()).chain(headings);
    let rows = chart.x.iter().enumerate().map(|(at, x)| {
        let spots = chart.lines.iter().map(|line| line.spots[at].as_ref());
        let spots = spots.map(|spot| {
            let form = luc_report::show::number::three;
            spot.map_or("-".to_owned(), |it| show::with_ends(it.y, it.ends, form))
        });
        std::iter::once(x.clone()).chain(spots).collect()
    });
    table(
        out,
        &headings.collect::<Vec<_>>(),
        &rows.collect::<Vec<_>>(),
    );
}

fn of_figure(out: &mut String, figure: &Answered<'_>) {
    let _ = writeln!(out, "### {}\n", heading(figure));
    block(out, &source(figure));
    let headings = ["claim", "theirs", "ours", "LUC", "lab", "verdict"].map(String::from);
    let rows: Vec<Vec<String>> = figure.claims.iter().map(row).collect();
    table(out, &headings, &rows);
}

fn row(claim: &AnsweredClaim<'_>) -> Vec<String> {
    let verdict = claim.judged.verdict;
    let verdict = match verdict {
        ClaimVerdict::Reproduced => verdict.name().to_owned(),
        _ => format!("{}: {}", verdict.name(), why(claim)),
    };
    let numbers = claim.numbers().into_iter();
    let numbers = numbers.map(|(_, number)| number.unwrap_or_default());
    let says = std::iter::once(claim.says.to_owned());
    says.chain(numbers).chain([verdict]).collect()
}

/// Writes a paragraph and an empty line; nothing if the text is empty.
fn block(out: &mut String, text: &str) {
    if !text.is_empty() {
        fill(out, text, 0);
        out.push('\n');
    }
}

fn table(out: &mut String, headings: &[String], rows: &[Vec<String>]) {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out.push_str(&line(headings));
    out.push_str(&line(&vec!["---".to_owned(); headings.len()]));
    for row in rows {
        out.push_str(&line(row));
    }
    out.push('\n');
}
