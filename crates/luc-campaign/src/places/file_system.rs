//! The file system of a cell: factors that places share, which an arm may override.

use luc_vm::FsType;

use super::Factor;
use crate::cell::{Cell, NamedArm};

pub const FS: Factor = Factor {
    name: "fs",
    help: "file system: ext4, ext4-nojournal, ext3, ext2, xfs, btrfs, f2fs",
    default: Some("ext4"),
    check: |text| match kind_of(text) {
        None if text == "reiserfs" => Err(format!(
            "Linux has no ReiserFS since 6.13; must be one of {}",
            FsType::NAMES
        )),
        Some(FsType::None) | None => Err(format!("must be one of {}", FsType::NAMES)),
        Some(_) => Ok(()),
    },
};

pub const MKFS: Factor = Factor {
    name: "mkfs",
    help: "arguments of mkfs",
    default: Some(""),
    check: |text| {
        shlex::split(text)
            .map(drop)
            .ok_or_else(|| "a quote is not closed".into())
    },
};

pub const MOUNT: Factor = Factor {
    name: "mount",
    help: "mount options",
    default: Some(""),
    check: |_| Ok(()),
};

fn kind_of(name: &str) -> Option<FsType> {
    serde_json::from_value(name.into()).ok()
}

/// A factor's value, empty if the cell does not have it.
pub fn text<'a>(cell: &'a Cell, factor: &str) -> &'a str {
    cell.machine.get(factor).map_or("", String::as_str)
}

/// Checks that each arm's file system exists, and has a journal if LUC is attached.
///
/// # Errors
/// The message names the arm.
pub fn check(cell: &Cell) -> Result<(), String> {
    for named in &cell.arms {
        let (arm, name) = (&named.arm, kind_name(cell, named));
        (MKFS.check)(&arm.mkfs).map_err(|why| format!("arm {}: mkfs: {why}", named.name))?;
        let Some(kind) = kind_of(name).filter(|kind| *kind != FsType::None) else {
            return Err(format!("arm {}: no file system {name}", named.name));
        };
        // LUC attaches to a journal, and the campaign reads its counters.
        if arm.attached() && !kind.has_journal() {
            let name = &named.name;
            return Err(format!(
                "arm {name}: LUC needs a file system with a journal"
            ));
        }
    }
    Ok(())
}

fn chosen<'a>(own: &'a str, cell: &'a Cell, factor: &Factor) -> &'a str {
    if own.is_empty() {
        text(cell, factor.name)
    } else {
        own
    }
}

fn kind_name<'a>(cell: &'a Cell, named: &'a NamedArm) -> &'a str {
    chosen(&named.arm.fs, cell, &FS)
}

/// The arm's arguments of mkfs, or else the cell's.
pub fn mkfs_arguments(cell: &Cell, named: &NamedArm) -> Vec<String> {
    // An unclosed quote was refused before.
    shlex::split(chosen(&named.arm.mkfs, cell, &MKFS)).unwrap_or_default()
}

/// The arm's kind of file system and mount options, or else the cell's.
pub fn kind_and_mount<'a>(cell: &'a Cell, named: &'a NamedArm) -> (FsType, &'a str) {
    let kind = kind_of(kind_name(cell, named)).unwrap_or_default();
    (kind, chosen(&named.arm.mount, cell, &MOUNT))
}
