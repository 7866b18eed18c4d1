//! `luc-lab campaign`

mod cell;
mod chosen;
mod diff;
mod export;
mod restore;
mod run;
mod status;

pub use chosen::{Device, places, setup};
pub use run::all_measured;
pub use status::{command_line, render};

use luc_cli::verbs;

verbs! {
    /// Measure all combinations of factors until the figures are precise
    ///
    /// A campaign is a file that names kernels, disks, speeds, workloads and arms. `luc-lab
    /// campaign run` measures every combination and repeats each point until its confidence
    /// intervals are narrow. Each cell's result is a file of its own: after an interruption, the
    /// same command continues and measures nothing twice.
    Verbs:
    Run(run::Args),
    Status(status::Args),
    Report(status::Report),
    Diff(diff::Args),
    Cell(cell::Args),
    Restore(restore::Args),
    Export(export::Args),
}
