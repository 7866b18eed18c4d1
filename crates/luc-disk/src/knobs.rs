//! The knob table of `lab/disk/lucdisk_knobs.h` as data, and sets of values.

use crate::ffi;
use std::ffi::{CStr, c_char};
use std::sync::LazyLock;
use thiserror::Error;

/// One row of the knob table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Name, which ends in the unit.
    pub name: &'static str,
    /// Smallest value, inclusive.
    pub min: i64,
    /// Largest value, inclusive.
    pub max: i64,
    /// Value if a disk does not set the knob.
    pub default: i64,
    /// Description in one line.
    pub help: &'static str,
}

/// Why a knob or its value is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum KnobError {
    /// No row of that name.
    #[error("no knob is named '{name}'; available: {known}")]
    Unknown {
        name: String,
        /// All names, comma separated.
        known: String,
    },
    /// Not a decimal number within the bounds.
    #[error("{knob} cannot be '{text}'; it takes a whole number from {min} to {max}")]
    OutOfBounds {
        knob: &'static str,
        /// The given value.
        text: String,
        min: i64,
        max: i64,
    },
}

impl Knob {
    /// Parses a value.
    ///
    /// # Errors
    /// The text is not a number, or the number is out of bounds.
    pub fn parse(&self, text: &str) -> Result<i64, KnobError> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(value) if digits && (self.min..=self.max).contains(&value) => Ok(value),
            _ => Err(KnobError::OutOfBounds {
                knob: self.name,
                text: text.to_owned(),
                min: self.min,
                max: self.max,
            }),
        }
    }
}

/// Returns all knobs, in the order of the table.
pub fn knobs() -> &'static [Knob] {
    static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(load_knobs);
    &KNOBS
}

/// Returns the knob with this name.
///
/// # Errors
/// [`KnobError::Unknown`] with all names.
pub fn knob(name: &str) -> Result<&'static Knob, KnobError> {
    index(name).map(|at| &knobs()[at])
}

fn index(name: &str) -> Result<usize, KnobError> {
    let at = knobs().iter().position(|knob| knob.name == name);
    at.ok_or_else(|| {
        let names: Vec<_> = knobs().iter().map(|knob| knob.name).collect();
        KnobError::Unknown {
            name: name.to_owned(),
            known: names.join(", "),
        }
    })
}

fn load_knobs() -> Vec<Knob> {
    let mut nr = 0;
    // SAFETY: the callee writes nr.
    let first = unsafe { ffi::lucdisk_shim_knobs(&raw mut nr) };
    let nr = usize::try_from(nr).unwrap_or(0);
    // SAFETY: it is a static array of nr rows, never written.
    let rows = unsafe { std::slice::from_raw_parts(first, nr) };
    rows.iter()
        .map(|row| Knob {
            name: text(row.name),
            min: row.min,
            max: row.max,
            default: row.default,
            help: text(row.help),
        })
        .collect()
}

/// Converts a string of the table, a plain C literal in ASCII.
fn text(literal: *const c_char) -> &'static str {
    // SAFETY: every string of the table is a NUL-terminated static literal.
    let literal = unsafe { CStr::from_ptr(literal) };
    literal.to_str().unwrap_or("?")
}

/// A value for each knob; the default is a disk that takes no time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    // struct lucdisk_params, as long as the knob table.
    values: Vec<i64>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            values: knobs().iter().map(|knob| knob.default).collect(),
        }
    }
}

impl Params {
    /// Takes values in the order of [`knobs`], unchecked: the model accepts any. Missing values
    /// become defaults, surplus ones are ignored.
    pub fn from_values(values: &[i64]) -> Self {
        let mut params = Self::default();
        for (to, from) in params.values.iter_mut().zip(values) {
            *to = *from;
        }
        params
    }

    /// Returns the knobs with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Knob, i64)> {
        knobs().iter().zip(self.values.iter().copied())
    }

    /// Value of a knob; `None` if no knob has that name.
    pub fn get(&self, name: &str) -> Option<i64> {
        index(name).ok().map(|at| self.values[at])
    }

    /// Sets a knob.
    ///
    /// # Errors
    /// An unknown name or a value out of bounds.
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), KnobError> {
        let at = index(name)?;
        knobs()[at].parse(&value.to_string())?;
        self.values[at] = value;
        Ok(())
    }

    pub(crate) fn as_ptr(&self) -> *const i64 {
        self.values.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in which the names of quantities end; the other knobs are switches and counts.
    const UNITS: [&str; 4] = ["_ns", "_bytes", "_events", "_permille"];
    const WITHOUT_UNIT: [&str; 4] = [
        "queue_requests",
        "channels",
        "cache_volatile",
        "flush_exclusive",
    ];

    #[test]
    fn every_knob_has_a_unit_a_help_and_bounds() {
        assert!(knobs().len() > 25, "{}", knobs().len());
        for knob in knobs() {
            assert!(!knob.help.is_empty(), "{}", knob.name);
            assert!(knob.min < knob.max, "{}", knob.name);
            let unit = UNITS.iter().any(|unit| knob.name.ends_with(unit));
            assert_ne!(unit, WITHOUT_UNIT.contains(&knob.name), "{}", knob.name);
            for value in [knob.min, knob.max, knob.default] {
                assert_eq!(knob.parse(&value.to_string()), Ok(value));
            }
            assert!(knob.parse(&(knob.max + 1).to_string()).is_err());
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let rotation = knob("rotation_ns").unwrap();
        for text in ["", "x", "-1", "+1", " 1", "1.5", "99999999999999999999"] {
            assert_eq!(
                rotation.parse(text).unwrap_err().to_string(),
                format!(
                    "rotation_ns cannot be '{text}'; it takes a whole number from 0 to 1000000000"
                )
            );
        }
        let error = knob("rotation").unwrap_err().to_string();
        assert!(error.starts_with("no knob is named 'rotation'; available: queue_requests,"));
        assert!(Params::default().set("cache_volatile", 2).is_err());
    }
}
