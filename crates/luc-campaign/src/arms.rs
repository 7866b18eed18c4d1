//! The arms of a comparison: LUC with some settings, stock, or an alternative to LUC.
//!
//! `campaigns/arms.toml` holds the arms that every campaign knows; a campaign may add its own. An
//! arm is data: the commands around and after the benchmark, and the file system's mount options.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// An arm.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools)] // a row of a table
pub struct Arm {
    /// Description for the user; it does not affect the result.
    #[serde(skip_serializing)]
    pub help: String,
    /// Options of `luc on`, including knobs; if absent, LUC is not attached. `{NAME}` stands for a
    /// factor's value, as in each command of an arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Whether LUC is attached to another file system instead.
    #[serde(skip_serializing_if = "is_false")]
    pub elsewhere: bool,
    /// Whether the module is loaded but attached to no file system.
    #[serde(skip_serializing_if = "is_false")]
    pub loaded: bool,
    /// Command that wraps the benchmark: `luc trace record -o {out} --on {dir} --`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub around: String,
    /// Command run after the benchmark; its JSON output is kept with the results.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Extra arguments for the benchmark.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bench: String,
    /// File system instead of the cell's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fs: String,
    /// Arguments of mkfs instead of the cell's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mkfs: String,
    /// Mount options instead of the cell's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// Whether the arm is a bound under which some workloads cannot run: its failure does not fail
    /// the cell.
    #[serde(skip_serializing_if = "is_false")]
    pub bound: bool,
    /// Whether the arm loses durability, or a crash under it damages the file system: tables warn.
    #[serde(skip_serializing)]
    pub loses_data: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn is_false(value: &bool) -> bool {
    !value
}

impl Arm {
    /// The part that affects a result: the arm without its description.
    #[must_use]
    pub fn deciding(&self) -> Self {
        Self {
            help: String::new(),
            loses_data: false,
            ..self.clone()
        }
    }

    /// The texts that may name factors in braces.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        [&self.around, &self.after, &self.bench]
            .into_iter()
            .chain(&self.on)
    }

    /// Whether LUC's counters can be read.
    pub fn attached(&self) -> bool {
        self.on.is_some()
    }
}

const BUILTIN: &str = include_str!("../../../campaigns/arms.toml");

/// The arms that every campaign knows.
pub fn builtin() -> &'static BTreeMap<String, Arm> {
    static ARMS: LazyLock<BTreeMap<String, Arm>> =
        LazyLock::new(|| toml::from_str(BUILTIN).expect("a test parses campaigns/arms.toml"));
    &ARMS
}

/// The name, with a warning if the arm is unsafe.
pub fn shown(name: &str, arm: &Arm) -> String {
    if arm.loses_data {
        format!("{name} (UNSAFE)")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn builtin_arms_are_sound() {
        let arms = super::builtin();
        assert!(arms.contains_key("stock") && arms.contains_key("luc"));
        for (name, arm) in arms {
            assert!(!arm.help.is_empty(), "{name} says what it is");
            assert!(!(arm.elsewhere && arm.on.is_none()), "{name}");
        }
        let stock = &arms["stock"];
        let json = serde_json::to_string(stock).unwrap();
        assert_eq!(json, "{}", "a key holds only differences from stock");
    }
}
