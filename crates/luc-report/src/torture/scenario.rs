//! What is tormented: file systems, policies, and what happens to LUC meanwhile.

use std::collections::BTreeMap;

use luc_lab::{Cell, Step};

/// One file system under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Of the kind of file system.
    pub name: &'static str,
    /// Policy of LUC; none is the stock kernel.
    pub policy: Option<&'static str>,
    /// LUC is switched off and on, and unloaded, all the time.
    pub churn: bool,
    fs_type: &'static str,
    mkfs: &'static str,
    mount: &'static str,
    data_mode: &'static str,
    size_mib: u32,
}

/// A kind of file system: name, type, arguments of mke2fs, mount options, size.
type Kind = (&'static str, &'static str, &'static str, &'static str, u32);

const ORDERED: Kind = ("ordered", "ext4", "-b 4096", "data=ordered", 64);

/// Kinds beside the usual one.
const KINDS: [Kind; 8] = [
    ("ordered-1k", "ext4", "-b 1024", "data=ordered", 64),
    (
        "ordered-no-csum",
        "ext4",
        "-b 4096 -O ^metadata_csum",
        "data=ordered",
        64,
    ),
    ("writeback", "ext4", "-b 4096", "data=writeback", 64),
    ("journal", "ext4", "-b 4096", "data=journal", 64),
    (
        "fast-commit",
        "ext4",
        "-b 4096 -O fast_commit",
        "data=ordered",
        64,
    ),
    ("ext3", "ext3", "-b 4096 -j", "data=ordered", 64),
    (
        "tiny-journal",
        "ext4",
        "-b 1024 -J size=1",
        "data=ordered",
        64,
    ),
    (
        "huge-journal",
        "ext4",
        "-b 4096 -J size=128",
        "data=ordered",
        256,
    ),
];

fn scenario(kind: Kind, policy: Option<&'static str>, churn: bool) -> Scenario {
    let (name, fs_type, mkfs, mount, size_mib) = kind;
    Scenario {
        name,
        policy,
        churn,
        fs_type,
        mkfs,
        mount,
        data_mode: if mount == "data=writeback" {
            "writeback"
        } else {
            "ordered"
        },
        size_mib,
    }
}

/// All of them. Every kind of file system under LUC and under stock, the usual one under every
/// policy, and with LUC coming and going.
pub fn scenarios() -> Vec<Scenario> {
    let policies = ["luc", "pid", "static", "copyout"];
    let mut all: Vec<Scenario> = policies
        .into_iter()
        .map(|policy| scenario(ORDERED, Some(policy), false))
        .collect();
    all.push(scenario(ORDERED, Some("luc"), true));
    all.push(scenario(ORDERED, None, false));
    for kind in KINDS {
        all.push(scenario(kind, Some("luc"), false));
        all.push(scenario(kind, None, false));
    }
    all
}

impl Scenario {
    /// The policy as a table shows it.
    pub fn policy_text(&self) -> String {
        let policy = self.policy.unwrap_or("stock");
        if self.churn {
            format!("{policy} (on and off)")
        } else {
            policy.to_owned()
        }
    }

    /// Name and policy; unique.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.name, self.policy_text())
    }

    /// Guest memory: base, record and what the replica keeps lie in it.
    pub fn memory_mib(&self) -> u32 {
        1024 + 3 * self.size_mib
    }

    /// What the guest does.
    pub fn cell(&self, script: &str, cuts: u32, ops: u32, seed: u32) -> Cell {
        let pairs = [
            ("FS", self.fs_type.to_owned()),
            ("MKFS", self.mkfs.to_owned()),
            ("MOUNT", self.mount.to_owned()),
            ("DATA", self.data_mode.to_owned()),
            ("POLICY", self.policy.unwrap_or("stock").to_owned()),
            ("CHURN", u8::from(self.churn).to_string()),
            ("THREADS", "6".to_owned()),
            ("PROCESSES", "2".to_owned()),
            ("OPS", ops.to_string()),
            ("CUTS", cuts.to_string()),
            ("FSCK_EVERY", "4".to_owned()),
            ("SEED", seed.to_string()),
            ("SIZE_MIB", self.size_mib.to_string()),
        ];
        Cell {
            name: "cuts".to_owned(),
            disks: Vec::new(),
            env: pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<BTreeMap<_, _>>(),
            steps: vec![Step {
                // Broken promises are told by the answer.
                allow_failure: true,
                ..Step::new(["sh", script])
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_tormented_with_luc_and_without() {
        let all = scenarios();
        for (name, ..) in KINDS.into_iter().chain([ORDERED]) {
            let policies: Vec<_> = all
                .iter()
                .filter(|scenario| scenario.name == name)
                .map(|scenario| scenario.policy)
                .collect();
            assert!(
                policies.contains(&Some("luc")) && policies.contains(&None),
                "{name}"
            );
        }
        let mut names: Vec<_> = all.iter().map(Scenario::full_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
