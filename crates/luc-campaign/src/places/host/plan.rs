//! Plans which settings of a machine to change before a cell is measured, and in which order.
//!
//! The order matters twice. SMT goes off before `cores` counts, which must not keep a thread that
//! SMT takes offline. Turbo goes off before the frequency is set, because with some drivers
//! switching it off lowers the highest frequency. A governor is set before a preference, as some
//! governors allow only one. Values are restored in reverse order.

use std::collections::BTreeSet;

use luc_host::System;
use luc_host::cpufreq::{self, Policy, policies};
use luc_host::settings::{Change, value};

const CPUS: &str = "/sys/devices/system/cpu";
const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";
/// Files of a policy: its governors, and what a processor that chooses its own clock prefers.
const GOVERNORS: &str = "scaling_available_governors";
const EPP: &str = "energy_performance_preference";
const EPPS: &str = "energy_performance_available_preferences";

/// Settings that a cell asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `None` leaves it as it is, and so with the next three.
    pub frequency_khz: Option<u64>,
    pub frequency_max_khz: Option<u64>,
    pub governor: Option<String>,
    pub epp: Option<String>,
    /// `None`: all.
    pub cores: Option<usize>,
    pub turbo_off: bool,
    pub smt_off: bool,
    pub writeback_off: bool,
}

/// Names of this machine's switches. Results measured with other switches do not count.
pub fn switches(system: &dyn System) -> String {
    let mut names = Vec::new();
    if !turbo(system).is_empty() {
        names.push("turbo");
    }
    if ["on", "off", "forceoff"].contains(&value(system, &smt_file()).as_str()) {
        names.push("smt");
    }
    if !policies(system).is_empty() {
        names.push("frequency");
    }
    if system.exists(WRITEBACK) {
        names.push("writeback");
    }
    names.join(" ")
}

/// Changes in the order in which to make them, without files that already hold their value.
///
/// # Errors
/// The machine does not support a setting; nothing was changed.
pub fn plan(system: &dyn System, wanted: &Wanted) -> Result<Vec<Change>, String> {
    let mut changes = Changes {
        system,
        all: Vec::new(),
    };
    let online = online(system);
    let smt_goes_off = wanted.smt_off && value(system, &smt_file()) == "on";
    if smt_goes_off || wanted.cores.is_some() {
        // Switching SMT on again brings back even siblings that the administrator took offline.
        for cpu in processors(system) {
            changes.keep(&online_file(cpu));
        }
    }
    let mut left = online;
    if smt_goes_off {
        changes.set(&smt_file(), "off");
        left.retain(|cpu| first_sibling(system, *cpu) == *cpu);
    }
    if let Some(cores) = wanted.cores {
        if cores > left.len() {
            return Err(format!(
                "cores {cores}: this machine has {} online{}",
                left.len(),
                if smt_goes_off { " with SMT off" } else { "" }
            ));
        }
        for cpu in left.split_off(cores) {
            let file = online_file(cpu);
            if !system.exists(&file) {
                return Err(format!(
                    "cores {cores}: processor {cpu} cannot be taken offline: {file} does not exist"
                ));
            }
            changes.set(&file, "0");
        }
    }
    if wanted.turbo_off {
        for (file, off) in turbo(system) {
            changes.set(&file, off);
        }
    }
    clocks(&mut changes, wanted, &left)?;
    if wanted.writeback_off && system.exists(WRITEBACK) {
        changes.set(WRITEBACK, "0");
    }
    Ok(changes.all)
}

struct Changes<'a> {
    system: &'a dyn System,
    all: Vec<Change>,
}

impl Changes<'_> {
    fn push(&mut self, path: &str, to: Option<&str>, exact: bool) {
        self.all.push(Change {
            path: path.to_owned(),
            to: to.map(str::to_owned),
            exact,
        });
    }

    fn keep(&mut self, path: &str) {
        if self.system.exists(path) {
            self.push(path, None, true);
        }
    }

    fn set(&mut self, path: &str, to: &str) {
        if value(self.system, path) != to {
            self.push(path, Some(to), true);
        }
    }
}

/// Sets what chooses the clock of every policy that keeps a processor online, or the clock itself.
fn clocks(changes: &mut Changes<'_>, wanted: &Wanted, left: &[usize]) -> Result<(), String> {
    let khz = |name, khz: Option<u64>| khz.map(|khz| format!("{name} {khz}"));
    let word = |name, word: Option<&String>| word.map(|word| format!("{name} {word}"));
    let fixed = khz("frequency_khz", wanted.frequency_khz);
    let chosen = word("governor", wanted.governor.as_ref())
        .or_else(|| word("epp", wanted.epp.as_ref()))
        .or_else(|| khz("frequency_max_khz", wanted.frequency_max_khz));
    if let (Some(fixed), Some(chosen)) = (&fixed, &chosen) {
        return Err(format!("{chosen}: {fixed} already fixes the clock"));
    }
    let Some(asked) = fixed.or(chosen) else {
        return Ok(());
    };
    let policies = policies(changes.system);
    if policies.is_empty() {
        return Err(format!(
            "{asked}: this machine cannot set frequencies: there is no policy in {}",
            cpufreq::DIR
        ));
    }
    for policy in policies {
        let online = policy.online(changes.system);
        if !left.iter().any(|cpu| online.contains(cpu)) {
            continue;
        }
        if let Some(governor) = &wanted.governor {
            listed(changes, &policy, "governor", governor, GOVERNORS)?;
            // The kernel may change it together with the governor.
            changes.keep(&policy.file(EPP));
            changes.set(&policy.file("scaling_governor"), governor);
        }
        if let Some(epp) = &wanted.epp {
            listed(changes, &policy, "epp", epp, EPPS)?;
            changes.set(&policy.file(EPP), epp);
        }
        if let Some(khz) = wanted.frequency_max_khz {
            supported(changes, &policy, "frequency_max_khz", khz)?;
            let lowest = policy.khz(changes.system, "scaling_min_freq");
            if lowest.is_some_and(|lowest| khz < lowest) {
                changes.set(&policy.file("scaling_min_freq"), &khz.to_string());
            }
            changes.set(&policy.file("scaling_max_freq"), &khz.to_string());
        }
        if let Some(khz) = wanted.frequency_khz {
            supported(changes, &policy, "frequency_khz", khz)?;
            fix(changes, &policy, khz);
        }
    }
    Ok(())
}

