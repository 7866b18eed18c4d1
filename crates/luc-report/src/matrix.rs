//! The figures table: every figure to reach, measured.

use crate::args::{MatrixArgs, Part};
use crate::demo::{SPEEDS, burst, write_burst};
use crate::document::{Cell, Document, Section, Table, number};
use crate::load::{Job, Load, Measurement, Mode};
use crate::record::{Filter, Record, Records, Spread};
use crate::targets::{self, CREATE_FSYNC, THREADS, Tally, Target};

/// Format of the kept results.
pub const SCHEMA: &str = "luc-matrix/1";

/// Kernel of the figures that are asked of one kernel only.
const SPEED_KERNEL: &str = "6.12";
/// Threads of the bursts of fsyncs.
const BURST_THREADS: [u32; 2] = [4, 16];
/// Writers of write-delay.
const WRITERS: u32 = 48;

/// Warm-up and measurement on a disk, milliseconds: about the same number of commits on each.
fn times_ms(disk: &str) -> (u32, u32) {
    match disk {
        "4ms:1" => (400, 1600),
        "1ms:64" => (200, 600),
        "100us:64" => (100, 300),
        _ => (50, 200),
    }
}

fn create_fsync(disk: &str, threads: u32) -> Load {
    let (warmup_ms, measure_ms) = times_ms(disk);
    Load::CreateFsync {
        threads,
        measure_ms,
        warmup_ms,
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
    let has = |part: Part| parts.contains(&part);
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

    let mut jobs = Vec::new();
    for kernel in &args.kernels {
        let mut job = |cpu_mips: u32, cells: Vec<Measurement>| {
            jobs.push(Job {
                kernel: kernel.clone(),
                cpu_mips,
                cells,
            });
        };
        if loop_modes.len() > 1 {
            for (disk, _) in CREATE_FSYNC {
                let loads = THREADS.map(|threads| create_fsync(disk, threads));
                job(1000, repeated(disk, &loads, &loop_modes, args.repeats));
            }
        }
        if has(Part::WriteDelay) {
            job(
                1000,
                repeated("4ms:1", &[write_delay()], &delay_modes, args.repeats),
            );
        }
        if !kernel.starts_with(SPEED_KERNEL) {
            continue;
        }
        for cpu_mips in SPEEDS {
            let mut cells = Vec::new();
            if has(Part::Burst) {
                let loads = BURST_THREADS.map(burst);
                cells.extend(repeated("4ms:1", &loads, &pair, args.repeats));
            }
            if has(Part::WriteBurst) {
                cells.extend(repeated("4ms:8", &[write_burst()], &pair, args.repeats));
            }
            if !cells.is_empty() {
                job(cpu_mips, cells);
            }
        }
    }
    jobs
}

fn repeated(disk: &str, loads: &[Load], modes: &[Mode], repeats: u32) -> Vec<Measurement> {
    let mut cells = Vec::new();
    for load in loads {
        for repeat in 1..=repeats {
            cells.extend(modes.iter().map(|&mode| Measurement {
                disk: disk.to_owned(),
                load: load.clone(),
                mode,
                repeat,
            }));
        }
    }
    cells
}

/// The report on kept results, and how many figures were reached.
pub fn document(records: &Records) -> (Document, Tally) {
    let mut tally = Tally::default();
    let kernels = kernels(records);
    let sections: Vec<Section> = [
        create_fsync_section(records, &kernels, &mut tally),
        policies_section(records, &kernels),
        write_delay_section(records, &kernels, &mut tally),
        burst_section(records, &kernels, &mut tally),
        write_burst_section(records, &kernels, &mut tally),
        overhead_section(records, &kernels, &mut tally),
        instructions_section(records, &kernels),
    ]
    .into_iter()
    .filter(|section| !section.table.groups.is_empty())
    .collect();
    let runs = records
        .records
        .iter()
        .map(|record| record.cell.repeat)
        .max();
    let releases: Vec<String> = kernels
        .iter()
        .filter_map(|kernel| {
            let record = records
                .records
                .iter()
                .find(|record| record.kernel == *kernel)?;
            Some(format!("{kernel} ({})", record.kernel_release))
        })
        .collect();
    let total = tally.reached + tally.missed;
    let document = Document {
        title: "LUC: figures".to_owned(),
        intro: format!(
            "Kernels {}. Stock and LUC in the same boot, one virtual processor, one instruction \
             per nanosecond unless a speed is named, every cell on a new file system. LUC as \
             `luc on` leaves it: no knob touched, no number of threads given. {} runs of every \
             cell; a figure is their mean, with the range in brackets where they differ.",
            releases.join(", "),
            runs.unwrap_or(0)
        ),
        sections,
        verdict: if tally.missed == 0 {
            format!("All {total} figures were reached.")
        } else {
            format!(
                "{} of {total} figures were reached, {} were missed.",
                tally.reached, tally.missed
            )
        },
    };
    (document, tally)
}

/// Kernels in the order they were measured.
fn kernels(records: &Records) -> Vec<&str> {
    let mut kernels: Vec<&str> = Vec::new();
    for record in &records.records {
        if !kernels.contains(&record.kernel.as_str()) {
            kernels.push(&record.kernel);
        }
    }
    kernels
}

/// One load on one disk, at one speed, on one kernel.
struct Place<'a> {
    records: &'a Records,
    filter: Filter<'a>,
    load: Load,
}

