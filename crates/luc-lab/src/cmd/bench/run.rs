//! `luc-lab bench run`

use luc_workload::wml::{self, Chosen, WmlOptions};

use super::chosen::{overrides, planned, refused};
use luc_cli::progress::Bar;
use luc_cli::{Context, Failure, Interrupt, Verb};

/// Run a workload file in the language of Filebench 1.5
///
/// Creates the file's filesets in a new directory inside DIR, runs its threads, and prints
/// Filebench's breakdown and summary, with percentiles. Ignores the paths in the file. Only I/O
/// operations count in the summary, as in Filebench.
///
/// With --ops N, the run ends after N I/O operations of all threads together and reports their
/// time; operations still under way do not count. Ctrl-C ends the run and prints the figures
/// measured so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench run varmail /srv/scratch\n\
    \x20 luc-lab bench run varmail --preset paper -D nthreads=16 --seconds 30 --dir /srv/scratch\n\
    \x20 luc-lab bench run mine.f --ops 100000 --json --dir /srv/scratch")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    options: WmlOptions,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let overrides = overrides(&self.chosen)?;
        let (script, plan) = match planned(&self.chosen, &overrides) {
            Ok(planned) => planned,
            Err(error) => return Err(refused(error, context)?),
        };
        let mut bar = None;
        let report = wml::run(
            &plan,
            script.source_name(),
            &overrides,
            &self.options,
            &context.stop,
            &mut |text, length| bar = Some(Bar::wait_or_work(text, length)),
        );
        drop(bar);
        let report = report.map_err(|error| super::failed(script.source_name(), &error))?;
        super::print(&report.into(), self.options.json, context)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}
