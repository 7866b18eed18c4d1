//! `luc demo`

use std::path::PathBuf;

use luc_campaign::backends::local::Local;
use luc_campaign::{Part, Store, campaigns, run};

use super::campaign::{render, setup};
use crate::Context;
use crate::exit::{Code, Failure};
use crate::progress::Bar;
use crate::verb::{Interrupt, Verb};

/// Show what LUC gives, on a stock kernel in a virtual machine
///
/// Measures fsync and write bursts at four CPU speeds, then throughput under
/// every policy, with and without LUC side by side: `luc campaign run demo`.
/// Takes two to four minutes on two cores, once the kernel is downloaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc demo\n\
    \x20 luc demo --kernel 7.2 --out out/demo-7.2\n\
    \x20 luc demo --from-results")]
pub struct Args {
    /// Folder of the results and of report.html; made if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/demo", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// Kernel to show it on
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    kernel: String,
    /// Virtual machines at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Render the results that are in the folder instead of measuring
    #[arg(long)]
    from_results: bool,
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let part = Part {
            values: vec![format!("kernel={}", self.kernel)],
            ..Part::default()
        };
        let campaign = part.of(campaigns::load("demo")?)?;
        if self.from_results {
            return render(&campaign, &Store::existing(&self.out)?, None, context).map(drop);
        }
        let setup = setup(["lab"], self.source.as_deref(), &self.out, None, context)?;
        let store = Store::open(&self.out)?;
        let bar = Bar::new();
        let local = Local { jobs: self.jobs };
        let ended = run::run(&campaign, &store, &local, &setup, true, &bar)?;
        drop(bar);
        render(&campaign, &store, Some(&setup), context)?;
        if ended.wave.failed == 0 {
            return Ok(());
        }
        let folder = store.dir().join("failed");
        let line = format!(
            "demo: {} of its cells failed; {} says why",
            ended.wave.failed,
            folder.display()
        );
        Err(Failure::Coded(Code::Lab, line))
    }

    /// All that was measured is kept.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}
