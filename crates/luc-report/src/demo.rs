//! The demonstration: first the phenomenon, then what LUC makes of it.

use crate::args::DemoArgs;
use crate::document::{Cell, Chart, Document, Line, Section, Table, Tone, number};
use crate::load::{Job, Load, Measurement, Mode, Purpose};
use crate::record::{Filter, Record, Records};

/// Format of the kept results.
pub const SCHEMA: &str = "luc-demo/1";

/// Processor speeds, million instructions per second.
pub const SPEEDS: [u32; 4] = [125, 250, 500, 1000];
/// Threads of the bursts of fsyncs.
const BURST_THREADS: [u32; 2] = [4, 16];
/// Policies compared in throughput.
const POLICIES: [Mode; 5] = [
    Mode::Stock,
    Mode::Static,
    Mode::Pid,
    Mode::Copyout,
    Mode::Luc,
];
const THREADS: [u32; 4] = [1, 4, 16, 64];
/// Disks of the throughput comparison, with warm-up and measurement in milliseconds: a fast disk
/// shows as many commits in less time, and keeps the processor, which is what costs host time,
/// busier. The warm-up holds LUC's first trial of holding: 60 to 140 commits, the most where 64
/// threads take turns at the processor.
const DISKS: [(&str, u32, u32); 2] = [("4ms:1", 800, 900), ("100us:64", 450, 250)];
const WRITERS: u32 = 48;

/// A burst as it is measured everywhere: 4 ms disk, whose commit is two requests.
pub fn burst(threads: u32) -> Load {
    Load::Burst {
        threads,
        spread_us: 800,
        bursts: 40,
        commit_ms: 8,
    }
}

/// A burst of writes as it is measured everywhere.
pub fn write_burst() -> Load {
    Load::WriteBurst {
        threads: 16,
        spread_us: 5000,
        bursts: 40,
    }
}

/// The cells, in jobs that can run side by side. Long jobs come first, so that the machines end
/// together.
pub fn plan(args: &DemoArgs) -> Vec<Job> {
    let mut jobs = Vec::new();
    let cell = |disk: &str, load: Load, mode: Mode| Measurement {
        purpose: Purpose::Figures,
        disk: disk.to_owned(),
        load,
        mode,
        repeat: 1,
    };
    let mut job = |cpu_mips: u32, cells: Vec<Measurement>| {
        jobs.push(Job {
            kernel: args.kernel.clone(),
            cpu_mips,
            vcpus: 1,
            virtual_time: true,
            cells,
        });
    };
    // The most threads keep the processor busiest: they get a machine of their own.
    for part in [&THREADS[3..], &THREADS[..3]] {
        for (disk, warmup_ms, measure_ms) in DISKS {
            let cells = part.iter().flat_map(|&threads| {
                let load = Load::CreateFsync {
                    threads,
                    measure_ms,
                    warmup_ms,
                };
                POLICIES.map(|mode| cell(disk, load.clone(), mode))
            });
            job(1000, cells.collect());
        }
    }
    let load = write_delay_load();
    let cells = POLICIES.map(|mode| cell("4ms:1", load.clone(), mode));
    job(1000, cells.into());
    for cpu_mips in SPEEDS {
        let mut cells = Vec::new();
        for mode in [Mode::Stock, Mode::Luc] {
            for threads in BURST_THREADS {
                cells.push(cell("4ms:1", burst(threads), mode));
            }
            cells.push(cell("4ms:8", write_burst(), mode));
        }
        job(cpu_mips, cells);
    }
    jobs
}

/// The report on kept results.
pub fn document(records: &Records) -> Document {
    let release = records
        .records
        .first()
        .map_or("no kernel", |r| r.kernel_release.as_str());
    let sections = vec![
        burst_section(records),
        write_burst_section(records),
        throughput_section(records),
        write_delay_section(records),
    ];
    let gains = Gains::of(records);
    Document {
        title: "LUC: what journal commits cost, and what steering them gives back".to_owned(),
        intro: format!(
            "Debian's kernel {release}, unchanged, in a virtual machine whose clock counts \
             instructions: the speed of the processor is a setting, and the same run gives the \
             same figures again. Disks have a fixed latency per request and a queue depth (4ms:1 \
             serves one request of 4 ms at a time). LUC was switched on and off live, between \
             the measurements, with nothing configured."
        ),
        sections,
        verdict: verdict(&gains),
        lead: gains.sentences(),
        foot: records.foot(),
    }
}

fn is(load: &Load) -> impl Fn(&Load) -> bool + '_ {
    move |other| other.alike(load)
}

