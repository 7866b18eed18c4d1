//! The choice of a workload file and of its variables.

use luc_wml::{LoadError, PRESETS, Script, builtin_names, builtin_presets, load};
use thiserror::Error;

/// Arguments that choose a workload file and set its variables.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct Chosen {
    #[arg(
        value_name = "FILE|NAME",
        value_hint = clap::ValueHint::FilePath,
        help = format!("A workload file, or {}", builtin_names())
    )]
    pub file: String,
    /// Set a variable of the file, for example -D nthreads=4
    #[arg(short = 'D', long = "define", value_name = "VAR=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Use the settings of the published measurements (varmail and oltp only); -D overrides them
    #[arg(long, value_name = "NAME", value_parser = PRESETS)]
    preset: Option<String>,
}

/// The file has no such preset.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file} has no preset {preset}: only varmail and oltp have presets")]
pub struct NoPreset {
    preset: String,
    file: String,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected VAR=VALUE, for example nthreads=4")?;
    let name = name.strip_prefix('$').unwrap_or(name);
    Ok((name.into(), value.into()))
}

impl Chosen {
    /// # Errors
    /// If there is no such file, or it is not a workload.
    pub fn script(&self) -> Result<Script, LoadError> {
        load(&self.file)
    }

    /// Returns the values of variables: those of the preset, then those of -D, which override them.
    ///
    /// # Errors
    /// If the file has no such preset.
    pub fn overrides(&self) -> Result<Vec<(String, String)>, NoPreset> {
        let mut overrides = match &self.preset {
            None => Vec::new(),
            Some(preset) => builtin_presets(&self.file, preset).ok_or_else(|| NoPreset {
                preset: preset.clone(),
                file: self.file.clone(),
            })?,
        };
        for (name, value) in &self.define {
            overrides.retain(|(other, _)| other != name);
            overrides.push((name.clone(), value.clone()));
        }
        Ok(overrides)
    }
}