impl<'a> Place<'a> {
    fn new(
        records: &'a Records,
        kernel: &'a str,
        cpu_mips: u32,
        disk: &'a str,
        load: Load,
    ) -> Self {
        let filter = Filter {
            kernel: Some(kernel),
            cpu_mips: Some(cpu_mips),
            disk: Some(disk),
        };
        Self {
            records,
            filter,
            load,
        }
    }

    fn figure(&self, mode: Mode) -> Option<Spread> {
        self.spread(mode, Record::main_figure)
    }

    fn spread(&self, mode: Mode, figure: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        self.records
            .spread(self.filter, mode, |load| *load == self.load, figure)
    }

    fn ratio(&self, mode: Mode) -> Option<Spread> {
        let load = |load: &Load| *load == self.load;
        self.records
            .ratio(self.filter, mode, load, Record::main_figure)
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
        table: Table {
            headings: headings(names),
            left,
            groups: groups
                .into_iter()
                .filter(|group| !group.is_empty())
                .collect(),
        },
    }
}

fn create_fsync_section(records: &Records, kernels: &[&str], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &kernel in kernels {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, kernel, 1000, disk, create_fsync(disk, threads));
                let ratio = place.ratio(Mode::Luc);
                if ratio.is_none() {
                    continue;
                }
                let target = targets::create_fsync(kernel, disk, threads);
                let form = if threads == 1 {
                    number::fine_ratio
                } else {
                    number::ratio
                };
                rows.push(vec![
                    Cell::new(kernel),
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(place.figure(Mode::Luc), number::figure),
                    entry(
                        place.spread(Mode::Luc, Record::fsyncs_per_commit),
                        number::figure,
                    ),
                    entry(ratio, form),
                    target_entry(target, form),
                    tally.verdict(target, mean(ratio)),
                ]);
            }
            groups.push(rows);
        }
    }
    section(
        "create-fsync",
        "Threads loop create, fsync, close. Operations per second.",
        &[
            "kernel",
            "disk",
            "threads",
            "stock ops/s",
            "LUC ops/s",
            "fsyncs/commit",
            "ratio",
            "to reach",
            "",
        ],
        2,
        groups,
    )
}

