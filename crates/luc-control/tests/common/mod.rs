//! Helpers that several test files share.
#![allow(dead_code)] // each test file uses its part

pub mod values;

/// Fails unless an essay of `control/` holds these lines, which the code computed.
pub fn assert_written(essay: &str, lines: &[String]) {
    for line in lines {
        assert!(essay.contains(line), "not written:\n{}", lines.join("\n"));
    }
}

/// A generator of random numbers: the same seed gives the same run on every machine.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next_u64(&mut self) -> u64 {
        luc_base::random::next(&mut self.0)
    }

    /// Returns a number with 0 <= number < end.
    pub fn below(&mut self, end: i64) -> i64 {
        let end = u64::try_from(end).expect("a positive bound");
        i64::try_from(self.next_u64() % end.max(1)).expect("smaller than end")
    }
}
