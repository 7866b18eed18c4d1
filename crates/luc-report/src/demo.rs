//! The demonstration: first the phenomenon, then what LUC changes.

use crate::measure::place::Place;
use crate::measure::record::{Record, Records};
use crate::plan::args::DemoArgs;
use crate::plan::arm::Arm;
use crate::plan::host::Host;
use crate::plan::load::{Job, Load, Measurement, Purpose, Times};
use crate::show::document::{Chart, Document, Entry, Line, Row, Section, Table, Tone};
use crate::show::number;

/// Format of the kept results.
pub const SCHEMA: &str = "luc-demo/1";

/// Processor speeds, million instructions per second.
pub const SPEEDS: [u32; 4] = [125, 250, 500, 1000];
/// Threads of the bursts of fsyncs.
pub const BURST_THREADS: [u32; 2] = [4, 16];
/// Policies compared in throughput.
const POLICIES: [Arm; 5] = [Arm::Stock, Arm::Static, Arm::Pid, Arm::Copyout, Arm::Luc];
const THREADS: [u32; 4] = [1, 4, 16, 64];
/// Disks of the throughput comparison, with warm-up and measurement: a fast disk shows as many
/// commits in less time, and keeps the processor busier, which costs host time. The warm-up
/// holds LUC's first trial of holding: 60 to 140 commits, the most where 64 threads take turns at
/// the processor.
const DISKS: [(&str, Times); 2] = [
    ("4ms:1", Times::new(900, 800)),
    ("100us:64", Times::new(250, 450)),
];
const WRITE_DELAY: Load = Load::WriteDelay {
    writers: 48,
    times: Times::new(900, 300),
};

/// The burst of fsyncs that every part measures: 4 ms disk, whose commit is two requests.
pub fn burst(threads: u32) -> Load {
    Load::Burst {
        threads,
        spread_us: 800,
        bursts: 40,
        commit_ms: 8,
    }
}

/// The burst of writes that every part measures.
pub fn write_burst() -> Load {
    Load::WriteBurst {
        threads: 16,
        spread_us: 5000,
        bursts: 40,
    }
}

fn create_fsync(threads: u32, times: Times) -> Load {
    Load::CreateFsync { threads, times }
}

/// The cells, in jobs that can run side by side. Long jobs come first, so that the machines end
/// together.
pub fn plan(args: &DemoArgs) -> Vec<Job> {
    let host = Host {
        kernel: &args.kernel,
        vcpus: 1,
    };
    let cell = |disk: &str, load: Load, arm: Arm| Measurement {
        purpose: Purpose::Figures,
        disk: disk.to_owned(),
        load,
        arm,
        repeat: 1,
    };
    let mut jobs = Vec::new();
    // The most threads keep the processor busiest: they get a machine of their own.
    for part in [&THREADS[3..], &THREADS[..3]] {
        for (disk, times) in DISKS {
            let cells = part.iter().flat_map(|&threads| {
                POLICIES.map(|arm| cell(disk, create_fsync(threads, times), arm))
            });
            jobs.push(host.job(1000, cells.collect()));
        }
    }
    let cells = POLICIES.map(|arm| cell("4ms:1", WRITE_DELAY, arm));
    jobs.push(host.job(1000, cells.into()));
    for cpu_mips in SPEEDS {
        let mut cells = Vec::new();
        for arm in [Arm::Stock, Arm::Luc] {
            cells.extend(BURST_THREADS.map(|threads| cell("4ms:1", burst(threads), arm)));
            cells.push(cell("4ms:8", write_burst(), arm));
        }
        jobs.push(host.job(cpu_mips, cells));
    }
    jobs
}