/// Checks that a policy lists a word in a file.
fn listed(
    changes: &Changes<'_>,
    policy: &Policy,
    factor: &str,
    word: &str,
    file: &str,
) -> Result<(), String> {
    let all = policy.text(changes.system, file);
    let (name, mut words) = (&policy.name, all.split_whitespace());
    if words.any(|one| one == word) {
        Ok(())
    } else if all.is_empty() {
        Err(format!("{factor} {word}: {name} has no {file}"))
    } else {
        Err(format!("{factor} {word}: {name} supports {all}"))
    }
}

/// Checks that a policy supports a frequency.
fn supported(changes: &Changes<'_>, policy: &Policy, factor: &str, khz: u64) -> Result<(), String> {
    let system = changes.system;
    let number = |name: &str| policy.khz(system, name);
    let (min, max) = (number("cpuinfo_min_freq"), number("cpuinfo_max_freq"));
    let below = min.is_some_and(|min| khz < min);
    if below || max.is_some_and(|max| khz > max) {
        return Err(format!(
            "{factor} {khz}: {} supports {} to {}",
            policy.name,
            min.unwrap_or_default(),
            max.unwrap_or_default()
        ));
    }
    let listed = policy.listed_khz(system);
    if !listed.is_empty() && !listed.contains(&khz) {
        let listed: Vec<String> = listed.iter().map(u64::to_string).collect();
        return Err(format!(
            "{factor} {khz}: {} supports {}",
            policy.name,
            listed.join(", ")
        ));
    }
    Ok(())
}

/// Fixes the frequency of a policy.
fn fix(changes: &mut Changes<'_>, policy: &Policy, khz: u64) {
    let system = changes.system;
    let text = khz.to_string();
    let userspace = policy
        .text(system, GOVERNORS)
        .split_whitespace()
        .any(|governor| governor == "userspace");
    if userspace {
        changes.set(&policy.file("scaling_governor"), "userspace");
    }
    // The lowest frequency may never exceed the highest: old kernels refuse it.
    let highest = policy.khz(system, "scaling_max_freq");
    let order = if highest.is_some_and(|highest| khz > highest) {
        ["scaling_max_freq", "scaling_min_freq"]
    } else {
        ["scaling_min_freq", "scaling_max_freq"]
    };
    for name in order {
        changes.set(&policy.file(name), &text);
    }
    if userspace {
        // It reads back as the nearest frequency that the driver knows.
        changes.push(&policy.file("scaling_setspeed"), Some(&text), false);
    }
}

fn smt_file() -> String {
    format!("{CPUS}/smt/control")
}

fn online_file(cpu: usize) -> String {
    format!("{CPUS}/cpu{cpu}/online")
}

/// Files that control turbo, each with the value that switches it off.
fn turbo(system: &dyn System) -> Vec<(String, &'static str)> {
    let intel = format!("{CPUS}/intel_pstate/no_turbo");
    if system.exists(&intel) {
        return vec![(intel, "1")];
    }
    let all = format!("{}/boost", cpufreq::DIR);
    if system.exists(&all) {
        return vec![(all, "0")];
    }
    let each = policies(system).into_iter();
    each.map(|policy| (policy.file("boost"), "0"))
        .filter(|(file, _)| system.exists(file))
        .collect()
}

/// Numbers of all processors, ascending.
fn processors(system: &dyn System) -> Vec<usize> {
    let names = system.list(CPUS).unwrap_or_default();
    let numbers: BTreeSet<usize> = names
        .iter()
        .filter_map(|name| name.strip_prefix("cpu")?.parse().ok())
        .collect();
    numbers.into_iter().collect()
}

fn online(system: &dyn System) -> Vec<usize> {
    let mut all = processors(system);
    // A processor without the file cannot go offline.
    all.retain(|cpu| value(system, &online_file(*cpu)) != "0");
    all
}

/// The first thread of a processor's core; the processor itself if the kernel does not say.
fn first_sibling(system: &dyn System, cpu: usize) -> usize {
    let text = value(
        system,
        &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"),
    );
    let first = text.split([',', '-']).next().unwrap_or_default();
    first.parse().unwrap_or(cpu)
}
