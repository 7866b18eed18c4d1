//! `luc`: measure, explain and remove ext4 journal-commit delays on a live
//! system. Everything is in the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    luc_cli::main::<luc::cmd::Cli>()
}