fn policies_section(records: &Records, kernels: &[&str]) -> Section {
    let mut groups = Vec::new();
    let policies = [Mode::Static, Mode::Pid, Mode::Copyout];
    for &kernel in kernels {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, kernel, 1000, disk, create_fsync(disk, threads));
                let ratios = policies.map(|mode| place.ratio(mode));
                if ratios.iter().all(Option::is_none) {
                    continue;
                }
                let mut row = vec![
                    Cell::new(kernel),
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                ];
                row.extend(ratios.map(|ratio| entry(ratio, number::ratio)));
                row.push(entry(place.ratio(Mode::Luc), number::ratio));
                rows.push(row);
            }
            groups.push(rows);
        }
    }
    section(
        "create-fsync under the other policies",
        "Operations per second, ratio to stock.",
        &[
            "kernel", "disk", "threads", "static", "pid", "copyout", "LUC",
        ],
        2,
        groups,
    )
}

fn write_delay_section(records: &Records, kernels: &[&str], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &kernel in kernels {
        let place = Place::new(records, kernel, 1000, "4ms:1", write_delay());
        let mut rows = Vec::new();
        for mode in [Mode::Luc, Mode::Static, Mode::Pid, Mode::Copyout] {
            let ratio = place.ratio(mode);
            if ratio.is_none() {
                continue;
            }
            // Figures are asked of LUC as a whole; the others are there for comparison.
            let asked = mode == Mode::Luc;
            let target = targets::write_delay(kernel).filter(|_| asked);
            let delayed = place.spread(mode, Record::bad_share);
            let delayed_target = Some(targets::WRITES_DELAYED).filter(|_| asked);
            rows.push(vec![
                Cell::new(kernel),
                Cell::new(mode.name()),
                entry(place.figure(Mode::Stock), number::figure),
                entry(place.figure(mode), number::figure),
                entry(ratio, number::ratio),
                target_entry(target, number::ratio),
                tally.verdict(target, mean(ratio)),
                entry(
                    place.spread(Mode::Stock, Record::bad_share),
                    number::percent,
                ),
                entry(delayed, number::percent),
                target_entry(delayed_target, number::percent),
                tally.verdict(delayed_target, mean(delayed)),
            ]);
        }
        groups.push(rows);
    }
    section(
        "write-delay",
        "48 writers append 4 KB every 2 ms beside one fsync stream; disk 4ms:1. Delayed: longer than 1 ms.",
        &[
            "kernel",
            "mode",
            "stock writes/s",
            "writes/s",
            "ratio",
            "to reach",
            "",
            "stock delayed",
            "delayed",
            "to reach",
            "",
        ],
        2,
        groups,
    )
}

/// Whether every value is beyond the one before it; unknown when one is missing.
fn steadily(values: &[Option<f64>], rising: bool) -> Option<bool> {
    let known: Option<Vec<f64>> = values.iter().copied().collect();
    let beyond = |pair: &[f64]| {
        if rising {
            pair[1] > pair[0]
        } else {
            pair[1] < pair[0]
        }
    };
    Some(known?.windows(2).all(beyond))
}

