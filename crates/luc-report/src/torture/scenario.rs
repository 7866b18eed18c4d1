//! What is tormented: file systems, policies, and what happens to LUC meanwhile.

use std::collections::BTreeMap;

use luc_lab::{Cell, Step};

/// The file that tells what LUC did.
pub const DID: &str = "did";

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    fs_type: &'static str,
    /// Arguments of mke2fs.
    mkfs: &'static str,
    mount: &'static str,
    size_mib: u32,
    /// Its journal is a partition of its own.
    external_journal: bool,
}

const ORDERED: Kind = Kind {
    name: "ordered",
    fs_type: "ext4",
    mkfs: "-b 4096",
    mount: "data=ordered",
    size_mib: 64,
    external_journal: false,
};

/// Kinds beside the usual one.
const KINDS: [Kind; 10] = [
    Kind {
        name: "ordered-1k",
        mkfs: "-b 1024",
        ..ORDERED
    },
    Kind {
        name: "ordered-no-csum",
        mkfs: "-b 4096 -O ^metadata_csum",
        ..ORDERED
    },
    Kind {
        name: "writeback",
        mount: "data=writeback",
        ..ORDERED
    },
    Kind {
        name: "journal",
        mount: "data=journal",
        ..ORDERED
    },
    Kind {
        name: "fast-commit",
        mkfs: "-b 4096 -O fast_commit",
        ..ORDERED
    },
    // Its blocks have triggers, which write into what is journalled.
    Kind {
        name: "orphan-file",
        mkfs: "-b 4096 -O orphan_file",
        ..ORDERED
    },
    Kind {
        name: "ext3",
        fs_type: "ext3",
        mkfs: "-b 4096 -j",
        ..ORDERED
    },
    Kind {
        name: "tiny-journal",
        mkfs: "-b 1024 -J size=1",
        ..ORDERED
    },
    Kind {
        name: "huge-journal",
        mkfs: "-b 4096 -J size=128",
        // mke2fs adds blocks for fast commits, and wants twice as much in all.
        size_mib: 320,
        ..ORDERED
    },
    Kind {
        name: "external-journal",
        external_journal: true,
        ..ORDERED
    },
];

/// One file system under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Policy of LUC; none is the stock kernel.
    pub policy: Option<&'static str>,
    /// LUC is switched off and on, and unloaded, all the time.
    pub churn: bool,
    /// Only files are synced: nothing hurries LUC, which then copies all the time.
    pub files_only: bool,
    kind: Kind,
}

fn scenario(kind: Kind, policy: Option<&'static str>) -> Scenario {
    Scenario {
        policy,
        churn: false,
        files_only: false,
        kind,
    }
}

/// All of them. Every kind of file system under LUC and under stock, the usual one under every
/// policy, and with LUC coming and going; and each with LUC copying all the time, where it does.
pub fn scenarios() -> Vec<Scenario> {
    let calm = |kind, policy| Scenario {
        files_only: true,
        ..scenario(kind, Some(policy))
    };
    let policies = ["luc", "pid", "static"];
    let mut all: Vec<Scenario> = policies
        .into_iter()
        .map(|policy| scenario(ORDERED, Some(policy)))
        .collect();
    all.push(Scenario {
        churn: true,
        ..scenario(ORDERED, Some("luc"))
    });
    all.push(scenario(ORDERED, None));
    all.extend(["luc", "copyout"].map(|policy| calm(ORDERED, policy)));
    for kind in KINDS {
        all.push(scenario(kind, Some("luc")));
        all.push(scenario(kind, None));
        // LUC leaves fast commits alone.
        all.extend((!kind.has_fast_commits()).then(|| calm(kind, "luc")));
    }
    all
}

impl Kind {
    fn has_fast_commits(&self) -> bool {
        self.mkfs.contains("fast_commit")
    }
}

impl Scenario {
    /// Of the kind of file system.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// What the verifier may ask of data that no sync promised.
    fn data_mode(&self) -> &'static str {
        if self.kind.mount == "data=writeback" {
            "writeback"
        } else {
            "ordered"
        }
    }

    fn syncs(&self) -> &'static str {
        if self.files_only { "--files-only" } else { "" }
    }

    /// The policy as a table shows it.
    pub fn policy_text(&self) -> String {
        let policy = self.policy.unwrap_or("stock");
        match (self.churn, self.files_only) {
            (true, _) => format!("{policy} (on and off)"),
            (_, true) => format!("{policy} (copying)"),
            _ => policy.to_owned(),
        }
    }

    /// Name and policy; unique.
    pub fn full_name(&self) -> String {
        format!("{} {}", self.name(), self.policy_text())
    }

    /// Guest memory: base, record and what the replica keeps lie in it.
    pub fn memory_mib(&self) -> u32 {
        1024 + 3 * self.kind.size_mib
    }

    /// Why the stock kernel loses on such a file system, if it is known to.
    pub fn stock_loses(&self) -> Option<&'static str> {
        let fast_commits = self.kind.has_fast_commits();
        fast_commits.then_some("ext4 cannot replay some fast commits, and some it replays wrongly")
    }

    /// What the kernel may say of the disks that are cut: each such cut counts as a loss.
    pub fn allowed_in_log(&self) -> &'static [&'static str] {
        match self.stock_loses() {
            Some(_) => &["lucdisk1", "JBD2: journal recovery failed"],
            None => &[],
        }
    }

    /// What the guest does.
    pub fn cell(&self, script: &str, cuts: u32, ops: u32, seed: u32) -> Cell {
        let pairs = [
            ("FS", self.kind.fs_type.to_owned()),
            ("MKFS", self.kind.mkfs.to_owned()),
            ("MOUNT", self.kind.mount.to_owned()),
            ("DATA", self.data_mode().to_owned()),
            ("EXTERNAL", u8::from(self.kind.external_journal).to_string()),
            ("POLICY", self.policy.unwrap_or("stock").to_owned()),
            ("CHURN", u8::from(self.churn).to_string()),
            ("SYNCS", self.syncs().to_owned()),
            ("THREADS", "6".to_owned()),
            ("PROCESSES", "2".to_owned()),
            ("OPS", ops.to_string()),
            ("CUTS", cuts.to_string()),
            ("FSCK_EVERY", "4".to_owned()),
            ("SEED", seed.to_string()),
            ("SIZE_MIB", self.kind.size_mib.to_string()),
            ("DID", DID.to_owned()),
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
        for kind in KINDS.into_iter().chain([ORDERED]) {
            let policies: Vec<_> = all
                .iter()
                .filter(|scenario| scenario.kind == kind)
                .map(|scenario| scenario.policy)
                .collect();
            assert!(
                policies.contains(&Some("luc")) && policies.contains(&None),
                "{}",
                kind.name
            );
        }
        let mut names: Vec<_> = all.iter().map(Scenario::full_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
