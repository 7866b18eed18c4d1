//! Knobs whose value is a control group: people name a group by its path, the module by its id.
//!
//! Such an id is the inode number of the group's directory in a `cgroup2` file system. The kernel
//! reuses no id until the next boot: a group that is removed and created again is another group.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use luc_control::{Knob, KnobError, KnobKind};

use crate::process::{cgroup_root, cgroups};
use crate::system::System;

/// Why a text names no control group that a knob can take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// It is a knob of another kind, or a number out of bounds.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// No hierarchy of version 2 is mounted.
    #[error(
        "no cgroup2 file system is mounted here, so {0} names no control group; in a container, \
         set this on the host"
    )]
    NoHierarchy(String),
    /// The path lies in a hierarchy of version 1, which has ids of its own.
    #[error("{path} is a control group of version 1; name one below {root}")]
    Version1 { path: String, root: String },
    /// The path is elsewhere.
    #[error("{path} is no control group; name a directory below {root}")]
    NoGroup { path: String, root: String },
    /// It is not there now.
    #[error("{path}: no such control group below {root}; systemd-cgls(1) lists them")]
    Missing { path: String, root: String },
    /// It is the root.
    #[error(
        "{0} is the root of all control groups: every task would have priority over every other; \
         name a group below it"
    )]
    Root(String),
}

/// Tells whether a knob takes such a group.
fn is_group(knob: &Knob) -> bool {
    knob.kind == KnobKind::Cgroup
}

/// Parses what a person wrote for a knob. For a control group, that is its path below the root of
/// the groups or the path of its directory, its id, or 0 for none.
///
/// # Errors
/// The knob takes no such value, or there is no such group.
pub fn parse_knob(system: &dyn System, knob: &Knob, text: &str) -> Result<i64, GroupError> {
    match knob.parse(text) {
        Err(KnobError::NotANumber(..)) if is_group(knob) => id_of(system, text.trim()),
        parsed => Ok(parsed?),
    }
}

/// A knob's value for people: for a control group its path, as /proc/PID/cgroup shows it.
pub fn format_knob(system: &dyn System, knob: &Knob, value: i64) -> String {
    let Some(id) = u64::try_from(value).ok().filter(|id| *id > 0) else {
        return knob.format(value);
    };
    if !is_group(knob) {
        return knob.format(value);
    }
    match (cgroups(system).get(&id), cgroup_root(system)) {
        (Some(path), _) => path.clone(),
        (None, Some(_)) => format!("id {id} (gone)"),
        (None, None) => format!("id {id}"),
    }
}

/// The id of the group that a path names.
///
/// # Errors
/// There is no such group.
pub fn id_of(system: &dyn System, text: &str) -> Result<i64, GroupError> {
    let path = text.to_owned();
    let Some(root) = cgroup_root(system) else {
        return Err(GroupError::NoHierarchy(path));
    };
    let named = Path::new(text);
    let below = named.strip_prefix(&root).unwrap_or(named);
    let below = below.strip_prefix("/").unwrap_or(below);
    if below.components().next().is_none() {
        return Err(GroupError::Root(path));
    }
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !below.components().all(is_plain) {
        return Err(GroupError::NoGroup { path, root });
    }
    let dir = Path::new(&root).join(below);
    match fs::metadata(system.path(&dir.to_string_lossy())) {
        Ok(found) if found.is_dir() => {
            i64::try_from(found.ino()).map_err(|_| GroupError::Missing { path, root })
        }
        Ok(_) => Err(GroupError::NoGroup { path, root }),
        Err(_) if is_version_1(system, named) => Err(GroupError::Version1 { path, root }),
        Err(_) if named.is_absolute() && fs::metadata(system.path(text)).is_ok() => {
            Err(GroupError::NoGroup { path, root })
        }
        Err(_) => Err(GroupError::Missing { path, root }),
    }
}

