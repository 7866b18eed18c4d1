//! Is the 99th percentile of a sync with LUC worse than stock's?
//!
//! A window alone is too short for a 99th percentile: of 200 syncs two are above it. So all pairs
//! together decide. q is the 99th percentile of stock's last windows, without the present pair. It
//! is the upper bound of its bucket, so that a count tells which syncs are slower. A pair yields
//!
//! > y = (1 % - s) + (share of stock's syncs above q) - (share of LUC's above 1.2 q),
//!
//! where s, at most 1 %, is the share above q in the windows that q is from. The bets of
//! [`crate::evidence`] are on the mean of y. While stock stays as it is, that is 1 % less the share
//! of LUC's syncs that take over 1.2 times stock's 99th percentile. Below 0, more than 1 % take so
//! long: LUC is refuted. Above 0, fewer do: LUC is certified. If all syncs are slow for a while,
//! that slows both windows of a pair, or LUC's with a chance of one half. As s is at most 1 %, a
//! LUC whose times are like stock's is never the worse side, whatever q is.
//!
//! Both claims allow for the width of the buckets. LUC's syncs count as slow if their whole bucket
//! is above 1.2 q. Stock's percentile lies anywhere in its bucket below q. So between [`REFUTED`]
//! and [`CERTIFIED`] either verdict may come, or none.

use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, LIMIT, TrialVerdict};
use crate::pair::Pair;
use crate::times::Times;

/// Refuted: LUC's 99th percentile is over this many times stock's.
pub const REFUTED: f64 = 1.2;
/// Certified: it is at most this many times stock's, with sixteen buckets per power of two.
pub const CERTIFIED: f64 = 1.33;

/// The share of syncs above a 99th percentile.
const SHARE: f64 = 0.01;
/// y is scaled to the bounds of the bets, which cut it at 0.5 to 5 % of the syncs. Chosen: with two
/// hundred commits a window, the share of slow syncs spreads by about 1 %.
const SCALE: f64 = 4.0;
/// At this number of stock's windows, half of what they counted is forgotten. Chosen: more than a
/// verdict takes on most loads, yet few enough that q follows a load that changes.
const WINDOWS_MAX: u32 = 64;

/// The bets on slow syncs, and the times of stock's last windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    stock: Times,
    windows: u32,
    bets: Evidence,
}

impl Slow {
    /// Whether times are seen.
    pub fn is_seen(&self) -> bool {
        self.windows > 0
    }

    pub fn evidence(&self) -> &Evidence {
        &self.bets
    }

    pub fn verdict(&self) -> Option<TrialVerdict> {
        self.bets.verdict()
    }

    /// Starts the bets afresh on the same load.
    pub fn begin_anew(&mut self) {
        self.bets = Evidence::default();
    }

    /// Hears a pair that is not idle.
    pub fn hear(&mut self, pair: &Pair) {
        let (Some(on), Some(off)) = (&pair.on.times, &pair.off.times) else {
            *self = Self::default();
            return;
        };
        if let Some(q) = self.stock.tail_bound_ns() {
            let spare = SHARE - self.stock.share_above(q);
            let y = spare + off.share_above(q) - on.share_above(REFUTED * q);
            self.bets.hear(LIMIT.ln() + SCALE * y);
        }
        self.stock.add(off);
        self.windows += 1;
        if self.windows == WINDOWS_MAX {
            self.stock.halve();
            self.windows /= 2;
        }
    }
}
