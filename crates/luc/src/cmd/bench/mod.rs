//! `luc bench`

mod check;
mod chosen;
mod run;

use luc_workload::{Bench, BenchReport};

use crate::Context;
use crate::exit::Failure;
use crate::progress::Bar;
use crate::verb::{Interrupt, Verb, verbs};

verbs! {
    /// Run a workload that makes a file system commit its journal
    ///
    /// The workload does not know whether LUC is on: run it with LUC off, then on,
    /// and compare. Ctrl-C ends it and prints what was measured so far.
    Verbs:
    #[command(flatten)]
    Workload(Bench),
    Check(check::Args),
    Run(run::Args),
}

impl Verb for Bench {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        // A worker is a child process of another workload, which shows the bar.
        let shown = !matches!(self, Bench::Worker);
        let bar = shown.then(|| Bar::wait_or_work(self.name(), self.length()));
        let report = Bench::run(self, &context.stop);
        drop(bar);
        let report = report.map_err(|error| Failure::workload(self.name(), error))?;
        print(&report, self.json(), context)
    }

    /// It still prints the figures measured so far.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

pub fn print(report: &BenchReport, json: bool, context: &mut Context) -> Result<(), Failure> {
    if json {
        // One line per report, so that a file of reports is JSON Lines.
        serde_json::to_writer(&mut *context.out, report).map_err(std::io::Error::from)?;
        writeln!(context.out)?;
    } else {
        write!(context.out, "{report}")?;
    }
    if report.interrupted {
        return Err(Failure::interrupted(
            "the figures above cover the time until the interrupt",
        ));
    }
    Ok(())
}
