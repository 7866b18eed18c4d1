//! Prints what the bets make of given pairs, for `scripts/confseq.sh`.
//!
//! Reads x = ln(on / off), one a line; prints for each the bound, both stakes on it, and both capitals
//! after it.

use std::io::{self, BufRead as _};

use luc_guard::Evidence;

fn main() -> io::Result<()> {
    let mut evidence = Evidence::default();
    for line in io::stdin().lock().lines() {
        let x: f64 = line?.trim().parse().map_err(io::Error::other)?;
        let (bound, (for_luc, against_luc)) = (evidence.bound(), evidence.stakes());
        evidence.hear(x);
        println!(
            "{bound:e} {for_luc:e} {against_luc:e} {:e} {:e}",
            evidence.for_luc(),
            evidence.against_luc()
        );
    }
    Ok(())
}
