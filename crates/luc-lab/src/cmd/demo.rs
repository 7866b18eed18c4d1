//! `luc-lab demo`

use std::path::PathBuf;

use luc_campaign::backends::local::Local;
use luc_campaign::{Part, Store, campaigns, run};

use super::campaign::{all_measured, render, setup};
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::{Context, Failure, Interrupt, Verb};

/// Show the effect of LUC on a stock kernel in a virtual machine
///
/// Measures bursts of fsyncs and of writes at four CPU speeds, then throughput, with and without
/// LUC side by side. Does the same as `luc-lab campaign run demo`. Takes about three minutes on two
/// cores, once the kernel is downloaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab demo\n\
    \x20 luc-lab demo --kernel 7.2 --out out/demo-7.2\n\
    \x20 luc-lab demo --from-results")]
pub struct Args {
    /// Directory for the results and report.html; created if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/demo", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// Kernel to run, by its name in `luc-lab list`
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    kernel: String,
    /// Virtual machines to run at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Render existing results instead of measuring
    #[arg(long)]
    from_results: bool,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let part = Part {
            values: vec![format!("kernel={}", self.kernel)],
            ..Part::default()
        };
        let campaign = part
            .narrow(campaigns::load("demo").or_failure()?)
            .or_failure()?;
        if self.from_results {
            let store = Store::existing(&self.out).or_failure()?;
            return render(&campaign, &store, None, context).map(drop);
        }
        let setup = setup(["lab"], self.source.as_deref(), &self.out, None, context)?;
        let store = Store::open(&self.out).or_failure()?;
        let bar = Bar::new();
        let local = Local { jobs: self.jobs };
        let ended = run::run(&campaign, &store, &local, &setup, true, &bar).or_failure()?;
        drop(bar);
        render(&campaign, &store, Some(&setup), context)?;
        all_measured(&ended, &store)
    }

    /// An interrupt keeps all measured cells.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}
