//! Writes spans in a recording, reads them back, and damages them.

use luc_control::Dev;
use luc_trace::{
    Entry, Header, Reader, SPAN_BYTES, Sight, Span, SpanKind, Trace, TraceError, Unseen, Writer,
};
use proptest::prelude::*;

/// Generates a span from random bytes.
fn any_span() -> impl Strategy<Value = Span> {
    let kind = || prop::sample::select(&SpanKind::ALL[..]);
    let bytes = prop::collection::vec(any::<u8>(), SPAN_BYTES);
    (bytes, kind(), kind()).prop_map(|(bytes, kind, within)| {
        let mut bytes = *bytes.first_chunk().unwrap();
        // A valid kind for now; the drawn kinds follow below.
        bytes[80..84].fill(0);
        let span = Span::from_bytes(&bytes).unwrap();
        Span {
            kind,
            within,
            ..span
        }
    })
}

fn task(pid: u32, name: &str, cgroup: u64) -> Span {
    Span {
        pid,
        tgid: 40,
        object: cgroup,
        ..Span::default().with_name(name)
    }
}

fn write(spans: &[Span]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Header::default().with("kernel", "6.12")).unwrap();
    for span in spans {
        writer.span(span).unwrap();
    }
    writer.finish().unwrap()
}

fn some(count: u64) -> Vec<Span> {
    let span = |number| Span {
        amount: 4096,
        dev: Dev {
            major: 259,
            minor: 3,
        },
        pid: 7,
        ..Span::new(SpanKind::Write, number * 10, number * 10 + 5)
    };
    (0..count).map(span).collect()
}

#[test]
fn spans_lines_and_losses_are_read_in_order() {
    let spans = some(7_000);
    let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
    for span in &spans[..3_500] {
        writer.span(span).unwrap();
    }
    writer.flush().unwrap();
    writer
        .raw_line(b"            bash-7       [000] ..... 1.000000: luc_write_delay: dev=8:1 block=5 delay_ns=1")
        .unwrap();
    for span in &spans[3_500..] {
        writer.span(span).unwrap();
    }
    writer.spans_lost(12).unwrap();
    writer.lost(1, Some(3)).unwrap();
    let bytes = writer.finish().unwrap();

    let mut reader = Reader::new(&bytes[..]).unwrap();
    let entries: Vec<Entry> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let found = entries.iter().filter_map(|entry| match entry {
        Entry::Span(span) => Some(*span),
        _ => None,
    });
    assert_eq!(found.collect::<Vec<_>>(), spans);
    assert!(matches!(entries[3_500], Entry::Line(_)));
    assert_eq!(entries[7_001], Entry::SpansLost(12));
    assert_eq!(*entries.last().unwrap(), Entry::End);
    assert!(reader.ended());
    assert_eq!((reader.spans_lost(), reader.losses().events), (12, 3));

    let trace = Trace::read(&bytes[..]).unwrap();
    assert_eq!((trace.spans.len(), trace.lines.len()), (7_000, 2));
    assert_eq!((trace.spans_lost, trace.damage), (12, None));
}

#[test]
fn a_recording_is_read_up_to_a_cut() {
    let bytes = write(&some(7_000));
    let whole = Trace::read(&bytes[..]).unwrap();
    assert_eq!((whole.spans.len(), whole.damage), (7_000, None));
    // Cut inside the second block.
    let cut = Trace::read(&bytes[..3_500 * SPAN_BYTES]).unwrap();
    assert_eq!(cut.spans.len(), 3_000);
    let why = cut.damage.unwrap();
    assert!(
        why.contains("a block of 3000 spans: the recording ends within"),
        "{why}"
    );
    // Between blocks: nothing is damaged, but the end is missing.
    let end = bytes.len() - "#end\n".len();
    let cut = Trace::read(&bytes[..end]).unwrap();
    assert_eq!(cut.spans.len(), 7_000);
    assert!(cut.damage.unwrap().contains("cut off"));
}

