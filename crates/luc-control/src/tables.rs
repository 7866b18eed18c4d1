//! The knob and counter tables of `abi/`, as data.

use crate::ffi;
use std::ffi::{CStr, c_char};
use std::sync::LazyLock;
use thiserror::Error;

/// A value that an enumerated knob may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumerator {
    /// As sysfs spells it.
    pub text: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Of a controller: the knobs that it reads beside those of all.
    pub knobs: &'static str,
}

/// What values of a knob look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// One of these words; the value is its index.
    Enum(&'static [Enumerator]),
    /// 0 or 1.
    Bool,
    /// A decimal number.
    Int,
}

/// One row of the knob table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Name in sysfs, the unit last.
    pub name: &'static str,
    /// What its values look like.
    pub kind: KnobKind,
    /// Smallest value, inclusive.
    pub min: i64,
    /// Largest value, inclusive.
    pub max: i64,
    /// Value after a fresh attach.
    pub default: i64,
    /// One line about it.
    pub help: &'static str,
}

/// How a counter moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Only grows since the attach.
    Total,
    /// The largest value seen.
    Max,
    /// The state of this moment.
    Gauge,
}

/// One row of the counter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name in sysfs, the unit last.
    pub name: &'static str,
    /// How it moves.
    pub kind: CounterKind,
    /// One line about it.
    pub help: &'static str,
}

/// Why a knob was not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum KnobError {
    /// No row of that name.
    #[error("no knob is called '{name}'; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Not one of the words.
    #[error("{knob} cannot be '{text}'; it takes one of: {allowed}")]
    NoSuchWord {
        /// The knob.
        knob: &'static str,
        /// What was given.
        text: String,
        /// The words there are.
        allowed: String,
    },
    /// Not a decimal number.
    #[error("{knob} cannot be '{text}'; it takes a whole number from {min} to {max}")]
    NotANumber {
        /// The knob.
        knob: &'static str,
        /// What was given.
        text: String,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A number, but too small or too large.
    #[error("{knob} cannot be {text}; it goes from {min} to {max}")]
    OutOfBounds {
        /// The knob.
        knob: &'static str,
        /// What was given.
        text: String,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
}

impl Knob {
    /// The value that a text stands for, checked against the bounds. White
    /// space around it is ignored, as the kernel does.
    ///
    /// # Errors
    /// A text that is no word of an enumeration, no number, or out of bounds.
    pub fn parse(&self, text: &str) -> Result<i64, KnobError> {
        let text = text.trim();
        match self.kind {
            KnobKind::Enum(words) => words
                .iter()
                .position(|word| word.text == text)
                .and_then(|at| i64::try_from(at).ok())
                .ok_or_else(|| KnobError::NoSuchWord {
                    knob: self.name,
                    text: text.to_owned(),
                    allowed: join(words.iter().map(|word| word.text)),
                }),
            KnobKind::Bool | KnobKind::Int => self.parse_number(text),
        }
    }

    fn parse_number(&self, text: &str) -> Result<i64, KnobError> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(KnobError::NotANumber {
                knob: self.name,
                text: text.to_owned(),
                min: self.min,
                max: self.max,
            });
        }
        // All digits, so what does not parse is too long, and out of bounds.
        match text.parse() {
            Ok(value) if (self.min..=self.max).contains(&value) => Ok(value),
            _ => Err(KnobError::OutOfBounds {
                knob: self.name,
                text: text.to_owned(),
                min: self.min,
                max: self.max,
            }),
        }
    }

    /// The words it takes; none for a knob that takes numbers.
    pub fn words(&self) -> Vec<&'static str> {
        match self.kind {
            KnobKind::Enum(words) => words.iter().map(|word| word.text).collect(),
            KnobKind::Bool | KnobKind::Int => Vec::new(),
        }
    }

    /// The text of a value, as sysfs shows it. A value outside an enumeration
    /// is shown as the number it is.
    pub fn format(&self, value: i64) -> String {
        if let KnobKind::Enum(words) = self.kind
            && let Some(word) = usize::try_from(value).ok().and_then(|at| words.get(at))
        {
            return word.text.to_owned();
        }
        value.to_string()
    }
}

/// The knob table, in its order: value n of [`crate::Params::values`] belongs
/// to knob n.
pub fn knobs() -> &'static [Knob] {
    static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(load_knobs);
    &KNOBS
}

/// The knob of that name.
///
/// # Errors
/// [`KnobError::Unknown`] with the names there are.
pub fn knob(name: &str) -> Result<&'static Knob, KnobError> {
    knobs()
        .iter()
        .find(|knob| knob.name == name)
        .ok_or_else(|| KnobError::Unknown {
            name: name.to_owned(),
            known: join(knobs().iter().map(|knob| knob.name)),
        })
}

/// The counter table, in its order.
pub fn counters() -> &'static [Counter] {
    static COUNTERS: LazyLock<Vec<Counter>> = LazyLock::new(load_counters);
    &COUNTERS
}

/// The counter of that name.
pub fn counter(name: &str) -> Option<&'static Counter> {
    counters().iter().find(|counter| counter.name == name)
}

