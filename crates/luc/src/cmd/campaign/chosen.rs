//! Which campaign a verb is about, and the folder of its results.

use std::path::{Path, PathBuf};

use luc_campaign::places::Setup;
use luc_campaign::{Campaign, Part, campaigns};
use luc_workload::Stop;

use crate::cmd::stock_lab;
use crate::exit::Failure;

/// Host time that a cell may take, seconds: ten times what the longest does.
const LIMIT_S: u64 = 3600;

/// A campaign's file.
#[derive(Debug, clap::Args)]
pub struct Chosen {
    #[arg(
        value_name = "FILE|NAME",
        value_hint = clap::ValueHint::FilePath,
        help = format!("A campaign's file, or {}", campaigns::names())
    )]
    campaign: String,
    /// Folder of the results; made if absent [default: out/NAME]
    #[arg(long, short = 'o', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Only these blocks
    #[arg(long, value_name = "BLOCK", value_delimiter = ',')]
    only: Vec<String>,
    /// Other values of a factor, as --set kernel=6.12 or --set vcpus=1,4; may be repeated
    #[arg(long = "set", value_name = "FACTOR=VALUE,...")]
    values: Vec<String>,
    /// Measure each point this often, however wide its intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
}

impl Chosen {
    pub fn campaign(&self) -> Result<Campaign, Failure> {
        let part = Part {
            blocks: self.only.clone(),
            values: self.values.clone(),
            repeats: self.repeats,
        };
        Ok(part.of(campaigns::load(&self.campaign)?)?)
    }

    pub fn out(&self) -> PathBuf {
        let stem = || Path::new(&self.campaign).file_stem().unwrap_or_default();
        self.out
            .clone()
            .unwrap_or_else(|| Path::new("out").join(stem()))
    }
}

/// This machine.
pub fn setup(source: Option<&Path>, stop: &Stop) -> Result<Setup, Failure> {
    Ok(Setup {
        source: stock_lab::source(source)?,
        binary: None,
        limit_s: LIMIT_S,
        stop: stop.clone(),
    })
}
