//! The answers to all chosen figures: as a report and as JSON.

use std::fmt::Write as _;

use luc_report::show::document::{Document, Entry, Row, Section, Table, Tone};
use luc_report::show::number;
use serde::Serialize;

use super::found::Ranking;
use super::published::{Claim, ClaimTake, Explanation, Published, Reported, Unit};
use super::sweep;
use super::verdict::{ClaimVerdict, Judged, judge};
use crate::file::Campaign;
use crate::show::{self, Number, Shown, grouped};

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
    /// The same in the lab.
    pub lab: Option<Number>,
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
        }
    };
    figures.iter().map(of).collect()
}

fn answered<'a>(published: &Published, claim: &'a Claim, shown: &Shown<'_>) -> AnsweredClaim<'a> {
    let found = sweep::answer(shown, claim);
    let (part, mut judged) = for_each_part(published, claim, shown);
    if judged.verdict == ClaimVerdict::Refuted
        && let Some(explanation) = published.explanation(claim)
        && let Some(why) = explained(published, claim, explanation, shown)
    {
        judged.verdict = ClaimVerdict::Explained;
        judged.why = why;
    }
    let beside = sweep::beside(shown, &part).zip(claim.beside.as_deref());
    let is_known = matches!(
        judged.verdict,
        ClaimVerdict::SameDirection | ClaimVerdict::Refuted
    );
    let number = |judged: &Judged| {
        let ours = judged.ours.clone();
        ours.map(|(interval, at)| (Number::from(interval), at))
            .unzip()
    };
    let (ours, at) = number(&judged);
    AnsweredClaim {
        says: &claim.says,
        published: claim.published,
        unit: claim.unit,
        take: claim.take,
        ours,
        at: at.unwrap_or_default(),
        beside: beside.map(|(found, arm)| {
            let (ours, at) = number(&judge(claim, &found, published));
            Beside {
                arm,
                ours,
                at: at.unwrap_or_default(),
            }
        }),
        lab: claim
            .lab
            .as_ref()
            .and_then(|lab| number(&self::judged(published, &claim.elsewhere(lab), shown)).0),
        points: found.points,
        points_measured: found.measured,
        ranking: found.ranking,
        because: if is_known { &claim.because } else { "" },
        judged,
    }
}

/// The verdict on a claim from the results alone.
fn judged(published: &Published, claim: &Claim, shown: &Shown<'_>) -> Judged {
    judge(claim, &sweep::answer(shown, claim), published)
}

/// The part of the claim, one of [`sweep::parts`], that has the worst verdict; and that verdict,
/// with the parts that have each other one.
fn for_each_part(published: &Published, claim: &Claim, shown: &Shown<'_>) -> (Claim, Judged) {
    let parts = sweep::parts(shown.campaign, published, claim).into_iter();
    let judged = parts.map(|(name, part)| {
        let judged = judged(published, &part, shown);
        (name, part, judged)
    });
    let judged: Vec<(String, Claim, Judged)> = judged.collect();
    let verdicts = grouped(&judged, |(_, _, it)| it.verdict).into_iter();
    let verdicts: Vec<String> = verdicts
        .map(|(verdict, same)| {
            let names: Vec<&str> = same.iter().map(|(name, ..)| name.as_str()).collect();
            format!("{} with {}", verdict.name(), names.join(" or "))
        })
        .collect();
    let worst = judged.into_iter().max_by_key(|(_, _, it)| it.verdict);
    let Some((_, part, mut worst)) = worst else {
        return (claim.clone(), self::judged(published, claim, shown));
    };
    if verdicts.len() > 1 {
        worst.why = format!("{} ({})", worst.why, verdicts.join("; "));
    }
    (part, worst)
}

/// The cause of a difference, with our numbers where it is on and where it is off; `None` if the
/// experiment does not show it.
fn explained(
    published: &Published,
    claim: &Claim,
    explanation: &Explanation,
    shown: &Shown<'_>,
) -> Option<String> {
    let [on, off] = [&explanation.on, &explanation.off]
        .map(|conditions| judged(published, &published.given(claim, conditions), shown));
    if !on.verdict.holds() || off.verdict != ClaimVerdict::Refuted {
        return None;
    }
    let number = |judged: Judged| {
        let number = judged.ours.map(|(interval, _)| interval.into());
        ours(claim.unit, number)
    };
    Some(format!(
        "{}: {} with it, {} without",
        explanation.says,
        number(on),
        number(off)
    ))
}

