//! Policies: settings of knobs under one name, from the table of `abi/luc_controllers.h`.
//!
//! The module knows only knobs; this file converts policies to knobs and back.

use crate::tables::{Knob, KnobError, POLICIES, join, knob};
use std::sync::LazyLock;

/// The word that selects a policy; it stands beside the names of knobs.
pub const POLICY: &str = "policy";
/// The name of settings that no policy describes.
pub const CUSTOM: &str = "custom";

/// A named combination of controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub text: &'static str,
    /// Description, for people.
    pub help: &'static str,
    /// The knobs that it sets, in this order.
    pub settings: Vec<(&'static Knob, i64)>,
}

/// Returns all policies, in the order of their table.
pub fn policies() -> &'static [Policy] {
    static LOADED: LazyLock<Vec<Policy>> = LazyLock::new(|| {
        let rows = POLICIES.iter();
        rows.map(|&(text, settings, help)| Policy {
            text,
            help,
            settings: settings.split_whitespace().filter_map(setting).collect(),
        })
        .collect()
    });
    &LOADED
}

/// Returns the names of all policies, in the same order.
pub fn policy_words() -> impl Iterator<Item = &'static str> {
    policies().iter().map(|policy| policy.text)
}

/// Returns the policy with this name.
///
/// # Errors
/// [`KnobError::NoSuchWord`] with all names.
pub fn policy(name: &str) -> Result<&'static Policy, KnobError> {
    let name = name.trim();
    policies()
        .iter()
        .find(|policy| policy.text == name)
        .ok_or_else(|| KnobError::NoSuchWord(POLICY, name.to_owned(), join(policy_words())))
}

/// Returns the first policy that sets knobs to these values; `None` if there is none, or if a value
/// is unknown.
fn policy_of(value: impl Fn(&Knob) -> Option<i64>) -> Option<&'static Policy> {
    policies().iter().find(|policy| {
        let mut settings = policy.settings.iter();
        settings.all(|(knob, wanted)| value(knob) == Some(*wanted))
    })
}

/// Returns the name of the policy that sets knobs to these values; [`CUSTOM`] if there is none.
pub fn policy_text(value: impl Fn(&Knob) -> Option<i64>) -> &'static str {
    policy_of(value).map_or(CUSTOM, |policy| policy.text)
}

/// Parses a setting; `None` if it is malformed, which the tests below exclude.
fn setting(text: &str) -> Option<(&'static Knob, i64)> {
    let (name, value) = text.split_once('=')?;
    let knob = knob(name).ok()?;
    Some((knob, knob.parse(value).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    fn params_of(policy: &Policy) -> Params {
        let mut params = Params::default();
        for (knob, value) in &policy.settings {
            assert!(params.set(knob.name, *value));
        }
        params
    }

    #[test]
    fn every_setting_is_understood_and_both_axes_are_set() {
        for ((_, settings, _), policy) in POLICIES.iter().zip(policies()) {
            let words = settings.split_whitespace().count();
            assert_eq!(policy.settings.len(), words, "{}", policy.text);
            for axis in ["batching", "copyout"] {
                let sets = policy.settings.iter().any(|(knob, _)| knob.name == axis);
                assert!(sets, "{} leaves {axis} open", policy.text);
            }
        }
    }

    #[test]
    fn policies_are_recognised() {
        let name = |params: &Params| policy_text(|knob| params.get(knob.name));
        assert_eq!(name(&Params::default()), "luc");
        for one in policies() {
            // 1 ms is the default of static.
            let want = if one.text == "static-1ms" {
                "static"
            } else {
                one.text
            };
            assert_eq!(name(&params_of(one)), want);
            assert_eq!(policy(one.text), Ok(one));
        }
        let odd = Params {
            copyout: knob("copyout").unwrap().parse("published").unwrap(),
            ..Params::default()
        };
        assert_eq!(name(&odd), CUSTOM);
        assert_eq!(policy_of(|_| None), None);
        assert!(
            policy("fast").unwrap_err().to_string().starts_with(
                "policy cannot be 'fast'; it takes one of: stock, static-16ms, static,"
            )
        );
    }
}
