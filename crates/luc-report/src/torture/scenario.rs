//! Scenarios: file systems, policies, and changes of LUC's state meanwhile.

use luc_vm::{Cell, Step};

/// The file with LUC's counts.
pub const DID: &str = "did";

/// In place of a policy: the switches that the patches of upstream/ add to a kernel.
pub const SERIES: &str = "series";

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileSystem {
    name: &'static str,
    fs_type: &'static str,
    /// Arguments of mke2fs.
    mkfs: &'static str,
    mount: &'static str,
    size_mib: u32,
    /// Whether its journal is a partition of its own.
    external_journal: bool,
}

const fn on_64_mib(
    name: &'static str,
    fs_type: &'static str,
    mkfs: &'static str,
    mount: &'static str,
) -> FileSystem {
    FileSystem {
        name,
        fs_type,
        mkfs,
        mount,
        size_mib: 64,
        external_journal: false,
    }
}

const ORDERED: FileSystem = on_64_mib("ordered", "ext4", "-b 4096", "data=ordered");

/// File systems other than the usual one.
const FILE_SYSTEMS: [FileSystem; 10] = [
    on_64_mib("ordered-1k", "ext4", "-b 1024", "data=ordered"),
    on_64_mib(
        "ordered-no-csum",
        "ext4",
        "-b 4096 -O ^metadata_csum",
        "data=ordered",
    ),
    on_64_mib("writeback", "ext4", "-b 4096", "data=writeback"),
    on_64_mib("journal", "ext4", "-b 4096", "data=journal"),
    on_64_mib(
        "fast-commit",
        "ext4",
        "-b 4096 -O fast_commit",
        "data=ordered",
    ),
    // Its blocks have triggers, which write into journalled data.
    on_64_mib(
        "orphan-file",
        "ext4",
        "-b 4096 -O orphan_file",
        "data=ordered",
    ),
    on_64_mib("ext3", "ext3", "-b 4096 -j", "data=ordered"),
    on_64_mib("tiny-journal", "ext4", "-b 1024 -J size=1", "data=ordered"),
    FileSystem {
        // mke2fs adds blocks for fast commits, and requires twice that space in total.
        size_mib: 320,
        ..on_64_mib(
            "huge-journal",
            "ext4",
            "-b 4096 -J size=128",
            "data=ordered",
        )
    },
    FileSystem {
        external_journal: true,
        ..on_64_mib("external-journal", "ext4", "-b 4096", "data=ordered")
    },
];

/// One file system under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Policy of LUC, or [`SERIES`]; `None` is the kernel with neither.
    pub policy: Option<&'static str>,
    /// Whether LUC is switched off and on, and unloaded, all the time.
    pub churn: bool,
    /// Whether only files are synced: nothing makes LUC hurry, so that it copies all the time.
    pub files_only: bool,
    fs: FileSystem,
}

fn scenario(fs: FileSystem, policy: Option<&'static str>) -> Scenario {
    Scenario {
        policy,
        churn: false,
        files_only: false,
        fs,
    }
}

/// All scenarios: every file system under LUC and under stock; the usual one under every policy,
/// and with LUC switched off and on; and each with LUC copying all the time, if LUC copies there.
/// On a kernel with the patches of upstream/, their switches take the place of every policy.
pub fn scenarios(patched: bool) -> Vec<Scenario> {
    let calm = |fs, policy| Scenario {
        files_only: true,
        ..scenario(fs, Some(policy))
    };
    let policies: &[&str] = if patched {
        &[SERIES]
    } else {
        &["luc", "batching", "static"]
    };
    let usual = policies[0];
    let mut all: Vec<_> = policies
        .iter()
        .map(|policy| scenario(ORDERED, Some(policy)))
        .collect();
    all.push(Scenario {
        churn: true,
        ..scenario(ORDERED, Some(usual))
    });
    all.push(scenario(ORDERED, None));
    all.push(calm(ORDERED, usual));
    all.extend((!patched).then(|| calm(ORDERED, "copyout")));
    for fs in FILE_SYSTEMS {
        all.push(scenario(fs, Some(usual)));
        all.push(scenario(fs, None));
        // LUC leaves fast commits alone, as do the patches.
        all.extend((!fs.has_fast_commits()).then(|| calm(fs, usual)));
    }
    all
}

impl FileSystem {
    fn has_fast_commits(&self) -> bool {
        self.mkfs.contains("fast_commit")
    }
}

impl Scenario {
    /// Name of the file system.
    pub fn name(&self) -> &'static str {
        self.fs.name
    }

    /// How the judge treats data that no sync promised.
    fn data_mode(&self) -> &'static str {
        if self.fs.mount == "data=writeback" {
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

    /// Guest memory, which holds base, record and the replica's pages.
    pub fn memory_mib(&self) -> u32 {
        1024 + 3 * self.fs.size_mib
    }

    /// Why the stock kernel loses data on such a file system, if it is known to.
    pub fn stock_loses(&self) -> Option<&'static str> {
        let fast_commits = self.fs.has_fast_commits();
        fast_commits.then_some("ext4 cannot replay some fast commits, and replays others wrongly")
    }

    /// Lines that the kernel may log about the disks that are cut: each such cut counts as a loss.
    pub fn allowed_in_log(&self) -> &'static [&'static str] {
        match self.stock_loses() {
            Some(_) => &["lucdisk1", "JBD2: journal recovery failed"],
            None => &[],
        }
    }

    /// The guest's work.
    pub fn cell(&self, script: &str, cuts: u32, ops: u32, seed: u32) -> Cell {
        let pairs = [
            ("FS", self.fs.fs_type.to_owned()),
            ("MKFS", self.fs.mkfs.to_owned()),
            ("MOUNT", self.fs.mount.to_owned()),
            ("DATA", self.data_mode().to_owned()),
            ("EXTERNAL", u8::from(self.fs.external_journal).to_string()),
            ("POLICY", self.policy.unwrap_or("stock").to_owned()),
            ("CHURN", u8::from(self.churn).to_string()),
            ("SYNCS", self.syncs().to_owned()),
            ("THREADS", "6".to_owned()),
            ("PROCESSES", "2".to_owned()),
            ("OPS", ops.to_string()),
            ("CUTS", cuts.to_string()),
            ("FSCK_EVERY", "4".to_owned()),
            ("SEED", seed.to_string()),
            ("SIZE_MIB", self.fs.size_mib.to_string()),
            ("DID", DID.to_owned()),
        ];
        Cell {
            name: "cuts".to_owned(),
            disks: Vec::new(),
            env: pairs.map(|(name, value)| (name.to_owned(), value)).into(),
            steps: vec![Step {
                // It fails if promises were broken, which its answer names.
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
    fn every_file_system_is_cut_with_luc_and_without() {
        for (patched, with) in [(false, "luc"), (true, SERIES)] {
            let all = scenarios(patched);
            for fs in FILE_SYSTEMS.into_iter().chain([ORDERED]) {
                let of_fs = all.iter().filter(|scenario| scenario.fs == fs);
                let policies: Vec<_> = of_fs.map(|scenario| scenario.policy).collect();
                assert!(policies.contains(&Some(with)), "{}", fs.name);
                assert!(policies.contains(&None), "{}", fs.name);
            }
            let mut names: Vec<_> = all.iter().map(Scenario::full_name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all.len());
        }
    }
}
