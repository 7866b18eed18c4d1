//! `luc set`

use std::path::PathBuf;

use luc_control::{Knob, POLICY, Params, Policy, knob, knobs, policy, policy_text, policy_words};
use luc_host::cgroup::{format_knob, parse_knob};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System};
use serde_json::{Value, json};

use luc_cli::{Context, Failure, Verb, help, units};
use luc_watch::status::knob_json;

const KEPT: &str = "the old value is kept";

/// Show or change the knobs of a file system
///
/// Without KNOB, lists all knobs. A knob keeps the value that you set: LUC never changes a knob by
/// itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc set /srv/data\n\
    \x20 luc set /srv/data policy batching\n\
    \x20 luc set /srv/data mode observe\n\
    \x20 luc set /srv/data priority_cgroup system.slice/mariadb.service")]
#[command(after_long_help = help::knob_table())]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(value_name = "PATH|DEVICE", value_hint = clap::ValueHint::AnyPath)]
    path: PathBuf,
    /// Knob to show or change
    knob: Option<String>,
    /// New value of the knob
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn as_json(system: &dyn System, knob: &Knob, value: i64) -> Value {
    json!({
        "knob": knob.name,
        "value": knob_json(system, knob, value),
        "default": knob_json(system, knob, knob.default),
        "min": knob.min,
        "max": knob.max,
        "words": knob.words(),
        "help": knob.help,
    })
}

fn policy_json(name: &str) -> Value {
    json!({
        "knob": POLICY,
        "value": name,
        "default": default_policy(),
        "words": policy_words().collect::<Vec<_>>(),
        "help": help::POLICY_HELP,
    })
}

fn default_policy() -> &'static str {
    let defaults = Params::default();
    policy_text(|knob| defaults.get(knob.name))
}

fn refused(error: &impl ToString, kept: &'static str) -> HostError {
    HostError::KnobRefused {
        why: error.to_string(),
        kept,
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.value.is_some() {
            super::recover(context)?;
        }
        let system = context.system;
        let all = sysfs::attached(system)?;
        let by_policy = self.knob.as_deref() == Some(POLICY);
        let chosen = self.knob.as_deref().filter(|_| !by_policy);
        let chosen = chosen.map(knob).transpose();
        let chosen = chosen.map_err(|error| refused(&error, "nothing was changed"))?;
        let attached = super::attached_at(system, &self.path, &all)?;
        if let Some(text) = &self.value {
            let path = self.path.display().to_string();
            let (said, row) = if let Some(knob) = chosen {
                let value = parse_knob(system, knob, text);
                let value = value.map_err(|error| refused(&error, KEPT))?;
                let said = apply(system, &path, &attached, knob, value)?;
                (said, as_json(system, knob, value))
            } else {
                let policy = policy(text).map_err(|error| refused(&error, KEPT))?;
                let said = apply_policy(system, &path, &attached, policy)?;
                (said, policy_json(sysfs::policy(system, &attached)))
            };
            if self.json {
                return context.print_json(&[row]);
            }
            return Ok(writeln!(context.out, "{said}")?);
        }
        let shown: Vec<&Knob> = match chosen {
            Some(knob) => vec![knob],
            None if by_policy => Vec::new(),
            None => knobs().iter().collect(),
        };
        let mut values = Vec::new();
        for knob in shown {
            values.push((knob, sysfs::knob_value(system, &attached, knob)?));
        }
        let policy = chosen.is_none().then(|| sysfs::policy(system, &attached));
        if self.json {
            let first = policy.map(policy_json).into_iter();
            let rows = values
                .iter()
                .map(|(knob, value)| as_json(system, knob, *value));
            return context.print_json(&first.chain(rows).collect::<Vec<_>>());
        }
        let first = policy.map(|name| {
            [
                POLICY.to_owned(),
                name.to_owned(),
                default_policy().to_owned(),
                format!("one of {}, see luc set --help", policy_words().count()),
                help::POLICY_HELP.to_owned(),
            ]
        });
        let rows = values.iter().map(|(knob, value)| {
            [
                knob.name.to_owned(),
                format_knob(system, knob, *value),
                knob.format(knob.default),
                help::range(knob),
                knob.help.to_owned(),
            ]
        });
        let cells: Vec<[String; 5]> = first.into_iter().chain(rows).collect();
        let heads = ["knob", "value", "default", "allowed", "meaning"];
        units::table(context.out, heads, &cells)?;
        Ok(())
    }
}

/// Sets the knobs that a policy stands for, and tells which policy it was before. If the module
/// refuses a knob, those before it stay set.
pub(super) fn apply_policy(
    system: &dyn System,
    path: &str,
    attached: &Attached,
    policy: &Policy,
) -> Result<String, Failure> {
    let before = sysfs::policy(system, attached);
    for (knob, value) in &policy.settings {
        apply(system, path, attached, knob, *value)?;
    }
    Ok(format!("{path}: policy {} (was {before})", policy.text))
}

/// Sets a knob, and tells its value before.
pub(super) fn apply(
    system: &dyn System,
    path: &str,
    attached: &Attached,
    knob: &Knob,
    value: i64,
) -> Result<String, Failure> {
    let before = sysfs::knob_value(system, attached, knob)?;
    sysfs::set_knob(system, path, attached, knob, value)?;
    Ok(format!(
        "{path}: {} {} (was {})",
        knob.name,
        format_knob(system, knob, value),
        format_knob(system, knob, before)
    ))
}
