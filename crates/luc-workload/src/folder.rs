//! The directory to work in, which every workload is given in the same two ways.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgGroup, ArgMatches, Command, Error, FromArgMatches, ValueHint};
use serde::{Deserialize, Serialize};

/// An existing directory on the file system to test: `DIR` or `--dir DIR` on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Folder(PathBuf);

/// The two arguments; exactly one is given.
const IDS: [&str; 2] = ["dir", "dir-option"];

impl clap::Args for Folder {
    fn augment_args(command: Command) -> Command {
        let arg = |id| {
            Arg::new(id)
                .value_name("DIR")
                .value_hint(ValueHint::DirPath)
                .value_parser(ValueParser::path_buf())
        };
        let [positional, option] = IDS;
        let help =
            "Directory on the file system to test; a sub-directory of it is used and removed";
        command
            .arg(arg(positional).help(help))
            .arg(arg(option).long("dir").help("The same as DIR"))
            .group(ArgGroup::new("folder").args(IDS).required(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Folder {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |id| matches.get_one::<PathBuf>(id).cloned();
        // The group is required, so clap has refused a command line without either.
        IDS.into_iter()
            .find_map(given)
            .map(Self)
            .ok_or_else(|| Error::new(ErrorKind::MissingRequiredArgument))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl From<PathBuf> for Folder {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}
