//! Writes, reads back and replays a recording of controllers, then damages it.

#[path = "../../luc-control/tests/common/mod.rs"]
mod common;

use common::Rng;
use luc_control::replay::{Summary, replay};
use luc_control::{
    Batching, Copyout, Decision, Dev, Field, Input, Output, Params, Reason, State, Step,
    control_step,
};
use luc_trace::{Entry, Event, Header, Reader, Record, TraceError, Writer};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: i64 = 1_000_000;

/// Returns records of several file systems under several policies, in order of time, as a kernel
/// would print them.
fn recorded() -> Vec<Record> {
    let base = Params::default();
    let settings = [
        base,
        Params {
            batching: Batching::Returns.value(),
            setpoint_events: 5,
            ..base
        },
        Params {
            batching: Batching::Static.value(),
            static_resets_max: 4,
            ..base
        },
        Params {
            copyout: Copyout::Published.value(),
            copyout_clean_runs: 2,
            delay_limit_us: 300,
            ..base
        },
        Params {
            batching: Batching::Off.value(),
            ..base
        },
        Params {
            batching: Batching::Age.value(),
            // Shorter than a commit, so that it limits the hold.
            age_limit_us: 1_500,
            ..base
        },
        Params {
            batching: Batching::Published.value(),
            copyout: Copyout::Published.value(),
            setpoint_events: 6,
            ..base
        },
    ];
    let mut timed: Vec<(i64, Record)> = Vec::new();
    for (minor, params) in (0_u32..).zip(settings) {
        // Start five before 0, so that the numbers wrap.
        let tids = (0_u32..).map(|number| number.wrapping_sub(5));
        for ((now_ns, decision), tid) in decided(params, u64::from(minor) + 5).into_iter().zip(tids)
        {
            let event = Event::Decision {
                dev: Dev { major: 259, minor },
                tid,
                decision: Box::new(decision),
            };
            timed.push((now_ns, record(now_ns, minor, event)));
        }
    }
    timed.sort_by_key(|(now_ns, _)| *now_ns);
    timed.into_iter().map(|(_, record)| record).collect()
}

/// Returns the decisions of a journal's controllers over sixty commits, with random inputs.
fn decided(mut params: Params, seed: u64) -> Vec<(i64, Decision)> {
    let (mut rng, mut state) = (Rng(seed), State::default());
    let mut decisions: Vec<(i64, Decision)> = Vec::new();
    let (mut now_ns, mut copies) = (MS, false);
    for commit in 0..60 {
        // An administrator changes a knob during the run.
        params.kd_milli += if commit == 40 { 100 } else { 0 };
        let mut step = |step: Step, input: &Input| {
            let before = state;
            let out = control_step(step, &params, &mut state, input);
            let decision = Decision {
                step: step.value(),
                params,
                input: *input,
                state: before,
                out,
            };
            decisions.push((input.now_ns, decision));
            out
        };
        let mut input = Input {
            now_ns,
            events: 1 + rng.below(6),
            expected_events: rng.below(8),
            last_event_ns: now_ns - rng.below(MS / 2),
            commit_avg_ns: 2 * MS,
            age_ns: rng.below(3 * MS),
            busy_permille: rng.below(1001),
            urgent: i64::from(rng.below(7) == 0),
            ..Input::default()
        };
        let mut out = step(Step::Open, &input);
        while out.reason == Reason::Hold.value() {
            input.now_ns = out.wake_ns.clamp(input.now_ns + 1, input.now_ns + MS);
            if rng.below(8) > 0 {
                (input.events, input.last_event_ns) = (input.events + 1, input.now_ns);
            }
            out = step(Step::Poll, &input);
        }
        step(Step::Close, &input);
        // The commit, and at times a journal that is idle for longer than that.
        now_ns = input.now_ns + 2 * MS + rng.below(2) * 3 * MS;
        let harmed = rng.below(5);
        let (spared, delayed) = if copies { (harmed, 0) } else { (0, harmed) };
        let writers = Input {
            now_ns,
            handles: 50,
            writes_delayed: delayed,
            buffers_spared: spared,
            ..Input::default()
        };
        copies = step(Step::Copyout, &writers).copy != 0;
    }
    decisions
}

