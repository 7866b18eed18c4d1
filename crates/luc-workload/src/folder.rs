//! The directory to work in, which every workload takes as `DIR` or as `--dir DIR`.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error, FromArgMatches, ValueHint};
use serde::{Deserialize, Serialize};

/// An existing directory on the file system to test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Folder(PathBuf);

// No doc comment: it would become help text.
#[derive(clap::Args)]
#[group(id = "folder", required = true, multiple = false)]
struct Given {
    /// Directory on the file system to test; the run uses and removes a subdirectory of it
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// The same as DIR
    #[arg(id = "dir-option", short = 'd', long = "dir", value_name = "DIR", value_hint = ValueHint::DirPath)]
    option: Option<PathBuf>,
}

impl clap::Args for Folder {
    fn augment_args(command: Command) -> Command {
        Given::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Given::augment_args(command)
    }
}

impl FromArgMatches for Folder {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Given { dir, option } = Given::from_arg_matches(matches)?;
        // The group is required, so clap has refused a command line without either.
        let missing = || Error::new(ErrorKind::MissingRequiredArgument);
        dir.or(option).map(Self).ok_or_else(missing)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}