fn burst_section(records: &Records, kernels: &[&str], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &kernel in kernels {
        for threads in BURST_THREADS {
            let place = |mips| Place::new(records, kernel, mips, "4ms:1", burst(threads));
            let rates = SPEEDS.map(|mips| mean(place(mips).figure(Mode::Luc)));
            let mut rows = Vec::new();
            for cpu_mips in SPEEDS {
                let place = place(cpu_mips);
                let ratio = place.ratio(Mode::Luc);
                if ratio.is_none() {
                    continue;
                }
                let top = cpu_mips == 1000;
                let target = targets::burst(threads).filter(|_| top);
                let two = place.spread(Mode::Luc, Record::bad_share);
                let two_target = Some(targets::TWO_COMMITS).filter(|_| top);
                rows.push(vec![
                    Cell::new(kernel),
                    Cell::new(threads.to_string()),
                    Cell::new(cpu_mips.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(
                        place.spread(Mode::Stock, Record::bad_share),
                        number::percent,
                    ),
                    entry(place.figure(Mode::Luc), number::figure),
                    entry(two, number::percent),
                    tally.verdict(two_target, mean(two)),
                    entry(ratio, number::ratio),
                    target_entry(target, number::ratio),
                    tally.verdict(target, mean(ratio)),
                ]);
            }
            if let Some(rises) = steadily(&rates, true) {
                rows.push(trend(
                    kernel,
                    &threads.to_string(),
                    "rises with speed",
                    tally.judge(rises),
                    11,
                ));
            }
            groups.push(rows);
        }
    }
    section(
        "burst",
        "Threads create, fsync and close within 800 us of a fixed moment; disk 4ms:1. At 1000 MIPS at most 1% may \
         wait for two commits.",
        &[
            "kernel",
            "threads",
            "MIPS",
            "stock files/s",
            "two commits",
            "LUC files/s",
            "two commits",
            "",
            "ratio",
            "to reach",
            "",
        ],
        1,
        groups,
    )
}

/// A row that says only whether LUC's figure follows the processor's speed.
fn trend(kernel: &str, threads: &str, text: &str, verdict: Cell, columns: usize) -> Vec<Cell> {
    let mut row = vec![Cell::new(kernel), Cell::new(threads), Cell::new("all")];
    row.resize(columns - 2, Cell::new(""));
    row.push(Cell::new(text));
    row.push(verdict);
    row
}

fn write_burst_section(records: &Records, kernels: &[&str], tally: &mut Tally) -> Section {
    let form = |ms: f64| format!("{ms:.3}");
    let mut groups = Vec::new();
    for &kernel in kernels {
        let place = |mips| Place::new(records, kernel, mips, "4ms:8", write_burst());
        let times = SPEEDS.map(|mips| mean(place(mips).figure(Mode::Luc)));
        let mut rows = Vec::new();
        for cpu_mips in SPEEDS {
            let place = place(cpu_mips);
            let time = place.figure(Mode::Luc);
            if time.is_none() {
                continue;
            }
            let top = cpu_mips == 1000;
            let target = Some(targets::WRITE_BURST_MS).filter(|_| top);
            let blocked = place.spread(Mode::Luc, Record::bad_share);
            let blocked_target = Some(targets::BLOCKED).filter(|_| top);
            rows.push(vec![
                Cell::new(kernel),
                Cell::new("16"),
                Cell::new(cpu_mips.to_string()),
                entry(place.figure(Mode::Stock), form),
                entry(
                    place.spread(Mode::Stock, Record::bad_share),
                    number::percent,
                ),
                entry(blocked, number::percent),
                tally.verdict(blocked_target, mean(blocked)),
                entry(time, form),
                target_entry(target, form),
                tally.verdict(target, mean(time)),
            ]);
        }
        if let Some(falls) = steadily(&times, false) {
            rows.push(trend(
                kernel,
                "16",
                "falls with speed",
                tally.judge(falls),
                10,
            ));
        }
        groups.push(rows);
    }
    section(
        "write-burst",
        "16 threads write 16 KB to a new file within 5 ms of a fixed moment, then fsync; disk 4ms:8. Time of the \
         writes alone, ms; blocked: longer than 1.5 ms.",
        &[
            "kernel",
            "threads",
            "MIPS",
            "stock ms",
            "blocked",
            "LUC blocked",
            "",
            "LUC ms",
            "to reach",
            "",
        ],
        1,
        groups,
    )
}

fn overhead_section(records: &Records, kernels: &[&str], tally: &mut Tally) -> Section {
    let mut groups = Vec::new();
    for &kernel in kernels {
        for (disk, _) in CREATE_FSYNC {
            let mut rows = Vec::new();
            for threads in THREADS {
                let place = Place::new(records, kernel, 1000, disk, create_fsync(disk, threads));
                let (loaded, observe) = (place.ratio(Mode::Loaded), place.ratio(Mode::Observe));
                if loaded.or(observe).is_none() {
                    continue;
                }
                rows.push(vec![
                    Cell::new(kernel),
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                    entry(place.figure(Mode::Stock), number::figure),
                    entry(loaded, number::fine_ratio),
                    tally.verdict(Some(targets::LOADED), mean(loaded)),
                    entry(observe, number::fine_ratio),
                    tally.verdict(Some(targets::OBSERVE), mean(observe)),
                ]);
            }
            groups.push(rows);
        }
    }
    section(
        "What being there costs",
        "create-fsync with the module loaded but attached to nothing (0.998 to reach) and observing (0.995 to \
         reach), ratio to stock.",
        &[
            "kernel",
            "disk",
            "threads",
            "stock ops/s",
            "loaded",
            "",
            "observe",
            "",
        ],
        2,
        groups,
    )
}

/// Instructions that one fsync and one commit cost beyond stock.
///
/// With one thread, every fsync has a commit of its own: the machine's busy time per operation,
/// less stock's, is what LUC adds to one fsync and one commit together. With 16 threads that only
/// observe, a commit serves d fsyncs, and the same difference is one fsync plus 1/d commit. Two
/// equations, two unknowns. The sync hook is the same in every mode, so its part found in observe
/// mode holds for all; the rest of a mode's pair is its commit.
fn instructions_section(records: &Records, kernels: &[&str]) -> Section {
    const DISK: &str = "4ms:1";
    let mut groups = Vec::new();
    let whole = |value: f64| format!("{value:.0}");
    for &kernel in kernels {
        let place = |threads| Place::new(records, kernel, 1000, DISK, create_fsync(DISK, threads));
        let per_fsync =
            |threads, mode| mean(place(threads).spread(mode, Record::instructions_per_fsync));
        let extra =
            |threads, mode| Some(per_fsync(threads, mode)? - per_fsync(threads, Mode::Stock)?);
        let fsync_part = || {
            let pair = extra(1, Mode::Observe)?;
            let shared = extra(16, Mode::Observe)?;
            let batch = mean(place(16).spread(Mode::Observe, Record::fsyncs_per_commit))?;
            // pair = f + c, shared = f + c / batch
            (batch > 1.0).then(|| (shared - pair / batch) / (1.0 - 1.0 / batch))
        };
        let fsync_part = fsync_part();
        let mut rows = Vec::new();
        for mode in [
            Mode::Loaded,
            Mode::Observe,
            Mode::Static,
            Mode::Pid,
            Mode::Copyout,
            Mode::Luc,
        ] {
            let Some(pair) = extra(1, mode) else {
                continue;
            };
            let number =
                |value: Option<f64>| value.map_or_else(Cell::none, |v| Cell::new(whole(v)));
            let fsync = fsync_part.filter(|_| mode.attached());
            let busy = |threads| number(per_fsync(threads, mode));
            rows.push(vec![
                Cell::new(kernel),
                Cell::new(mode.name()),
                number(per_fsync(1, Mode::Stock)),
                Cell::new(format!("{pair:+.0}")),
                number(fsync),
                number(fsync.map(|fsync| pair - fsync)),
                number(per_fsync(16, Mode::Stock)),
                busy(16),
            ]);
        }
        groups.push(rows);
    }
    section(
        "Instructions",
        "Busy time of the virtual processor, counted exactly: everything the machine runs, divided by the fsyncs of \
         create-fsync on disk 4ms:1. With one thread each fsync has its own commit, so the difference to stock is \
         what one fsync and one commit cost more. The fsync's part comes from 16 threads in observe mode, whose \
         commits serve many fsyncs each; the rest is the commit's. The last two columns are the whole cost of one \
         operation with 16 threads: where commits are fewer, each operation costs less.",
        &[
            "kernel",
            "mode",
            "stock, 1 thread",
            "extra",
            "per fsync",
            "per commit",
            "stock, 16 threads",
            "in mode",
        ],
        2,
        groups,
    )
}

#[cfg(test)]
mod tests {
    use super::steadily;

    #[test]
    fn trends() {
        assert_eq!(
            steadily(&[Some(1.0), Some(2.0), Some(3.0)], true),
            Some(true)
        );
        assert_eq!(steadily(&[Some(1.0), Some(1.0)], true), Some(false));
        assert_eq!(steadily(&[Some(2.0), Some(1.0)], false), Some(true));
        assert_eq!(steadily(&[Some(2.0), None], false), None);
    }
}
