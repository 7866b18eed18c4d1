//! Makes plans from sound texts.

// Not every test file needs all of it.
#![allow(dead_code)]

use luc_wml::plan::Plan;
use luc_wml::{Script, parse};

/// Reads a text that must be sound.
pub fn script(text: &str) -> Script {
    parse("test.f", text).unwrap_or_else(|error| panic!("{error}\n---\n{text}"))
}

/// Returns the plan of a sound text.
pub fn plan(text: &str) -> Plan {
    plan_with(text, &[])
}

/// Returns the plan of a sound text with other values for variables.
pub fn plan_with(text: &str, overrides: &[(&str, &str)]) -> Plan {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    script(text)
        .plan(&overrides)
        .unwrap_or_else(|error| panic!("{error}\n---\n{text}"))
}
