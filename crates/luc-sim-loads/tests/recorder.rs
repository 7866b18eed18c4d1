//! Recordings of simulated runs: their spans make sense, and their decisions replay.

use std::collections::BTreeMap;

use luc_control::Params;
use luc_control::replay::{Summary, replay};
use luc_trace::{Entry, Event, Record, Span, SpanKind, Trace, Writer, encode};
use proptest::prelude::*;

use luc_sim::Setup;
use luc_sim::processors::ProcessorModel;
use luc_sim::recorder::{DEV, Recording};
use luc_sim_loads::{load, record, run};

fn setup(disk: &str, cpus: u16, mips: f64, luc: Option<Params>) -> Setup {
    Setup {
        luc,
        ..Setup::stock(ProcessorModel::new(cpus, mips), disk.parse().unwrap())
    }
}

fn recorded(text: &str, setup: &Setup) -> (luc_workload::BenchReport, Recording) {
    let bench = load(text.split_whitespace()).unwrap();
    let (report, recording) = record(&bench, setup).unwrap();
    assert_eq!(run(&bench, setup).unwrap(), report, "seen, not changed");
    (report, recording)
}

fn replayed(recording: Recording) -> Summary {
    let lines = recording.into_trace().lines;
    replay(lines.iter().filter_map(Record::to_replay))
}

#[test]
fn decisions_replay_bit_for_bit() {
    for (text, steps) in [
        // Batches that are held, and checked again meanwhile.
        (
            "create-fsync --threads 16 --seconds 1",
            [0, 1, 2, 3].as_slice(),
        ),
        ("write-delay --writers 48 --seconds 1", &[0, 2, 3]),
        ("burst --threads 8 --bursts 20 --spread-us 400", &[0, 2, 3]),
        ("metarates --procs 4 --files 16", &[0, 2, 3]),
    ] {
        let luc = setup("4ms:1", 1, 1000.0, Some(Params::default()));
        let summary = replayed(recorded(text, &luc).1);
        assert!(summary.passed(), "{text}: {summary:?}");
        assert_eq!(summary.restarts, 0, "one start: {summary:?}");
        for step in steps {
            assert!(summary.by_step[*step] > 0, "{text}: {summary:?}");
        }
    }
}

/// LUC holds nothing if it only observes, but it is recorded all the same.
#[test]
fn observing_changes_nothing() {
    let params = Params {
        mode: luc_control::Mode::Observe.value(),
        ..Params::default()
    };
    let text = "create-fsync --threads 16 --seconds 1";
    let (report, recording) = recorded(text, &setup("4ms:1", 1, 1000.0, Some(params)));
    let (stock, _) = recorded(text, &setup("4ms:1", 1, 1000.0, None));
    assert_eq!(report, stock);
    let steers = |entry: &Entry| match entry {
        Entry::Line(Record {
            event: Event::Commit { steer, held_ns, .. },
            ..
        }) => Some((*steer, *held_ns)),
        _ => None,
    };
    let commits: Vec<_> = recording.entries.iter().filter_map(steers).collect();
    assert!(commits.len() > 100);
    assert!(commits.iter().all(|it| *it == (false, 0)), "{commits:?}");
    assert!(replayed(recording).passed());
}

#[test]
fn one_that_is_written_is_read_as_it_was() {
    let luc = setup("hdd-7200", 2, 500.0, Some(Params::default()));
    let recording = recorded("write-delay --writers 8 --seconds 0.5", &luc).1;
    let mut writer = Writer::new(Vec::new(), &recording.header).unwrap();
    for entry in &recording.entries {
        match entry {
            Entry::Span(span) => writer.span(span).unwrap(),
            Entry::Line(line) => writer.record(line).unwrap(),
            Entry::Block { dev, number, block } => writer.block(*dev, *number, block).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    let read = Trace::read(writer.finish().unwrap().as_slice()).unwrap();
    let own = recording.into_trace();
    assert_eq!((&read.damage, &read.spans), (&None, &own.spans));
    assert!(!own.blocks.is_empty());
    assert_eq!(read.blocks, own.blocks);
    assert_eq!((&read.header, &read.tasks), (&own.header, &own.tasks));
    assert!(read.unseen.is_empty() && own.header.pairs["cpus"] == "2");
    // Lines have times in microseconds.
    let events = |trace: &Trace| -> Vec<Event> {
        trace.lines.iter().map(|line| line.event.clone()).collect()
    };
    assert_eq!(events(&read), events(&own));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// In any run, spans take time, a task does one thing after the other, waits lie within
    /// operations, commits follow each other, and no sync ends before the commit that it waited
    /// for.
    #[test]
    fn spans_make_sense(
        threads in 1_u32..24, cpus in 1_u16..5, exponent in 0_u32..4, luc in any::<bool>(),
        write_bytes in prop::sample::select(vec![0, 4096]),
    ) {
        let luc = luc.then(Params::default);
        let mips = 125.0 * f64::from(1 << exponent);
        let text = format!("create-fsync --threads {threads} --bytes {write_bytes} --seconds 0.3");
        let trace = recorded(&text, &setup("1ms:4", cpus, mips, luc)).1.into_trace();
        prop_assert_eq!(trace.tasks.len(), threads as usize);
        let mut busy_until_ns: BTreeMap<u32, u64> = BTreeMap::new();
        let mut commit_ends_ns: BTreeMap<u32, u64> = BTreeMap::new();
        let of = |kind| trace.spans.iter().filter(move |span| span.kind == kind);
        for span in &trace.spans {
            prop_assert!(span.begin_ns <= span.end_ns && encode(span.dev) == encode(DEV));
            if span.kind.is_wait() {
                prop_assert!(span.end_ns > span.begin_ns);
                continue;
            }
            let until_ns = busy_until_ns.entry(span.pid).or_default();
            prop_assert!(*until_ns <= span.begin_ns);
            *until_ns = span.end_ns;
        }
        let whole = |wait: &&Span| wait.within != SpanKind::Task
            && busy_until_ns.get(&wait.pid).is_some_and(|until_ns| wait.begin_ns < *until_ns);
        for wait in trace.spans.iter().filter(|span| span.kind.is_wait()).filter(whole) {
            let around = |op: &Span| op.pid == wait.pid && op.kind == wait.within
                && op.begin_ns <= wait.begin_ns && wait.end_ns <= op.end_ns;
            prop_assert!(trace.spans.iter().any(around), "{:?}", wait);
        }
        for (number, commit) in (1..).zip(of(SpanKind::Commit)) {
            prop_assert_eq!(commit.tid, number);
            let [locked_ns, flush_ns, log_ns] = commit.marks_ns;
            prop_assert_eq!(locked_ns, commit.begin_ns);
            prop_assert!(locked_ns <= flush_ns && flush_ns < log_ns && log_ns < commit.end_ns);
            commit_ends_ns.insert(number, commit.end_ns);
        }
        for sync in of(SpanKind::Fsync) {
            // Zero commits ahead: the sync's commit ended while it wrote its data.
            let has_data = write_bytes > 0;
            let ahead = u32::from(!has_data)..=2;
            prop_assert!(ahead.contains(&sync.commits_ahead()), "{:?}", sync);
            prop_assert!(commit_ends_ns[&sync.tid] <= sync.end_ns);
            let (_, asked_ns) = sync.flush_ns().unwrap();
            prop_assert!(sync.begin_ns < asked_ns && asked_ns < sync.end_ns);
        }
    }
}
