//! Numbers as people read them.

pub use luc_base::words::{percent, three};

/// A ratio.
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// A ratio to three places, for those that should be 1.
pub fn fine_ratio(value: f64) -> String {
    format!("{value:.3}")
}

/// To the nearest whole number.
pub fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Milliseconds, to the microsecond.
pub fn ms(value: f64) -> String {
    format!("{value:.3}")
}
