//! Finds out which events can be watched on this machine, and by what means: the half of
//! `luc probe` for `luc doctor`, `top`, `exporter` and `trace`. It attaches the tracer for a
//! moment, watching nothing.

use std::collections::BTreeMap;
use std::path::Path;

use luc_bpf::{Attached, Detail, Settings, Tracer, TracerError};
use serde::Serialize;

use crate::check::{Check, Need, State};
use crate::going_on;
use crate::kernel::{self, Capability};
use crate::system::System;

/// Whether and what the tracer can watch here.
#[derive(Debug, Serialize)]
pub struct Watching {
    /// Whether anything can be traced; `None` if that is not known.
    pub possible: Option<bool>,
    /// Events that cannot be seen, as trace exports name them; `None` if nothing can be traced.
    pub unseen: Option<Vec<&'static str>>,
    /// One check per need.
    pub checks: Vec<Check>,
}

impl Watching {
    /// Finds out by attaching the tracer.
    pub fn here(system: &dyn System) -> Self {
        let mut checks = vec![rights(system)];
        if system.path("/sys") != Path::new("/sys") {
            checks.push(Check::unknown(
                Need::Bpf,
                "--sysroot names a tree of files, which has no kernel",
                "run luc on the machine itself",
            ));
            return Self {
                possible: None,
                unseen: None,
                checks,
            };
        }
        let tried = Tracer::attach(&Settings::new(Vec::new(), Detail::Spans));
        let attached = tried.as_ref().map(Tracer::attached);
        checks.extend(judge(attached));
        let words = |it: &Attached| it.unseen().iter().map(|sight| sight.word()).collect();
        Self {
            possible: Some(attached.is_ok()),
            unseen: attached.ok().map(words),
            checks,
        }
    }
}

/// Whether this process has the rights that tracing needs.
pub fn may_trace(system: &dyn System) -> bool {
    let has = |capability| kernel::capable(system, capability);
    has(Capability::SysAdmin) || (has(Capability::Bpf) && has(Capability::Perfmon))
}

/// Attaches the tracer, which follows the syncs that are going on by then. The caller reports what
/// it has to do without.
///
/// # Errors
/// The tracer's.
pub fn attach(settings: &Settings, system: &dyn System) -> Result<Tracer, TracerError> {
    // With --sysroot, the running kernel is not the one that was asked about.
    if system.path("/sys") != Path::new("/sys") {
        return Err(TracerError::Elsewhere);
    }
    let tracer = Tracer::attach(settings)?;
    // Their processes' control groups are not looked up: they would have to be read, too.
    if settings.cgroups.is_empty() {
        follow(&tracer, settings, system)?;
    }
    Ok(tracer)
}

/// Makes the tracer follow syncs whose start it did not see.
fn follow(tracer: &Tracer, settings: &Settings, system: &dyn System) -> Result<(), TracerError> {
    let all = settings.processes.is_empty();
    let mut syncs = going_on::syncs(system, &settings.devs).unwrap_or_default();
    syncs.retain(|sync| all || settings.processes.contains(&sync.tgid));
    if syncs.is_empty() {
        return Ok(());
    }
    tracer.follow(&syncs)?;
    unfollow_ended(tracer, system)
}

/// Drops syncs that ended unseen, which would seem to last for ever: they ended before the tracer
/// followed them, or within `ext4_sync_fs`, whose return is hooked when it is called.
fn unfollow_ended(tracer: &Tracer, system: &dyn System) -> Result<(), TracerError> {
    let followed = tracer.followed()?;
    if followed.is_empty() {
        return Ok(());
    }
    let still = going_on::syncs(system, tracer.devs()).unwrap_or_default();
    let ended = followed
        .into_iter()
        .filter(|pid| !still.iter().any(|sync| sync.pid == *pid));
    for pid in ended {
        tracer.unfollow(pid)?;
    }
    Ok(())
}

/// Ends tracing, and reports the syncs that are going on.
///
/// # Errors
/// The tracer's. It is detached in any case.
pub fn detach(tracer: &mut Tracer, system: &dyn System) -> Result<(), TracerError> {
    let told_apart = unfollow_ended(tracer, system);
    tracer.detach();
    told_apart
}

fn rights(system: &dyn System) -> Check {
    let need = Need::TraceRights;
    if may_trace(system) {
        return Check::ok(need, "CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON");
    }
    Check::missing(
        need,
        "neither CAP_SYS_ADMIN nor CAP_BPF and CAP_PERFMON",
        "run luc as root, outside of containers",
    )
}

/// The checks that follow from an attempt to attach: types, BPF, functions.
fn judge(tried: Result<&Attached, &TracerError>) -> Vec<Check> {
    let types = match tried {
        Err(TracerError::NoBtf) => Check::missing(
            Need::Types,
            "no /sys/kernel/btf/vmlinux",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF: every Debian kernel from 6.1 on has it",
        ),
        _ => Check::ok(Need::Types, "/sys/kernel/btf/vmlinux"),
    };
    let mut checks = vec![types];
    match tried {
        Ok(attached) => {
            let seen = "syncs and commits, by tracepoints";
            checks.push(Check::ok(Need::Bpf, seen));
            checks.push(functions(attached));
        }
        Err(TracerError::NoBtf) => {}
        Err(error) => checks.push(Check::missing(
            Need::Bpf,
            error.to_string(),
            "nothing can be traced until the kernel allows it",
        )),
    }
    checks
}

fn functions(attached: &Attached) -> Check {
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    for (_, means) in &attached.hooks {
        *by.entry(means.to_string()).or_default() += 1;
    }
    let mut parts: Vec<String> = by
        .iter()
        .map(|(means, count)| format!("{count} by {means}"))
        .collect();
    if !attached.sites.is_empty() {
        parts.push(format!(
            "{} kinds of call sites by kprobe",
            attached.sites.len()
        ));
    }
    if parts.is_empty() {
        parts.push("none".into());
    }
    let found = parts.join(", ");
    let notes = attached.notes();
    if notes.is_empty() {
        return Check::ok(Need::Sights, found);
    }
    Check::not(Need::Sights, State::Note, found, notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_bpf::{HOOKS, Lack, Means};

    #[test]
    fn what_is_missing_is_said_once() {
        let lacks = HOOKS[1..].iter().map(|hook| Lack {
            hook: *hook,
            why: "this kernel has no kprobes".into(),
        });
        let attached = Attached {
            hooks: vec![(HOOKS[0], Means::Fentry)],
            lacks: lacks.collect(),
            ..Attached::default()
        };
        let check = functions(&attached);
        assert_eq!(
            (check.state, check.found.as_str()),
            (State::Note, "1 by fentry")
        );
        let fix = check.fix.expect("it says what is missing");
        assert_eq!(
            fix.matches("this kernel has no kprobes").count(),
            1,
            "{fix}"
        );
        assert_eq!(fix.matches("the data flush of syncs").count(), 1, "{fix}");
        assert!(functions(&Attached::default()).fix.is_none());
    }

    #[test]
    fn what_failed_is_named() {
        let states = |tried| -> Vec<(Need, State)> {
            let checks = judge(tried);
            checks.iter().map(|it| (it.need, it.state)).collect()
        };
        let no_types = states(Err(&TracerError::NoBtf));
        assert_eq!(no_types, [(Need::Types, State::Missing)]);
        let denied = TracerError::Denied { why: String::new() };
        let denied = states(Err(&denied));
        assert_eq!(denied[1], (Need::Bpf, State::Missing));
        assert_eq!(states(Ok(&Attached::default())).len(), 3);
    }
}
