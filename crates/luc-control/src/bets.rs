//! The bets on pairs of windows, as `control/luc_bets.c` documents them, and logarithms.

use std::ffi::c_int;

/// The state of two players: what they have learned from the pairs so far, and their capital. The
/// default has heard no pair. Any numbers are accepted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bets {
    /// Number of pairs heard.
    pub pairs: i64,
    /// Sum of y, ppm: each is the distance of x from the limit, clipped at the bound.
    pub sum: i64,
    /// Sum of squared deviations of clipped y, each from the mean of those before it, ppm².
    pub squares: i64,
    /// Sum of squares of y, clipped at the largest bound only, ppm².
    pub wide_squares: i64,
    /// Logarithm of the capital that bets for LUC, ppm.
    pub certificate: i64,
    /// Logarithm of the capital that bets against LUC, ppm.
    pub harm: i64,
}

/// The verdict on the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetsVerdict {
    /// LUC is at least 0.99 of stock.
    Certified,
    /// LUC is less than that.
    Refuted,
}

// SAFETY: the declarations repeat those of `control/luc_bets.h` and `control/luc_log.h`; the enum
// is the u32 that shim/layout.c pins.
unsafe extern "C" {
    fn luc_bets_hear(bets: *mut Bets, x_ppm: i64);
    fn luc_bets_verdict(bets: *const Bets) -> u32;
    fn luc_bets_mean_ppm(bets: *const Bets) -> i64;
    fn luc_bets_bound_ppm(bets: *const Bets) -> i64;
    fn luc_bets_stake_ppm(bets: *const Bets) -> i64;
    safe fn luc_coin(counter: u64) -> c_int;
    safe fn luc_ln_ratio_ppm(a: i64, b: i64) -> i64;
}

impl Bets {
    /// ln 0.99: the limit that both players bet on.
    pub const LIMIT_PPM: i64 = -10_050;
    /// ln 100, rounded up: a player whose capital has grown this much has won.
    pub const WON_PPM: i64 = 4_605_171;

    /// Hears a pair: x = ln(on / off), any value.
    pub fn hear(&mut self, x_ppm: i64) {
        // SAFETY: the layout is pinned by static assertions in shim/layout.c, and the callee keeps
        // no pointer, here and below.
        unsafe { luc_bets_hear(self, x_ppm) }
    }

    /// Returns the verdict on the pairs heard so far; `None` while it is open.
    pub fn verdict(&self) -> Option<BetsVerdict> {
        // SAFETY: as in hear; the callee only reads, here and below.
        match unsafe { luc_bets_verdict(self) } {
            1 => Some(BetsVerdict::Certified),
            2 => Some(BetsVerdict::Refuted),
            _ => None,
        }
    }

    /// Returns the mean of clipped y so far: how far the pairs are above the limit.
    pub fn mean_ppm(&self) -> i64 {
        // SAFETY: as in verdict.
        unsafe { luc_bets_mean_ppm(self) }
    }

    /// Returns the bound at which y of the next pair is clipped.
    pub fn bound_ppm(&self) -> i64 {
        // SAFETY: as in verdict.
        unsafe { luc_bets_bound_ppm(self) }
    }

    /// Returns the stake on the next pair: for LUC if above 0, against it if below.
    pub fn stake_ppm(&self) -> i64 {
        // SAFETY: as in verdict.
        unsafe { luc_bets_stake_ppm(self) }
    }
}

/// Draws the order of a pair's windows; the same counter always gives the same order.
pub fn coin(counter: u64) -> bool {
    luc_coin(counter) != 0
}

/// Returns ln(a / b) to the nearest ppm, limited to ln 100 either way.
pub fn ln_ratio_ppm(a: i64, b: i64) -> i64 {
    luc_ln_ratio_ppm(a, b)
}
