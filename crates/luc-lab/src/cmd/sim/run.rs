//! `luc-lab sim run`

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser};
use luc_host::plain;
use luc_model::Totals;
use luc_power::machine;
use luc_report::show::number::three;
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::journal::kind::{Choice, KINDS};
use luc_sim::kernel::{self, KERNELS};
use luc_sim::mount::Mount;
use luc_sim::processors::governor::{GOVERNORS, Scaling};
use luc_sim::processors::{CLOCK_LATENCY_US_MAX, MEMORY_PAGE_NS_MAX, PAST_US_MAX, ProcessorModel};
use luc_sim::recorder::Recording;
use luc_sim::{RUNS_MAX, Setup, SimError, speeds};

use super::{calibrate, energy_machine};
use crate::cmd::bench::print;
use luc_cli::{Context, Failure, Verb};
use luc_trace::{Entry, Writer};
use luc_workload::BenchReport;

/// Number of entries of a recording that are written at a time, so that spans and lines of one time
/// lie together.
const PIECE: usize = 1024;

/// Run a benchmark in the simulator
///
/// Prints the same as `luc-lab bench` on such a machine. Without --luc, --policy and --set it
/// simulates stock. The same arguments and seed give the same figures. A recording has the format
/// of `luc trace record` and misses no event: `luc trace`, `luc doctor --from` and `luc replay`
/// read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim run --disk hdd-7200 -- create-fsync --threads 16\n\
    \x20 luc-lab sim run --disk hdd-7200 --cpus 4 --mips 3000 --luc -- create-fsync --threads 16\n\
    \x20 luc-lab sim run --disk nehalem-raid10 --cpus 8 --mips 2394 -- metarates --procs 8 --files 8\n\
    \x20 luc-lab sim run --policy static --json -- burst --threads 4 --spread-us 400\n\
    \x20 luc-lab sim run --journal delayed-logging -- create-fsync --threads 16\n\
    \x20 luc-lab sim run --luc --record run.luc -- create-fsync --threads 16\n\
    \x20 luc-lab sim run --calibrated machine.json --luc -- create-fsync --threads 16")]
pub struct Args {
    /// Disk: time per request and number of requests at once; a preset of `luc-lab disks`; an array
    /// of either; or a name of `luc-lab sim disks`; then changes; for example 4ms:1,
    /// hdd-7200:cache_bytes=0, raid10:4:hdd-15k:chunk_bytes=65536, nehalem-raid10
    ///
    /// Arrays are raid0, raid1 and raid10, with their number of members. `luc-lab sim disks` lists
    /// the knobs of arrays and of a controller's cache. A size may come last, as in
    /// `sata-ssd:512M`: a small disk has a small journal and few inodes.
    #[arg(long, value_name = "SPEC", default_value = "4ms:1")]
    disk: String,
    /// Number of processors [default: the number of speeds in --mips, or one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Speed of each processor in million instructions per second, or a list of speeds:
    /// 3000,3000,1000,1000 [default: 1000]
    #[arg(long, value_name = "MIPS", allow_hyphen_values = true)]
    mips: Option<String>,
    /// Machine of `luc-lab sim calibrate --json`: sets the disk, and the number and speed of the
    /// processors unless --cpus and --mips are given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "disk")]
    calibrated: Option<PathBuf>,
    /// Change of speed at a moment, for example 2s=1500; may be repeated
    #[arg(long, value_name = "TIME=MIPS", allow_hyphen_values = true)]
    mips_at: Vec<String>,
    /// Number of the only processor on which the journal's thread may run, from 0
    #[arg(long, value_name = "CPU")]
    journal_on: Option<u16>,
    /// Governor that chooses the clock, among those of --clocks; only userspace takes --mips and
    /// --mips-at, and chooses the lowest clock that is at least as fast
    #[arg(long, value_name = "NAME", requires = "clocks", value_parser = governors())]
    governor: Option<String>,
    /// Clocks of the governor, as speeds in million instructions per second, or those of a machine
    /// that --energy knows: 800,1600,3200 or r710
    #[arg(long, value_name = "MIPS|MACHINE", requires = "governor")]
    clocks: Option<String>,
    /// Time from the governor's choice of a clock until processors run at it, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0, requires = "governor",
        value_parser = clap::value_parser!(u64).range(..=CLOCK_LATENCY_US_MAX))]
    clock_latency_us: u64,
    /// Give each processor a clock of its own, instead of one for all
    #[arg(long, requires = "governor")]
    clock_per_processor: bool,
    /// Print the energy that a model of this machine gives, after changes to its parameters:
    /// r710, e3-server, sc1425, or `r710:idle_w=50:ipc=0.5`; may be repeated
    #[arg(long, value_name = "MACHINE")]
    energy: Vec<String>,
    /// Kernel whose ext4 and scheduler are simulated
    #[arg(long, value_name = "NAME", default_value = KERNELS[0].name, value_parser = kernels())]
    kernel: String,
    /// Largest difference between the tasks' virtual run times at the start, in microseconds, as if
    /// they had run before [default: one time slice of the scheduler]
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(..=PAST_US_MAX))]
    past_us: Option<u64>,
    /// Time that memory takes to copy a page of 4 KiB, in nanoseconds, whatever the processor's
    /// speed; 300 to 3000 on real machines
    #[arg(long, value_name = "NS", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=MEMORY_PAGE_NS_MAX))]
    memory_page_ns: u64,
    /// Mount options: `noatime`, `dioread_lock`
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount: String,
    /// Journal to simulate: jbd2, or an alternative to it
    #[arg(long, value_name = "NAME", default_value = KINDS[0].name, value_parser = journals())]
    journal: String,
    /// Size of the journal's log in MiB [default for jbd2: as in the lab on such a disk, 256 from 2
    /// GiB on]
    #[arg(long, value_name = "N")]
    journal_mib: Option<u32>,
    /// Simulate LUC with the settings of a plain `luc on`
    #[arg(long)]
    luc: bool,
    #[command(flatten)]
    knobs: super::Knobs,
    /// Seed of the tasks' start times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs that follow each other on one mount, so that copy-out's state outlives each; the seed
    /// draws the one that is measured
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    runs: u32,
    /// File to record the run in, including the warm-up
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Benchmark and its arguments, as for `luc-lab bench`; the directory may be left out
    #[arg(last = true, required = true, value_name = "BENCH")]
    bench: Vec<String>,
}

