//! What the tests of `luc-lab` share.

#![allow(dead_code)] // each test file uses its part

pub type Pretended = luc_test::machine::Pretended<luc_lab::cmd::Cli>;

/// The other program, which reads what this one records.
pub fn luc() -> assert_cmd::Command {
    luc_test::command::program("luc")
}

pub fn luc_lab() -> assert_cmd::Command {
    luc_test::command::program("luc-lab")
}
