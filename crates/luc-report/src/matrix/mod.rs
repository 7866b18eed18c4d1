//! The figures table: every figure to reach, measured.

use crate::demo::{BURST_THREADS, SPEEDS, burst, write_burst};
use crate::measure::place::Place;
use crate::measure::record::{Record, Records, Spread};
use crate::plan::args::{MatrixArgs, Part};
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Measurement, Purpose, Times};
use crate::show::document::{Chart, Document, Entry, Line, Row, Section, Table};
use crate::show::number;
use targets::{CREATE_FSYNC, P99, THREADS, Tally, Target};

mod bursts;
mod disks;
mod hooks;
mod lead;
mod loops;
mod model;
mod overhead;
mod scaling;
mod targets;
mod tracing;
mod workloads;

/// Format of the kept results.
pub const SCHEMA: &str = "luc-matrix/1";

/// Kernel of the figures that are asked of one kernel only.
const SPEED_KERNEL: &str = "6.12";
/// Writers of write-delay.
const WRITERS: u32 = 48;

/// Measurement of a number of threads on a disk, milliseconds.
///
/// Threads return in groups, so the edges of a measurement cost or give it part of a group: it
/// must hold hundreds of groups for a ratio to be good to a thousandth. Where the disk is slow and
/// threads are few the processor idles, and virtual idle time is nearly free.
fn measure_ms(disk: &str, threads: u32) -> u32 {
    match (disk, threads) {
        ("4ms:1", 0..=4) => 9000,
        ("4ms:1", 5..=16) => 4000,
        ("4ms:1", _) => 2400,
        ("1ms:64", 0..=4) => 3000,
        ("1ms:64", 5..=16) => 1500,
        (_, 0..=4) | ("1ms:64", _) => 1000,
        _ => 600,
    }
}

fn create_fsync(disk: &str, threads: u32) -> Load {
    // Long enough for a controller to learn the slowest disk, and to try it once.
    let warmup_ms = if disk == "4ms:1" { 800 } else { 200 };
    Load::CreateFsync {
        threads,
        times: Times::new(measure_ms(disk, threads), warmup_ms),
    }
}

const WRITE_DELAY: Load = Load::WriteDelay {
    writers: WRITERS,
    times: Times::new(9000, 500),
};

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
    let pair = [Arm::Stock, Arm::Luc];
    let mut loop_arms = vec![Arm::Stock];
    if has(Part::CreateFsync) {
        loop_arms.push(Arm::Luc);
        loop_arms.extend(&args.policies);
    }
    if has(Part::Overhead) {
        loop_arms.extend([Arm::Loaded, Arm::Observe]);
    }

    if has(Part::Workloads) {
        jobs.extend(workloads::jobs(host, &args.policies, repeats));
    }
    if loop_arms.len() > 1 {
        for (disk, _) in CREATE_FSYNC {
            let loads = THREADS.map(|threads| create_fsync(disk, threads));
            jobs.push(host.job(1000, repeated(disk, &loads, &loop_arms, repeats)));
        }
    }
    if has(Part::Cost) {
        jobs.push(hooks::job(host));
    }
    if has(Part::WriteDelay) {
        let arms = [&pair, args.policies.as_slice()].concat();
        jobs.push(host.job(1000, repeated("4ms:1", &[WRITE_DELAY], &arms, repeats)));
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

fn repeated(disk: &str, loads: &[Load], arms: &[Arm], repeats: u32) -> Vec<Measurement> {
    let mut cells = Vec::new();
    for load in loads {
        for repeat in 1..=repeats {
            let arms = arms.iter().filter(|arm| load.suits(**arm));
            cells.extend(arms.map(|&arm| Measurement {
                purpose: Purpose::Figures,
                disk: disk.to_owned(),
                load: load.clone(),
                arm,
                repeat,
            }));
        }
    }
    cells
}

/// The report on kept results, and how many figures were reached.
pub fn document(records: &Records) -> (Document, Tally) {
    let mut tally = Tally::default();
    let hosts = records.hosts();
    let hosts = hosts.as_slice();
    let one_cpu = hosts.iter().copied().filter(|host| host.vcpus == 1);
    let alone: Vec<Host<'_>> = one_cpu.collect();
    let all = records;
    let (records, modelled) = (&of(all, Purpose::Figures), &of(all, Purpose::Model));
    let mut sections = vec![
        loops::create_fsync_section(records, hosts, &mut tally),
        loops::policies_section(records, hosts),
        loops::write_delay_section(records, hosts, &mut tally),
        bursts::burst_section(records, hosts, &mut tally),
        bursts::write_burst_section(records, hosts, &mut tally),
        overhead::overhead_section(records, &alone, &mut tally),
        overhead::instructions_section(records, &alone),
        hooks::section_of(records, &alone, &mut tally),
        scaling::section_of(records, hosts),
        workloads::section_of(records, hosts, &mut tally),
        workloads::policies_section(records, hosts),
        disks::section_of(records, hosts, &mut tally),
        tracing::section_of(records, &alone, &mut tally),
        model::section_of(modelled, &alone, &mut tally),
    ];
    sections.retain(|section| !section.table.groups.is_empty());
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
    let Tally { reached, missed } = tally;
    let total = reached + missed;
    let document = Document {
        title: "LUC: figures".to_owned(),
        intro: format!(
            "Kernels {}. Stock and LUC in the same boot, one virtual processor unless more are \
             named, one instruction per nanosecond unless a speed is, every cell on a new file system. LUC as \
             `luc on` leaves it: no knob touched, no number of threads given. Runs of every \
             cell: {runs}; a figure is their mean, with the range in brackets where they differ.",
            releases.join(", ")
        ),
        sections,
        verdict: match missed {
            0 => format!("All {total} figures were reached."),
            _ => format!("{reached} of {total} figures were reached; missed: {missed}."),
        },
        lead: lead::sentences(all, &tally),
        foot: all.foot(),
    };
    (document, tally)
}

/// Records of one purpose.
fn of(records: &Records, purpose: Purpose) -> Records {
    let mut records = records.clone();
    let is_of = |record: &Record| record.cell.purpose == purpose;
    records.records.retain(is_of);
    records
}

/// A figure's mean, with its range if the repetitions differ; "-" where nothing was measured.
fn entry(spread: Option<Spread>, form: impl Fn(f64) -> String) -> Entry {
    Entry::of(spread, |spread| {
        let (mean, min, max) = (form(spread.mean), form(spread.min), form(spread.max));
        if min == max {
            return mean;
        }
        format!("{mean} ({min} to {max})")
    })
}

fn mean(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.mean)
}

