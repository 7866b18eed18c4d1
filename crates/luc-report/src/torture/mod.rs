//! Power cuts by the thousand, on many kinds of file systems, under every policy of LUC.
//!
//! A scenario is one file system on a disk of the lab that records all that reaches it. A workload
//! whose files tell what they hold works on it, under LUC or stock; then the power is cut at many
//! places of the record, and each time the promises made up to there are checked
//! (`luc torture cuts`, in the guest). Stock is cut as well: what it loses is not LUC's loss.

mod scenario;

use crate::lab::every_kernel;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use luc_lab::{AllowList, Content, GuestFile, RunSpec, build_disk_module};
use luc_torture::Summary;
use serde::{Deserialize, Serialize};

use crate::document::{Cell, Document, Section, Table, Tone};
use crate::error::{ReportError, Result};
use crate::lab::StockLab;
use crate::pool::{self, lock};
use crate::run::Progress;
pub use scenario::{Scenario, scenarios};

/// Speed of the guest's processor, million instructions per second.
const CPU_MIPS: u32 = 1000;
const SCRIPT: &str = "/t/scenario.sh";

/// Arguments of `luc lab torture`.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TortureArgs {
    /// Kernels to cut the power of
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = every_kernel())]
    pub kernels: Vec<String>,
    /// Only scenarios whose name and policy, as "ordered luc", hold one of these
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Power cuts of each scenario on each kernel
    #[arg(long, value_name = "N", default_value_t = 310, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub cuts: u32,
    /// Operations of each thread of the workload
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ops: u32,
    /// Decides what is done, where the power is cut and what survives
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Virtual machines at the same time
    #[arg(long, short = 'j', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Print the results as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

impl TortureArgs {
    /// The scenarios asked for.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let wanted = |scenario: &Scenario| {
            self.only.is_empty()
                || self
                    .only
                    .iter()
                    .any(|text| scenario.full_name().contains(text))
        };
        scenarios().into_iter().filter(wanted).collect()
    }
}

/// What one scenario showed on one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torment {
    /// Kernel, by its name in the list.
    pub kernel: String,
    pub kernel_release: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Policy of LUC, or stock.
    pub policy: String,
    /// What the cuts showed.
    pub summary: Summary,
    /// What LUC did meanwhile; not known where it came and went.
    #[serde(default)]
    pub did: Option<Did>,
    /// Why the stock kernel loses on such file systems, where it does.
    pub stock_loses: Option<String>,
}

/// How much of what could lose something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// Commits held.
    pub held: u64,
    /// Blocks copied.
    pub copies: u64,
}

impl Did {
    /// From the file that the guest leaves.
    fn of(files: &[(String, Vec<u8>)]) -> Option<Self> {
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

/// A scenario that did not come to its end, or left something in the kernel log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Name and policy of the scenario.
    pub scenario: String,
    /// What happened, and on which kernel.
    pub why: String,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torture {
    /// In the order of kernels and scenarios.
    pub torments: Vec<Torment>,
    /// Scenarios of which nothing is known.
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

    /// Promises that were broken: because of LUC as far as anybody knows, and by the kernel itself.
    pub fn losses(&self) -> (u64, u64) {
        let losses = |summary: &Summary| summary.losses.len() as u64;
        let by_luc = self.lost_by_luc().map(|torment| losses(&torment.summary));
        let ours = by_luc.sum::<u64>();
        let all = self.sum(true, losses) + self.sum(false, losses);
        (ours, all - ours)
    }

    /// What lost something under LUC that is not known to be lost without it: neither is there a
    /// known fault of the kernel, nor did it show in this very run.
    pub fn lost_by_luc(&self) -> impl Iterator<Item = &Torment> {
        let under_luc = self.torments.iter().filter(|t| t.policy != "stock");
        let lost = under_luc.filter(|torment| !torment.summary.losses.is_empty());
        lost.filter(|torment| torment.stock_loses.is_none() || !self.stock_lost(torment))
    }

    /// Whether the stock kernel lost something on such a file system, too.
    fn stock_lost(&self, like: &Torment) -> bool {
        self.torments.iter().any(|torment| {
            torment.policy == "stock"
                && torment.scenario == like.scenario
                && torment.kernel == like.kernel
                && !torment.summary.losses.is_empty()
        })
    }
}

/// Cuts the power.
///
/// # Errors
/// A machine could not be run. A loss is no error, nor is a guest that hangs, panics or complains: they
/// are in the result, and the other scenarios are cut all the same.
pub fn torture(args: &TortureArgs, lab: &StockLab, progress: &dyn Progress) -> Result<Torture> {
    let scenarios = args.scenarios();
    let jobs: Vec<(&String, &Scenario)> = args
        .kernels
        .iter()
        .flat_map(|kernel| scenarios.iter().map(move |scenario| (kernel, scenario)))
        .collect();
    let results: Mutex<BTreeMap<usize, Torment>> = Mutex::default();
    let unfinished: Mutex<BTreeMap<usize, Unfinished>> = Mutex::default();
    pool::each(args.jobs, &jobs, |index, (kernel, scenario)| {
        let result = one(args, lab, kernel, scenario, progress);
        let mut results = lock(&results);
        match result {
            Ok(torment) => {
                results.insert(index, torment);
            }
            Err(error) if error.is_the_guests() => {
                let scenario = scenario.full_name();
                let why = error.to_string();
                progress.note(&format!("{scenario}: {why}"));
                lock(&unfinished).insert(index, Unfinished { scenario, why });
            }
            Err(error) => return Err(error.within(&scenario.full_name())),
        }
        let now = format!("{kernel} {}", scenario.full_name());
        progress.step(results.len(), jobs.len(), &now);
        Ok(())
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unfinished = unfinished
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(Torture {
        torments: results.into_values().collect(),
        unfinished: unfinished.into_values().collect(),
    })
}

/// Passes on what a person should know.
struct Notes<'a>(&'a dyn Progress);

impl luc_lab::Progress for Notes<'_> {
    fn note(&mut self, text: &str) {
        self.0.note(text);
    }
}

fn one(
    args: &TortureArgs,
    lab: &StockLab,
    kernel: &str,
    scenario: &Scenario,
    progress: &dyn Progress,
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
        did: Did::of(&result.files),
        stock_loses: scenario.stock_loses().map(str::to_owned),
    })
}

