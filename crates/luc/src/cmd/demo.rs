//! `luc demo`, and the figures of `luc bench matrix`: both measure in the lab
//! and write a report.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use luc_report::{DemoArgs, MatrixArgs, Outcome, OutputArgs, StockLab, text};

use super::stock_lab;
use crate::Context;
use crate::exit::{Code, Failure};
use crate::progress::Bar;
use crate::verb::Verb;

/// Show what LUC gives, on a stock kernel in a virtual machine
///
/// Measures fsync and write bursts at four CPU speeds, then throughput under
/// every policy, with and without LUC side by side. Takes about five minutes
/// on two cores, once the kernel is downloaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc demo\n\
    \x20 luc demo --kernel 7.2 --out out/demo-7.2\n\
    \x20 luc demo --from-results")]
pub struct Args {
    #[command(flatten)]
    demo: DemoArgs,
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// Measure every figure that LUC is meant to reach
///
/// Runs each workload with and without LUC on each kernel, in virtual
/// machines. Exits with 15 if a figure is missed. Takes about two hours on two
/// cores: --kernels, --only and --repeats ask for less.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc bench matrix\n\
    \x20 luc bench matrix --kernels 6.12 --only create-fsync,write-delay --repeats 1\n\
    \x20 luc bench matrix --from-results --out out/matrix")]
pub struct Matrix {
    #[command(flatten)]
    matrix: MatrixArgs,
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let lab = lab(self.source.as_deref(), &self.demo.output)?;
        let bar = Bar::new();
        let outcome = luc_report::demo(&self.demo, &lab, &bar)?;
        drop(bar);
        show(context, &self.demo.output, &outcome)
    }
}

impl Verb for Matrix {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let lab = lab(self.source.as_deref(), &self.matrix.output)?;
        let bar = Bar::new();
        let outcome = luc_report::matrix(&self.matrix, &lab, &bar)?;
        drop(bar);
        show(context, &self.matrix.output, &outcome)?;
        let missed = outcome.missed;
        if missed == 0 {
            return Ok(());
        }
        let all = missed + outcome.reached;
        let line = format!("{missed} of {all} figures missed; the table marks them");
        Err(Failure::Coded(Code::FiguresMissed, line))
    }
}

/// Host time that a machine may take, seconds: ten times what the longest does.
const LIMIT_S: u64 = 3600;

fn lab(source: Option<&Path>, output: &OutputArgs) -> Result<StockLab, Failure> {
    // Kept results are rendered without building anything.
    let source = if output.from_results {
        PathBuf::new()
    } else {
        stock_lab::source(source)?
    };
    Ok(StockLab {
        binary: None,
        source,
        limit_s: LIMIT_S,
    })
}

fn show(context: &mut Context, output: &OutputArgs, outcome: &Outcome) -> Result<(), Failure> {
    if output.json {
        super::print_json(context, &outcome.records)?;
    } else {
        let text = text::render(&outcome.document, io::stdout().is_terminal());
        context.out.write_all(text.as_bytes())?;
    }
    context.out.flush()?;
    writeln!(
        context.err,
        "report: {}\ndata:   {}",
        outcome.html.display(),
        outcome.json.display()
    )?;
    Ok(())
}