#[test]
fn a_changed_byte_is_noticed() {
    let bytes = write(&some(4_000));
    let mut bent = bytes.clone();
    let at = bent.len() - 100;
    bent[at] ^= 4;
    let error = Reader::new(&bent[..]).unwrap().find_map(Result::err);
    let Some(TraceError::Damaged { spans, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(spans, 1_000);
    assert_eq!(Trace::read(&bent[..]).unwrap().spans.len(), 3_000);
}

#[test]
fn tasks_are_known_by_their_last_name() {
    let trace = Trace::from_spans([task(7, "fork", 99), some(1)[0], task(7, "postgres", 99)]);
    assert_eq!(trace.task_name(7), "postgres");
    assert_eq!(trace.task_name(8), "an unnamed task (8)");
    assert_eq!((trace.tasks[&7].tgid, trace.tasks[&7].cgroup), (40, 99));
    assert_eq!(trace.spans.len(), 1);
}

#[test]
fn spans_of_a_later_kind_are_skipped() {
    let mut later = some(1)[0].to_bytes();
    later[80] = 200;
    let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
    writer.raw_spans(&[later]).unwrap();
    writer.span(&some(1)[0]).unwrap();
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    assert!(matches!(reader.next(), Some(Ok(Entry::Span(_)))));
    assert!(matches!(reader.next(), Some(Ok(Entry::End))));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("LUC_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_span_survives(spans in prop::collection::vec(any_span(), 0..20)) {
        let bytes = write(&spans);
        let back: Vec<Entry> = Reader::new(&bytes[..]).unwrap().collect::<Result<_, _>>().unwrap();
        let mut expected: Vec<Entry> = spans.into_iter().map(Entry::Span).collect();
        expected.push(Entry::End);
        prop_assert_eq!(back, expected);
    }

    /// After any edits, the reader never panics, comes to an end, and returns no span that was not
    /// written.
    #[test]
    fn damage_is_survived(
        spans in prop::collection::vec(any_span(), 1..20),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 0..6),
    ) {
        let mut bytes = write(&spans);
        for (place, byte, how) in edits {
            let at = place.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(reader) = Reader::new(&bytes[..]) {
            for entry in reader.flatten() {
                if let Entry::Span(span) = entry {
                    prop_assert!(spans.contains(&span));
                }
            }
        }
        if let Ok(trace) = Trace::read(&bytes[..]) {
            prop_assert!(trace.spans.len() <= spans.len());
        }
    }
}

/// Older readers ignore both: unseen events are a pair in the header, a control group is a comment.
#[test]
fn unseen_events_and_control_groups_are_kept() {
    let unseen = Unseen::from([Sight::Writes, Sight::WaitBuffer]);
    let header = Header::default().with(Header::UNSEEN, &Sight::words(&unseen));
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.span(&task(41, "worker", 8)).unwrap();
    writer.span(&task(40, "mail\u{1b}er", 7)).unwrap();
    writer.cgroup(7, "/mail slice/100%\n").unwrap();
    let bytes = writer.finish().unwrap();
    let lines = String::from_utf8_lossy(&bytes).into_owned();
    assert!(
        lines.contains("\n#cgroup 7 /mail%20slice/100%25%0A\n"),
        "{lines}"
    );

    let trace = Trace::read(bytes.as_slice()).unwrap();
    assert_eq!(trace.unseen, unseen);
    let process = trace.process(40, 41);
    assert_eq!(process.name, "mail?er");
    assert_eq!(process.cgroup.as_deref(), Some("/mail slice/100%?"));
    assert_eq!(trace.process(9, 9).name, "an unnamed task (9)");
    assert_eq!(trace.process(9, 41).name, "worker");
    assert_eq!(trace.process(9, 41).cgroup, None);

    for line in ["#cgroup", "#cgroup x /", "#cgroup 7"] {
        let text = format!("# luc-trace 2\n{line}\n#end\n");
        let damage = Trace::read(text.as_bytes()).unwrap().damage;
        assert_eq!(damage.is_some(), line != "#cgroup", "{line}: {damage:?}");
    }
}

#[test]
fn files_keep_their_paths() {
    let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
    let sync = Span {
        object: 4711,
        dev: "254:16".parse().unwrap(),
        ..Span::new(SpanKind::Fsync, 9, 20)
    };
    let path = "/srv/data/a 100% \n log (deleted)";
    writer.file(&sync, path).unwrap();
    let bytes = writer.finish().unwrap();
    let trace = Trace::read(bytes.as_slice()).unwrap();
    assert_eq!(trace.damage, None);
    assert_eq!(trace.files[&(sync.dev, 4711, 9)], path);

    for (line, whole) in [
        ("#file", true),
        ("#file 254:16 1 2 /x", true),
        ("#file 254:16 1 2", false),
        ("#file 254 1 2 /x", false),
        ("#file 254:16 -1 2 /x", false),
    ] {
        let text = format!("# luc-trace 2\n{line}\n#end\n");
        let damage = Trace::read(text.as_bytes()).unwrap().damage;
        assert_eq!(damage.is_none(), whole, "{line}: {damage:?}");
    }
}
