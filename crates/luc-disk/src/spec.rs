//! The text form of a disk: a preset and changed knobs.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::knobs::{KnobError, Params, knob};
use crate::preset::{Preset, UnknownPreset, preset};

/// `PRESET[:KNOB=VALUE...]`: `hdd-7200`, `nvme:flush_ns=500000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    preset: &'static Preset,
    changes: Vec<(&'static str, i64)>,
}

/// Why a text does not describe a disk.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// No preset has this name.
    #[error(transparent)]
    Preset(#[from] UnknownPreset),
    /// The knob does not exist or does not take this value.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A part that is not `KNOB=VALUE`.
    #[error("'{part}' is not KNOB=VALUE")]
    NoValue { part: String },
    /// A knob that is set twice.
    #[error("{knob} is given twice")]
    Twice { knob: &'static str },
}

impl Spec {
    /// Creates an unchanged preset.
    ///
    /// # Errors
    /// An unknown name.
    pub fn new(name: &str) -> Result<Self, SpecError> {
        Ok(Self {
            preset: preset(name)?,
            changes: Vec::new(),
        })
    }

    /// Applies `KNOB=VALUE`.
    ///
    /// # Errors
    /// The text is not `KNOB=VALUE`, the knob is unknown, the value is out of bounds, or the knob
    /// is set already.
    pub fn change(&mut self, part: &str) -> Result<(), SpecError> {
        let (name, value) = part.split_once('=').ok_or_else(|| SpecError::NoValue {
            part: part.to_owned(),
        })?;
        let knob = knob(name)?;
        let value = knob.parse(value)?;
        if self.changes.iter().any(|(seen, _)| *seen == knob.name) {
            return Err(SpecError::Twice { knob: knob.name });
        }
        self.changes.push((knob.name, value));
        Ok(())
    }

    pub fn preset(&self) -> &'static Preset {
        self.preset
    }

    /// Returns all parameters.
    ///
    /// # Errors
    /// None occur: [`Spec::change`] and the tests of the presets exclude them.
    pub fn params(&self) -> Result<Params, KnobError> {
        let mut params = self.preset.params()?;
        for (name, value) in &self.changes {
            params.set(name, *value)?;
        }
        Ok(params)
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(':');
        let mut spec = Self::new(parts.next().unwrap_or_default())?;
        for part in parts {
            spec.change(part)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.preset.name)?;
        for (name, value) in &self.changes {
            write!(f, ":{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_parses_back() {
        for text in ["hdd-7200", "nvme:flush_ns=500000:cache_bytes=0", "nvme-plp"] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let spec: Spec = "nvme:flush_ns=500000".parse().unwrap();
        let params = spec.params().unwrap();
        assert_eq!(params.get("flush_ns"), Some(500_000));
        assert_eq!(params.get("cache_bytes"), Some(64 << 20));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (text, why) in [
            ("", "no preset is named ''; available: hdd-7200"),
            ("HDD-7200", "no preset is named 'HDD-7200'"),
            ("nvme:", "'' is not KNOB=VALUE"),
            ("nvme:flush_ns", "'flush_ns' is not KNOB=VALUE"),
            ("nvme:flush=1", "no knob is named 'flush'; available:"),
            ("nvme:flush_ns=", "flush_ns cannot be ''; it takes"),
            ("nvme:flush_ns=1ms", "flush_ns cannot be '1ms'; it takes"),
            ("nvme:flush_ns=1:flush_ns=1", "flush_ns is given twice"),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