/// The answer of `luc torture cuts --json`.
fn summary(stdout: &str) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Answer {
        schema: u32,
        summary: Summary,
    }
    let answer: Answer = serde_json::from_str(stdout.trim()).ok()?;
    (answer.schema == 1).then_some(answer.summary)
}

/// A table of what was covered, and every loss in a line.
pub fn document(torture: &Torture) -> Document {
    let number = |value: u64| Cell::new(value.to_string());
    let did = |torment: &Torment, what: fn(Did) -> u64| {
        let text = torment.did.map(|did| what(did).to_string());
        Cell::new(text.unwrap_or_default())
    };
    let row = |torment: &Torment| {
        let summary = &torment.summary;
        let lost = summary.losses.len();
        let tone = if lost == 0 { Tone::Good } else { Tone::Bad };
        vec![
            Cell::new(&torment.kernel),
            Cell::new(&torment.scenario),
            Cell::new(&torment.policy),
            number(summary.cuts),
            number(summary.flushes),
            did(torment, |did| did.held),
            did(torment, |did| did.copies),
            number(summary.syncs),
            number(summary.syncs_verified),
            number(summary.files),
            number(summary.fscks),
            Cell::toned(lost.to_string(), tone),
        ]
    };
    let headings = [
        "kernel", "scenario", "policy", "cuts", "flushes", "held", "copies", "syncs", "verified",
        "files", "e2fsck", "lost",
    ];
    let mut note = "Each scenario's disk has a volatile cache that keeps everything until it is \
flushed. cuts: places of its record where the power was cut, around the ends of flushes and at \
random; what was not durable there survived in none, all, or some of its sectors. held, copies: \
commits that LUC held and blocks that it copied, where it stayed. syncs: calls that the workload was told are done. verified: such promises checked, over all cuts. files: files read \
back. lost: promises broken."
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
    for reason in reasons.collect::<std::collections::BTreeSet<_>>() {
        let _ = write!(note, "\nLost with LUC and without: {reason}.");
    }
    let (luc, stock) = torture.losses();
    let cuts = |summary: &Summary| summary.cuts;
    let syncs = |summary: &Summary| summary.syncs_verified;
    Document {
        title: "Power cuts".to_owned(),
        intro: String::new(),
        sections: vec![Section {
            title: "What was covered".to_owned(),
            note,
            charts: Vec::new(),
            page_charts: Vec::new(),
            table: Table {
                headings: headings.map(String::from).into(),
                left: 3,
                deciding: Some(headings.len() - 1),
                groups: torture
                    .torments
                    .chunk_by(|a, b| a.kernel == b.kernel)
                    .map(|group| group.iter().map(row).collect())
                    .collect(),
            },
        }],
        verdict: format!(
            "Under LUC the power was cut {} times and {} acknowledged syncs were verified, under the stock \
kernel {} times and {}. Promises broken under LUC: {luc}; by the kernel itself, with LUC or without: {stock}. Scenarios that did not come to their end: {}.",
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
