//! Options of the original programs that are refused, each by its name and with the reason.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, Error};

/// A short option of the original program.
#[derive(Clone, Copy)]
pub struct Letter {
    pub letter: char,
    /// Whether a value follows it.
    pub has_value: bool,
    /// LUC's behaviour instead, or the option to give.
    pub why: &'static str,
}

/// An option without a value.
pub const fn flag(letter: char, why: &'static str) -> Letter {
    Letter {
        letter,
        has_value: false,
        why,
    }
}

/// An option with a value.
pub const fn valued(letter: char, why: &'static str) -> Letter {
    Letter {
        letter,
        has_value: true,
        why,
    }
}

/// Returns hidden arguments that end the parsing with a line about the option.
pub fn refused(letters: &'static [Letter]) -> Vec<Arg> {
    let arg = |letter: &Letter| {
        let arg = Arg::new(format!("refused-{}", letter.letter))
            .short(letter.letter)
            .action(ArgAction::Set)
            .value_parser(Refusal(*letter))
            .hide(true);
        if letter.has_value {
            arg
        } else {
            arg.num_args(0).default_missing_value("given")
        }
    };
    letters.iter().map(arg).collect()
}

#[derive(Clone)]
struct Refusal(Letter);

impl TypedValueParser for Refusal {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, _: &OsStr) -> Result<String, Error> {
        let Letter { letter, why, .. } = self.0;
        let name = command.get_name();
        let message = format!("-{letter} of {name} is refused: {why}\n");
        Err(Error::raw(ErrorKind::UnknownArgument, message).with_cmd(command))
    }
}
