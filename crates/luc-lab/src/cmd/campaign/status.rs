//! `luc-lab campaign status` and `luc-lab campaign report`

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use luc_campaign::places::{self, Setup};
use luc_campaign::show::{Shown, Tally};
use luc_campaign::store::CAMPAIGN_FILE;
use luc_campaign::{Campaign, Store, run, sheets};
use luc_report::{html, text};
use serde_json::json;

use super::chosen::{Chosen, places, setup};
use crate::failure::OrFailure as _;
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure, Verb};

const SCHEMA: &str = "luc-campaign-status/1";

/// Show the progress of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign status bench --json")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// Render the report of the existing results
///
/// Measures nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign report bench")]
pub struct Report {
    #[command(flatten)]
    chosen: Chosen,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let (out, source) = (self.chosen.out(), self.source.as_deref());
        let setup = setup(places(&campaign), source, &out, None, context)?;
        let store = Store::existing(&out).or_failure()?;
        let results = store.read().or_failure()?;
        let wave = run::state(&campaign, &results, &setup, |_| true).or_failure()?;
        if self.json {
            let failed: Vec<_> = results
                .failed
                .iter()
                .map(|failed| json!({ "cell": places::shown(&failed.cell), "why": failed.why }))
                .collect();
            return context.print_json(&json!({
                "schema": SCHEMA,
                "points": wave.points,
                "points_narrow": wave.narrow,
                "points_wide": wave.wide,
                "cells_done": wave.done,
                "cells_missing": wave.cells.len(),
                "cells_failed": wave.failed,
                "failed": failed,
                "damaged": results.damaged,
            }));
        }
        let out = &mut *context.out;
        let points = counted(wave.points as u64, "point", "points");
        writeln!(
            out,
            "points    {points}, {} done, {} still imprecise after the largest number of repeats",
            wave.narrow, wave.wide
        )?;
        writeln!(
            out,
            "cells     {} done, {} known to be missing, {} failed",
            wave.done,
            wave.cells.len(),
            wave.failed
        )?;
        let other = results.results.len().saturating_sub(wave.done);
        if other > 0 {
            writeln!(
                out,
                "other     {}",
                counted(
                    other as u64,
                    "result of other versions or cells",
                    "results of other versions or cells"
                )
            )?;
        }
        for failed in &results.failed {
            writeln!(
                out,
                "failed    {}: {}",
                places::shown(&failed.cell),
                failed.why
            )?;
        }
        for path in &results.damaged {
            writeln!(out, "damaged   {}", path.display())?;
        }
        Ok(())
    }
}

impl Verb for Report {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let store = Store::existing(&self.chosen.out()).or_failure()?;
        let tally = render(&campaign, &store, None, context)?;
        let text = campaign.text.as_bytes();
        store.write(CAMPAIGN_FILE, text).or_failure()?;
        missed(tally)
    }
}

/// Renders and prints the results, and writes the page and the tables. With a setup, results of
/// this machine's versions take precedence over others.
pub fn render(
    campaign: &Campaign,
    store: &Store,
    setup: Option<&Setup>,
    context: &mut Context,
) -> Result<Tally, Failure> {
    let results = store.read().or_failure()?;
    let shown = Shown::new(campaign, &results, setup);
    let (mut document, tally) = shown.document();
    document.head.push(command_line());
    let page = html::render(&document);
    let page = store.write("report.html", page.as_bytes()).or_failure()?;
    store
        .write("report.txt", text::render(&document, false).as_bytes())
        .or_failure()?;
    for (number, sheet) in sheets::from_tables(&shown).into_iter().enumerate() {
        store
            .write(
                &format!("tables/{}.csv", number + 1),
                sheet.csv().as_bytes(),
            )
            .or_failure()?;
    }
    context
        .out
        .write_all(text::render(&document, io::stdout().is_terminal()).as_bytes())?;
    context.out.flush()?;
    writeln!(
        context.err,
        "report: {}\ntables: {}",
        page.display(),
        store.dir().join("tables").display()
    )?;
    Ok(tally)
}

/// This run as a user would type it.
pub fn command_line() -> String {
    let words = std::env::args().skip(1);
    let words: Vec<String> = std::iter::once("luc-lab".to_owned()).chain(words).collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

/// Fails with an exit code of its own if a figure missed its bound.
pub fn missed(tally: Tally) -> Result<(), Failure> {
    if tally.missed == 0 {
        return Ok(());
    }
    let sentence = tally.sentence();
    let line = sentence.trim_end_matches('.');
    Err(Failure::coded(Code::FiguresMissed, line))
}