fn record(now_ns: i64, cpu: u32, event: Event) -> Record {
    Record {
        task: format!("jbd2/nvme0n1p{cpu}-"),
        pid: 100 + i64::from(cpu),
        cpu,
        // A line holds whole microseconds.
        time_ns: u64::try_from(now_ns).unwrap() / 1_000 * 1_000,
        event,
    }
}

fn write(records: &[Record]) -> String {
    let header = Header::default()
        .with("kernel", "6.12.95 #1 SMP")
        .with("module", "0.1.0");
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for record in records {
        writer.record(record).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn read(text: &str) -> Result<Vec<Record>, TraceError> {
    lines(&mut Reader::new(text.as_bytes())?)
}

/// Returns the records of a recording that holds only records and its end.
fn lines(reader: &mut Reader<&[u8]>) -> Result<Vec<Record>, TraceError> {
    reader
        .filter(|entry| !matches!(entry, Ok(Entry::End)))
        .map(|entry| entry.map(as_line))
        .collect()
}

fn as_line(entry: Entry) -> Record {
    match entry {
        Entry::Line(record) => record,
        other => panic!("{other:?}"),
    }
}

fn replayed(records: &[Record]) -> Summary {
    replay(records.iter().filter_map(Record::to_replay))
}

#[test]
fn a_recording_is_read_back_and_replayed_bit_for_bit() {
    let records = recorded();
    let text = write(&records);
    assert!(text.starts_with("# luc-trace 2 kernel=6.12.95%20#1%20SMP module=0.1.0\n"));
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert_eq!(reader.header().unwrap().pairs["kernel"], "6.12.95 #1 SMP");
    let back = lines(&mut reader).unwrap();
    assert_eq!(back, records);
    assert_eq!(reader.losses().places, 0);

    let summary = replayed(&back);
    assert!(summary.passed(), "{summary:?}");
    assert_eq!(summary.records, u64::try_from(records.len()).unwrap());
    assert_eq!(summary.matching, summary.records);
    assert_eq!((summary.devices, summary.knob_changes), (7, 7));
    assert_eq!(summary.chain_checked, summary.records - summary.devices);
    assert!(
        summary.by_step.iter().all(|steps| *steps > 100),
        "{summary:?}"
    );
    assert_eq!((summary.losses, summary.restarts), (0, 0));
}

/// Returns a record in which one bit of one field is flipped.
fn flipped(record: &Record, field: &str, bit: u32) -> Record {
    let Event::Decision { dev, tid, decision } = &record.event else {
        panic!("only decisions are flipped");
    };
    let mut decision = decision.clone();
    let value = decision.get(field).unwrap();
    assert!(decision.set(field, value ^ (1 << bit)));
    let event = Event::Decision {
        dev: *dev,
        tid: *tid,
        decision,
    };
    Record {
        event,
        ..record.clone()
    }
}

/// A flip in the output or the state of a step is always caught. A flip in its input or parameters
/// is caught if it matters to the step, so each such field must be caught somewhere.
#[test]
fn one_flipped_bit_in_any_field_is_caught() {
    let is_in = |fields: &[Field], name| fields.iter().any(|field| field.name == name);
    let records = recorded();
    let mut rng = Rng(7);
    let mut chains: BTreeMap<u32, Vec<Record>> = BTreeMap::new();
    for record in records {
        chains.entry(record.cpu).or_default().push(record);
    }
    // Each record between its neighbours of the same file system.
    let neighbours: Vec<_> = chains.values().flat_map(|chain| chain.windows(3)).collect();
    assert!(neighbours.len() > 1_000);
    for three in &neighbours {
        assert!(replayed(three).passed());
    }

    for field in Decision::fields() {
        let name = field.name;
        let mut caught = 0;
        for (number, three) in neighbours.iter().enumerate() {
            let bit = u32::try_from(rng.below(63)).unwrap();
            let mut damaged = three.to_vec();
            damaged[1] = flipped(&three[1], name, bit);
            let summary = if number % 50 == 0 {
                replayed(&read(&write(&damaged)).unwrap())
            } else {
                replayed(&damaged)
            };
            caught += u64::from(!summary.passed());
            if is_in(Output::FIELDS, name) {
                let mismatch = summary.first_mismatch.unwrap();
                assert_eq!(mismatch.field, name);
                assert_eq!(mismatch.recorded ^ mismatch.computed.unwrap(), 1 << bit);
            } else if is_in(State::FIELDS, name) {
                assert_eq!(summary.first_break.unwrap().field, name);
            }
        }
        // Only the module uses these knobs.
        let unused = ["copyout_buffers_max", "priority_cgroup"];
        assert_eq!(
            caught > 0,
            !unused.contains(&name),
            "{name} was caught {caught} times"
        );
    }
}

#[test]
fn missing_records_break_the_chain_unless_the_kernel_said_so() {
    let mut records = recorded();
    let middle = records.len() / 2;
    // Look for a step that changed the state.
    let decision = |record: &Record| match &record.event {
        Event::Decision { dev, decision, .. } => Some((*dev, decision.state)),
        _ => None,
    };
    let changes = |at: &usize| {
        let Some((dev, before)) = decision(&records[*at]) else {
            return false;
        };
        let mut later = records[at + 1..].iter().filter_map(decision);
        later
            .find(|next| next.0 == dev)
            .is_some_and(|next| next.1 != before)
    };
    let at = (middle..records.len()).find(changes);
    let at = at.expect("a step in the second half");
    let removed = records.remove(at);
    let summary = replayed(&read(&write(&records)).unwrap());
    assert_eq!((summary.mismatching, summary.chain_breaks), (0, 1));

    records.insert(at, Record::lost(removed.cpu, Some(1)));
    let text = write(&records);
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    let back = lines(&mut reader).unwrap();
    let summary = replayed(&back);
    assert!(summary.passed(), "{summary:?}");
    assert_eq!((summary.losses, summary.lost_events), (1, 1));
    assert_eq!((reader.losses().places, reader.losses().events), (1, 1));
}

#[test]
fn plain_trace_pipe_text_is_a_recording() {
    let records = recorded();
    let mut text = String::from("# tracer: nop\n#\n#           TASK-PID\n");
    for record in &records[..9] {
        text.push_str(&record.to_string());
        text.push_str("\n            bash-7       [000] d..2. 1.000001: sched_switch: a=b\n");
    }
    text += "CPU:1 [LOST 5 EVENTS]\nCPU:1 [LOST EVENTS]\n##### CPU 1 buffer started ####\n";
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert!(reader.header().is_none());
    let back = lines(&mut reader).unwrap();
    assert_eq!(back[..9], records[..9]);
    assert_eq!(back[9..], [Record::lost(1, Some(5)), Record::lost(1, None)]);
    assert_eq!((reader.losses().places, reader.losses().events), (2, 5));
}

#[test]
fn a_cut_line_is_an_error_with_its_place_and_reading_goes_on() {
    let records = recorded();
    let text = write(&records[..3]);
    let cut = text.lines().nth(1).unwrap().len() / 2;
    let lines: Vec<_> = text.lines().collect();
    let damaged = format!(
        "{}\n{}\n{}\n{}\n",
        lines[0],
        &lines[1][..cut],
        lines[2],
        lines[3]
    );
    let mut reader = Reader::new(damaged.as_bytes()).unwrap();
    let error = reader.next().unwrap().unwrap_err();
    let TraceError::Syntax { line, column, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(line, 2);
    assert!(column <= cut + 1, "{column} {cut}");
    assert_eq!(as_line(reader.next().unwrap().unwrap()), records[1]);
    assert_eq!(as_line(reader.next().unwrap().unwrap()), records[2]);
    assert!(reader.next().is_none());
}

#[test]
fn other_versions_and_endless_lines_are_refused() {
    let error = Reader::new("# luc-trace 3 a=b\n".as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the recording has format '3', but this luc reads formats 1 to 2; use the version that recorded it"
    );
    let endless = format!(
        "# luc-trace 1\n{}\nCPU:0 [LOST 1 EVENTS]",
        "x".repeat(1 << 20)
    );
    let mut reader = Reader::new(endless.as_bytes()).unwrap();
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(
        error.ends_with("the line is longer than 65536 bytes"),
        "{error}"
    );
    assert_eq!(
        as_line(reader.next().unwrap().unwrap()),
        Record::lost(0, Some(1))
    );
    assert!(Reader::new(&b""[..]).unwrap().next().is_none());
}

#[test]
fn a_failing_source_ends_the_reading() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    use std::io::Read as _;
    let source = std::io::BufReader::new((&b"# luc-trace 1\n"[..]).chain(Failing));
    let mut reader = Reader::new(source).unwrap();
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "reading line 2 of the recording: gone");
    assert!(reader.next().is_none());
}

fn any_event() -> impl Strategy<Value = Event> {
    let numbers = any::<(u32, u32, u32, u64, [i64; 3])>();
    let reason = prop::sample::select(&Reason::ALL[1..]);
    let values = prop::collection::vec(any::<i64>(), Decision::LEN);
    let lost = any::<Option<u64>>();
    let any = (0..4, numbers, reason, any::<bool>(), values, lost);
    any.prop_map(|(kind, numbers, reason, steer, values, lost)| {
        let (major, minor, tid, block, [events, setpoint_events, held_ns]) = numbers;
        let dev = Dev { major, minor };
        match kind {
            0 => Event::Commit {
                dev,
                tid,
                events,
                setpoint_events,
                held_ns,
                reason,
                steer,
            },
            1 => Event::WriteDelay {
                dev,
                block,
                delay_ns: held_ns,
            },
            2 => {
                let mut decision = Box::<Decision>::default();
                for (field, value) in Decision::fields().zip(values) {
                    decision.set(field.name, value);
                }
                Event::Decision { dev, tid, decision }
            }
            _ => Event::Lost { events: lost },
        }
    })
}

fn any_record() -> impl Strategy<Value = Record> {
    // Like the kernel's names of tasks: up to 15 bytes, not starting with a space.
    let task = "[!-~][ -~]{0,14}";
    let ids = (0_i64..4_194_304, 0_u32..8_192);
    let any = (task, ids, 0_u64..1 << 43, any_event());
    any.prop_map(|(task, (pid, cpu), time_us, event)| match event {
        Event::Lost { events } => Record::lost(cpu, events),
        event => Record {
            task,
            pid,
            cpu,
            time_ns: time_us * 1_000,
            event,
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("LUC_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_record_survives_its_line(records in prop::collection::vec(any_record(), 0..6)) {
        prop_assert_eq!(read(&write(&records)).unwrap(), records);
    }

    /// For any bytes, and for valid lines after random edits, the reader returns records or errors,
    /// never panics, and ends.
    #[test]
    fn garbage_is_survived(
        records in prop::collection::vec(any_record(), 0..4),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 0..12),
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = write(&records).into_bytes();
        for (place, byte, how) in edits {
            let at = place.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if bytes.len() > 1 => { bytes.remove(at); }
                _ => {}
            }
        }
        bytes.extend(tail);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        if let Ok(reader) = Reader::new(&bytes[..]) {
            let mut items = 0;
            for result in reader {
                items += 1;
                if let Err(error) = result {
                    let syntax = matches!(error, TraceError::Syntax { .. });
                    prop_assert!(syntax);
                    let error = error.to_string();
                    prop_assert!(error.starts_with("line "), "{}", error);
                }
            }
            prop_assert!(items <= lines);
        }
        for line in String::from_utf8_lossy(&bytes).split('\n') {
            let _ = luc_trace::parse_line(line, 1);
        }
    }
}
