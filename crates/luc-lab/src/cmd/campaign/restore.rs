//! `luc-lab campaign restore`

use std::path::PathBuf;

use luc_campaign::places::host;

use crate::failure::OrFailure as _;
use luc_cli::{Context, Failure, Verb};

/// Restore this machine after a campaign that was killed
///
/// A cell on bare metal changes the settings of processors, frequencies and writeback, and mounts
/// its device. Every cell restores the machine at its end. After `kill -9`, the next run or this
/// command restores it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign restore\n\
    \x20 luc-lab campaign restore --out out/mine")]
pub struct Args {
    /// Directory of the results of the killed run [default: that of this machine's last run]
    #[arg(long, short = 'o', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self.out.clone().unwrap_or_default();
        let done = host::restore(&context.system.path("/"), &out).or_failure()?;
        let text = done.map_or_else(
            || "nothing is left to restore".to_owned(),
            |done| done.told(),
        );
        writeln!(context.out, "{text}")?;
        Ok(())
    }
}
