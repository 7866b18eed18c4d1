//! The interface of every source of energy.

use std::time::{Duration, Instant};

use super::reading::{Boundary, Parts};

/// The reason why the energy so far is unknown.
pub type Lost = String;

/// Energy that a source counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub joules: f64,
    pub parts: Parts,
    /// Times that it moved, or a number that grows faster.
    pub steps: u64,
}

impl Counted {
    /// The energy since an earlier look.
    pub fn since(self, before: Self) -> Self {
        Self {
            joules: self.joules - before.joules,
            parts: self.parts.with(before.parts, |now, before| now - before),
            steps: self.steps.saturating_sub(before.steps),
        }
    }

    /// Adds the energy of another time.
    pub fn and(self, other: Self) -> Self {
        Self {
            joules: self.joules + other.joules,
            parts: self.parts.with(other.parts, |one, other| one + other),
            steps: self.steps + other.steps,
        }
    }
}

/// Something that counts energy.
pub trait Source: Send {
    fn count(&mut self, now: Instant) -> Result<Counted, Lost>;

    /// Fewest steps of a reading: an edge may be off by one.
    fn steps_min(&self) -> u64;

    /// Longest time between two looks.
    fn period(&self) -> Duration;
}

/// A source, with what it counts.
pub struct Found {
    pub boundary: Boundary,
    pub source: Box<dyn Source>,
}
