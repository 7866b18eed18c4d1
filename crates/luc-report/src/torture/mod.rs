//! Power cuts by the thousand, on many kinds of file systems, under every policy of LUC.
//!
//! A scenario is one file system on a disk of the lab that records all requests. A workload whose
//! files describe themselves works on it, under LUC or stock; then the power is cut at many points
//! of the record, and each time the promises made up to that point are checked (`luc-lab promises
//! cuts`, in the guest). Stock is cut as well, to tell its losses from LUC's.

mod scenario;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use luc_torture::Summary;
use luc_vm::{AllowList, Content, GuestFile, KernelList, RunSpec, build_disk_module};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::BatchProgress;
use crate::error::{ReportError, Result};
use crate::lab::StockLab;
use crate::show::document::{Document, Entry, Row, Section, Table, Tone};
pub use scenario::{Scenario, scenarios};

/// Speed of the guest's processor, million instructions per second.
const CPU_MIPS: u32 = 1000;
const SCRIPT: &str = "/t/scenario.sh";

/// Arguments of `luc-lab torture`.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TortureArgs {
    /// Kernels to run the scenarios on
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = luc_vm::KernelList::every())]
    pub kernels: Vec<String>,
    /// Run only scenarios whose name and policy, such as "ordered luc", contain one of these texts
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Power cuts per scenario and kernel
    #[arg(long, value_name = "N", default_value_t = 310, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub cuts: u32,
    /// Operations per thread of the workload
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ops: u32,
    /// Seed of the operations, of the moments of the power cuts, and of which writes survive them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Virtual machines to run at the same time
    #[arg(long, short = 'j', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Print the results as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

impl TortureArgs {
    /// The scenarios asked for, each with its kernel.
    ///
    /// # Errors
    /// The lab does not know a kernel.
    pub fn scenarios(&self) -> Result<Vec<(String, Scenario)>> {
        let mut all = Vec::new();
        for kernel in &self.kernels {
            let known = KernelList::builtin().and_then(|list| list.get(kernel).cloned());
            let spec = known.map_err(|source| ReportError::Lab {
                kernel: kernel.clone(),
                cpu_mips: CPU_MIPS,
                source,
            })?;
            let patched = !spec.patches.is_empty();
            let scenarios = scenarios(patched).into_iter().filter(|scenario| {
                let name = scenario.full_name();
                self.only.is_empty() || self.only.iter().any(|text| name.contains(text))
            });
            all.extend(scenarios.map(|scenario| (kernel.clone(), scenario)));
        }
        Ok(all)
    }
}

/// The outcome of one scenario on one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torment {
    /// Name in the list of kernels.
    pub kernel: String,
    pub kernel_release: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Policy of LUC, or stock.
    pub policy: String,
    pub summary: Summary,
    /// LUC's actions meanwhile; unknown if LUC was switched off and on.
    #[serde(default)]
    pub did: Option<Did>,
    /// Why the stock kernel loses data on such file systems, if it does.
    pub stock_loses: Option<String>,
}

/// How often LUC acted in ways that could lose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// Commits held.
    pub held: u64,
    /// Blocks copied.
    pub copies: u64,
}

impl Did {
    /// Parses the file that the guest leaves.
    fn parse(files: &[(String, Vec<u8>)]) -> Option<Self> {
        let is_it = |name: &str| name.rsplit('/').next() == Some(scenario::DID);
        let (_, bytes) = files.iter().find(|(name, _)| is_it(name))?;
        let text = std::str::from_utf8(bytes).ok()?;
        let mut numbers = text.lines().map(str::parse);
        Some(Self {
            held: numbers.next()?.ok()?,
            copies: numbers.next()?.ok()?,
        })
    }
}

/// A scenario that did not finish, or left a problem in the kernel log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Name and policy of the scenario.
    pub scenario: String,
    /// The error, with the kernel.
    pub why: String,
}

/// The outcome of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torture {
    /// In the order of kernels and scenarios.
    pub torments: Vec<Torment>,
    /// Scenarios without a result.
    pub unfinished: Vec<Unfinished>,
}

impl Torture {
    fn sum(&self, under_luc: bool, of: impl Fn(&Summary) -> u64) -> u64 {
        let torments = self.torments.iter();
        torments
            .filter(|torment| (torment.policy != "stock") == under_luc)
            .map(|torment| of(&torment.summary))
            .sum()
    }

