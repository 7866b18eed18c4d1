//! Compares the documents' figures with our own: what they report, what we measure, and a verdict
//! by rule.
//!
//! `campaigns/published.toml` ([`published`]) holds what the documents say, claim by claim, and
//! which figure over which points of `campaigns/reproduce.toml`, an ordinary campaign, answers
//! each. [`chosen`] cuts that campaign down to what the chosen figures need; [`sweep`] computes a
//! claim's figure from the results, and [`verdict`] compares it with the published one.
//! [`document`] presents everything as a report, [`markdown`] as a page, [`summary`] on a terminal.
//! No verdict is stored: each follows from results.
//!
//! A worked example. Figure 5.8 says that PID batching is "up to 2.26 times" as fast as ext4. The
//! claim takes the `max` of the ratio of the arm `pid-published` to `stock` over the points that
//! fit its `where`. The largest mean of four points is 2.05. No point's interval at 95% ends above
//! 2.20, so the largest ratio is at most that. At 1 - 0.05/4 all four intervals hold at once
//! (Bonferroni), and the highest of their lower ends is 1.96: the largest ratio is at least that.
//! The published effect is 1.26 above no effect, 1; a quarter of that is tolerated, so 1.945 to
//! 2.575 agrees. All of our interval lies in that range: the verdict is "reproduced". Were it 1.30
//! to 2.00, it would be "same direction"; 0.98 to 1.10, "refuted"; 0.9 to 2.1, "unknown".

mod causes;
mod check;
pub mod chosen;
pub mod document;
pub mod found;
mod load;
pub mod markdown;
pub mod published;
pub mod summary;
pub mod sweep;
pub mod verdict;

pub use load::campaign;
pub use published::Published;