fn first<'a>(
    records: &'a Records,
    cpu_mips: u32,
    disk: &'a str,
    mode: Mode,
    load: &'a Load,
) -> Option<&'a Record> {
    let filter = Filter {
        kernel: None,
        cpu_mips: Some(cpu_mips),
        vcpus: None,
        disk: Some(disk),
    };
    records.select(filter, mode, is(load)).next()
}

fn entry(value: Option<f64>, form: impl Fn(f64) -> String) -> Cell {
    value.map_or_else(Cell::none, |value| Cell::new(form(value)))
}

/// A ratio, coloured where it clearly says something.
fn ratio_entry(value: Option<f64>, more_is_good: bool) -> Cell {
    let Some(value) = value else {
        return Cell::none();
    };
    let text = format!("{}x", number::ratio(value));
    let tone = match value {
        v if v > 1.03 => Some(more_is_good),
        v if v < 0.97 => Some(!more_is_good),
        _ => None,
    };
    match tone {
        Some(true) => Cell::toned(text, Tone::Good),
        Some(false) => Cell::toned(text, Tone::Bad),
        None => Cell::new(text),
    }
}

fn quotient(of: Option<f64>, to: Option<f64>) -> Option<f64> {
    let (of, to) = (of?, to?);
    (to > 0.0).then(|| of / to)
}

/// Stock and LUC over the speeds: a chart's lines and a table's rows from the same look-ups.
struct BySpeed<'a> {
    records: &'a Records,
    disk: &'static str,
    load: Load,
}

impl BySpeed<'_> {
    fn value(&self, cpu_mips: u32, mode: Mode, figure: fn(&Record) -> Option<f64>) -> Option<f64> {
        first(self.records, cpu_mips, self.disk, mode, &self.load).and_then(figure)
    }

    fn chart(&self, title: &str, y_label: &str) -> Chart {
        let line = |mode: Mode| Line {
            name: mode.name().to_owned(),
            y: SPEEDS
                .map(|mips| self.value(mips, mode, Record::main_figure))
                .into(),
        };
        Chart {
            title: title.to_owned(),
            x_label: "processor speed, million instructions per second".to_owned(),
            y_label: y_label.to_owned(),
            x: SPEEDS.map(|mips| mips.to_string()).into(),
            lines: vec![line(Mode::Stock), line(Mode::Luc)],
        }
    }

    fn row(
        &self,
        cpu_mips: u32,
        name: &str,
        form: fn(f64) -> String,
        more_is_good: bool,
    ) -> Vec<Cell> {
        let value = |mode, figure| self.value(cpu_mips, mode, figure);
        let stock = value(Mode::Stock, Record::main_figure);
        let luc = value(Mode::Luc, Record::main_figure);
        vec![
            Cell::new(name),
            Cell::new(cpu_mips.to_string()),
            entry(stock, form),
            entry(value(Mode::Stock, Record::bad_share), number::percent),
            entry(luc, form),
            entry(value(Mode::Luc, Record::bad_share), number::percent),
            ratio_entry(quotient(luc, stock), more_is_good),
        ]
    }
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn burst_section(records: &Records) -> Section {
    let by = BURST_THREADS.map(|threads| BySpeed {
        records,
        disk: "4ms:1",
        load: burst(threads),
    });
    let named = || by.iter().zip(BURST_THREADS);
    Section {
        title: "A faster processor, fewer files per second".to_owned(),
        note: "Every 60 ms, 4 or 16 threads each get a request at a random moment within 800 us: \
               create a file, fsync, close. Disk 4ms:1; mean of 40 bursts. The faster the \
               processor, the sooner the first fsync starts its journal commit, and the more of \
               the others come too late for it and wait for two commits instead of one."
            .to_owned(),
        charts: named()
            .map(|(by, threads)| {
                by.chart(&format!("Bursts of {threads} fsyncs"), "files per second")
            })
            .collect(),
        page_charts: Vec::new(),
        table: Table {
            headings: headings(&[
                "threads",
                "MIPS",
                "stock files/s",
                "waited for two",
                "LUC files/s",
                "waited for two",
                "LUC/stock",
            ]),
            left: 0,
            deciding: Some(6),
            groups: named()
                .map(|(by, threads)| {
                    let name = threads.to_string();
                    SPEEDS
                        .map(|mips| by.row(mips, &name, number::figure, true))
                        .into()
                })
                .collect(),
        },
    }
}

