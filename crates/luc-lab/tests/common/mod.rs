//! Code that the tests of `luc-lab` share.

#![allow(dead_code)] // each test file uses its part

pub type Pretended = luc_test::machine::Pretended<luc_lab::cmd::Cli>;

/// The other program, which reads what this one records.
pub fn luc() -> assert_cmd::Command {
    luc_test::command::program("luc")
}

pub fn luc_lab() -> assert_cmd::Command {
    luc_test::command::program("luc-lab")
}

/// A campaign of two disks and two numbers of threads.
pub const SMALL: &str = include_str!("../../../luc-campaign/tests/data/small.toml");

/// A campaign on this machine itself.
pub const METAL: &str = r#"title = "Metal"
[stop]
repeats_min = 1
repeats_max = 1
[[block]]
name = "loops"
place = "host"
bench = "create-fsync --threads 2 --seconds {seconds} --warmup-s 0 {dir}"
arms = ["stock", "nojc"]
factors = { seconds = [0.2], fs = ["ext4", "ext3"] }
[[table]]
title = "Files per second"
block = "loops"
rows = ["fs"]
columns = [
	{ heading = "stock", arm = "stock", measure = "rate" },
	{ heading = "no journal", arm = "nojc", measure = "rate" },
]
"#;