    /// Number of broken promises: those that may be LUC's fault, and those of the kernel itself.
    pub fn losses(&self) -> (u64, u64) {
        let losses = |summary: &Summary| summary.losses.len() as u64;
        let by_luc = self.lost_by_luc().map(|torment| losses(&torment.summary));
        let ours = by_luc.sum::<u64>();
        let all = self.sum(true, losses) + self.sum(false, losses);
        (ours, all - ours)
    }

    /// Scenarios that lost data under LUC, unless the kernel has a known fault that showed without
    /// LUC in this very run.
    pub fn lost_by_luc(&self) -> impl Iterator<Item = &Torment> {
        let under_luc = self.torments.iter().filter(|t| t.policy != "stock");
        let lost = under_luc.filter(|torment| !torment.summary.losses.is_empty());
        lost.filter(|torment| torment.stock_loses.is_none() || !self.stock_lost(torment))
    }

    /// Whether the stock kernel lost data on the same kind of file system, too.
    fn stock_lost(&self, like: &Torment) -> bool {
        self.torments.iter().any(|torment| {
            torment.policy == "stock"
                && torment.scenario == like.scenario
                && torment.kernel == like.kernel
                && !torment.summary.losses.is_empty()
        })
    }
}

/// Runs the campaign.
///
/// # Errors
/// A machine could not be run. Losses, and guests that hang, panic or complain, are not errors:
/// they are in the result, and the other scenarios still run.
///
/// # Panics
/// This machine cannot start a thread.
pub fn torture(
    args: &TortureArgs,
    lab: &StockLab,
    progress: &dyn BatchProgress,
) -> Result<Torture> {
    let jobs = args.scenarios()?;
    let done = AtomicUsize::new(0);
    let one = |(kernel, scenario): &(String, Scenario)| {
        let name = scenario.full_name();
        let outcome = match one(args, lab, kernel, scenario, progress) {
            Ok(torment) => Ok(torment),
            Err(error) if error.is_the_guests() => {
                let why = error.to_string();
                progress.note(&format!("{name}: {why}"));
                Err(Unfinished {
                    scenario: name.clone(),
                    why,
                })
            }
            Err(error) => return Err(error.within(&name)),
        };
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.step(done, jobs.len(), &format!("{kernel} {name}"));
        Ok(outcome)
    };
    let machines = rayon::ThreadPoolBuilder::new().num_threads(args.jobs as usize);
    let machines = machines.build().expect("threads can be started");
    // After a failure no further machine is started: the report would be incomplete.
    let all = jobs.par_iter().with_max_len(1).map(one);
    let all: Vec<_> = machines.install(|| all.collect::<Result<_>>())?;
    let (mut torments, mut unfinished) = (Vec::new(), Vec::new());
    for outcome in all {
        match outcome {
            Ok(torment) => torments.push(torment),
            Err(without) => unfinished.push(without),
        }
    }
    Ok(Torture {
        torments,
        unfinished,
    })
}

/// Passes on notes.
struct Notes<'a>(&'a dyn BatchProgress);

impl luc_vm::Progress for Notes<'_> {
    fn note(&mut self, text: &str) {
        self.0.note(text);
    }
}

fn one(
    args: &TortureArgs,
    lab: &StockLab,
    kernel: &str,
    scenario: &Scenario,
    progress: &dyn BatchProgress,
) -> Result<Torment> {
    let cell = scenario.cell(SCRIPT, args.cuts, args.ops, args.seed);
    let result = lab.run(kernel, CPU_MIPS, &mut Notes(progress), |progress| {
        let mut spec = RunSpec::new(kernel, vec![cell])?;
        spec.memory_mib = scenario.memory_mib();
        spec.seed = u64::from(args.seed);
        spec.allow = AllowList::new(scenario.allowed_in_log().iter().copied());
        spec.disk_module = Some(build_disk_module(&spec.kernels, kernel, progress)?);
        spec.files.push(GuestFile {
            guest_path: SCRIPT.into(),
            content: Content::Bytes {
                data: include_bytes!("scenario.sh").to_vec(),
                executable: false,
            },
        });
        Ok(spec)
    })?;
    let failed = |first: &str| ReportError::Failed {
        kernel: kernel.to_owned(),
        cpu_mips: CPU_MIPS,
        first: first.to_owned(),
        more: 0,
        log: None,
    };
    let step = result.report.cells.first().and_then(|c| c.steps.first());
    let step = step.ok_or_else(|| failed("nothing came back"))?;
    let summary = summary(&step.stdout)
        .ok_or_else(|| failed(step.stderr.lines().last().unwrap_or("no summary")))?;
    Ok(Torment {
        kernel: kernel.to_owned(),
        kernel_release: result.report.kernel_release.clone(),
        scenario: scenario.name().to_owned(),
        policy: scenario.policy_text(),
        summary,
        did: Did::parse(&result.files),
        stock_loses: scenario.stock_loses().map(str::to_owned),
    })
}

