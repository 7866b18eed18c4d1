//! `luc sim`

mod costs;
mod disks;
mod run;
mod validate;

use crate::verb::verbs;

verbs! {
    /// Simulate the journal, the processors and the disk, with LUC's own controllers inside
    ///
    /// Needs no kernel, no module and no rights, and runs far faster than the lab. How far it agrees
    /// with the lab: `luc sim validate`.
    Verbs:
    Run(run::Args),
    Costs(costs::Args),
    Disks(disks::Args),
    Validate(validate::Args),
}
