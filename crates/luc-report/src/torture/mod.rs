//! Power cuts by the thousand, on many kinds of file systems, under every policy of LUC.
//!
//! A scenario is one file system on a disk of the lab that records all that reaches it. A workload
//! whose files tell what they hold works on it, under LUC or stock; then the power is cut at many
//! places of the record, and each time the promises made up to there are checked
//! (`luc torture cuts`, in the guest). Stock is cut as well: what it loses is not LUC's loss.

mod scenario;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use luc_lab::{Content, GuestFile, RunSpec, build_disk_module};
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
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = ["6.1".to_owned(), "6.12".to_owned(), "7.2".to_owned()])]
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
    /// Its release.
    pub kernel_release: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Policy of LUC, or stock.
    pub policy: String,
    /// What the cuts showed.
    pub summary: Summary,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torture {
    /// In the order of kernels and scenarios.
    pub torments: Vec<Torment>,
}

impl Torture {
    fn sum(&self, under_luc: bool, of: impl Fn(&Summary) -> u64) -> u64 {
        let torments = self.torments.iter();
        torments
            .filter(|torment| (torment.policy != "stock") == under_luc)
            .map(|torment| of(&torment.summary))
            .sum()
    }

    /// Promises that were broken, under LUC and under stock.
    pub fn losses(&self) -> (u64, u64) {
        let losses = |summary: &Summary| summary.losses.len() as u64;
        (self.sum(true, losses), self.sum(false, losses))
    }
}

/// Cuts the power.
///
/// # Errors
/// A machine could not be run, a scenario did not come to its end, or the kernel log shows a
/// problem. A loss is no error: it is in the result.
pub fn torture(args: &TortureArgs, lab: &StockLab, progress: &dyn Progress) -> Result<Torture> {
    let scenarios = args.scenarios();
    let jobs: Vec<(&String, &Scenario)> = args
        .kernels
        .iter()
        .flat_map(|kernel| scenarios.iter().map(move |scenario| (kernel, scenario)))
        .collect();
    let results: Mutex<BTreeMap<usize, Torment>> = Mutex::default();
    pool::each(args.jobs, &jobs, |index, (kernel, scenario)| {
        let torment = one(args, lab, kernel, scenario, progress)
            .map_err(|error| error.within(&scenario.full_name()))?;
        let mut results = lock(&results);
        results.insert(index, torment);
        let now = format!("{kernel} {}", scenario.full_name());
        progress.step(results.len(), jobs.len(), &now);
        Ok(())
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Torture {
        torments: results.into_values().collect(),
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
            number(summary.syncs),
            number(summary.syncs_verified),
            number(summary.files),
            number(summary.fscks),
            Cell::toned(lost.to_string(), tone),
        ]
    };
    let headings = [
        "kernel", "scenario", "policy", "cuts", "flushes", "syncs", "verified", "files", "e2fsck",
        "lost",
    ];
    let mut note = "Each scenario's disk has a volatile cache that keeps everything until it is \
flushed. cuts: places of its record where the power was cut, around the ends of flushes and at \
random; what was not durable there survived in none, all, or some of its sectors. syncs: calls that \
the workload was told are done. verified: such promises checked, over all cuts. files: files read \
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
            table: Table {
                headings: headings.map(String::from).into(),
                left: 3,
                groups: torture
                    .torments
                    .chunk_by(|a, b| a.kernel == b.kernel)
                    .map(|group| group.iter().map(row).collect())
                    .collect(),
            },
        }],
        verdict: format!(
            "Under LUC the power was cut {} times, {} acknowledged syncs were verified, {luc} \
promises were broken; under the stock kernel {}, {} and {stock}.",
            torture.sum(true, cuts),
            torture.sum(true, syncs),
            torture.sum(false, cuts),
            torture.sum(false, syncs),
        ),
    }
}