/// The report on kept results.
pub fn document(records: &Records) -> Document {
    let first = records.records.first();
    let release = first.map_or("no kernel", |r| r.kernel_release.as_str());
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

/// The load on the one host of the demonstration.
fn place<'a>(records: &'a Records, cpu_mips: u32, disk: &'a str, load: Load) -> Place<'a> {
    let nowhere = Host {
        kernel: "",
        vcpus: 1,
    };
    let host = records.records.first().map_or(nowhere, Record::host);
    Place {
        cpu_mips,
        ..Place::new(records, host, disk, load)
    }
}

/// A ratio, coloured where it clearly says something.
fn ratio_entry(value: Option<f64>, more_is_good: bool) -> Entry {
    let text = |value| format!("{}x", number::ratio(value));
    let good = match value {
        Some(v) if v > 1.03 => more_is_good,
        Some(v) if v < 0.97 => !more_is_good,
        _ => return Entry::of(value, text),
    };
    let tone = if good { Tone::Good } else { Tone::Bad };
    Entry {
        tone,
        ..Entry::of(value, text)
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
    fn value(&self, cpu_mips: u32, arm: Arm, figure: fn(&Record) -> Option<f64>) -> Option<f64> {
        let place = place(self.records, cpu_mips, self.disk, self.load.clone());
        place.first(arm).and_then(figure)
    }

    fn chart(&self, title: &str, y_label: &str) -> Chart {
        let figure = |mips, arm| self.value(mips, arm, Record::main_figure);
        Chart {
            title: title.to_owned(),
            x_label: "processor speed, million instructions per second".to_owned(),
            y_label: y_label.to_owned(),
            x: SPEEDS.map(|mips| mips.to_string()).into(),
            lines: lines(&[Arm::Stock, Arm::Luc], &SPEEDS, figure),
        }
    }

    /// A row for each speed; the headings are those of threads, stock's figure, its share of bad
    /// outcomes and LUC's figure.
    fn rows(
        &self,
        threads: u32,
        [stock_heading, bad, luc_heading]: [&'static str; 3],
        form: fn(f64) -> String,
        more_is_good: bool,
    ) -> Vec<Row> {
        let row = |mips: u32| {
            let figure = |arm| self.value(mips, arm, Record::main_figure);
            let share = |arm| Entry::of(self.value(mips, arm, Record::bad_share), number::percent);
            let (stock, luc) = (figure(Arm::Stock), figure(Arm::Luc));
            vec![
                ("threads", Entry::new(threads.to_string())),
                ("MIPS", Entry::new(mips.to_string())),
                (stock_heading, Entry::of(stock, form)),
                (bad, share(Arm::Stock)),
                (luc_heading, Entry::of(luc, form)),
                (bad, share(Arm::Luc)),
                ("LUC/stock", ratio_entry(quotient(luc, stock), more_is_good)),
            ]
        };
        SPEEDS.map(row).into()
    }
}

/// A line for each arm over the positions.
fn lines(arms: &[Arm], x: &[u32], value: impl Fn(u32, Arm) -> Option<f64>) -> Vec<Line> {
    let line = |&arm: &Arm| Line {
        name: arm.name().to_owned(),
        y: x.iter().map(|&at| value(at, arm)).collect(),
    };
    arms.iter().map(line).collect()
}

fn burst_section(records: &Records) -> Section {
    let by = BURST_THREADS.map(|threads| BySpeed {
        records,
        disk: "4ms:1",
        load: burst(threads),
    });
    let named = || by.iter().zip(BURST_THREADS);
    let chart = |(by, threads): (&BySpeed<'_>, u32)| {
        by.chart(&format!("Bursts of {threads} fsyncs"), "files per second")
    };
    let headings = ["stock files/s", "waited for two", "LUC files/s"];
    let groups = named().map(|(by, threads)| by.rows(threads, headings, number::figure, true));
    Section {
        title: "A faster processor, fewer files per second".to_owned(),
        note: "Every 60 ms, 4 or 16 threads each get a request at a random moment within 800 us: \
               create a file, fsync, close. Disk 4ms:1; mean of 40 bursts. The faster the \
               processor, the sooner the first fsync starts its journal commit, and the more of \
               the others come too late for it and wait for two commits instead of one."
            .to_owned(),
        charts: named().map(chart).collect(),
        page_charts: Vec::new(),
        table: Table::new(0, groups.collect()),
    }
}

fn write_burst_section(records: &Records) -> Section {
    let by = BySpeed {
        records,
        disk: "4ms:8",
        load: write_burst(),
    };
    let headings = ["stock ms", "blocked", "LUC ms"];
    Section {
        title: "A faster processor, slower writes".to_owned(),
        note: "Every 600 ms, 16 threads each write 16 KB to a new file at a random moment within \
               5 ms, then fsync. Disk 4ms:8; mean of 40 bursts; the time is that of the writes \
               alone. A task that writes while a commit is writing the same metadata sleeps \
               until the disk is done; blocked means longer than 1.5 ms."
            .to_owned(),
        charts: vec![by.chart("Bursts of 16 writers", "time to write 16 KB, ms")],
        page_charts: Vec::new(),
        table: Table::new(0, vec![by.rows(16, headings, number::ms, false)]),
    }
}

fn throughput_section(records: &Records) -> Section {
    let rows = |disk: &'static str, threads: u32, times: Times| -> Vec<Row> {
        let place = place(records, 1000, disk, create_fsync(threads, times));
        let stock = place.first(Arm::Stock).and_then(Record::main_figure);
        let row = |arm: Arm| {
            let record = place.first(arm);
            let rate = record.and_then(Record::main_figure);
            let delay = record.map(Record::sync_delay_ms);
            let figure = |of: fn(&Record) -> Option<f64>| record.and_then(of);
            let delay_ms = |ms: f64| match ms {
                ms if ms < 10.0 => format!("{ms:.2}"),
                ms => format!("{ms:.1}"),
            };
            let delayed = figure(Record::writes_delayed_share);
            vec![
                ("disk", Entry::new(disk)),
                ("threads", Entry::new(threads.to_string())),
                ("policy", Entry::new(arm.name())),
                ("ops/s", Entry::of(rate, number::figure)),
                ("to stock", ratio_entry(quotient(rate, stock), true)),
                (
                    "commits/s",
                    Entry::of(figure(Record::commits_per_s), number::figure),
                ),
                (
                    "fsyncs/commit",
                    Entry::of(figure(Record::fsyncs_per_commit), number::figure),
                ),
                ("p50 ms", Entry::of(delay.map(|d| d.0), delay_ms)),
                ("p99 ms", Entry::of(delay.map(|d| d.1), delay_ms)),
                ("writes delayed", Entry::of(delayed, number::percent)),
            ]
        };
        POLICIES.map(row).into()
    };
    let groups = DISKS
        .into_iter()
        .flat_map(|(disk, times)| THREADS.map(|threads| rows(disk, threads, times)));
    Section {
        title: "Throughput under every policy".to_owned(),
        note: "Threads loop create, fsync, close at 1000 MIPS. static is the fixed 1 ms idle delay of the \
               literature, pid and copyout are the two halves of LUC. Writes delayed is the share of \
               metadata changes that slept, by LUC's own count, which stock does not have."
            .to_owned(),
        charts: Vec::new(),
        page_charts: DISKS.map(|disk| policies_chart(records, disk)).into(),
        table: Table::new(3, groups.collect()),
    }
}

/// The column of ratios to stock on one disk, over the threads.
fn policies_chart(records: &Records, (disk, times): (&str, Times)) -> Chart {
    let ratio = |threads: u32, arm: Arm| {
        let place = place(records, 1000, disk, create_fsync(threads, times));
        let rate = |arm| place.first(arm).and_then(Record::main_figure);
        quotient(rate(arm), rate(Arm::Stock))
    };
    Chart {
        title: format!("Throughput on {disk}"),
        x_label: "threads".to_owned(),
        y_label: "times stock".to_owned(),
        x: THREADS.map(|threads| threads.to_string()).into(),
        lines: lines(&POLICIES, &THREADS, ratio),
    }
}

fn write_delay_section(records: &Records) -> Section {
    let place = place(records, 1000, "4ms:1", WRITE_DELAY);
    let stock = place.first(Arm::Stock).and_then(Record::main_figure);
    let row = |arm: Arm| {
        let record = place.first(arm);
        let rate = record.and_then(Record::main_figure);
        let delayed = record.and_then(Record::bad_share);
        vec![
            ("policy", Entry::new(arm.name())),
            ("writes/s", Entry::of(rate, number::figure)),
            ("to stock", ratio_entry(quotient(rate, stock), true)),
            ("writes delayed", Entry::of(delayed, number::percent)),
        ]
    };
    Section {
        title: "Small writes beside an fsync stream".to_owned(),
        note: "48 writers append 4 KB to their own files every 2 ms while one thread creates and \
               fsyncs. Disk 4ms:1, 1000 MIPS. Delayed means longer than 1 ms."
            .to_owned(),
        table: Table::new(1, vec![POLICIES.map(row).into()]),
        ..Section::default()
    }
}

/// The gains, from the figures alone; `None` where nothing was measured.
struct Gains {
    /// The cell that gained most: throughput and fsyncs per commit to stock's, disk, threads.
    best: Option<(f64, f64, &'static str, u32)>,
    /// Rate of bursts at eight times the speed over that at the lowest: stock's, LUC's.
    speed: Option<(f64, f64)>,
    /// Share of small writes that were delayed: stock's, LUC's.
    delayed: Option<(f64, f64)>,
}

impl Gains {
    fn of(records: &Records) -> Self {
        let cells = DISKS.iter().flat_map(|&(disk, times)| {
            THREADS.map(|threads| {
                let place = place(records, 1000, disk, create_fsync(threads, times));
                let figure = |of: fn(&Record) -> Option<f64>| {
                    let one = |arm| place.first(arm).and_then(of);
                    quotient(one(Arm::Luc), one(Arm::Stock))
                };
                let ratio = figure(Record::main_figure)?;
                Some((ratio, figure(Record::fsyncs_per_commit)?, disk, threads))
            })
        });
        let by = BySpeed {
            records,
            disk: "4ms:1",
            load: burst(4),
        };
        let change = |arm| {
            let rate = |mips| by.value(mips, arm, Record::main_figure);
            quotient(rate(1000), rate(125))
        };
        let writers = place(records, 1000, "4ms:1", WRITE_DELAY);
        let delayed = |arm| writers.first(arm).and_then(Record::bad_share);
        Self {
            best: cells.flatten().max_by(|a, b| a.0.total_cmp(&b.0)),
            speed: change(Arm::Stock).zip(change(Arm::Luc)),
            delayed: delayed(Arm::Stock).zip(delayed(Arm::Luc)),
        }
    }

    /// The top of the page: a sentence each.
    fn sentences(&self) -> Vec<String> {
        let best = self.best.map(|(ratio, _, disk, threads)| match ratio {
            ratio if ratio > 1.0 => format!(
                "LUC made up to {ratio:.2} times as many files durable per second ({threads} \
                 threads, disk {disk})."
            ),
            ratio => format!("Throughput did not grow: it was at best {ratio:.2} times stock's."),
        });
        let speed = self.speed.map(|(stock, luc)| {
            let (stock, luc) = (faster(stock), faster(luc));
            format!(
                "A processor eight times as fast made bursts of 4 fsyncs {stock} on stock and \
                 {luc} with LUC."
            )
        });
        let delayed = self.delayed.map(|(stock, luc)| {
            let (stock, luc) = (number::percent(stock), number::percent(luc));
            format!("Commits delayed {stock} of the small writes on stock and {luc} with LUC.")
        });
        [best, speed, delayed].into_iter().flatten().collect()
    }
}

/// The last line of the text: the gains in plain words.
fn verdict(gains: &Gains) -> String {
    let best = gains.best.map(|(ratio, batch, disk, threads)| match ratio {
        ratio if ratio > 1.0 => format!(
            "the same kernel on the same disk made up to {ratio:.2} times as many files durable \
             per second ({threads} threads, disk {disk}) with {batch:.1} times as many fsyncs in \
             each journal commit"
        ),
        ratio => format!("throughput did not grow (at best {ratio:.2} times stock)"),
    });
    let speed = gains.speed.map(|(stock, luc)| {
        let (stock, luc) = (faster(stock), faster(luc));
        format!(
            "a processor eight times as fast made bursts of 4 fsyncs {stock} on stock and {luc} \
             with LUC"
        )
    });
    let delayed = gains.delayed.map(|(stock, luc)| {
        let (stock, luc) = (number::percent(stock), number::percent(luc));
        format!("the share of small writes that a commit delayed went from {stock} to {luc}")
    });
    let parts: Vec<_> = [best, speed, delayed].into_iter().flatten().collect();
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
