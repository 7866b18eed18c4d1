//! `luc-lab reproduce`

use std::fs;
use std::path::{Path, PathBuf};

use luc_campaign::backends::local::Local;
use luc_campaign::places::Setup;
use luc_campaign::reproduce::document::{self, Answered};
use luc_campaign::reproduce::published::Reported;
use luc_campaign::reproduce::{Published, campaign as whole, chosen, markdown, summary};
use luc_campaign::show::Shown;
use luc_campaign::{Store, run};
use luc_report::html;
use luc_report::show::svg;
use serde_json::json;

use super::campaign;
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::units::counted;
use luc_cli::{Context, Failure, Interrupt, Verb};

const SCHEMA: &str = "luc-reproduce/1";

/// The folder of appendices, beside their pages.
const FIGURES: &str = "figures";

/// Compare the published figures with measurements of our own
///
/// Measures in the lab the missing points of the sweep behind each figure, and decides by a fixed
/// rule whether the figure is reproduced. D5.8 is a figure of the dissertation, P7 one of the
/// paper. All figures together take some hours on two processors, or about ten minutes with
/// --quick. After an interruption, the same command continues.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
#[command(after_help = "Examples:\n\
    \x20 luc-lab reproduce --list\n\
    \x20 luc-lab reproduce D5.6 D5.8 --quick\n\
    \x20 luc-lab reproduce --quick --simulated\n\
    \x20 luc-lab reproduce --from-results --markdown reproduction.md")]
pub struct Args {
    /// Figures and tables, by their names in --list [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// List the figures; measure nothing
    #[arg(long, conflicts_with_all = ["quick", "simulated", "from_results", "any_version", "markdown"])]
    list: bool,
    /// Measure few points, with the fewest repeats that give a confidence interval
    #[arg(long)]
    quick: bool,
    /// Measure the simulated points alone, which need no virtual machine
    #[arg(long, conflicts_with_all = ["from_results", "source"])]
    simulated: bool,
    /// Use existing results; measure nothing
    #[arg(long)]
    from_results: bool,
    /// Accept results of other versions, too; measure only cells that have no result
    #[arg(long, conflicts_with = "from_results")]
    any_version: bool,
    /// Directory for the results; created if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/reproduce", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// Cells to measure at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Also write the report as Markdown to this file, with its plots beside it and each claim in a
    /// file of the same name in figures/
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    markdown: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let all = Published::builtin();
        let figures = all
            .chosen(&self.figures)
            .map_err(|why| Failure::usage("reproduce", why))?;
        if self.list {
            return self.list(&figures, context);
        }
        let Some(campaign) = chosen::campaign(all, whole(), &figures, self.quick) else {
            // Nothing to measure: poles are computed.
            return self.tell(&document::answer(all, &figures, None), None, None, context);
        };
        let asked = if self.simulated {
            let none = "none of these figures has a simulated point; leave out --simulated";
            let part = chosen::simulated(&campaign);
            part.ok_or_else(|| Failure::usage("reproduce", none))?
        } else {
            campaign.clone()
        };
        let asked = Some(asked).filter(|_| !self.from_results);
        let (store, measured) = if let Some(asked) = asked {
            let source = self.source.as_deref();
            let setup = Setup {
                any_version: self.any_version,
                ..campaign::setup(campaign::places(&asked), source, &self.out, None, context)?
            };
            let store = Store::open(&self.out).or_failure()?;
            let bar = Bar::new();
            let local = Local { jobs: self.jobs };
            let ended = run::run(&asked, &store, &local, &setup, false, &bar).or_failure()?;
            (store, Some((setup, ended)))
        } else {
            (Store::existing(&self.out).or_failure()?, None)
        };
        let results = store.read().or_failure()?;
        for path in &results.damaged {
            let path = path.display();
            writeln!(
                context.err,
                "{path} is left out: damaged, or of another version of luc-lab; remove it to \
                 measure its cell again"
            )?;
        }
        let current = measured.as_ref().map(|(setup, _)| setup);
        let shown = Shown::new(&campaign, &results, current);
        let answers = document::answer(all, &figures, Some(&shown));
        self.tell(&answers, Some(&shown), Some(&store), context)?;
        match measured {
            Some((_, ended)) => campaign::all_measured(&ended, &store),
            None => Ok(()),
        }
    }

    /// An interrupt abandons the cells under way and keeps all measured ones.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

impl Args {
    fn list(&self, figures: &[&Reported], context: &mut Context) -> Result<(), Failure> {
        if self.json {
            let all: Vec<_> = figures
                .iter()
                .map(|figure| {
                    json!({
                        "id": figure.id,
                        "also": figure.also,
                        "title": figure.title,
                        "page": figure.page,
                        "claims": figure.claims.iter().map(|claim| &claim.says).collect::<Vec<_>>(),
                    })
                })
                .collect();
            return context.print_json(&json!({ "schema": SCHEMA, "figures": all }));
        }
        for figure in figures {
            let names: Vec<&str> = std::iter::once(&figure.id)
                .chain(&figure.also)
                .map(String::as_str)
                .collect();
            let claims = counted(figure.claims.len() as u64, "claim", "claims");
            writeln!(
                context.out,
                "{:<24} {}, {claims}",
                names.join(" "),
                figure.title
            )?;
        }
        Ok(())
    }

    fn tell(
        &self,
        answers: &[Answered<'_>],
        shown: Option<&Shown<'_>>,
        store: Option<&Store>,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let all = Published::builtin();
        let mut report = document::document(all, answers, shown);
        report.head.push(campaign::command_line());
        let summary = summary::summary(answers);
        let page = store.map(|store| -> Result<PathBuf, Failure> {
            let page = html::render(&report);
            store
                .write("reproduce.txt", summary.as_bytes())
                .or_failure()?;
            store.write("reproduce.html", page.as_bytes()).or_failure()
        });
        let page = page.transpose()?;
        if let Some(path) = &self.markdown {
            write_markdown(path, answers, shown)?;
        }
        if self.json {
            return context
                .print_json(&json!({ "schema": SCHEMA, "quick": self.quick, "figures": answers }));
        }
        context.out.write_all(summary.as_bytes())?;
        context.out.flush()?;
        if let Some(page) = page {
            writeln!(context.err, "report: {}", page.display())?;
        }
        Ok(())
    }
}

/// Writes the page, its plots beside it, and its appendix of the same name into `figures/` there.
fn write_markdown(
    path: &Path,
    answers: &[Answered<'_>],
    shown: Option<&Shown<'_>>,
) -> Result<(), Failure> {
    let all = Published::builtin();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plots = shown.map_or_else(Vec::new, Shown::plots);
    let plots = (1..).zip(plots).map(|(number, chart): (u32, _)| {
        let file = format!("{stem}-{number}.svg");
        (file, chart)
    });
    let plots: Vec<_> = plots.collect();
    for (file, chart) in &plots {
        let drawing = svg::file(chart, svg::LIGHT);
        write(&path.with_file_name(file), &drawing)?;
    }
    let page = markdown::page(all, answers, shown, &plots, &format!("{FIGURES}/{name}"));
    write(path, &page)?;
    let appendix = markdown::appendix(all, answers, shown, &plots, &format!("../{name}"));
    write(&path.with_file_name(FIGURES).join(&*name), &appendix)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(path, text))
        .map_err(|error| {
            let line = format!("cannot write {}: {error}", path.display());
            Failure::Unexpected(anyhow::anyhow!(line))
        })
}
