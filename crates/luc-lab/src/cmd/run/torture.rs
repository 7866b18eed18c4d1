//! `luc-lab torture`

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use luc_report::torture;
use luc_report::{StockLab, text};

use crate::bar::Bar;
use crate::cmd::stock_lab;
use crate::failure::{self, OrFailure as _};
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure, Verb};

/// Host time that a scenario may take, seconds: far more than a hundred thousand cuts take.
const LIMIT_S: u64 = 12 * 3600;

/// Cut the power at thousands of moments and check that no acknowledged sync is lost
///
/// Boots stock kernels with a disk that records every write. Threads write, rename, truncate,
/// remove and sync files on ext4 and ext3 in many settings, under every policy of LUC and without
/// LUC. Then, for many points of the record, the lab rebuilds a state that a power cut there could
/// have left, mounts it, and checks that every acknowledged sync survived. Exits with 25 if LUC
/// lost anything.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab torture --kernels 6.12\n\
    \x20 luc-lab torture --kernels 6.12 --only ordered --cuts 40")]
pub struct Args {
    #[command(flatten)]
    torture: torture::TortureArgs,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.torture.scenarios().or_failure()?.is_empty() {
            return Err(Failure::usage(
                "torture",
                "no scenario's name contains the text of --only",
            ));
        }
        let lab = StockLab {
            luc_lab: None,
            source: stock_lab::source(self.source.as_deref())?,
            limit_s: LIMIT_S,
        };
        let bar = Bar::new();
        let result = torture::torture(&self.torture, &lab, &bar).or_failure()?;
        drop(bar);
        if self.torture.json {
            context.print_json(&result)?;
        } else {
            let document = torture::document(&result);
            let page = text::render(&document, io::stdout().is_terminal());
            context.out.write_all(page.as_bytes())?;
        }
        let (luc, stock) = result.losses();
        if stock > 0 {
            let lost = counted(stock, "promise", "promises");
            context.note(format_args!(
                "a fault of the stock kernel, not LUC, broke {lost}"
            ))?;
        }
        let mut lost = result.lost_by_luc().flat_map(|t| &t.summary.losses);
        if let Some(first) = lost.next() {
            return Err(failure::broken("power cuts under LUC", luc, first));
        }
        match result.unfinished.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => Err(Failure::coded(
                Code::Lab,
                format!(
                    "{} did not finish; first: {}: {}",
                    counted(1 + rest.len() as u64, "scenario", "scenarios"),
                    first.scenario,
                    first.why
                ),
            )),
        }
    }
}
