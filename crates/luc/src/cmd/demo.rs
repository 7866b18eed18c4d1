//! `luc demo`

use std::path::PathBuf;

use luc_campaign::backends::local::Local;
use luc_campaign::places::Setup;
use luc_campaign::reproduce::{self, Published, chosen, document};
use luc_campaign::show::Shown;
use luc_campaign::store::Results;
use luc_campaign::{Campaign, Part, Store, campaigns, points, run};
use luc_report::show::document::Section;

use super::campaign::{render, setup};
use crate::Context;
use crate::exit::{Code, Failure};
use crate::progress::Bar;
use crate::verb::{Interrupt, Verb};

/// Show what LUC gives, on a stock kernel in a virtual machine
///
/// Measures fsync and write bursts at four CPU speeds, then throughput under
/// every policy, with and without LUC side by side: `luc campaign run demo`.
/// Three published figures follow in their quick form: `luc reproduce --quick`.
/// Takes three to five minutes on two cores, once the kernel is downloaded.
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
    /// Virtual machines to run at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Render existing results instead of measuring
    #[arg(long)]
    from_results: bool,
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// The published figures that the demo shows, and the folder of their sweeps inside its own.
const FIGURES: [&str; 3] = ["D4.4", "D5.6", "D5.8"];
const FIGURES_DIR: &str = "figures";

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let part = Part {
            values: vec![format!("kernel={}", self.kernel)],
            ..Part::default()
        };
        let campaign = part.of(campaigns::load("demo")?)?;
        if self.from_results {
            let store = Store::existing(&self.out)?;
            let figures = self.figures(None, |_| Ok(()))?;
            return render(&campaign, &store, None, figures, context).map(drop);
        }
        let setup = setup(["lab"], self.source.as_deref(), &self.out, None, context)?;
        let store = Store::open(&self.out)?;
        let bar = Bar::new();
        let local = Local { jobs: self.jobs };
        let mut failed = run::run(&campaign, &store, &local, &setup, true, &bar)?
            .wave
            .failed;
        let figures = self.figures(Some(&setup), |campaign| {
            let store = Store::open(&self.out.join(FIGURES_DIR))?;
            failed += run::run(campaign, &store, &local, &setup, true, &bar)?
                .wave
                .failed;
            Ok(())
        })?;
        drop(bar);
        render(&campaign, &store, Some(&setup), figures, context)?;
        if failed == 0 {
            return Ok(());
        }
        let folder = store.dir().join("failed");
        let line = format!(
            "demo: {failed} of its cells failed; see {} and {}",
            folder.display(),
            store.dir().join(FIGURES_DIR).join("failed").display()
        );
        Err(Failure::Coded(Code::Lab, line))
    }

    /// An interrupt keeps all measured cells.
    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

impl Args {
    /// The published figures' sections. They are for one kernel; another one has none.
    fn figures(
        &self,
        setup: Option<&Setup>,
        measure: impl FnOnce(&Campaign) -> Result<(), Failure>,
    ) -> Result<Vec<Section>, Failure> {
        let all = Published::builtin();
        let names = FIGURES.map(String::from);
        let usage = |why| Failure::usage("demo", why);
        let figures = all.chosen(&names).map_err(usage)?;
        let campaign = chosen::campaign(all, reproduce::campaign(), &figures, true);
        // Points of the simulator have no kernel.
        let fits = |kernel: &str| kernel.is_empty() || kernel == self.kernel;
        let is_of_kernel = |campaign: &Campaign| {
            let points = points::all(campaign);
            points.iter().all(|point| fits(point.value("kernel")))
        };
        let Some(campaign) = campaign.filter(is_of_kernel) else {
            return Ok(Vec::new());
        };
        measure(&campaign)?;
        let results = match Store::existing(&self.out.join(FIGURES_DIR)) {
            Ok(store) => store.read()?,
            Err(_) => Results::default(),
        };
        let shown = Shown::new(&campaign, &results, setup);
        let answers = document::answer(all, &figures, Some(&shown));
        Ok(document::document(all, &answers, Some(&shown)).sections)
    }
}
