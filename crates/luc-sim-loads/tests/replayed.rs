//! Recordings from the simulator, whose truth is known: tests what is measured of their machines,
//! and what is predicted for their threads.

use luc_control::Params;
use luc_sim::Setup;
use luc_sim::processors::ProcessorModel;
use luc_sim::recorder::DEV;
use luc_sim::replayed::{Calibration, Gaps, Unreplayable};
use luc_sim_loads::{load, record};
use luc_trace::{Span, SpanKind, Trace};

struct Case {
    disk: &'static str,
    cpus: u16,
    mips: f64,
    words: String,
}

impl Case {
    fn new(disk: &'static str, cpus: u16, words: &str) -> Self {
        Self {
            disk,
            cpus,
            mips: 1000.0,
            words: words.to_owned(),
        }
    }

    fn recorded(&self, luc: bool) -> Trace {
        let machine = ProcessorModel::new(self.cpus, self.mips);
        let setup = Setup {
            luc: luc.then(Params::default),
            ..Setup::stock(machine, self.disk.parse().unwrap())
        };
        let load = load(self.words.split_whitespace()).unwrap();
        record(&load, &setup).unwrap().1.into_trace()
    }
}

/// Operations of a kind that began and ended in the second half, per second.
fn rate_per_s(spans: &[Span], kind: SpanKind) -> f64 {
    let first_ns = spans.iter().map(|span| span.begin_ns).min().unwrap();
    let last_ns = spans.iter().map(|span| span.end_ns).max().unwrap();
    let middle_ns = first_ns.midpoint(last_ns);
    let ended = spans
        .iter()
        .filter(|span| span.kind == kind && span.end_ns > middle_ns);
    ended.count() as f64 * 1e9 / (last_ns - middle_ns) as f64
}

/// Checks the measured machine and LUC's predicted gain, both from a recording of stock; `off`
/// bounds the distance from LUC's actual gain.
fn check(case: &Case, kind: SpanKind, off: f64) -> Calibration {
    let stock = case.recorded(false);
    let had = rate_per_s(&case.recorded(true).spans, kind) / rate_per_s(&stock.spans, kind);
    let machine = Calibration::measure(&stock, DEV).unwrap();
    let base_per_s = rate_per_s(&machine.replay(None), kind);
    let foretold = rate_per_s(&machine.replay(Some(Params::default())), kind) / base_per_s;
    let stock_off = base_per_s / rate_per_s(machine.recorded(), kind) - 1.0;
    let name = format!("{} on {}, {} processors", case.words, case.disk, case.cpus);
    println!(
        "{name}: had {had:.3}, foretold {foretold:.3}, stock off {stock_off:.3}, {}",
        machine.disk()
    );
    assert!(
        stock_off.abs() < 0.12,
        "{name}: stock is off by {stock_off}"
    );
    assert!(
        (foretold / had - 1.0).abs() < off,
        "{name}: {foretold} of {had}"
    );
    assert_eq!(machine.cpus(), Some(case.cpus), "{name}");
    let speed = machine.mips().unwrap() / case.mips;
    assert!((speed - 1.0).abs() < 0.06, "{name}: {speed} of its speed");
    machine
}

/// Returns the time of a request on a disk of constant time.
fn request_ns(machine: &Calibration) -> f64 {
    let parameters = machine.parameters();
    let request = parameters.iter().find(|it| it.name == "request").unwrap();
    request
        .value
        .unwrap_or_else(|| panic!("it is {}", machine.disk()))
}

#[test]
fn gains_are_foretold_of_disks_of_one_time() {
    for (disk, ns, threads, disk_off) in [
        ("4ms:1", 4e6, 1, 0.01),
        ("4ms:1", 4e6, 4, 0.01),
        ("4ms:1", 4e6, 16, 0.01),
        ("4ms:1", 4e6, 64, 0.03),
        ("100us:64", 1e5, 1, 0.03),
        ("100us:64", 1e5, 4, 0.10),
        ("100us:64", 1e5, 16, 0.20),
        // There, commits mostly wait for the processor.
        ("100us:64", 1e5, 64, 0.80),
    ] {
        let words = format!("create-fsync --threads {threads} --seconds 1");
        let machine = check(&Case::new(disk, 1, &words), SpanKind::Fsync, 0.04);
        let share = request_ns(&machine) / ns - 1.0;
        assert!(share.abs() < disk_off, "{words} on {disk}: {share}");
    }
}