/// Formats a number in the claim's unit.
fn form(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Times => format!("{value:.2}x"),
        Unit::Share => number::percent(value),
        Unit::Ms => format!("{value:.1} ms"),
        Unit::Count => number::three(value),
        Unit::Modulus | Unit::Correlation => format!("{value:.2}"),
    }
}

fn ours(unit: Unit, number: Option<Number>) -> String {
    let Some(number) = number else {
        return "-".to_owned();
    };
    let ends = number.low.zip(number.high);
    show::with_ends(number.mean, ends, |value| form(unit, value))
}

fn tone(verdict: ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Reproduced => Tone::Good,
        ClaimVerdict::Refuted => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// Counts verdicts.
fn tally(all: impl Iterator<Item = ClaimVerdict>) -> Vec<(ClaimVerdict, usize)> {
    let all: Vec<ClaimVerdict> = all.collect();
    let count = |verdict| (verdict, all.iter().filter(|it| **it == verdict).count());
    ClaimVerdict::ALL.map(count).into()
}

/// Returns the counts of the verdicts that occur.
fn counts_text(verdicts: Vec<(ClaimVerdict, usize)>) -> String {
    let known = verdicts.into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = known
        .map(|(verdict, count)| format!("{count} {}", verdict.name()))
        .collect();
    parts.join(", ")
}

/// How many claims of a figure have each verdict.
pub(super) fn claims_text(figure: &Answered<'_>) -> String {
    counts_text(tally(figure.claims.iter().map(|it| it.judged.verdict)))
}

/// How many figures, and how many claims, have each verdict.
pub(super) fn tally_text(all: &[Answered<'_>]) -> String {
    let text = |noun: &str, verdicts: Vec<(ClaimVerdict, usize)>| {
        let total: usize = verdicts.iter().map(|(_, count)| count).sum();
        let plural = if total == 1 { "" } else { "s" };
        format!("{total} {noun}{plural}: {}.", counts_text(verdicts))
    };
    let figures = tally(all.iter().map(|figure| figure.verdict));
    let claims = all.iter().flat_map(|figure| &figure.claims);
    let claims = tally(claims.map(|claim| claim.judged.verdict));
    format!("{} {}", text("figure", figures), text("claim", claims))
}

/// The rules, as text for the reader.
pub(super) fn rules(published: &Published) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    format!(
        "A number is reproduced if all of our interval lies within {} of its effect; if our \
         interval only excludes no effect on that side, the direction is the same. \"The same\" and \
         \"never below\" allow {}. A claim is refuted if our interval excludes what it says. It is \
         explained if it is refuted, and an experiment that switches one cause on and off makes it \
         hold and fail. Otherwise it is unknown. A figure has the worst verdict of its claims. A \
         claim about several points has the interval of their largest or smallest value, or of both \
         (Bonferroni); the spread of a point's repeats is moderated by that of the block's other \
         points with as many processors (Smyth 2004).",
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

impl AnsweredClaim<'_> {
    /// Each source of a number, and the number; `None` if the source has none.
    pub(super) fn numbers(&self) -> [(&'static str, Option<String>); 4] {
        let number = |number: Option<Number>| number.map(|_| ours(self.unit, number));
        let theirs = self.published.map(|value| form(self.unit, value));
        [
            ("theirs", theirs),
            ("ours", number(self.ours)),
            ("LUC", number(self.beside.as_ref().and_then(|it| it.ours))),
            ("lab", number(self.lab)),
        ]
    }
}

/// The row of a claim: headings and texts.
fn row(claim: &AnsweredClaim<'_>) -> [(&'static str, String); 8] {
    let [theirs, ours, luc, lab] = claim.numbers().map(|(_, number)| number);
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let has_luc = claim.beside.is_some();
    [
        ("says", claim.says.to_owned()),
        ("theirs", theirs.unwrap_or_default()),
        ("ours", or_dash(ours)),
        ("at", claim.at.clone()),
        (
            "points",
            format!("{} of {}", claim.points_measured, claim.points),
        ),
        (
            "LUC today",
            if has_luc { or_dash(luc) } else { String::new() },
        ),
        ("lab", or_dash(lab)),
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
    let charts = Section {
        title: "Plots".to_owned(),
        page_charts: shown.map_or_else(Vec::new, Shown::plots),
        ..Section::default()
    };
    let charts = Some(charts).filter(Section::has_charts);
    Document {
        title: "The documents' figures compared with ours".to_owned(),
        head: shown.map_or_else(Vec::new, Shown::head),
        intro: rules(published),
        sections: charts.into_iter().chain(all.iter().map(section)).collect(),
        verdict: tally_text(all),
        lead: Vec::new(),
        foot: shown.map_or_else(Vec::new, Shown::foot),
    }
}