fn journals() -> PossibleValuesParser {
    let kinds = KINDS.iter();
    PossibleValuesParser::new(kinds.map(|kind| PossibleValue::new(kind.name).help(kind.help)))
}

fn governors() -> PossibleValuesParser {
    PossibleValuesParser::new(GOVERNORS.map(|it| PossibleValue::new(it.name).help(it.help)))
}

fn kernels() -> PossibleValuesParser {
    let kernels = KERNELS.iter();
    PossibleValuesParser::new(
        kernels.map(|kernel| PossibleValue::new(kernel.name).help(kernel.help)),
    )
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let wrong = |error: String| Failure::usage("sim run", error);
        let said = |error: SimError| wrong(error.to_string());
        let setup = self.setup().map_err(wrong)?;
        let machines: Result<Vec<_>, _> = self
            .energy
            .iter()
            .map(|text| energy_machine(text))
            .collect();
        let machines = machines.map_err(wrong)?;
        let load = luc_sim_loads::load(&self.bench).map_err(said)?;
        let report = if let Some(path) = &self.record {
            let (report, recording) = luc_sim_loads::record(&load, &setup).map_err(said)?;
            self.write(recording, path, context)?;
            report
        } else {
            luc_sim_loads::run(&load, &setup).map_err(said)?
        };
        print(&report, self.json, context)?;
        self.print_energy(&report, &machines, context)
    }
}

impl Args {
    /// Prints the modelled energy, a line for each machine.
    fn print_energy(
        &self,
        report: &BenchReport,
        machines: &[(String, machine::PowerModel)],
        context: &mut Context,
    ) -> Result<(), Failure> {
        let Some(activity) = &report.activity else {
            return Ok(());
        };
        let seconds = activity.elapsed_ns as f64 / 1e9;
        for (name, machine) in machines {
            let energy = machine.energy(activity);
            let joules = energy.total_j();
            let rate = report.outcome.found().figures().main;
            let per_joule = rate.map(|rate| rate * seconds / joules);
            if self.json {
                let line = serde_json::json!({
                    "machine": name, "energy": energy, "joules": joules,
                    "watts": joules / seconds, "ops_per_joule": per_joule,
                });
                writeln!(context.out, "{line}")?;
                continue;
            }
            let per_joule =
                per_joule.map_or_else(String::new, |it| format!(", {} per joule", three(it)));
            writeln!(
                context.out,
                "  energy, modelled for {name}: {} J, {:.1} W (idle {:.1} W){per_joule}: processors \
                 {:.1} W, memory {:.1} W, disks {:.1} W, all else {:.1} W",
                three(joules),
                joules / seconds,
                machine.idle_w(),
                energy.processors_j / seconds,
                energy.memory_j / seconds,
                energy.disks_j / seconds,
                energy.rest_j / seconds,
            )?;
        }
        Ok(())
    }

