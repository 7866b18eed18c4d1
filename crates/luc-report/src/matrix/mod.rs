//! The figures table: every figure to reach, measured.

use crate::args::{MatrixArgs, Part};
use crate::demo::{SPEEDS, burst, write_burst};
use crate::document::{Cell, Chart, Document, Line, Section, Table, number};
use crate::host::Host;
use crate::load::{Job, Load, Measurement, Mode, Purpose};
use crate::record::{Filter, Record, Records, Spread};
use crate::targets::{CREATE_FSYNC, P99, THREADS, Tally, Target};

mod bursts;
mod cost;
mod costs;
mod disks;
mod lead;
mod loops;
mod model;
mod scaling;
mod tracing;
mod workloads;

/// Format of the kept results.
pub const SCHEMA: &str = "luc-matrix/1";

/// Kernel of the figures that are asked of one kernel only.
const SPEED_KERNEL: &str = "6.12";
/// Threads of the bursts of fsyncs.
const BURST_THREADS: [u32; 2] = [4, 16];
/// Writers of write-delay.
const WRITERS: u32 = 48;

/// Measurement of a number of threads on a disk, milliseconds.
///
/// Threads return in groups, so the edges of a measurement cost or give it part of a group: it
/// must hold hundreds of groups for a ratio to be good to a thousandth. Where the disk is slow and
/// threads are few the processor idles, and virtual idle time is nearly free.
fn measure_ms(disk: &str, threads: u32) -> u32 {
    match (disk, threads) {
        ("4ms:1", 0..=4) => 8000,
        ("4ms:1", 5..=16) => 4000,
        ("4ms:1", _) => 2400,
        ("1ms:64", 0..=4) => 3000,
        ("1ms:64", 5..=16) => 1500,
        (_, 0..=4) | ("1ms:64", _) => 1000,
        _ => 600,
    }
}

fn create_fsync(disk: &str, threads: u32) -> Load {
    let measure_ms = measure_ms(disk, threads);
    Load::CreateFsync {
        threads,
        measure_ms,
        // Long enough for a controller to learn the slowest disk, and to try it once.
        warmup_ms: if disk == "4ms:1" { 800 } else { 200 },
    }
}

fn write_delay() -> Load {
    Load::WriteDelay {
        writers: WRITERS,
        measure_ms: 1500,
        warmup_ms: 500,
    }
}

/// The cells, in jobs that can run side by side.
pub fn plan(args: &MatrixArgs) -> Vec<Job> {
    let parts = args.parts();
    let mut vcpus = args.smp.clone();
    if parts.iter().any(|part| part.has_one_processor()) {
        vcpus.push(1);
    }
    vcpus.sort_unstable();
    vcpus.dedup();
    let mut jobs = Vec::new();
    for kernel in &args.kernels {
        for &vcpus in &vcpus {
            let host = Host { kernel, vcpus };
            let has = |part: Part| {
                parts.contains(&part)
                    && if part.has_one_processor() {
                        vcpus == 1
                    } else {
                        args.smp.contains(&vcpus)
                    }
            };
            plan_host(args, host, has, &mut jobs);
        }
    }
    if parts.contains(&Part::Scaling) {
        let vcpus = scaling::VCPUS;
        let hosts = args.kernels.iter().map(|kernel| Host { kernel, vcpus });
        jobs.extend(hosts.map(|host| scaling::job(host, args.repeats)));
    }
    jobs
}

/// The parts of the plan that this host has.
fn plan_host(args: &MatrixArgs, host: Host<'_>, has: impl Fn(Part) -> bool, jobs: &mut Vec<Job>) {
    let repeats = args.repeats;
    // Every comparison has its stock in the same boot, right before it.
    let mut loop_modes = vec![Mode::Stock];
    if has(Part::CreateFsync) {
        loop_modes.push(Mode::Luc);
        loop_modes.extend(&args.policies);
    }
    if has(Part::Overhead) {
        loop_modes.extend([Mode::Loaded, Mode::Observe]);
    }
    let mut delay_modes = vec![Mode::Stock, Mode::Luc];
    delay_modes.extend(&args.policies);
    let pair = [Mode::Stock, Mode::Luc];

    if has(Part::Workloads) {
        jobs.extend(workloads::jobs(host, &args.policies, repeats));
    }
    if loop_modes.len() > 1 {
        for (disk, _) in CREATE_FSYNC {
            let loads = THREADS.map(|threads| create_fsync(disk, threads));
            jobs.push(host.job(1000, repeated(disk, &loads, &loop_modes, repeats)));
        }
    }
    if has(Part::Cost) {
        jobs.push(cost::job(host));
    }
    if has(Part::WriteDelay) {
        let cells = repeated("4ms:1", &[write_delay()], &delay_modes, repeats);
        jobs.push(host.job(1000, cells));
    }
    if has(Part::Tracing) {
        jobs.push(tracing::job(host, repeats));
    }
    if has(Part::Model) {
        jobs.extend(model::jobs(host, repeats));
    }
    if !host.kernel.starts_with(SPEED_KERNEL) {
        return;
    }
    if has(Part::Disks) {
        jobs.extend(disks::jobs(host, repeats));
    }
    for cpu_mips in SPEEDS {
        let mut cells = Vec::new();
        if has(Part::Burst) {
            let loads = BURST_THREADS.map(burst);
            cells.extend(repeated("4ms:1", &loads, &pair, repeats));
        }
        if has(Part::WriteBurst) {
            cells.extend(repeated("4ms:8", &[write_burst()], &pair, repeats));
        }
        if !cells.is_empty() {
            jobs.push(host.job(cpu_mips, cells));
        }
    }
}