fn write_burst_section(records: &Records) -> Section {
    let by = BySpeed {
        records,
        disk: "4ms:8",
        load: write_burst(),
    };
    let form = |ms: f64| format!("{ms:.3}");
    Section {
        title: "A faster processor, slower writes".to_owned(),
        note: "Every 600 ms, 16 threads each write 16 KB to a new file at a random moment within \
               5 ms, then fsync. Disk 4ms:8; mean of 40 bursts; the time is that of the writes \
               alone. Whoever writes while a commit is writing the same metadata sleeps until \
               the disk is done; blocked means longer than 1.5 ms."
            .to_owned(),
        charts: vec![by.chart("Bursts of 16 writers", "time to write 16 KB, ms")],
        page_charts: Vec::new(),
        table: Table {
            headings: headings(&[
                "threads",
                "MIPS",
                "stock ms",
                "blocked",
                "LUC ms",
                "blocked",
                "LUC/stock",
            ]),
            left: 0,
            deciding: Some(6),
            groups: vec![SPEEDS.map(|mips| by.row(mips, "16", form, false)).into()],
        },
    }
}

fn throughput_section(records: &Records) -> Section {
    let mut groups = Vec::new();
    for (disk, warmup_ms, measure_ms) in DISKS {
        for threads in THREADS {
            let load = Load::CreateFsync {
                threads,
                measure_ms,
                warmup_ms,
            };
            let of = |mode: Mode| first(records, 1000, disk, mode, &load);
            let stock = of(Mode::Stock).and_then(Record::main_figure);
            let row = |mode: Mode| {
                let record = of(mode);
                let rate = record.and_then(Record::main_figure);
                let delay = record.map(Record::sync_delay_ms);
                let delay_ms = |ms: f64| {
                    if ms < 10.0 {
                        format!("{ms:.2}")
                    } else {
                        format!("{ms:.1}")
                    }
                };
                vec![
                    Cell::new(disk),
                    Cell::new(threads.to_string()),
                    Cell::new(mode.name()),
                    entry(rate, number::figure),
                    ratio_entry(quotient(rate, stock), true),
                    entry(record.and_then(Record::commits_per_s), number::figure),
                    entry(record.and_then(Record::fsyncs_per_commit), number::figure),
                    entry(delay.map(|d| d.0), delay_ms),
                    entry(delay.map(|d| d.1), delay_ms),
                    entry(
                        record.and_then(Record::writes_delayed_share),
                        number::percent,
                    ),
                ]
            };
            groups.push(POLICIES.map(row).into());
        }
    }
    Section {
        title: "Throughput under every policy".to_owned(),
        note: "Threads loop create, fsync, close at 1000 MIPS. static is the fixed 1 ms idle delay of the \
               literature, pid and copyout are the two halves of LUC. Writes delayed is the share of \
               metadata changes that slept, by LUC's own count, which stock does not have."
            .to_owned(),
        charts: Vec::new(),
        page_charts: DISKS.map(|disk| policies_chart(records, disk)).into(),
        table: Table {
            headings: headings(&[
                "disk",
                "threads",
                "policy",
                "ops/s",
                "to stock",
                "commits/s",
                "fsyncs/commit",
                "p50 ms",
                "p99 ms",
                "writes delayed",
            ]),
            left: 3,
            deciding: Some(4),
            groups,
        },
    }
}

/// The column of ratios to stock on one disk, over the threads.
fn policies_chart(records: &Records, (disk, warmup_ms, measure_ms): (&str, u32, u32)) -> Chart {
    let ratio = |threads: u32, mode: Mode| {
        let load = Load::CreateFsync {
            threads,
            measure_ms,
            warmup_ms,
        };
        let rate = |mode| first(records, 1000, disk, mode, &load).and_then(Record::main_figure);
        quotient(rate(mode), rate(Mode::Stock))
    };
    Chart {
        title: format!("Throughput on {disk}"),
        x_label: "threads".to_owned(),
        y_label: "times stock".to_owned(),
        x: THREADS.map(|threads| threads.to_string()).into(),
        lines: POLICIES
            .map(|mode| Line {
                name: mode.name().to_owned(),
                y: THREADS.map(|threads| ratio(threads, mode)).into(),
            })
            .into(),
    }
}

fn write_delay_load() -> Load {
    Load::WriteDelay {
        writers: WRITERS,
        measure_ms: 900,
        warmup_ms: 300,
    }
}

fn write_delay_section(records: &Records) -> Section {
    let load = write_delay_load();
    let of = |mode: Mode| first(records, 1000, "4ms:1", mode, &load);
    let stock = of(Mode::Stock).and_then(Record::main_figure);
    let row = |mode: Mode| {
        let record = of(mode);
        let rate = record.and_then(Record::main_figure);
        vec![
            Cell::new(mode.name()),
            entry(rate, number::figure),
            ratio_entry(quotient(rate, stock), true),
            entry(record.and_then(Record::bad_share), number::percent),
        ]
    };
    Section {
        title: "Small writes beside an fsync stream".to_owned(),
        note: "48 writers append 4 KB to their own files every 2 ms while one thread creates and \
               fsyncs. Disk 4ms:1, 1000 MIPS. Delayed means longer than 1 ms."
            .to_owned(),
        charts: Vec::new(),
        page_charts: Vec::new(),
        table: Table {
            headings: headings(&["policy", "writes/s", "to stock", "writes delayed"]),
            left: 1,
            deciding: Some(2),
            groups: vec![POLICIES.map(row).into()],
        },
    }
}

