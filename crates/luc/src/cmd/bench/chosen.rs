//! Which workload file a verb is about, and what is to be different in it.

use luc_host::{HostError, plain};
use luc_wml::{Diagnostics, LoadError, PRESETS, Script, builtin_names, builtin_presets, load};

use crate::Context;
use crate::exit::{Code, Failure};
use crate::units::counted;

/// Arguments that choose a workload file and set its variables.
#[derive(Debug, clap::Args)]
pub struct Chosen {
    #[arg(
        value_name = "FILE|NAME",
        value_hint = clap::ValueHint::FilePath,
        help = format!("A workload file, or {}", builtin_names())
    )]
    pub file: String,
    /// Give a variable of the file another value, as -D nthreads=4
    #[arg(short = 'D', long = "define", value_name = "VAR=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Take the settings of the published measurements (varmail and oltp); -D goes before
    #[arg(long, value_name = "NAME", value_parser = PRESETS)]
    preset: Option<String>,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected VAR=VALUE, as nthreads=4")?;
    let name = name.strip_prefix('$').unwrap_or(name);
    Ok((name.into(), value.into()))
}

impl Chosen {
    pub fn script(&self) -> Result<Script, LoadError> {
        load(&self.file)
    }

    /// Values of variables: those of the preset, then those of -D, so that -D has
    /// the last word.
    pub fn overrides(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut overrides = match &self.preset {
            None => Vec::new(),
            Some(preset) => builtin_presets(&self.file, preset).ok_or_else(|| {
                Failure::usage(
                    "bench",
                    format!(
                        "there is no preset {preset} of {}: only varmail and oltp have one",
                        self.file
                    ),
                )
            })?,
        };
        for (name, value) in &self.define {
            overrides.retain(|(other, _)| other != name);
            overrides.push((name.clone(), value.clone()));
        }
        Ok(overrides)
    }
}

/// Tells what is wrong with a file, one line each, and makes the failure of it.
pub fn refused(error: LoadError, context: &mut Context) -> Result<Failure, Failure> {
    match error {
        LoadError::Refused(diagnostics) => Ok(told(&diagnostics, context)?),
        LoadError::Unknown { ref name } => Ok(HostError::NotFound {
            path: name.clone(),
            why: "no such workload file".into(),
            fix: format!("give the path of a file, or {}", builtin_names()),
        }
        .into()),
        LoadError::Read { path, source } => Ok(Failure::workload(
            path.display(),
            format!("cannot read it: {}", plain(&source)),
        )),
    }
}

/// As [`refused`], for what is wrong with the values.
pub fn told(diagnostics: &Diagnostics, context: &mut Context) -> Result<Failure, Failure> {
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