#[test]
fn gains_are_foretold_of_a_platter() {
    for threads in [1, 4, 16, 64] {
        let words = format!("create-fsync --threads {threads} --seconds 2");
        let machine = check(&Case::new("hdd-7200", 1, &words), SpanKind::Fsync, 0.04);
        // A lone thread's commits are all alike, on any disk. Those of 64 threads take two turns,
        // as on the same drive without its cache.
        let is_found = match threads {
            1 => true,
            64 => machine.disk().starts_with("hdd-7200"),
            _ => machine.disk() == "hdd-7200",
        };
        assert!(is_found, "{threads}: {}", machine.disk());
    }
}

#[test]
fn gains_are_foretold_of_writers_and_of_several_processors() {
    let writers = "write-delay --writers 48 --seconds 1";
    check(&Case::new("4ms:1", 1, writers), SpanKind::Write, 0.08);
    // On a faster disk, creates mostly spin for the directory's lock.
    let creates = "create-fsync --threads 16 --seconds 2";
    check(&Case::new("nvme", 4, creates), SpanKind::Fsync, 0.10);
}

#[test]
fn the_speed_of_the_processor_is_found() {
    for mips in [250.0, 3000.0] {
        let mut case = Case::new("4ms:1", 1, "create-fsync --threads 16 --seconds 1");
        case.mips = mips;
        check(&case, SpanKind::Fsync, 0.04);
    }
}

#[test]
fn recordings_that_cannot_be_run_again() {
    let dev = DEV;
    let refused = |trace: &Trace| Calibration::measure(trace, dev).unwrap_err();
    assert_eq!(refused(&Trace::default()), Unreplayable::Nothing { dev });
    let whole = Case::new("4ms:1", 1, "create-fsync --threads 2 --seconds 0.1").recorded(false);
    let without = |lacks: fn(&Span) -> bool| {
        let mut trace = whole.clone();
        trace.spans.retain(|span| !lacks(span));
        trace
    };
    let commits = without(|span| span.kind == SpanKind::Commit);
    let error = refused(&commits);
    assert_eq!(error, Unreplayable::NoCommits { dev });
    assert_eq!(
        error.to_string(),
        "the trace has no journal commit of 8:0; record while a program syncs"
    );
    let operations = without(|span| span.kind != SpanKind::Commit);
    assert_eq!(refused(&operations), Unreplayable::NoOperations { dev });
    let mut long = whole.clone();
    let mut spans = long.spans.iter_mut();
    let sync = spans.find(|span| span.kind == SpanKind::Fsync).unwrap();
    sync.end_ns += 90_000_000_000_000;
    assert_eq!(refused(&long), Unreplayable::TooLong);
    // Syncs alone: the changes that they make durable are not recorded.
    let syncs = without(|span| !span.kind.is_file_sync() && span.kind != SpanKind::Commit);
    let machine = Calibration::measure(&syncs, dev).unwrap();
    assert_eq!(machine.mips(), None);
    assert!(rate_per_s(&machine.replay(None), SpanKind::Fsync) > 0.0);
}

/// Two pairs of threads that only sync, each pair while the other's commit runs.
fn pairs() -> Trace {
    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;
    let mut spans = Vec::new();
    for tid in 2..500_u32 {
        let begin_ns = u64::from(tid) * 4 * MS;
        let end_ns = begin_ns + 4 * MS - 10 * US;
        let commit = Span {
            tid,
            dev: DEV,
            pid: 1,
            ..Span::new(SpanKind::Commit, begin_ns, end_ns)
        };
        spans.push(Span {
            marks_ns: [begin_ns + 2 * US; 3],
            ..commit
        });
        let sync = Span::new(
            SpanKind::Fsync,
            begin_ns - 4 * MS + 100 * US,
            end_ns + 5 * US,
        );
        spans.extend((0..2).map(|thread| Span {
            tid,
            done_tid: tid - 2,
            pid: 41 + tid % 2 * 2 + thread,
            dev: DEV,
            ..sync
        }));
    }
    Trace::from_spans(spans)
}

