//! The kernel's files about the clock of processors.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::settings::value;
use crate::system::System;

pub const DIR: &str = "/sys/devices/system/cpu/cpufreq";

/// Processors that share a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub name: String,
}

/// The machine's policies; none if its clock is not the kernel's to choose.
pub fn policies(system: &dyn System) -> Vec<Policy> {
    let is_policy = |name: &String| {
        let number = name.strip_prefix("policy");
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    let names = system.list(DIR).unwrap_or_default().into_iter();
    let names = names.filter(is_policy);
    names.map(|name| Policy { name }).collect()
}

impl Policy {
    pub fn file(&self, name: &str) -> String {
        format!("{DIR}/{}/{name}", self.name)
    }

    /// Text of a file, trimmed; empty if there is no such file.
    pub fn text(&self, system: &dyn System, name: &str) -> String {
        value(system, &self.file(name))
    }

    pub fn khz(&self, system: &dyn System, name: &str) -> Option<u64> {
        self.text(system, name).parse().ok()
    }

    /// Clocks that the driver lists; empty if it takes any.
    pub fn listed_khz(&self, system: &dyn System) -> BTreeSet<u64> {
        numbers(&self.text(system, "scaling_available_frequencies"))
    }

    /// Processors that are online.
    pub fn online(&self, system: &dyn System) -> BTreeSet<usize> {
        numbers(&self.text(system, "affected_cpus"))
    }
}

fn numbers<T: FromStr + Ord>(text: &str) -> BTreeSet<T> {
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}
