//! The interface of every source of energy.

use std::time::{Duration, Instant};

use super::reading::Boundary;

/// The reason why the energy so far is unknown.
pub type Lost = String;

/// Energy that a source counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub joules: f64,
    /// The part of it that the processors' cores took; `None` if unknown.
    pub cores_joules: Option<f64>,
    /// Times that it moved, or a number that grows faster.
    pub steps: u64,
}

impl Counted {
    /// The energy since an earlier look.
    pub fn since(self, before: Self) -> Self {
        let cores = self.cores_joules.zip(before.cores_joules);
        Self {
            joules: self.joules - before.joules,
            cores_joules: cores.map(|(now, before)| now - before),
            steps: self.steps.saturating_sub(before.steps),
        }
    }

    /// Adds the energy of another time.
    pub fn and(self, other: Self) -> Self {
        let cores = self.cores_joules.zip(other.cores_joules);
        Self {
            joules: self.joules + other.joules,
            cores_joules: cores.map(|(a, b)| a + b),
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
