//! Prints how the bets respond to given pairs, for `scripts/confseq.sh`.
//!
//! Reads x = ln(on / off) in ppm, one per line. Prints for each the bound, the stake on it, and the
//! logarithms of both capitals after it, all in ppm.

use std::io::{self, BufRead as _};

use luc_control::Bets;

fn main() -> io::Result<()> {
    let mut bets = Bets::default();
    for line in io::stdin().lock().lines() {
        let x_ppm = line?.trim().parse().map_err(io::Error::other)?;
        let (bound, stake) = (bets.bound_ppm(), bets.stake_ppm());
        bets.hear(x_ppm);
        println!("{bound} {stake} {} {}", bets.certificate, bets.harm);
    }
    Ok(())
}