/// Parses the answer of `luc-lab promises cuts --json`.
fn summary(stdout: &str) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Answer {
        schema: u32,
        summary: Summary,
    }
    let answer: Answer = serde_json::from_str(stdout.trim()).ok()?;
    (answer.schema == 1).then_some(answer.summary)
}

/// A table of the scenarios, and up to 20 losses of each, one per line.
pub fn document(torture: &Torture) -> Document {
    let number = |value: u64| Entry::new(value.to_string());
    let did = |torment: &Torment, what: fn(Did) -> u64| {
        let text = torment.did.map(|did| what(did).to_string());
        Entry::new(text.unwrap_or_default())
    };
    let row = |torment: &Torment| -> Row {
        let summary = &torment.summary;
        let lost = summary.losses.len();
        let tone = if lost == 0 { Tone::Good } else { Tone::Bad };
        vec![
            ("kernel", Entry::new(&torment.kernel)),
            ("scenario", Entry::new(&torment.scenario)),
            ("policy", Entry::new(&torment.policy)),
            ("cuts", number(summary.cuts)),
            ("flushes", number(summary.flushes)),
            ("held", did(torment, |did| did.held)),
            ("copies", did(torment, |did| did.copies)),
            ("syncs", number(summary.syncs)),
            ("verified", number(summary.syncs_verified)),
            ("files", number(summary.files)),
            ("e2fsck", number(summary.fscks)),
            ("torn", number(summary.torn)),
            ("lost", Entry::toned(lost.to_string(), tone)),
        ]
    };
    let mut note = "Each scenario's disk has a volatile cache that keeps everything until it is \
                    flushed. cuts: points of its record where the power was cut, around the ends \
                    of flushes and at random; data that was not durable there kept none, all or \
                    some of its sectors. held, copies: commits that LUC held and blocks that it \
                    copied, if it stayed attached. syncs: sync calls that returned success to the \
                    workload. verified: such promises checked, over all cuts. files: files read \
                    back. torn: cuts that tore the superblock, which ext4 writes outside of its \
                    journal; no kernel mounts it before e2fsck has repaired it, and the promises \
                    were checked then. lost: promises broken."
        .to_owned();
    for torment in &torture.torments {
        for loss in torment.summary.losses.iter().take(20) {
            // Writing to a String cannot fail.
            let _ = write!(
                note,
                "\n{} {} {}: {loss}",
                torment.kernel, torment.scenario, torment.policy
            );
        }
    }
    for unfinished in &torture.unfinished {
        let _ = write!(note, "\n{}: {}", unfinished.scenario, unfinished.why);
    }
    let reasons = torture
        .torments
        .iter()
        .filter_map(|t| t.stock_loses.as_ref());
    for reason in reasons.collect::<BTreeSet<_>>() {
        let _ = write!(note, "\nLost with LUC and without: {reason}.");
    }
    let by_kernel = torture.torments.chunk_by(|a, b| a.kernel == b.kernel);
    let groups = by_kernel.map(|group| group.iter().map(row).collect());
    let (luc, stock) = torture.losses();
    let cuts = |summary: &Summary| summary.cuts;
    let syncs = |summary: &Summary| summary.syncs_verified;
    Document {
        title: "Power cuts".to_owned(),
        head: Vec::new(),
        intro: String::new(),
        sections: vec![Section {
            title: "What was covered".to_owned(),
            note,
            table: Table::new(3, groups.collect()),
            ..Section::default()
        }],
        verdict: format!(
            "Under LUC the power was cut {} times and {} acknowledged syncs were verified, under \
             the stock kernel {} times and {}. Promises broken under LUC: {luc}; by the kernel \
             itself, with LUC or without: {stock}. Scenarios that did not finish: {}.",
            torture.sum(true, cuts),
            torture.sum(true, syncs),
            torture.sum(false, cuts),
            torture.sum(false, syncs),
            torture.unfinished.len(),
        ),
        lead: Vec::new(),
        foot: Vec::new(),
    }
}
