//! `luc-lab`: measure what LUC gives, in virtual machines, in the simulator and on this machine.
//! Everything is in the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    if luc_vm::guest::is_guest_init() {
        luc_vm::guest::init_main();
    }
    luc_cli::main::<luc_lab::cmd::Cli>()
}
