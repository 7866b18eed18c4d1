//! What the tests of `luc` share.

#![allow(dead_code)] // each test file uses its part

pub type Pretended = luc_test::machine::Pretended<luc::cmd::Cli>;

pub fn luc() -> assert_cmd::Command {
    luc_test::command::program("luc")
}