fn repeated(disk: &str, loads: &[Load], modes: &[Mode], repeats: u32) -> Vec<Measurement> {
    let mut cells = Vec::new();
    for load in loads {
        for repeat in 1..=repeats {
            let modes = modes.iter().filter(|mode| load.suits(**mode));
            cells.extend(modes.map(|&mode| Measurement {
                purpose: Purpose::Figures,
                disk: disk.to_owned(),
                load: load.clone(),
                mode,
                repeat,
            }));
        }
    }
    cells
}

/// What the columns of policies mean; each is a ratio to stock.
fn policies_note(policies: &[Mode]) -> String {
    let mut note = "The main figure's ratio to stock.".to_owned();
    for mode in policies {
        note.push_str(match mode {
            Mode::KernelBatching => {
                " kernel-batching: stock, mounted dirsync with max_batch_time at its 15 ms: creating and removing \
                 a file wait for their commit and batch as jbd2 does by itself, while the directory stays locked; \
                 an fsync never batches there, and only in this column does removing a file wait."
            }
            Mode::Nofsync => {
                " nofsync: stock, the workload leaves its fsyncs and synchronous writes out. UNSAFE: nothing is \
                 durable; an upper bound."
            }
            Mode::Nojc => {
                " nojc: ext4 without a journal. UNSAFE: a crash damages the file system. No fsync waits for a \
                 commit, but each writes its blocks one by one: an upper bound where the disk takes many at once."
            }
            _ => "",
        });
    }
    note
}

/// The report on kept results, and how many figures were reached.
pub fn document(records: &Records) -> (Document, Tally) {
    let mut tally = Tally::default();
    let hosts = hosts(records);
    let hosts = hosts.as_slice();
    let alone: Vec<Host<'_>> = hosts
        .iter()
        .copied()
        .filter(|host| host.vcpus == 1)
        .collect();
    let all = records;
    let (records, modelled) = (&of(all, Purpose::Figures), &of(all, Purpose::Model));
    let sections: Vec<Section> = [
        loops::create_fsync_section(records, hosts, &mut tally),
        loops::policies_section(records, hosts),
        loops::write_delay_section(records, hosts, &mut tally),
        bursts::burst_section(records, hosts, &mut tally),
        bursts::write_burst_section(records, hosts, &mut tally),
        costs::overhead_section(records, &alone, &mut tally),
        costs::instructions_section(records, &alone),
        cost::section_of(records, &alone, &mut tally),
        scaling::section_of(records, hosts),
        workloads::section(records, hosts, &mut tally),
        workloads::policies_section(records, hosts),
        disks::section(records, hosts, &mut tally),
        tracing::section_of(records, &alone, &mut tally),
        model::section_of(modelled, &alone, &mut tally),
    ]
    .into_iter()
    .filter(|section| !section.table.groups.is_empty())
    .collect();
    let iozone = |record: &&Record| matches!(record.cell.load, Load::Iozone { .. });
    let (iozone, others): (Vec<_>, Vec<_>) = all.records.iter().partition(iozone);
    let runs = |of: &[&Record]| of.iter().map(|record| record.cell.repeat).max();
    let runs = match (runs(&others), runs(&iozone)) {
        (Some(runs), Some(many)) => format!("{runs}, of iozone {many}"),
        (runs, many) => runs.or(many).unwrap_or(0).to_string(),
    };
    let mut releases: Vec<String> = Vec::new();
    for record in &all.records {
        let release = format!("{} ({})", record.kernel, record.kernel_release);
        if !releases.contains(&release) {
            releases.push(release);
        }
    }
    let total = tally.reached + tally.missed;
    let document = Document {
        title: "LUC: figures".to_owned(),
        intro: format!(
            "Kernels {}. Stock and LUC in the same boot, one virtual processor unless more are \
             named, one instruction per nanosecond unless a speed is, every cell on a new file system. LUC as \
             `luc on` leaves it: no knob touched, no number of threads given. Runs of every \
             cell: {}; a figure is their mean, with the range in brackets where they differ.",
            releases.join(", "),
            runs
        ),
        sections,
        verdict: if tally.missed == 0 {
            format!("All {total} figures were reached.")
        } else {
            format!(
                "{} of {total} figures were reached; missed: {}.",
                tally.reached, tally.missed
            )
        },
        lead: lead::sentences(records, &tally),
        foot: all.foot(),
    };
    (document, tally)
}