#[test]
fn threads_stay_in_their_convoys() {
    let trace = pairs();
    let machine = Calibration::measure(&trace, DEV).unwrap();
    let stock_per_s = rate_per_s(&machine.replay(None), SpanKind::Fsync);
    let share = stock_per_s / rate_per_s(&trace.spans, SpanKind::Fsync) - 1.0;
    assert!(share.abs() < 0.02, "{share}");
    let luc_per_s = rate_per_s(&machine.replay(Some(Params::default())), SpanKind::Fsync);
    assert!(luc_per_s / stock_per_s > 1.9, "{luc_per_s} {stock_per_s}");
}

/// Syncs per second at half the recorded clock, as a share of those at the recorded one.
fn at_half_the_clock(machine: &Calibration, gaps: Gaps) -> f64 {
    let per_s = |share| rate_per_s(&machine.replay_at(None, share, gaps).spans, SpanKind::Fsync);
    per_s(0.5) / per_s(1.0)
}

#[test]
fn a_lower_clock_slows_only_what_computes() {
    for (disk, mips, least, most) in [
        // A commit takes two requests, 8 ms, and the processor 0.05 ms.
        ("4ms:1", 3000.0, 0.98, 1.0),
        ("1us:64", 300.0, 0.495, 0.53),
    ] {
        let mut case = Case::new(disk, 1, "create-fsync --threads 1 --seconds 1");
        case.mips = mips;
        let machine = Calibration::measure(&case.recorded(false), DEV).unwrap();
        let share = at_half_the_clock(&machine, Gaps::Wait);
        assert!((least..=most).contains(&share), "{disk}: {share}");
        let busy_ns = |clock| {
            machine
                .replay_at(None, clock, Gaps::Wait)
                .activity
                .busy_ns()
        };
        assert!(busy_ns(0.5) > busy_ns(1.0), "{disk}");
    }
}

/// A thread that syncs for 4 ms and then does something else for 6 ms, on this many processors.
fn gaps(cpus: Option<u16>, threads: u32) -> Trace {
    const MS: u64 = 1_000_000;
    const US: u64 = 1_000;
    let mut spans = Vec::new();
    for tid in 2..200_u32 {
        let begin_ns = u64::from(tid) * 10 * MS;
        let commit = Span {
            tid,
            dev: DEV,
            pid: 1,
            ..Span::new(SpanKind::Commit, begin_ns, begin_ns + 4 * MS)
        };
        spans.push(Span {
            marks_ns: [begin_ns + 20 * US; 3],
            ..commit
        });
        let sync = Span::new(SpanKind::Fsync, begin_ns - 10 * US, begin_ns + 4 * MS);
        spans.extend((0..threads).map(|thread| Span {
            tid,
            done_tid: tid - 1,
            pid: 41 + thread,
            dev: DEV,
            ..sync
        }));
    }
    let mut trace = Trace::from_spans(spans);
    if let Some(cpus) = cpus {
        let pairs = &mut trace.header.pairs;
        pairs.insert("cpus".into(), cpus.to_string());
    }
    trace
}

#[test]
fn gaps_bound_the_effect_of_a_clock() {
    let machine = Calibration::measure(&gaps(None, 1), DEV).unwrap();
    let share = machine.gaps_share();
    assert!((0.58..0.61).contains(&share), "{share}");
    let waits = at_half_the_clock(&machine, Gaps::Wait);
    assert!((0.98..=1.0).contains(&waits), "{waits}");
    // 4 ms and 6 ms become 4 ms and 12 ms.
    let computes = at_half_the_clock(&machine, Gaps::Compute);
    assert!((0.60..0.65).contains(&computes), "{computes}");
}

#[test]
fn gaps_compute_no_more_than_the_processors_had_time_for() {
    let trace = gaps(Some(1), 16);
    let machine = Calibration::measure(&trace, DEV).unwrap();
    let replayed = machine.replay_at(None, 1.0, Gaps::Compute);
    let share = rate_per_s(&replayed.spans, SpanKind::Fsync)
        / rate_per_s(machine.recorded(), SpanKind::Fsync);
    // If each of the 16 threads computed for 6 ms, a round would take 100 ms instead of 10.
    assert!(share > 0.6, "{share}");
}