/// Tells whether a path lies in a mounted hierarchy of version 1.
fn is_version_1(system: &dyn System, path: &Path) -> bool {
    let mounts = system.read("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| {
        line.split_once(" - ").is_some_and(|(mount, kind)| {
            let point = mount.split(' ').nth(4);
            kind.starts_with("cgroup ") && point.is_some_and(|point| path.starts_with(point))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Machine;
    use crate::tree;

    const MOUNTS: &str = "1 0 0:5 / /proc rw - proc none rw\n\
         2 0 0:6 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n\
         3 0 0:7 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n";

    fn groups(mounts: &str) -> (tempfile::TempDir, Machine, i64) {
        let (tree, machine) = tree(&[
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/unified/app.slice/db/cgroup.procs", ""),
            ("sys/fs/cgroup/memory/old/tasks", ""),
            ("srv/data/file", ""),
        ]);
        let dir = tree.path().join("sys/fs/cgroup/unified/app.slice/db");
        let id = fs::metadata(dir).expect("there").ino();
        (tree, machine, i64::try_from(id).expect("small"))
    }

    fn knob() -> &'static Knob {
        luc_control::knob("priority_cgroup").expect("a knob")
    }

    #[test]
    fn a_group_is_named_in_any_way_and_shown_in_one() {
        let (_tree, machine, id) = groups(MOUNTS);
        for text in [
            "app.slice/db",
            "/app.slice/db",
            "/sys/fs/cgroup/unified/app.slice/db",
            " app.slice//db/\n",
            &id.to_string(),
        ] {
            assert_eq!(parse_knob(&machine, knob(), text), Ok(id), "{text}");
        }
        assert_eq!(format_knob(&machine, knob(), id), "/app.slice/db");
        assert_eq!(parse_knob(&machine, knob(), "0"), Ok(0));
        assert_eq!(format_knob(&machine, knob(), 0), "0");
    }

    #[test]
    fn a_group_that_is_gone_keeps_its_id() {
        let (tree, machine, id) = groups(MOUNTS);
        fs::remove_dir_all(tree.path().join("sys/fs/cgroup/unified/app.slice")).expect("removed");
        assert_eq!(format_knob(&machine, knob(), id), format!("id {id} (gone)"));
        // Without the hierarchy nobody knows whether it is.
        let (_tree, machine, id) = groups("");
        assert_eq!(format_knob(&machine, knob(), id), format!("id {id}"));
    }

    #[test]
    fn whatever_is_no_group_is_refused_with_its_reason() {
        let (_tree, machine, _) = groups(MOUNTS);
        let refused = |text: &str| {
            let error = parse_knob(&machine, knob(), text).expect_err(text);
            assert!(!error.to_string().contains('\n'), "{error}");
            error
        };
        for text in ["/", "", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/"] {
            assert!(matches!(refused(text), GroupError::Root(_)), "{text}");
        }
        for text in ["no.slice", "/sys/fs/cgroup/unified/no", "app.slice/web"] {
            let error = refused(text);
            assert!(matches!(error, GroupError::Missing { .. }), "{error}");
        }
        for text in [
            "app.slice/../app.slice",
            "app.slice/db/cgroup.procs",
            "/srv/data",
        ] {
            let error = refused(text);
            assert!(matches!(error, GroupError::NoGroup { .. }), "{error}");
        }
        let error = refused("/sys/fs/cgroup/memory/old");
        assert!(matches!(error, GroupError::Version1 { .. }), "{error}");
        for text in ["-1", "99999999999999999999"] {
            assert!(matches!(refused(text), GroupError::Knob(_)), "{text}");
        }
        let (_tree, alone, _) = groups("1 0 0:5 / /proc rw - proc none rw\n");
        let error = parse_knob(&alone, knob(), "app.slice").expect_err("no hierarchy");
        assert!(matches!(error, GroupError::NoHierarchy(_)), "{error}");
    }

    #[test]
    fn other_knobs_are_parsed_and_formatted_as_ever() {
        let (_tree, machine, id) = groups(MOUNTS);
        let limit = luc_control::knob("delay_limit_us").expect("a knob");
        let error = parse_knob(&machine, limit, "app.slice/db").expect_err("no number");
        assert!(matches!(error, GroupError::Knob(KnobError::NotANumber(..))));
        assert_eq!(format_knob(&machine, limit, id), id.to_string());
    }
}
