//! `luc campaign`

mod cell;
pub(super) mod chosen;
mod run;
mod status;

use crate::verb::verbs;

verbs! {
    /// Measure a product of factors until its figures are sure
    ///
    /// A campaign is a file: kernels, disks, speeds, workloads and arms, multiplied out, each point
    /// repeated until its intervals are narrow. Every cell's result is a file of its own: whatever
    /// ends a campaign, the same command goes on from there, and measures nothing twice.
    Verbs:
    Run(run::Args),
    Status(status::Args),
    Report(status::Report),
    Cell(cell::Args),
}