/// What was gained, from the figures alone; what was not measured is missing.
struct Gains {
    /// Of the cell that gained most: throughput and fsyncs per commit to stock's, disk, threads.
    best: Option<(f64, f64, &'static str, u32)>,
    /// Rate of bursts at eight times the speed to that at the lowest: stock's, LUC's.
    speed: Option<(f64, f64)>,
    /// Share of small writes that were delayed: stock's, LUC's.
    delayed: Option<(f64, f64)>,
}

impl Gains {
    fn of(records: &Records) -> Self {
        let cells = DISKS.iter().flat_map(|&(disk, warmup_ms, measure_ms)| {
            THREADS.map(|threads| {
                let load = Load::CreateFsync {
                    threads,
                    measure_ms,
                    warmup_ms,
                };
                let of = |mode| first(records, 1000, disk, mode, &load);
                let rate = |mode| of(mode).and_then(Record::main_figure);
                let each = |mode| of(mode).and_then(Record::fsyncs_per_commit);
                let ratio = quotient(rate(Mode::Luc), rate(Mode::Stock))?;
                let batch = quotient(each(Mode::Luc), each(Mode::Stock))?;
                Some((ratio, batch, disk, threads))
            })
        });
        let by = BySpeed {
            records,
            disk: "4ms:1",
            load: burst(4),
        };
        let change = |mode| {
            let rate = |mips| by.value(mips, mode, Record::main_figure);
            quotient(rate(1000), rate(125))
        };
        let load = write_delay_load();
        let delayed = |mode| first(records, 1000, "4ms:1", mode, &load).and_then(Record::bad_share);
        Self {
            best: cells.flatten().max_by(|a, b| a.0.total_cmp(&b.0)),
            speed: change(Mode::Stock).zip(change(Mode::Luc)),
            delayed: delayed(Mode::Stock).zip(delayed(Mode::Luc)),
        }
    }

    /// The top of the page: a sentence each.
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some((ratio, _, disk, threads)) = self.best {
            sentences.push(if ratio > 1.0 {
                format!(
                    "LUC made up to {ratio:.2} times as many files durable per second \
                     ({threads} threads, disk {disk})."
                )
            } else {
                format!("Throughput did not grow: it was at best {ratio:.2} times stock's.")
            });
        }
        if let Some((stock, luc)) = self.speed {
            let (stock, luc) = (faster(stock), faster(luc));
            sentences.push(format!(
                "A processor eight times as fast made bursts of 4 fsyncs {stock} on stock and \
                 {luc} with LUC."
            ));
        }
        if let Some((stock, luc)) = self.delayed {
            let (stock, luc) = (number::percent(stock), number::percent(luc));
            sentences.push(format!(
                "Commits delayed {stock} of the small writes on stock and {luc} with LUC."
            ));
        }
        sentences
    }
}

/// The last line of the text: what was gained, in plain words.
fn verdict(gains: &Gains) -> String {
    let mut parts = Vec::new();
    if let Some((ratio, batch, disk, threads)) = gains.best {
        parts.push(if ratio > 1.0 {
            format!(
                "the same kernel on the same disk made up to {ratio:.2} times as many files \
                 durable per second ({threads} threads, disk {disk}) with {batch:.1} times as \
                 many fsyncs in each journal commit"
            )
        } else {
            format!("throughput did not grow (at best {ratio:.2} times stock)")
        });
    }
    if let Some((stock, luc)) = gains.speed {
        parts.push(format!(
            "a processor eight times as fast made bursts of 4 fsyncs {} on stock and {} with LUC",
            faster(stock),
            faster(luc)
        ));
    }
    if let Some((stock, luc)) = gains.delayed {
        parts.push(format!(
            "the share of small writes that a commit delayed went from {} to {}",
            number::percent(stock),
            number::percent(luc)
        ));
    }
    if parts.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("With LUC switched on, {}.", parts.join("; "))
}

fn faster(ratio: f64) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    match ratio {
        r if r > 1.005 => format!("{percent:.0}% faster"),
        r if r < 0.995 => format!("{percent:.0}% slower"),
        _ => "neither faster nor slower".to_owned(),
    }
}