/// What was measured for one purpose.
fn of(records: &Records, purpose: Purpose) -> Records {
    let mut records = records.clone();
    records
        .records
        .retain(|record| record.cell.purpose == purpose);
    records
}

/// Hosts in the order they were measured.
fn hosts(records: &Records) -> Vec<Host<'_>> {
    let mut hosts = Vec::new();
    for record in &records.records {
        let host = Host {
            kernel: &record.kernel,
            vcpus: record.vcpus,
        };
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// One load on one disk, at one speed, on one host.
struct Place<'a> {
    records: &'a Records,
    filter: Filter<'a>,
    load: Load,
}

impl<'a> Place<'a> {
    fn new(records: &'a Records, host: Host<'a>, cpu_mips: u32, disk: &'a str, load: Load) -> Self {
        let filter = Filter {
            kernel: Some(host.kernel),
            vcpus: Some(host.vcpus),
            cpu_mips: Some(cpu_mips),
            disk: Some(disk),
        };
        Self {
            records,
            filter,
            load,
        }
    }

    /// The load as it was measured, with its times.
    fn measured(&self) -> Option<&Load> {
        let load = |load: &Load| load.alike(&self.load);
        let record = self.records.select(self.filter, Mode::Stock, load).next();
        record.map(|record| &record.cell.load)
    }

    fn figure(&self, mode: Mode) -> Option<Spread> {
        self.spread(mode, Record::main_figure)
    }

    fn spread(&self, mode: Mode, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        self.records
            .spread(self.filter, mode, |load| load.alike(&self.load), figure)
    }

    /// What a figure is above stock's.
    fn extra(&self, mode: Mode, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        let load = |load: &Load| load.alike(&self.load);
        let difference = |value: f64, base: f64| Some(value - base);
        self.records
            .compare(self.filter, mode, load, figure, difference)
    }

    fn ratio(&self, mode: Mode) -> Option<Spread> {
        self.ratio_of(mode, Record::main_figure)
    }

    fn ratio_of(&self, mode: Mode, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        let load = |load: &Load| load.alike(&self.load);
        self.records.ratio(self.filter, mode, load, figure)
    }

    /// The p99 of fsync under LUC as a ratio to stock's, and whether that is little enough.
    fn p99(&self, tally: &mut Tally) -> [Cell; 2] {
        let ratio = self.ratio_of(Mode::Luc, Record::sync_delay_p99_ms);
        [
            entry(ratio, number::ratio),
            tally.verdict(Some(P99), mean(ratio)),
        ]
    }
}

fn entry(spread: Option<Spread>, form: impl Fn(f64) -> String) -> Cell {
    spread.map_or_else(Cell::none, |spread| Cell::new(number::spread(spread, form)))
}

fn target_entry(target: Option<Target>, form: impl Fn(f64) -> String) -> Cell {
    target.map_or_else(Cell::none, |target| Cell::new(target.text(form)))
}

fn mean(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.mean)
}

/// Lines of ratios to stock over numbers of threads.
fn ratio_chart(host: Host<'_>, of: &str, threads: &[u32], lines: Vec<Line>) -> Chart {
    Chart {
        title: format!("{of}, kernel {}", host.cell().text),
        x_label: "threads".to_owned(),
        y_label: "times stock".to_owned(),
        x: threads.iter().map(u32::to_string).collect(),
        lines,
    }
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn section(
    title: &str,
    note: &str,
    names: &[&str],
    left: usize,
    groups: Vec<Vec<Vec<Cell>>>,
) -> Section {
    Section {
        title: title.to_owned(),
        note: note.to_owned(),
        charts: Vec::new(),
        page_charts: Vec::new(),
        table: Table {
            headings: headings(names),
            left,
            // Tables of ratios to stock have a column of that name, those of policies end with LUC.
            deciding: names
                .iter()
                .position(|name| *name == "ratio")
                .or_else(|| names.iter().position(|name| *name == Mode::Luc.name())),
            groups: groups
                .into_iter()
                .filter(|group| !group.is_empty())
                .collect(),
        },
    }
}
