//! The commands that measure an arm, and the parsing of their outputs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::cell::{Cell, NamedArm};
use crate::error::{CampaignError, Result};
use crate::result::ArmResult;

/// Longest wait before an arm's first command, microseconds: a few ticks of the kernel's clock, so
/// that no two repeats meet its timers in the same phase.
const PHASE_US: u64 = 20_000;

/// Prints every counter of the one attached file system as `name value`.
const COUNTERS: &str = "cd /sys/fs/luc/*/counters && for f in *; do echo $f $(cat $f); done";

/// Paths that an arm's commands use.
pub struct Paths {
    /// The folder on the measured file system.
    pub dir: PathBuf,
    /// Where a command around the benchmark writes.
    pub out: PathBuf,
    /// The module's file, to load it without attaching.
    pub module: Option<PathBuf>,
    /// Root with the programs that `bench app` runs, if not the machine's own.
    pub root: Option<PathBuf>,
    /// Another file system, for the arm that attaches LUC there.
    pub elsewhere: Option<PathBuf>,
}

/// Commands in order, and which of them print results to keep.
pub struct Steps {
    pub commands: Vec<Vec<String>>,
    bench: usize,
    counters: Option<usize>,
    after: Option<usize>,
}

/// The arms in the order in which this cell measures them: drawn, so that no arm is always first.
pub fn order(cell: &Cell) -> impl Iterator<Item = &NamedArm> {
    let mut arms: Vec<&NamedArm> = cell.arms.iter().collect();
    arms.sort_by_key(|named| cell.drawn(&named.name, u64::MAX));
    arms.into_iter()
}

fn words(text: &str) -> Vec<String> {
    // An unclosed quote was refused before.
    shlex::split(text).unwrap_or_default()
}

/// The commands of an arm.
pub fn commands(cell: &Cell, named: &NamedArm, paths: &Paths) -> Steps {
    let arm = &named.arm;
    let at = |text: &str| {
        let dir = paths.dir.to_string_lossy();
        let out = paths.out.to_string_lossy();
        words(&text.replace("{dir}", &dir).replace("{out}", &out))
    };
    let phase_us = cell.drawn(&format!("phase of {}", named.name), PHASE_US);
    let mut steps = Steps {
        commands: vec![vec!["sleep".into(), format!("0.{phase_us:06}")]],
        bench: 0,
        counters: None,
        after: None,
    };
    let target = paths.elsewhere.as_ref().unwrap_or(&paths.dir);
    let target = target.to_string_lossy().into_owned();
    if let Some(options) = &arm.on {
        steps.push([words("luc on"), vec![target.clone()], at(options)].concat());
    }
    let module = paths.module.as_ref().filter(|_| arm.loaded);
    if let Some(module) = module {
        steps.push(vec!["insmod".into(), module.to_string_lossy().into_owned()]);
    }
    let mut bench = [
        words("luc-lab bench"),
        at(&cell.bench),
        words("--keep --json"),
    ]
    .concat();
    bench.extend(at(&arm.bench));
    if let Some(root) = &paths.root {
        bench.extend(["--root".into(), root.to_string_lossy().into_owned()]);
    }
    steps.bench = steps.push([at(&arm.around), bench].concat());
    if arm.attached() {
        steps.counters = Some(steps.push(["sh", "-c", COUNTERS].map(String::from).into()));
        // The next arm gets a machine as if LUC had never been there.
        steps.push([words("luc off"), vec![target], words("--unload")].concat());
    }
    if module.is_some() {
        steps.push(words("rmmod luc"));
    }
    if !arm.after.is_empty() {
        steps.after = Some(steps.push(at(&arm.after)));
    }
    steps
}

impl Steps {
    fn push(&mut self, command: Vec<String>) -> usize {
        self.commands.push(command);
        self.commands.len() - 1
    }

    /// Reads the outputs, one for each command.
    ///
    /// # Errors
    /// An output is not what the command prints.
    pub fn read(&self, arm: &str, outputs: &[&str]) -> Result<ArmResult> {
        let bad = |why: String| CampaignError::Failed {
            why: format!("arm {arm}: cannot read the result: {why}"),
            log: None,
        };
        let output = |at: usize| {
            outputs
                .get(at)
                .ok_or_else(|| bad(format!("step {} is missing", at + 1)))
        };
        let report =
            serde_json::from_str(output(self.bench)?).map_err(|error| bad(error.to_string()))?;
        let mut counters = BTreeMap::new();
        if let Some(at) = self.counters {
            for line in output(at)?.lines() {
                let pair = line.split_once(' ');
                let pair = pair.and_then(|(name, value)| Some((name, value.parse().ok()?)));
                let (name, value) = pair.ok_or_else(|| bad(format!("counter {line:?}")))?;
                counters.insert(name.to_owned(), value);
            }
        }
        let after = self.after.map(output).transpose()?;
        let after = after.map(|text| serde_json::from_str(text)).transpose();
        Ok(ArmResult {
            arm: arm.to_owned(),
            report,
            counters,
            after: after.map_err(|error| bad(error.to_string()))?,
        })
    }
}
