//! The answer for a terminal of 80 columns: each claim with the published number, ours, and the
//! verdict. The points behind them are in the report of the same run.

use luc_report::text::fill_within;

use super::document::{Answered, AnsweredClaim, heading, source, tally_text, why};

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
    let numbers = claim.numbers().into_iter();
    let numbers = numbers.filter_map(|(whose, number)| Some(format!("{whose} {}", number?)));
    let judged = format!("{}: {}", claim.judged.verdict.name(), why(claim));
    let parts: Vec<String> = numbers.chain([judged]).collect();
    format!("{}; {}", claim.says, parts.join(", "))
}
