//! `luc-lab campaign diff`

use std::path::PathBuf;

use luc_campaign::Store;
use luc_campaign::diff::{ComparedFigure, Diff, DiffSide, FigureChange};
use serde_json::json;

use crate::failure::OrFailure as _;
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure, Verb};

const SCHEMA: &str = "luc-campaign-diff/1";

/// Show which figures changed between two directories of results
///
/// Compares every figure of the campaign's tables. A figure has changed if the spread of the
/// repeats does not explain the difference: Welch's test, at the campaign's confidence for all
/// figures together. Exits with 28 if a figure changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign diff out/before out/after\n\
    \x20 luc-lab campaign diff out/mine --json")]
pub struct Args {
    /// Directory of results
    #[arg(value_name = "A", value_hint = clap::ValueHint::DirPath)]
    a: PathBuf,
    /// Directory of results to compare with [default: compare the latest results in A with the
    /// previous ones]
    #[arg(value_name = "B", value_hint = clap::ValueHint::DirPath)]
    b: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let first = DiffSide::read(&Store::existing(&self.a).or_failure()?).or_failure()?;
        let (a, b) = match &self.b {
            Some(b) => (
                first,
                DiffSide::read(&Store::existing(b).or_failure()?).or_failure()?,
            ),
            None => (first.before(), first),
        };
        let diff = Diff::compare(&a, &b);
        let changed = diff.count(FigureChange::Changed);
        if self.json {
            context.print_json(&json!({
                "schema": SCHEMA,
                "changed": changed,
                "confidence": diff.confidence,
                "figures": diff.figures,
            }))?;
        } else {
            print(&diff, context)?;
        }
        if changed == 0 {
            return Ok(());
        }
        context.out.flush()?;
        let figures = counted(changed as u64, "figure", "figures");
        Err(Failure::Coded(Code::Changed, format!("{figures} changed")))
    }
}

fn print(diff: &Diff, context: &mut Context) -> Result<(), Failure> {
    let out = &mut *context.out;
    for figure in &diff.figures {
        let text = match figure.verdict {
            FigureChange::Same => continue,
            FigureChange::Changed => line("changed", figure),
            FigureChange::Unsure => line("unsure", figure),
            FigureChange::OnlyInA => line("only in A", figure),
            FigureChange::OnlyInB => line("only in B", figure),
        };
        writeln!(out, "{text}")?;
    }
    writeln!(
        out,
        "{} at {}% confidence for all: {} changed, {} the same, {} unsure (too few repeats), {} \
         only in A, {} only in B",
        counted(diff.figures.len() as u64, "figure", "figures"),
        diff.confidence * 100.0,
        diff.count(FigureChange::Changed),
        diff.count(FigureChange::Same),
        diff.count(FigureChange::Unsure),
        diff.count(FigureChange::OnlyInA),
        diff.count(FigureChange::OnlyInB),
    )?;
    Ok(())
}

fn line(word: &str, figure: &ComparedFigure) -> String {
    let row: Vec<String> = figure
        .at
        .row
        .iter()
        .map(|(factor, value)| format!("{factor} {value}"))
        .collect();
    let values: Vec<&str> = [&figure.a, &figure.b]
        .into_iter()
        .flatten()
        .map(|value| value.text.as_str())
        .collect();
    let (heading, arm) = (&figure.at.heading, &figure.at.arm);
    let heading = if heading == arm {
        arm.clone()
    } else {
        format!("{heading} of {arm}")
    };
    let by = figure.ratio.map_or_else(String::new, |ratio| {
        format!(", {:+.1}%", (ratio - 1.0) * 100.0)
    });
    format!(
        "{word:<9}  {}, {}, {heading}: {}{by}",
        figure.at.table,
        row.join(", "),
        values.join(" -> ")
    )
}
