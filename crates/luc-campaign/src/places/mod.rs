//! Places, where cells are measured. Each is a file and a row of [`ALL`].

use std::path::{Path, PathBuf};

use luc_base::Stop;

use crate::cell::{Cell, NamedArm, Versions};
use crate::error::Result;
use crate::result::Measured;

mod file_system;
pub mod host;
mod lab;
pub mod sim;

pub use lab::disk as lab_disk;

/// Every place.
pub const ALL: [&dyn Place; 3] = [&lab::Lab, &host::Host, &sim::Sim];

/// Finds a place by its name.
pub fn find(name: &str) -> Option<&'static dyn Place> {
    ALL.into_iter().find(|place| place.name() == name)
}

/// The value of a factor that is not used. Cells do not mention it, so that a new factor leaves the
/// keys of earlier results as they are.
pub const NONE: &str = "none";

/// Something that a place can vary.
#[derive(Clone, Copy)]
pub struct Factor {
    pub name: &'static str,
    /// Description for the user.
    pub help: &'static str,
    /// Default value; without one, every block must name the factor.
    pub default: Option<&'static str>,
    /// Checks a value; [`Place::check`] checks bounds that depend on other factors.
    pub check: fn(&str) -> std::result::Result<(), String>,
}

/// Command-line options for this machine. Those that affect results are also in the versions.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A folder with the sources of the module (`kmod`, `control`, `abi`).
    pub source: PathBuf,
    /// The program `luc-lab` for the guest, which has the `luc` beside it; this program itself by
    /// default.
    pub luc_lab: Option<PathBuf>,
    /// Limit of host time for one cell, seconds.
    pub limit_s: u64,
    pub stop: Stop,
    /// Root of the machine's files; empty stands for `/`.
    pub sysroot: PathBuf,
    /// Folder of the results, where a place keeps what the next run must know.
    pub out: PathBuf,
    /// The device that the place `host` may overwrite.
    pub scratch: Option<Scratch>,
    /// Whether results of other versions count: only cells without any are measured.
    pub any_version: bool,
}

impl Setup {
    pub fn sysroot(&self) -> &Path {
        if self.sysroot.as_os_str().is_empty() {
            return Path::new("/");
        }
        &self.sysroot
    }
}

/// A device to make file systems on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    pub device: PathBuf,
    pub erase: Erase,
}

/// When the user allows a device to be overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Erase {
    #[default]
    No,
    /// If it is blank, or holds what an earlier cell left.
    Blank,
    /// Also if it holds this kind of content.
    Known(String),
}

/// A cell's share of this machine while it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    pub processors: u32,
    pub memory_mib: u64,
    /// Whether nothing else may be measured meanwhile.
    pub alone: bool,
}

/// A kind of machine that measures cells.
pub trait Place: Sync {
    fn name(&self) -> &'static str;

    /// Everything that can be varied there.
    fn factors(&self) -> &'static [Factor];

    /// Checks what a single factor's check cannot see.
    ///
    /// # Errors
    /// What is wrong with the cell.
    fn check(&self, cell: &Cell) -> std::result::Result<(), String>;

    fn needs(&self, cell: &Cell) -> Needs;

    /// Versions of everything that affects the cell's result.
    ///
    /// # Errors
    /// A version cannot be determined.
    fn versions(&self, cell: &Cell, setup: &Setup) -> Result<Versions>;

    /// The command that measures one arm of a cell again, if the command line has one.
    fn command(&self, _cell: &Cell, _arm: &NamedArm) -> Option<String> {
        None
    }

    /// Measures all arms of a cell; fails if any arm other than a bound fails.
    ///
    /// # Errors
    /// [`crate::CampaignError::Unavailable`] if nothing can be measured here, else
    /// [`crate::CampaignError::Failed`].
    fn measure(
        &self,
        cell: &Cell,
        setup: &Setup,
        progress: &mut dyn luc_vm::Progress,
    ) -> Result<Measured>;
}

/// Checks that a text is a whole number within bounds.
pub(crate) fn whole(text: &str, min: u64, max: u64) -> std::result::Result<(), String> {
    match text.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(()),
        _ => Err(format!("must be a whole number from {min} to {max}")),
    }
}

/// Lets a factor be [`NONE`], and checks every other value.
pub(crate) fn none_or(
    text: &str,
    check: impl FnOnce(&str) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    if text == NONE { Ok(()) } else { check(text) }
}

/// Describes a cell: its benchmark, and the factors that differ from the place's defaults.
pub fn shown(cell: &Cell) -> String {
    let factors = find(&cell.place).map_or(&[] as &[Factor], Place::factors);
    let is_default = |name: &str, value: &str| {
        let factor = factors.iter().find(|factor| factor.name == name);
        factor.is_some_and(|factor| factor.default == Some(value))
    };
    let mut words: Vec<String> = vec![short_command(&cell.bench)];
    for (name, value) in &cell.machine {
        if !is_default(name, value) {
            words.push(format!("{name} {value}"));
        }
    }
    words.push(format!("repeat {}", cell.repeat));
    words.join(", ")
}

/// Shortens a benchmark's command: leaves out its folder, seed and times.
fn short_command(command: &str) -> String {
    let mut words = command.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--dir" | "--seconds" | "--seed" | "--warmup-s" => _ = words.next(),
            "--settle" | "{dir}" => {}
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}
