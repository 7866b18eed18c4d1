//! The answer as a page of Markdown: which claims of the documents hold where, and every number
//! behind that.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use luc_report::show::number;
use luc_report::text::fill;

use super::document::{
    self, Answered, AnsweredClaim, form, heading, ours, rules, source, tally_text,
};
use super::found::{Ranked, Ranking};
use super::published::{Claim, Published, Reported};
use super::sweep;
use super::verdict::{ClaimVerdict, judge};
use crate::figures::PointResults;
use crate::file::{Value, Values, Where};
use crate::points::Point;
use crate::show::Shown;

/// The page, with the sweeps and a note on missing points.
pub fn markdown(published: &Published, all: &[Answered<'_>], shown: Option<&Shown<'_>>) -> String {
    let mut out = String::from("# The documents' figures compared with ours\n\n");
    let made = "`luc-lab reproduce --markdown` generated this page from results; no number in it was \
                typed by hand. The documents' numbers are in `campaigns/published.toml`, our \
                sweeps in `campaigns/reproduce.toml`.";
    for text in [made.to_owned(), rules(published), tally_text(all)] {
        block(&mut out, &text);
    }
    if let Some(shown) = shown {
        block(&mut out, &missing(shown));
    }
    overview(&mut out, all);
    if let Some(shown) = shown {
        by_machine(&mut out, published, all, shown);
    }
    for figure in all {
        of_figure(&mut out, figure);
    }
    if let Some(shown) = shown {
        out.push_str("## Where the numbers come from\n\n");
        for line in shown.foot() {
            fill(&mut out, &format!("- {line}"), 2);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
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

fn overview(out: &mut String, all: &[Answered<'_>]) {
    let row = |figure: &Answered<'_>| {
        let measured: usize = figure.claims.iter().map(|it| it.points_measured).sum();
        let points: usize = figure.claims.iter().map(|it| it.points).sum();
        let names: Vec<&str> = std::iter::once(figure.id)
            .chain(figure.also.iter().map(String::as_str))
            .collect();
        vec![
            names.join(", "),
            figure.title.to_owned(),
            figure.verdict.name().to_owned(),
            format!("{measured} of {points}"),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table(
        out,
        &["figure", "subject", "verdict", "points measured"].map(String::from),
        &rows,
    );
}

/// The factors that identify a machine here; a block of the simulator may name no kernel.
const MACHINE: [&str; 2] = ["kernel", "vcpus"];

/// Writes each claim's verdict for each kernel and number of processors alone.
fn by_machine(out: &mut String, published: &Published, all: &[Answered<'_>], shown: &Shown<'_>) {
    let of = |point: &Point<'_>| {
        let factors = MACHINE.map(|factor| point.value(factor).to_owned());
        (point.place() == "sim", factors)
    };
    let machines: BTreeSet<_> = shown.all().iter().map(|it| of(&it.point)).collect();
    let ids: BTreeSet<&str> = all.iter().map(|figure| figure.id).collect();
    let figures = published.figures.iter();
    let row = |figure: &Reported, claim: &Claim| {
        let verdicts = machines.iter().map(|machine| {
            let fits = on(claim, &machine.1);
            let points = shown.points(&claim.block, &fits);
            if !points.iter().any(|it| of(&it.point) == *machine) {
                return String::new();
            }
            let claim = Claim {
                fits,
                ..claim.clone()
            };
            let found = sweep::answer(shown, &claim);
            let verdict = judge(&claim, &found, published).verdict;
            match found.interval {
                Some(interval) if verdict != ClaimVerdict::NotApplicable => {
                    format!("{}, {}", verdict.name(), form(claim.unit, interval.mean))
                }
                _ => verdict.name().to_owned(),
            }
        });
        [figure.id.clone(), claim.says.clone()]
            .into_iter()
            .chain(verdicts)
            .collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = figures
        .filter(|figure| ids.contains(figure.id.as_str()))
        .flat_map(|figure| figure.claims.iter().map(move |claim| (figure, claim)))
        .filter(|(_, claim)| claim.of.is_some())
        .map(|(figure, claim)| row(figure, claim))
        .collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("## What holds where\n\n");
    let text = "Each claim over the points of one kernel and one number of processors alone, with \
                our number. Virtual processors of the lab share the time of one; those of the \
                simulator each have their own. A field is empty if the sweep has no such point.";
    block(out, text);
    let headings: Vec<String> = ["figure", "says"]
        .map(String::from)
        .into_iter()
        .chain(machines.iter().map(|(is_simulated, [kernel, vcpus])| {
            let noun = if vcpus == "1" { "CPU" } else { "CPUs" };
            let simulated = if *is_simulated { "simulated " } else { "" };
            let machine = format!("{simulated}{kernel}");
            format!("{}, {vcpus} {noun}", machine.trim_end())
        }))
        .collect();
    table(out, &headings, &rows);
}

/// The claim's conditions on one machine.
fn on(claim: &Claim, machine: &[String; 2]) -> Where {
    let mut fits = claim.fits.clone();
    for (factor, value) in MACHINE
        .iter()
        .zip(machine)
        .filter(|(_, value)| !value.is_empty())
    {
        let own = Values::Many(vec![Value(value.clone())]);
        let is_wanted = |wanted: &Values| wanted.all().iter().any(|Value(wanted)| wanted == value);
        // A claim about another machine has no point here.
        let kept = match fits.get(*factor) {
            Some(wanted) if !is_wanted(wanted) => Values::Many(Vec::new()),
            _ => own,
        };
        fits.insert((*factor).to_owned(), kept);
    }
    fits
}

fn of_figure(out: &mut String, figure: &Answered<'_>) {
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "## {}\n", heading(figure));
    block(
        out,
        &format!("**{}.** {}", figure.verdict.name(), source(figure)),
    );
    for claim in &figure.claims {
        fill(out, &format!("- {}", sentence(claim)), 2);
    }
    if !figure.claims.is_empty() {
        out.push('\n');
    }
    for ranking in figure.claims.iter().filter_map(|it| it.ranking.as_ref()) {
        block(out, &of_ranking(ranking));
        table(out, &RANKING.map(String::from), &ranking_rows(ranking));
    }
    for sweep in &figure.sweeps {
        let missing = sweep.points - sweep.rows.len();
        let rest = if missing > 0 {
            "; the rest is missing"
        } else {
            ""
        };
        let text = format!(
            "Our sweep `{}`: {} of {} points are measured{rest}.",
            sweep.block,
            sweep.rows.len(),
            sweep.points,
        );
        block(out, &text);
        if !sweep.rows.is_empty() {
            table(out, &sweep.headings, &sweep.rows);
        }
    }
}

/// A claim, our finding, and the verdict.
fn sentence(claim: &AnsweredClaim<'_>) -> String {
    let mut text = format!("\"{}\": **{}**", claim.says, claim.judged.verdict.name());
    if claim.ours.is_some() {
        let _ = write!(text, ", ours is {}", ours(claim.unit, claim.ours));
        if !claim.at.is_empty() {
            let _ = write!(text, " ({})", claim.at);
        }
    }
    let _ = write!(text, "; {}.", document::why(claim));
    if let Some(beside) = claim.beside.as_ref().filter(|beside| beside.ours.is_some()) {
        let _ = write!(text, " LUC today: {}.", ours(claim.unit, beside.ours));
    }
    text
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
            " The principal component that correlates most with the rate ({pearson:.2}) explains \
             {} of their variance.",
            number::percent(share)
        )
    });
    format!(
        "Correlations with the rate over {} runs; chance reaches {:.2}.{component}",
        ranking.runs, ranking.chance_strength
    )
}

fn ranking_rows(ranking: &Ranking) -> Vec<Vec<String>> {
    let row = |ranked: &Ranked| {
        let numbers = [ranked.pearson, ranked.spearman, ranked.loading];
        std::iter::once(format!("`{}`", ranked.quantity))
            .chain(numbers.map(|number| format!("{number:.2}")))
            .collect()
    };
    ranking.quantities.iter().map(row).collect()
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
