//! Arguments that choose a campaign and the folder of its results.

use std::path::{Path, PathBuf};

use luc_campaign::places::{Erase, Scratch, Setup};
use luc_campaign::{Campaign, Part, campaigns};

use crate::cmd::stock_lab;
use crate::failure::OrFailure as _;
use luc_cli::{Context, Failure};

/// Host time that a cell may take, seconds: ten times that of the longest cell.
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
    /// Directory for the results; created if absent [default: out/NAME]
    #[arg(long, short = 'o', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    part: Part,
}

impl Chosen {
    pub fn campaign(&self) -> Result<Campaign, Failure> {
        let whole = campaigns::load(&self.campaign).or_failure()?;
        self.part.narrow(whole).or_failure()
    }

    pub fn out(&self) -> PathBuf {
        let stem = || Path::new(&self.campaign).file_stem().unwrap_or_default();
        self.out
            .clone()
            .unwrap_or_else(|| Path::new("out").join(stem()))
    }
}

/// The device that cells on bare metal may overwrite.
#[derive(Debug, clap::Args)]
pub struct Device {
    /// Device on which bare-metal cells create their file systems; all data on it is lost
    #[arg(long, value_name = "DEVICE", value_hint = clap::ValueHint::FilePath)]
    device: Option<PathBuf>,
    /// Allow luc-lab to overwrite the device; if the device holds data, CONTENT must name what it
    /// holds
    #[arg(
        long,
        value_name = "CONTENT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        requires = "device"
    )]
    erase: Option<String>,
}

impl Device {
    pub fn is_named(&self) -> bool {
        self.device.is_some()
    }

    fn scratch(&self) -> Option<Scratch> {
        Some(Scratch {
            device: self.device.clone()?,
            erase: match self.erase.as_deref() {
                None => Erase::No,
                Some("") => Erase::Blank,
                Some(content) => Erase::Known(content.to_owned()),
            },
        })
    }
}

/// Describes this machine for cells in these places, with results in the folder `out`.
pub fn setup<'a>(
    places: impl IntoIterator<Item = &'a str>,
    source: Option<&Path>,
    out: &Path,
    device: Option<&Device>,
    context: &Context,
) -> Result<Setup, Failure> {
    // Only the lab builds the module.
    let builds = places.into_iter().any(|place| place == "lab");
    let source = match (builds, source) {
        (false, None) => PathBuf::new(),
        _ => stock_lab::source(source)?,
    };
    Ok(Setup {
        source,
        luc_lab: None,
        limit_s: LIMIT_S,
        stop: context.stop.clone(),
        sysroot: context.system.path("/"),
        out: out.to_owned(),
        scratch: device.and_then(Device::scratch),
        any_version: false,
    })
}

/// The places of a campaign's cells.
pub fn places(campaign: &Campaign) -> impl Iterator<Item = &str> {
    campaign.blocks.iter().map(|block| block.place.as_str())
}
