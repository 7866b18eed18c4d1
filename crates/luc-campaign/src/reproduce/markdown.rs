//! The answer as two pages of Markdown. The page has the rules, the verdict of each figure and the
//! plots; its appendix the numbers of the plots, each claim with our numbers, and the versions that
//! measured them. The points behind them are in the report of the same run.

use std::fmt::Write as _;

use luc_report::show::document::Chart;
use luc_report::show::number;
use luc_report::text::fill;
use luc_stats::Modes;

use super::document::{
    Answered, AnsweredClaim, claims_text, heading, rules, source, tally_text, why,
};
use super::published::Published;
use super::verdict::ClaimVerdict;
use crate::figures::PointResults;
use crate::file::{Figure, Plot};
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
    out.push_str("## Claims that hold today\n\n");
    for paragraph in &published.discussion {
        block(&mut out, paragraph);
    }
    for (file, chart) in plots {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "## {}\n\n![{}]({file})\n", chart.title, chart.y_label);
    }
    if let Some(shown) = shown {
        of_modes(&mut out, published, shown);
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
            spot.map_or("-".to_owned(), |it| {
                show::with_ends(it.y, it.ends, number::three)
            })
        });
        std::iter::once(x.clone()).chain(spots).collect()
    });
    table(
        out,
        &headings.collect::<Vec<_>>(),
        &rows.collect::<Vec<_>>(),
    );
}

/// Writes the points of the plots whose runs fall into two groups with different rates; nothing if
/// there are none.
fn of_modes(out: &mut String, published: &Published, shown: &Shown<'_>) {
    let plots = shown.campaign.plots.iter();
    let rows: Vec<Vec<String>> = plots
        .flat_map(|plot| modes_of(plot, published, shown))
        .collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("## Points with two kinds of runs\n\n");
    let text = "The runs of these points fall into two groups. The gap between them is wider than \
                either, and the mean that the plot shows is neither. The interval of the share is \
                Wilson's, 95%.";
    block(out, text);
    let headings = [
        "plot",
        "line",
        "at",
        "lower",
        "upper",
        "share of the upper",
        "runs",
    ];
    table(out, &headings.map(String::from), &rows);
}

fn modes_of(plot: &Plot, published: &Published, shown: &Shown<'_>) -> Vec<Vec<String>> {
    let confidence = shown.campaign.stop.confidence;
    let points = shown.points(plot.block.get_ref(), &plot.fits);
    let row = |figure: &Figure, point: &PointResults<'_>| {
        let modes = Modes::from_values(&point.values(figure), confidence)?;
        let [lower, upper] = modes.means;
        if upper - lower <= published.same_share * upper {
            return None;
        }
        let line = match plot.lines.as_str() {
            "arm" => figure.arm.clone(),
            factor => format!("{factor} {}", point.point.value(factor)),
        };
        let [lower, upper] = modes.means.map(number::three);
        let share = show::with_ends(modes.upper_share, Some(modes.ends), number::percent);
        let at = point.point.value(&plot.x).to_owned();
        let title = plot.title.clone();
        let runs = modes.runs.to_string();
        Some(vec![title, line, at, lower, upper, share, runs])
    };
    let is_rate = |figure: &&Figure| figure.measure == "rate" && !figure.is_ratio();
    let figures = plot.figures.iter().filter(is_rate);
    let rows = figures.flat_map(|figure| points.iter().filter_map(move |it| row(figure, it)));
    rows.collect()
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
