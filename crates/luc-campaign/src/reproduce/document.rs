//! The answers to all chosen figures: as a report and as JSON.

use std::fmt::Write as _;

use luc_report::show::document::{Document, Entry, Row, Section, Table, Tone};
use luc_report::show::number;
use serde::Serialize;

use super::found::{Found, Ranking};
use super::published::{Claim, ClaimTake, Published, Reported, Unit};
use super::sweep;
use super::verdict::{ClaimVerdict, Judged, judge};
use crate::file::{Campaign, Figure};
use crate::show::{self, Number, Shown, grouped};
use luc_stats::Interval;

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
    pub verdict: ClaimVerdict,
    pub claims: Vec<AnsweredClaim<'a>>,
    #[serde(skip)]
    pub(super) sweeps: Vec<Sweep>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AnsweredClaim<'a> {
    pub says: &'a str,
    pub published: Option<f64>,
    pub unit: Unit,
    pub take: ClaimTake,
    pub ours: Option<Number>,
    pub at: String,
    pub points: usize,
    pub points_measured: usize,
    pub beside: Option<Beside<'a>>,
    #[serde(flatten)]
    pub judged: Judged,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// The reason found for a difference; empty if there is no difference.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub because: &'a str,
}

/// Today's LUC at the same points.
#[derive(Clone, Debug, Serialize)]
pub struct Beside<'a> {
    pub arm: &'a str,
    pub ours: Option<Number>,
    pub at: String,
}

/// A block's points with all figures that the claims of a document's figure use.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    pub block: String,
    pub points: usize,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Answers figures from results; `shown` is `None` if they need no results.
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
            verdict: ClaimVerdict::of_all(claims.iter().map(|claim| claim.judged.verdict)),
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
        ClaimVerdict::SameDirection | ClaimVerdict::NotReproduced
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
    let claims = reported.claims.iter().filter(|claim| claim.of.is_some());
    grouped(claims, |claim| claim.block.as_str())
        .into_iter()
        .filter_map(|(block, _)| sweep_of(reported, block, shown))
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
    let mut points = shown.points(name, &crate::file::Where::new());
    points.retain(|it| claims().any(|claim| it.point.fits(&claim.fits)));
    let mut rows = Vec::new();
    for results in &points {
        let known: Vec<Option<Interval>> = figures
            .iter()
            .map(|figure| shown.figure(results, figure))
            .collect();
        let Some(repeats) = known.iter().flatten().map(|known| known.repeats).max() else {
            continue;
        };
        let mut row: Vec<String> = factors
            .iter()
            .map(|factor| results.point.value(factor).to_owned())
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
            (_, Some(minus)) => format!("{} minus {minus}", figure.arm),
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

/// Formats a number in the claim's unit.
pub fn form(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Times => format!("{value:.2}x"),
        Unit::Share => number::percent(value),
        Unit::Ms => format!("{value:.1} ms"),
        Unit::Count => number::figure(value),
        Unit::Correlation => format!("{value:.2}"),
    }
}

pub(super) fn ours(unit: Unit, number: Option<Number>) -> String {
    let Some(number) = number else {
        return "-".to_owned();
    };
    let ends = number.low.zip(number.high);
    show::with_ends(number.mean, ends, |value| form(unit, value))
}

fn tone(verdict: ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Reproduced => Tone::Good,
        ClaimVerdict::NotReproduced => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// Counts the figures with each verdict.
pub fn tally(all: &[Answered<'_>]) -> Vec<(ClaimVerdict, usize)> {
    let count = |verdict: ClaimVerdict| {
        let of = all.iter().filter(|figure| figure.verdict == verdict);
        (verdict, of.count())
    };
    ClaimVerdict::ALL.map(count).into()
}

pub(super) fn tally_text(all: &[Answered<'_>]) -> String {
    let parts: Vec<String> = tally(all)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {}", verdict.name()))
        .collect();
    let noun = if all.len() == 1 { "figure" } else { "figures" };
    format!("{} {noun}: {}.", all.len(), parts.join(", "))
}

/// The rules, as text for the reader.
pub(super) fn rules(published: &Published) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    format!(
        "A number is reproduced if our interval agrees with it to within {} of its effect and \
         excludes the value of no effect; if our interval only lies on the same side, the \
         direction is the same. \"The same\" and \"never below\" allow {}. A claim is unknown \
         without an interval, if the interval contains both the value of no effect and the \
         published one, or if missing points may change the verdict. A figure has the worst \
         verdict of its claims. An interval for the largest or smallest of several points is \
         widened for that choice (Bonferroni); the spread of a point's repeats is moderated by \
         that of the block's other points with as many processors (Smyth 2004).",
        percent(published.tolerance_share),
        percent(published.same_share)
    )
}

pub(super) fn heading(figure: &Answered<'_>) -> String {
    let also = if figure.also.is_empty() {
        String::new()
    } else {
        format!(" ({})", figure.also.join(", "))
    };
    format!("{}{also}: {}", figure.id, figure.title)
}

pub(super) fn source(figure: &Answered<'_>) -> String {
    let page = figure
        .page
        .map_or_else(String::new, |page| format!(", page {page}"));
    let mut text = format!("{}{page}: {}.", figure.document, figure.conditions);
    if !figure.ours.is_empty() {
        let _ = write!(text, " {}", figure.ours.trim());
    }
    text
}

/// Why the verdict was given, with the reason found for a difference.
pub(super) fn why(claim: &AnsweredClaim<'_>) -> String {
    if claim.because.is_empty() {
        return claim.judged.why.clone();
    }
    format!("{}: {}", claim.judged.why, claim.because)
}

/// The row of a claim: headings and texts.
fn row(claim: &AnsweredClaim<'_>) -> [(&'static str, String); 7] {
    let beside = claim.beside.as_ref();
    let beside = beside.map_or_else(String::new, |beside| ours(claim.unit, beside.ours));
    let theirs = claim.published;
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
        ("why", claim.judged.why.clone()),
    ]
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
        title: "The documents' figures compared with ours".to_owned(),
        head: shown.map_or_else(Vec::new, Shown::head),
        intro: rules(published),
        sections: all.iter().map(section).collect(),
        verdict: tally_text(all),
        lead: Vec::new(),
        foot: shown.map_or_else(Vec::new, Shown::foot),
    }
}
