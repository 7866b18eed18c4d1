//! The answer for a terminal of 80 columns: each claim with the published number, ours, and the
//! verdict. The points behind them are in the report of the same run.

use luc_report::text::fill_within;

use super::document::{Answered, AnsweredClaim, form, heading, ours, source, tally_text, why};
use crate::show::Number;

const WIDTH: usize = 80;

pub fn summary(all: &[Answered<'_>]) -> String {
    let mut out = String::new();
    for figure in all {
        let title = format!("{} - {}", heading(figure), figure.verdict.name());
        fill_within(&mut out, &title, 2, WIDTH);
        fill_within(&mut out, &source(figure), 0, WIDTH);
        for claim in &figure.claims {
            fill_within(&mut out, &format!("- {}", sentence(claim)), 2, WIDTH);
        }
        out.push('\n');
    }
    fill_within(&mut out, &tally_text(all), 0, WIDTH);
    out
}

fn sentence(claim: &AnsweredClaim<'_>) -> String {
    let theirs = claim.published.map(|value| form(claim.unit, value));
    let number = |number: Option<Number>| number.map(|_| ours(claim.unit, number));
    let numbers = [
        ("theirs", theirs),
        ("ours", number(claim.ours)),
        ("LUC", number(claim.beside.as_ref().and_then(|it| it.ours))),
        ("lab", number(claim.lab)),
    ];
    let numbers = numbers
        .into_iter()
        .filter_map(|(whose, number)| Some(format!("{whose} {}", number?)));
    let judged = format!("{}: {}", claim.judged.verdict.name(), why(claim));
    let parts: Vec<String> = numbers.chain([judged]).collect();
    format!("{}; {}", claim.says, parts.join(", "))
}
