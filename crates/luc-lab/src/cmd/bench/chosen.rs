//! Values given for a workload's variables, and errors in a workload file.

use luc_host::{HostError, plain};
use luc_wml::plan::Plan;
use luc_wml::{LoadError, Script, builtin_names};
use luc_workload::wml::Chosen;

use crate::failure;
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure};

/// The values given for variables on the command line.
pub fn overrides(chosen: &Chosen) -> Result<Vec<(String, String)>, Failure> {
    let overrides = chosen.overrides();
    overrides.map_err(|error| Failure::usage("bench", error.to_string()))
}

/// The chosen workload, with its plan.
pub fn planned(
    chosen: &Chosen,
    overrides: &[(String, String)],
) -> Result<(Script, Plan), LoadError> {
    let script = chosen.script()?;
    let plan = script.plan(overrides)?;
    Ok((script, plan))
}

/// Prints the errors of a workload file, one per line, and returns the failure to report.
pub fn refused(error: LoadError, context: &mut Context) -> Result<Failure, Failure> {
    match error {
        LoadError::Refused(diagnostics) => {
            writeln!(context.err, "{diagnostics}")?;
            let why = match diagnostics.list().len() {
                1 => "the line above says why".into(),
                several => format!(
                    "the {} above say why",
                    counted(several as u64, "line", "lines")
                ),
            };
            let file = diagnostics.source_name();
            let line = format!("workload {file}: refused, nothing was run: {why}");
            Ok(Failure::Coded(Code::WorkloadFile, line))
        }
        LoadError::Unknown { ref name } => Ok(HostError::NotFound {
            path: name.clone(),
            why: "no such workload file".into(),
            fix: format!("give the path of a file, or {}", builtin_names()),
        }
        .into()),
        LoadError::Read { path, source } => Ok(failure::workload(
            path.display(),
            format!("cannot read it: {}", plain(&source)),
        )),
    }
}
