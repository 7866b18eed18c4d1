//! The answer to all chosen figures: as a report, as Markdown, as JSON.

use std::fmt::Write as _;

use luc_report::show::document::{Document, Entry, Row, Section, Table, Tone};
use luc_report::show::number;
use serde::Serialize;

use super::causes::Ranking;
use super::published::{Claim, Published, Reported, Take, Unit};
use super::sweep::{self, Found};
use super::verdict::{Judged, Verdict, judge};
use crate::file::{Campaign, Figure};
use crate::points::Point;
use crate::show::{self, Shown};
use crate::stats::Interval;

/// A figure with its answers.
#[derive(Clone, Debug, Serialize)]
pub struct Answered<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub also: &'a [String],
    pub title: &'a str,
    pub document: &'a str,
    pub page: Option<u32>,
    pub conditions: &'a str,
    pub ours: &'a str,
    pub verdict: Verdict,
    /// Why it is not applicable.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub not_applicable: &'a str,
    pub claims: Vec<AnsweredClaim<'a>>,
    #[serde(skip)]
    sweeps: Vec<Sweep>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnsweredClaim<'a> {
    pub says: &'a str,
    pub published: Option<f64>,
    pub unit: Unit,
    pub take: Take,
    pub ours: Option<Number>,
    pub at: String,
    pub points: usize,
    pub points_measured: usize,
    pub beside: Option<Beside<'a>>,
    #[serde(flatten)]
    pub judged: Judged,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// The reason found for a difference; only where there is one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub because: &'a str,
}

/// LUC of today at the same points.
#[derive(Clone, Debug, Serialize)]
pub struct Beside<'a> {
    pub arm: &'a str,
    pub ours: Option<Number>,
    pub at: String,
}

/// An interval in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    pub mean: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub repeats: usize,
}

impl From<Interval> for Number {
    fn from(interval: Interval) -> Self {
        Self {
            mean: interval.mean,
            low: interval.ends.map(|(low, _)| low),
            high: interval.ends.map(|(_, high)| high),
            repeats: interval.repeats,
        }
    }
}

/// A block's points with all figures that a document's figure looks at.
#[derive(Clone, Debug, Default)]
struct Sweep {
    block: String,
    points: usize,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Answers figures from results; `shown` is `None` where none of them needs any.
pub fn answer<'a>(
    published: &'a Published,
    figures: &[&'a Reported],
    shown: Option<&Shown<'_>>,
) -> Vec<Answered<'a>> {
    let none = Campaign::nothing();
    let nothing = crate::store::Results::default();
    let empty = Shown::new(&none, &nothing, None);
    let shown = shown.unwrap_or(&empty);
    let of = |figure: &&'a Reported| {
        let claims: Vec<AnsweredClaim<'a>> = figure
            .claims
            .iter()
            .map(|claim| answered(published, claim, shown))
            .collect();
        let letter = figure.id.get(..1).unwrap_or_default();
        Answered {
            id: &figure.id,
            also: &figure.also,
            title: &figure.title,
            document: published.documents.get(letter).map_or("", String::as_str),
            page: figure.page,
            conditions: &figure.conditions,
            ours: &figure.ours,
            verdict: Verdict::of_all(claims.iter().map(|claim| claim.judged.verdict)),
            not_applicable: &figure.not_applicable,
            claims,
            sweeps: sweeps(figure, shown),
        }
    };
    figures.iter().map(of).collect()
}

fn answered<'a>(published: &Published, claim: &'a Claim, shown: &Shown<'_>) -> AnsweredClaim<'a> {
    let found: Found = sweep::answer(shown, claim);
    let judged = judge(claim, &found, published);
    let beside = sweep::beside(shown, claim).zip(claim.beside.as_deref());
    let is_known = matches!(
        judged.verdict,
        Verdict::SameDirection | Verdict::NotReproduced
    );
    AnsweredClaim {
        says: &claim.says,
        published: claim.published,
        unit: claim.unit,
        take: claim.take,
        ours: found.interval.map(Number::from),
        at: found.at,
        ranking: found.ranking,
        points: found.points,
        points_measured: found.measured,
        beside: beside.map(|(found, arm)| Beside {
            arm,
            ours: found.interval.map(Number::from),
            at: found.at,
        }),
        because: if is_known { &claim.because } else { "" },
        judged,
    }
}