pub(crate) fn join(words: impl Iterator<Item = &'static str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn load_knobs() -> Vec<Knob> {
    let mut nr = 0;
    // SAFETY: the callee writes nr and returns a static array of nr rows.
    let rows = unsafe { rows(ffi::luc_shim_knobs(&raw mut nr), nr) };
    rows.iter()
        .map(|row| Knob {
            name: text(row.name),
            kind: match row.kind {
                0 => KnobKind::Enum(enumerators(row)),
                1 => KnobKind::Bool,
                _ => KnobKind::Int,
            },
            min: row.min,
            max: row.max,
            default: row.default,
            help: text(row.help),
        })
        .collect()
}

fn enumerators(row: &ffi::CKnob) -> &'static [Enumerator] {
    // SAFETY: an ENUM row points at a static array of that many words.
    let words = unsafe { rows(row.enumerators, row.enumerators_nr) };
    words
        .iter()
        .map(|word| Enumerator {
            text: text(word.text),
            help: text(word.help),
            knobs: text(word.more),
        })
        .collect::<Vec<_>>()
        .leak()
}

fn load_counters() -> Vec<Counter> {
    let mut nr = 0;
    // SAFETY: the callee writes nr and returns a static array of nr rows.
    let rows = unsafe { rows(ffi::luc_shim_counters(&raw mut nr), nr) };
    rows.iter()
        .map(|row| Counter {
            name: text(row.name),
            kind: match row.kind {
                0 => CounterKind::Total,
                1 => CounterKind::Max,
                _ => CounterKind::Gauge,
            },
            help: text(row.help),
        })
        .collect()
}

/// # Safety
/// `first` must point at `nr` initialised rows that are never freed or written.
pub(crate) unsafe fn rows<T>(first: *const T, nr: i64) -> &'static [T] {
    let nr = usize::try_from(nr).unwrap_or(0);
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(first, nr) }
}

/// The tables' strings are plain C literals in ASCII.
pub(crate) fn text(literal: *const c_char) -> &'static str {
    // SAFETY: every string of the tables is a NUL-terminated static literal.
    let literal = unsafe { CStr::from_ptr(literal) };
    literal.to_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    #[test]
    fn knobs_are_the_fields_of_params() {
        let defaults = Params::default();
        assert_eq!(knobs().len(), Params::LEN);
        for (knob, field) in knobs().iter().zip(Params::FIELDS) {
            assert_eq!(knob.name, field.name);
            assert_eq!(knob.help, field.help);
            assert_eq!(defaults.get(knob.name), Some(knob.default));
        }
    }

    #[test]
    fn every_bound_parses_and_formats_back() {
        for knob in knobs() {
            for value in [knob.min, knob.max, knob.default] {
                assert_eq!(knob.parse(&knob.format(value)), Ok(value), "{}", knob.name);
                let line = format!(" {}\n", knob.format(value));
                assert_eq!(knob.parse(&line), Ok(value), "{}", knob.name);
            }
            for value in [knob.min - 1, knob.max + 1] {
                assert!(knob.parse(&value.to_string()).is_err(), "{}", knob.name);
            }
        }
    }

    #[test]
    fn controllers_name_knobs_that_exist() {
        for axis in ["batching", "copyout"] {
            let KnobKind::Enum(controllers) = knob(axis).unwrap().kind else {
                panic!("{axis} takes no words");
            };
            assert_eq!(controllers[0].text, "off");
            for controller in controllers {
                for name in controller.knobs.split_whitespace() {
                    assert!(knob(name).is_ok(), "{}: {name}", controller.text);
                }
            }
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let batching = knob("batching").unwrap();
        assert_eq!(
            batching.parse("fast").unwrap_err().to_string(),
            "batching cannot be 'fast'; it takes one of: off, static, pid, published, age"
        );
        let kp = knob("kp_milli").unwrap();
        for text in ["", "x", "1.5", "0x10", "--1", "1 2", "٣"] {
            assert!(
                matches!(kp.parse(text), Err(KnobError::NotANumber { .. })),
                "{text}"
            );
        }
        for text in [
            "-1",
            "100001",
            "99999999999999999999999",
            "-0099999999999999999999",
        ] {
            assert!(
                matches!(kp.parse(text), Err(KnobError::OutOfBounds { .. })),
                "{text}"
            );
        }
        assert_eq!(kp.parse("+007"), Ok(7));
        let error = knob("kp").unwrap_err().to_string();
        assert!(error.starts_with("no knob is called 'kp'; there are: batching, copyout, mode,"));
    }

    #[test]
    fn counters_have_names_help_and_kinds() {
        assert_eq!(counters()[0].name, "commits");
        assert_eq!(counter("commits").unwrap().kind, CounterKind::Total);
        assert_eq!(counter("held_max_ns").unwrap().kind, CounterKind::Max);
        assert_eq!(counter("copyout_active").unwrap().kind, CounterKind::Gauge);
        assert!(counters().iter().all(|counter| !counter.help.is_empty()));
        assert!(counter("no such").is_none());
    }
}