/// A figure, its target, and whether it is reached; the forms are those of figure and target.
fn judged(
    heading: &'static str,
    figure: Option<Spread>,
    target: Option<Target>,
    forms: [fn(f64) -> String; 2],
    tally: &mut Tally,
) -> [(&'static str, Entry); 3] {
    [
        (heading, entry(figure, forms[0])),
        (
            "to reach",
            Entry::of(target, |target| target.text(forms[1])),
        ),
        ("", tally.verdict(target, mean(figure))),
    ]
}

/// The p99 of fsync under LUC as a ratio to stock's, and whether that is little enough.
fn p99(heading: &'static str, place: &Place<'_>, tally: &mut Tally) -> [(&'static str, Entry); 2] {
    let ratio = place.p99_ratio(Arm::Luc);
    let [figure, _, verdict] = judged(heading, ratio, Some(P99), [number::ratio; 2], tally);
    [figure, verdict]
}

/// The rows of each host with each of these items, a group each.
fn groups<'a, T: Copy>(
    hosts: &[Host<'a>],
    items: &[T],
    mut rows: impl FnMut(Host<'a>, T) -> Vec<Row>,
) -> Vec<Vec<Row>> {
    let all = hosts
        .iter()
        .flat_map(|host| items.iter().map(move |item| (host, item)));
    all.map(|(&host, &item)| rows(host, item)).collect()
}

fn section(title: &str, note: &str, left: usize, groups: Vec<Vec<Row>>) -> Section {
    Section {
        title: title.to_owned(),
        note: note.to_owned(),
        table: Table::new(left, groups),
        ..Section::default()
    }
}

/// Meaning of the columns of policies; each is a ratio to stock.
fn policies_note(policies: &[Arm]) -> String {
    let mut note = "The main figure's ratio to stock.".to_owned();
    for arm in policies {
        note.push_str(match arm {
            Arm::KernelBatching => {
                " kernel-batching: stock, mounted dirsync with max_batch_time at its 15 ms: creating and removing \
                 a file wait for their commit and batch as jbd2 does by itself, while the directory stays locked; \
                 an fsync never batches there, and only in this column does removing a file wait."
            }
            Arm::Nofsync => {
                " nofsync: stock, the workload leaves its fsyncs and synchronous writes out. UNSAFE: nothing is \
                 durable; an upper bound."
            }
            Arm::Nojc => {
                " nojc: ext4 without a journal. UNSAFE: a crash damages the file system. No fsync waits for a \
                 commit, but each writes its blocks one by one: an upper bound where the disk takes many at once."
            }
            _ => "",
        });
    }
    note
}

/// The ratio to stock under each policy and LUC; `None` where no policy was measured.
fn policy_ratios(place: &Place<'_>, policies: &[Arm]) -> Option<Row> {
    let ratios: Vec<_> = policies.iter().map(|&arm| place.ratio(arm)).collect();
    ratios.iter().flatten().next()?;
    let named = policies.iter().map(|arm| arm.warning_name()).zip(ratios);
    let all = named.chain([(Arm::Luc.name(), place.ratio(Arm::Luc))]);
    Some(
        all.map(|(name, ratio)| (name, entry(ratio, number::ratio)))
            .collect(),
    )
}

/// Lines of ratios to stock over numbers of threads.
fn ratio_chart(host: Host<'_>, of: &str, threads: &[u32], lines: Vec<Line>) -> Chart {
    Chart {
        title: format!("{of}, kernel {}", host.name()),
        x_label: "threads".to_owned(),
        y_label: "times stock".to_owned(),
        x: threads.iter().map(u32::to_string).collect(),
        lines,
    }
}
