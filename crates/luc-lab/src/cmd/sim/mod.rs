//! `luc-lab sim`

mod calibrate;
mod costs;
mod disks;
mod fleet;
mod run;
mod validate;

use luc_control::Params;
use luc_power::machine::PowerModel;

use luc_cli::verbs;

verbs! {
    /// Simulate the journal, the processors and the disk, with LUC's own controllers
    ///
    /// Needs no kernel, no module and no privileges, and runs far faster than the lab.
    /// `luc-lab sim validate` shows how well it agrees with the lab.
    Verbs:
    Run(run::Args),
    Fleet(fleet::Args),
    Calibrate(calibrate::Args),
    Costs(costs::Args),
    Disks(disks::Args),
    Validate(validate::Args),
}

/// Parses a machine of `--energy`; keeps its text, which names it in reports.
fn energy_machine(text: &str) -> Result<(String, PowerModel), String> {
    let machine: Result<PowerModel, _> = text.parse();
    let machine = machine.map_err(|error| format!("--energy: {error}"))?;
    Ok((text.to_owned(), machine))
}

/// Settings of LUC, as for `luc on`.
#[derive(Debug, clap::Args)]
struct Knobs {
    /// Simulate LUC with this policy
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Simulate LUC with this knob value; may be repeated
    #[arg(long, value_name = "KNOB=VALUE")]
    set: Vec<String>,
}

impl Knobs {
    fn are_given(&self) -> bool {
        self.policy.is_some() || !self.set.is_empty()
    }

    fn params(&self) -> Result<Option<Params>, String> {
        let mut options: Vec<String> = Vec::new();
        if let Some(policy) = &self.policy {
            options.extend(["--policy".to_owned(), policy.clone()]);
        }
        for setting in &self.set {
            options.extend(["--set".to_owned(), setting.clone()]);
        }
        luc_sim::knobs(&options).map_err(|error| error.to_string())
    }
}