/// The points behind a figure's claims, block by block, with each figure once.
fn sweeps(reported: &Reported, shown: &Shown<'_>) -> Vec<Sweep> {
    let mut blocks: Vec<&str> = Vec::new();
    for claim in reported.claims.iter().filter(|claim| claim.of.is_some()) {
        if !blocks.contains(&claim.block.as_str()) {
            blocks.push(&claim.block);
        }
    }
    blocks
        .into_iter()
        .filter_map(|block| sweep_of(reported, block, shown))
        .collect()
}

fn sweep_of(reported: &Reported, name: &str, shown: &Shown<'_>) -> Option<Sweep> {
    let block = shown.campaign.block(name)?;
    let claims = || reported.claims.iter().filter(|claim| claim.block == name);
    let mut figures: Vec<Figure> = Vec::new();
    for claim in claims() {
        let Some(of) = &claim.of else {
            continue;
        };
        let arms = std::iter::once(&of.arm).chain(&claim.beside);
        let of_arms = arms.map(|arm| Figure {
            arm: arm.clone(),
            ..of.clone()
        });
        let causes = claim.causes.iter().map(|measure| Figure {
            measure: measure.clone(),
            ..of.clone()
        });
        for figure in of_arms.chain(causes) {
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
    }
    let factors: Vec<&str> = block
        .factors
        .iter()
        .filter(|(_, values)| values.all().len() > 1)
        .map(|(name, _)| name.get_ref().as_str())
        .collect();
    let is_claimed = |point: &Point<'_>| claims().any(|claim| point.fits(&claim.fits));
    let points: Vec<Point<'_>> = shown
        .points(name, &crate::file::Where::new())
        .into_iter()
        .filter(is_claimed)
        .collect();
    let mut rows = Vec::new();
    for point in &points {
        let known: Vec<Option<Interval>> = figures
            .iter()
            .map(|figure| shown.figure(point, figure))
            .collect();
        let Some(repeats) = known.iter().flatten().map(|known| known.repeats).max() else {
            continue;
        };
        let mut row: Vec<String> = factors
            .iter()
            .map(|factor| point.value(factor).to_owned())
            .collect();
        row.extend(figures.iter().zip(known).map(|(figure, known)| {
            known.map_or_else(|| "-".to_owned(), |known| show::shown(figure, &known))
        }));
        row.push(repeats.to_string());
        rows.push(row);
    }
    let headings = factors.iter().map(|factor| (*factor).to_owned());
    let named = figures.iter().map(|figure| {
        let of = match (&figure.to, &figure.minus) {
            (Some(to), _) => format!("{} to {to}", figure.arm),
            (_, Some(minus)) => format!("{} less {minus}", figure.arm),
            _ => figure.arm.clone(),
        };
        format!("{of}, {}", figure.measure)
    });
    Some(Sweep {
        block: name.to_owned(),
        points: points.len(),
        headings: headings
            .chain(named)
            .chain(["repeats".to_owned()])
            .collect(),
        rows,
    })
}

/// A number in the claim's unit.
pub fn form(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Times => format!("{value:.2}x"),
        Unit::Share => number::percent(value),
        Unit::Ms => format!("{value:.1} ms"),
        Unit::Count => number::figure(value),
        Unit::Correlation => format!("{value:.2}"),
    }
}

