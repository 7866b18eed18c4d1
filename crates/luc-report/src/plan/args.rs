//! Arguments of the demonstration and of the figures table.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::arm::{Arm, POLICIES};
use super::host::every_kernel;

/// Arguments that both programs have.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct OutputArgs {
    /// Virtual machines at the same time
    #[arg(long, short = 'j', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Render the results kept in the output directory instead of measuring
    #[arg(long)]
    pub from_results: bool,
    /// Print the raw results as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of the demonstration.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct DemoArgs {
    /// Directory for report.html and results.json; made if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/demo", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Kernel to show it on
    #[arg(long, value_name = "NAME", default_value = "6.12")]
    pub kernel: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A part of the figures table, in the order in which parts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// create-fsync on four disks and four numbers of threads
    CreateFsync,
    /// 48 writers beside one fsync stream
    WriteDelay,
    /// Bursts of fsyncs at four processor speeds
    Burst,
    /// Bursts of writes at four processor speeds
    WriteBurst,
    /// What observing, or a loaded module attached to nothing, costs
    Overhead,
    /// Instructions that the module adds to an fsync, a commit and a buffer
    Cost,
    /// varmail, oltp, metarates and iozone on five disks
    Workloads,
    /// create-fsync, write-delay and bursts on models of real disks; 6.12 only
    Disks,
    /// What `luc trace` costs, counting and recording
    Tracing,
    /// What `luc trace model` says of a recording, beside what LUC gives
    Model,
    /// Fsyncs without a commit on 1, 2, 4 and 8 virtual processors in host time; only if asked for
    Scaling,
}

impl Part {
    /// Whether it is measured on one virtual processor only: it counts instructions, or asks a
    /// model of one processor.
    pub fn has_one_processor(self) -> bool {
        matches!(
            self,
            Self::Overhead | Self::Cost | Self::Tracing | Self::Model
        )
    }
}

/// Arguments of the figures table.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct MatrixArgs {
    /// Directory for report.html and results.json; made if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/matrix", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Kernels to measure; 6.1, 6.12 and 7.2 have figures to reach
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = every_kernel())]
    pub kernels: Vec<String>,
    /// Virtual processors of the parts that set LUC beside stock, overhead, cost, tracing and
    /// model have one
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 4], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub smp: Vec<u32>,
    /// Parts to measure [default: all but scaling]
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Policies to measure beside stock and LUC in create-fsync, write-delay and workloads: static,
    /// pid, copyout; kernel-batching (what jbd2 does by itself for synchronous directories);
    /// UNSAFE upper bounds: nofsync (no fsync at all), nojc (no journal)
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = policy)]
    pub policies: Vec<Arm>,
    /// How often each cell is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl MatrixArgs {
    /// The parts asked for, in the order in which they are shown.
    pub fn parts(&self) -> Vec<Part> {
        let wanted = |part: &Part| match self.only.as_slice() {
            // In host time no two runs are alike.
            [] => *part != Part::Scaling,
            only => only.contains(part),
        };
        let all = Part::value_variants().iter().copied();
        all.filter(wanted).collect()
    }
}

fn policy(name: &str) -> Result<Arm, String> {
    let found = POLICIES.into_iter().find(|arm| arm.name() == name);
    found.ok_or_else(|| format!("not one of {}", POLICIES.map(Arm::name).join(", ")))
}