    fn setup(&self) -> Result<Setup, String> {
        let luc = if self.luc || self.knobs.are_given() {
            self.knobs.params()?
        } else {
            None
        };
        let machine = self.calibrated.as_deref().map(calibrate::machine);
        let machine = machine.transpose()?;
        let disk: Result<DiskKind, _> = self.disk_text(machine.as_ref()).parse();
        let disk = disk.map_err(|error| error.to_string())?;
        let kernel = kernel::named(&self.kernel).map_err(|error| error.to_string())?;
        let mount = Mount::new(kernel, &self.mount);
        let journal = Choice::on(&self.journal, self.journal_mib, disk.size_mib);
        Ok(Setup {
            machine: self.processors(machine.as_ref())?,
            disk,
            journal: journal.map_err(|error| error.to_string())?,
            costs: Costs::default(),
            mount: mount.map_err(|error| error.to_string())?,
            luc,
            seed: self.seed,
            runs: self.runs,
        })
    }

    fn disk_text<'a>(&'a self, measured: Option<&'a calibrate::MeasuredMachine>) -> &'a str {
        measured.map_or(&self.disk, |machine| &machine.disk)
    }

    fn processors(
        &self,
        measured: Option<&calibrate::MeasuredMachine>,
    ) -> Result<ProcessorModel, String> {
        let (mut cpus, mut mips) = (self.cpus, self.mips.clone());
        if let Some(measured) = measured {
            let lacks = |what| format!("the recording does not tell {what}");
            cpus = cpus.or(measured.cpus);
            mips = mips.or_else(|| measured.mips.map(|mips| mips.to_string()));
            cpus.ok_or_else(|| lacks("how many processors there were: give --cpus"))?;
            mips.as_ref()
                .ok_or_else(|| lacks("how fast they were: give --mips"))?;
        }
        let machine = speeds::machine(cpus, mips.as_deref().unwrap_or("1000"), &self.mips_at)?;
        let cpus = machine.mips.len();
        if let Some(cpu) = self.journal_on.filter(|cpu| usize::from(*cpu) >= cpus) {
            return Err(format!(
                "--journal-on {cpu}: the processors are 0 to {}",
                cpus - 1
            ));
        }
        let scaling = self.governor.as_deref().map(|it| self.scaling(it));
        Ok(ProcessorModel {
            past_ns: self.past_us.map(|us| us * 1000),
            memory_page_ns: self.memory_page_ns,
            scaling: scaling.transpose()?,
            journal_on: self.journal_on,
            ..machine
        })
    }

    fn scaling(&self, governor: &str) -> Result<Scaling, String> {
        let clocks = self.clocks.as_deref().unwrap_or_default();
        let scaling = speeds::scaling(governor, clocks, self.clock_per_processor)?;
        let is_asked = self.mips.is_some() || !self.mips_at.is_empty();
        if is_asked && !scaling.governor.asks() {
            return Err(format!(
                "the governor {governor} chooses the clock itself: leave out --mips and --mips-at, \
                 or take userspace"
            ));
        }
        Ok(Scaling {
            latency_ns: self.clock_latency_us * 1000,
            ..scaling
        })
    }

    fn write(
        &self,
        recording: Recording,
        path: &Path,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let header = recording
            .header
            .with("disk", &self.disk)
            .with("rules", &self.kernel)
            .with("mount", &self.mount)
            .with("journal", &self.journal)
            .with("command", &self.bench.join(" "));
        let written = File::create(path).and_then(|file| {
            let mut writer = Writer::new(BufWriter::new(file), &header)?;
            let mut totals = Totals::default();
            for entries in recording.entries.chunks(PIECE) {
                for entry in entries {
                    match entry {
                        Entry::Line(record) => {
                            totals.event(&record.event);
                            writer.record(record)?;
                        }
                        Entry::Span(span) => {
                            totals.span(span.kind.number());
                            writer.span(span)?;
                        }
                        Entry::Block { dev, number, block } => {
                            writer.block(*dev, *number, block)?;
                        }
                        // The simulator loses nothing, and has neither control groups nor paths.
                        Entry::SpansLost(_)
                        | Entry::Cgroup { .. }
                        | Entry::File { .. }
                        | Entry::End => {}
                    }
                }
                writer.flush()?;
            }
            writer.finish()?;
            Ok(totals)
        });
        let totals = written.map_err(|error| Failure::trace(path.display(), plain(&error)))?;
        writeln!(context.err, "luc-lab: {}: {totals}; 0 lost", path.display())?;
        Ok(())
    }
}