fn ours(unit: Unit, number: Option<Number>) -> String {
    let Some(number) = number else {
        return "-".to_owned();
    };
    let mean = form(unit, number.mean);
    match number.low.zip(number.high) {
        Some((low, high)) if low < high => {
            format!("{mean} ({} to {})", form(unit, low), form(unit, high))
        }
        _ => mean,
    }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Reproduced => Tone::Good,
        Verdict::NotReproduced => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// How many figures have each verdict.
pub fn tally(all: &[Answered<'_>]) -> Vec<(Verdict, usize)> {
    let count = |verdict: Verdict| {
        let of = all.iter().filter(|figure| figure.verdict == verdict);
        (verdict, of.count())
    };
    Verdict::ALL.map(count).into()
}

fn tally_text(all: &[Answered<'_>]) -> String {
    let parts: Vec<String> = tally(all)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {}", verdict.name()))
        .collect();
    let noun = if all.len() == 1 { "figure" } else { "figures" };
    format!("{} {noun}: {}.", all.len(), parts.join(", "))
}

/// The rules, for people.
fn rules(published: &Published) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    format!(
        "A number is reproduced if our interval agrees with it to {} of its effect and holds no \
         value without effect; if it only lies on the same side, the direction is the same. \"The \
         same\" and \"never below\" mean to {}. A claim is unknown without an interval, and where the \
         interval holds both no effect and the published one, or where points that are missing may \
         change the verdict. A figure has the worst verdict of its \
         claims. Intervals are of the largest or smallest of all points, \
         widened for that choice (Bonferroni).",
        percent(published.tolerance_share),
        percent(published.same_share)
    )
}

fn heading(figure: &Answered<'_>) -> String {
    let also = if figure.also.is_empty() {
        String::new()
    } else {
        format!(" ({})", figure.also.join(", "))
    };
    format!("{}{also}: {}", figure.id, figure.title)
}

fn source(figure: &Answered<'_>) -> String {
    let page = figure
        .page
        .map_or_else(String::new, |page| format!(", page {page}"));
    let mut text = format!("{}{page}: {}.", figure.document, figure.conditions);
    for more in [figure.ours, figure.not_applicable] {
        if !more.is_empty() {
            let _ = write!(text, " {}", more.trim());
        }
    }
    text
}

/// The row of a claim: headings and texts.
fn row(claim: &AnsweredClaim<'_>) -> [(&'static str, String); 7] {
    let beside = claim.beside.as_ref();
    let beside = beside.map_or_else(String::new, |beside| ours(claim.unit, beside.ours));
    let theirs = claim.published;
    let why = if claim.because.is_empty() {
        claim.judged.why.clone()
    } else {
        format!("{}: {}", claim.judged.why, claim.because)
    };
    [
        ("says", claim.says.to_owned()),
        (
            "theirs",
            theirs.map_or_else(String::new, |value| form(claim.unit, value)),
        ),
        ("ours", ours(claim.unit, claim.ours)),
        ("at", claim.at.clone()),
        (
            "points",
            format!("{} of {}", claim.points_measured, claim.points),
        ),
        ("LUC today", beside),
        ("why", why),
    ]
}

/// Headings of [`ranking_rows`].
const RANKING: [&str; 4] = [
    "quantity",
    "Pearson",
    "Spearman",
    "loading on the component",
];

fn of_ranking(ranking: &Ranking) -> String {
    let component = ranking
        .component_variance_share
        .zip(ranking.component_pearson);
    let component = component.map_or_else(String::new, |(share, pearson)| {
        format!(
            " The principal component that goes most with the rate ({pearson:.2}) holds {} of their \
             variance.",
            number::percent(share)
        )
    });
    format!(
        "Correlations with the rate over {} runs; chance reaches {:.2}.{component}",
        ranking.runs, ranking.chance_strength
    )
}

fn ranking_rows(ranking: &Ranking) -> Vec<Vec<String>> {
    let row = |ranked: &super::causes::Ranked| {
        let numbers = [ranked.pearson, ranked.spearman, ranked.loading];
        std::iter::once(format!("`{}`", ranked.quantity))
            .chain(numbers.map(|number| format!("{number:.2}")))
            .collect()
    };
    ranking.quantities.iter().map(row).collect()
}

/// The report.
pub fn document(
    published: &Published,
    all: &[Answered<'_>],
    shown: Option<&Shown<'_>>,
) -> Document {
    let section = |figure: &Answered<'_>| {
        let rows = figure.claims.iter().map(|claim| {
            let mut row: Row = row(claim)
                .into_iter()
                .map(|(heading, text)| (heading, Entry::new(text)))
                .collect();
            let verdict = claim.judged.verdict;
            row.insert(1, ("verdict", Entry::toned(verdict.name(), tone(verdict))));
            row
        });
        Section {
            title: format!("{} - {}", heading(figure), figure.verdict.name()),
            note: source(figure),
            table: Table::new(2, vec![rows.collect()]),
            ..Section::default()
        }
    };
    Document {
        title: "The documents' figures beside ours".to_owned(),
        intro: rules(published),
        sections: all.iter().map(section).collect(),
        verdict: tally_text(all),
        lead: Vec::new(),
        foot: shown.map_or_else(Vec::new, Shown::foot),
    }
}

/// Longest line of running text, columns.
const WIDTH: usize = 100;

/// A paragraph of Markdown, or an item whose other lines are set in by so much.
fn paragraph(out: &mut String, text: &str, indent: usize) {
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > WIDTH {
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

/// A table of Markdown.
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

/// The same as Markdown, with the sweeps, and with what is missing.
pub fn markdown(published: &Published, all: &[Answered<'_>], shown: Option<&Shown<'_>>) -> String {
    let mut out = String::from("# The documents' figures beside ours\n\n");
    let made = "`luc reproduce --markdown` made this page of results; no number in it was typed. The \
         documents' numbers are in `campaigns/published.toml`, our sweeps in \
         `campaigns/reproduce.toml`.";
    for text in [made.to_owned(), rules(published), tally_text(all)] {
        paragraph(&mut out, &text, 0);
        out.push('\n');
    }
    if let Some(shown) = shown {
        let points = crate::points::all(shown.campaign);
        let has_results = |point: &&Point<'_>| !shown.repeats(point).is_empty();
        let measured = points.iter().filter(has_results).count();
        if measured < points.len() {
            let text = format!(
                "This sweep is not complete: {measured} of {} points are measured. `luc reproduce` \
                 goes on with the others.",
                points.len()
            );
            paragraph(&mut out, &text, 0);
            out.push('\n');
        }
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|figure| {
            let measured: usize = figure.claims.iter().map(|it| it.points_measured).sum();
            let points: usize = figure.claims.iter().map(|it| it.points).sum();
            vec![
                std::iter::once(figure.id)
                    .chain(figure.also.iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(", "),
                figure.title.to_owned(),
                figure.verdict.name().to_owned(),
                format!("{measured} of {points}"),
            ]
        })
        .collect();
    let headings = ["figure", "subject", "verdict", "points measured"].map(String::from);
    table(&mut out, &headings, &rows);
    for figure in all {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "## {}\n", heading(figure));
        let text = format!("**{}.** {}", figure.verdict.name(), source(figure));
        paragraph(&mut out, &text, 0);
        out.push('\n');
        let rows: Vec<Vec<String>> = figure
            .claims
            .iter()
            .map(|claim| {
                let mut row: Vec<String> = row(claim).into_iter().map(|(_, text)| text).collect();
                row.insert(1, format!("**{}**", claim.judged.verdict.name()));
                row
            })
            .collect();
        if !rows.is_empty() {
            let headings = [
                "says",
                "verdict",
                "theirs",
                "ours",
                "at",
                "points",
                "LUC today",
                "why",
            ];
            table(&mut out, &headings.map(String::from), &rows);
        }
        for ranking in figure.claims.iter().filter_map(|it| it.ranking.as_ref()) {
            paragraph(&mut out, &of_ranking(ranking), 0);
            out.push('\n');
            let rows = ranking_rows(ranking);
            table(&mut out, &RANKING.map(String::from), &rows);
        }
        for sweep in &figure.sweeps {
            let missing = sweep.points - sweep.rows.len();
            let _ = writeln!(
                out,
                "Our sweep `{}`: {} of {} points are measured{}.\n",
                sweep.block,
                sweep.rows.len(),
                sweep.points,
                if missing > 0 {
                    "; the rest is missing"
                } else {
                    ""
                }
            );
            if !sweep.rows.is_empty() {
                table(&mut out, &sweep.headings, &sweep.rows);
            }
        }
    }
    if let Some(shown) = shown {
        let _ = writeln!(out, "## Where the numbers come from\n");
        for line in shown.foot() {
            paragraph(&mut out, &format!("- {line}"), 2);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
