//! Compares the documents' figures with our own: what they report, what we measure, and a verdict
//! by rule.
//!
//! `campaigns/published.toml` ([`published`]) holds what the documents say, claim by claim, and
//! which figure over which points of `campaigns/reproduce.toml`, an ordinary campaign, answers
//! each. [`chosen`] cuts that campaign down to what the chosen figures need; [`sweep`] computes a
//! claim's figure from the results, [`verdict`] compares it with the published one, and
//! [`document`] presents everything as a report, [`markdown`] as a page. No verdict is stored: each
//! follows from results.
//!
//! A worked example. Figure 5.8 says that PID batching is "up to 2.26 times" as fast as ext4. The
//! claim takes the `max` of the ratio of the arm `pid-published` to `stock` over the points that
//! fit its `where`. The largest mean of eight points is 1.90. Because it is the largest of eight,
//! its interval has a confidence of 1 - 0.05/8 (Bonferroni), say 1.75 to 2.06. The published effect
//! is 1.26 above no effect, 1; a quarter of that is tolerated, so 1.945 to 2.575 agrees: our
//! interval overlaps that range and does not contain 1. The verdict is "reproduced". Were it 1.30
//! to 1.50, it would be "same direction"; 0.98 to 1.10, "not reproduced".

mod causes;
mod check;
pub mod chosen;
pub mod document;
pub mod found;
mod load;
pub mod markdown;
pub mod published;
pub mod sweep;
pub mod verdict;

pub use load::campaign;
pub use published::Published;
