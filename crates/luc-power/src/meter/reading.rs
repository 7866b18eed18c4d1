//! Energy between two samples, and its boundary.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The parts of the machine whose energy a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "of")]
pub enum Boundary {
    /// Processor packages and their memory, by their counters.
    PackagesAndDram { packages: u32 },
    /// Processor packages alone, by their counters.
    Packages { packages: u32 },
    /// The whole machine, by its batteries.
    Battery,
    /// The whole machine, by a meter outside of it.
    ExternalMeter,
}

impl Boundary {
    /// Returns its name as JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::PackagesAndDram { .. } => "packages_and_dram",
            Self::Packages { .. } => "packages",
            Self::Battery => "battery",
            Self::ExternalMeter => "external_meter",
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages = |packages: u32| match packages {
            1 => "1 processor package".to_owned(),
            several => format!("{several} processor packages"),
        };
        match *self {
            Self::PackagesAndDram { packages: n } => {
                write!(f, "{} and DRAM, without disks", packages(n))
            }
            Self::Packages { packages: n } => {
                write!(f, "{} alone, without DRAM and disks", packages(n))
            }
            Self::Battery => f.write_str("the whole machine, by its battery"),
            Self::ExternalMeter => f.write_str("the whole machine, by an external meter"),
        }
    }
}

/// Energy that a meter counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub boundary: Boundary,
    pub joules: f64,
    /// Time between the two samples, nanoseconds.
    pub elapsed_ns: u64,
    /// Mean power: all of it, idle power included.
    pub watts: f64,
    /// Power at rest before the load, within the same boundary; `None` if it was not measured.
    pub idle_watts: Option<f64>,
    #[serde(flatten)]
    pub parts: Parts,
}

/// Energy of parts of a boundary; `None` if they have no counters of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The part that the processors' cores took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_joules: Option<f64>,
    /// The part that DRAM took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_joules: Option<f64>,
}

impl Parts {
    /// Applies a function to each part that both know.
    pub(super) fn with(self, other: Self, apply: fn(f64, f64) -> f64) -> Self {
        let each = |one: Option<f64>, other: Option<f64>| Some(apply(one?, other?));
        Self {
            cores_joules: each(self.cores_joules, other.cores_joules),
            dram_joules: each(self.dram_joules, other.dram_joules),
        }
    }
}

impl Reading {
    /// `None` if no time elapsed.
    pub fn new(
        boundary: Boundary,
        joules: f64,
        elapsed: Duration,
        idle_watts: Option<f64>,
    ) -> Option<Self> {
        (!elapsed.is_zero()).then(|| Self {
            boundary,
            joules,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            watts: joules / elapsed.as_secs_f64(),
            idle_watts,
            parts: Parts::default(),
        })
    }
}

/// A reading, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Energy {
    Read(Reading),
    Unknown {
        /// The reason.
        unknown: String,
    },
}

impl Energy {
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown {
            unknown: why.into(),
        }
    }

    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Read(reading) => Some(reading),
            Self::Unknown { .. } => None,
        }
    }
}

pub(super) const NO_TIME: &str = "no time elapsed between the two samples";

impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(reading) => {
                let Reading {
                    joules,
                    watts,
                    boundary,
                    ..
                } = reading;
                write!(f, "{joules:.2} J, {watts:.2} W: {boundary}")?;
                let Parts {
                    cores_joules,
                    dram_joules,
                } = reading.parts;
                for (name, joules) in [("the cores", cores_joules), ("DRAM", dram_joules)] {
                    if let Some(joules) = joules {
                        write!(f, "; {name} took {joules:.2} J of it")?;
                    }
                }
                Ok(())
            }
            Self::Unknown { unknown } => write!(f, "unknown: {unknown}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_name_the_boundary() {
        let boundary = Boundary::Packages { packages: 1 };
        let reading = Reading::new(boundary, 10.0, Duration::from_secs(4), Some(3.0)).unwrap();
        let read = Energy::Read(reading);
        let text = serde_json::to_string(&read).unwrap();
        let expected = "{'boundary':{'of':'packages','packages':1},'joules':10.0,\
                        'elapsed_ns':4000000000,'watts':2.5,'idle_watts':3.0}"
            .replace('\'', "\"");
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Energy>(&text).unwrap(), read);
        let told = "10.00 J, 2.50 W: 1 processor package alone, without DRAM and disks";
        assert_eq!(read.to_string(), told);
        let lost = Energy::unknown("it ended");
        assert_eq!(lost.to_string(), "unknown: it ended");
        let text = serde_json::to_string(&lost).unwrap();
        assert_eq!(text, r#"{"unknown":"it ended"}"#);
        assert_eq!(serde_json::from_str::<Energy>(&text).unwrap(), lost);
        for (boundary, words) in [
            (
                Boundary::PackagesAndDram { packages: 2 },
                "2 processor packages and DRAM, without disks",
            ),
            (
                Boundary::Packages { packages: 1 },
                "1 processor package alone, without DRAM and disks",
            ),
            (Boundary::Battery, "the whole machine, by its battery"),
            (
                Boundary::ExternalMeter,
                "the whole machine, by an external meter",
            ),
        ] {
            assert_eq!(boundary.to_string(), words);
        }
    }
}
