//! Every text fits a terminal and has units.

use crate::cases::cases;
use crate::common::{DEV, MS, US, any_span, span};
use crate::{SECOND, facts};
use luc_model::diagnosis::{Diagnosis, Facts, Help, Luc, Relief, VerdictKind, diagnose, render};
use luc_trace::{Sight, SpanKind, Trace, Unseen};
use proptest::prelude::*;

/// Tells whether a line has a unit, or a word for the counted things.
fn has_unit(line: &str) -> bool {
    let units = [
        "%",
        " ns",
        " us",
        " ms",
        " s ",
        " s,",
        "syncs",
        "commits",
        "times",
        "bytes",
        "KiB",
        "MiB",
        "GiB",
        "TiB",
        "blocks",
        "per second",
        "no time",
        "No task",
        "no task",
        "Almost none",
    ];
    units.iter().any(|unit| line.contains(unit))
}

/// Checks that one thing is in the singular, and that a time of 0 has a word. `21 syncs` and
/// `1.00 syncs` are plural.
pub fn check_words(text: &str) {
    let words: Vec<&str> = text.split_whitespace().collect();
    for pair in words.windows(2) {
        let things = ["syncs", "commits", "blocks", "file", "records", "changes"];
        let what = pair[1].trim_end_matches(|c: char| c.is_ascii_punctuation());
        assert!(pair[0] != "1" || !things.contains(&what), "{text}");
    }
    assert!(!text.contains(" 0.00 ns"), "{text}");
    assert!(!text.contains("for 0 commits"), "{text}");
}

/// Checks that the line about LUC, the next command and the exit code agree.
fn check_agreement(diagnosis: &Diagnosis, text: &str) {
    let next = diagnosis.next_command.as_deref().unwrap_or("");
    let switches_on = next.starts_with("luc on ") || next.starts_with("luc set ");
    let words = match diagnosis.luc_help {
        Help::Would => "LUC would give",
        Help::May => "LUC may help",
        Help::WouldNot => "LUC would not help",
        Help::Unknown => "",
    };
    assert!(text.contains(words), "{text}");
    assert!(!switches_on || diagnosis.luc_help == Help::Would, "{text}");
    if diagnosis.luc_help == Help::Would && diagnosis.found_cost() && diagnosis.luc != Luc::Steering
    {
        assert!(switches_on || diagnosis.luc_obstacle.is_some(), "{text}");
    }
    let no_command = text.contains("next: nothing") || text.contains("next: see the other");
    assert_eq!(no_command, next.is_empty(), "{text}");
    // LUC is the relief exactly where the next command tries it or switches it on.
    let tries = switches_on || next.starts_with("luc try");
    assert_eq!(tries, diagnosis.relief == Relief::Luc, "{text}");
}

pub fn check_text(diagnosis: &Diagnosis) {
    let text = render(diagnosis);
    check_words(&text);
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert!(!line.contains("NaN") && !line.contains("inf"), "{text}");
        assert_eq!(line.trim_end(), line, "{text}");
    }
    check_agreement(diagnosis, &text);
    for verdict in &diagnosis.verdicts {
        assert!(!verdict.evidence.is_empty());
        for evidence in &verdict.evidence {
            assert!(has_unit(&evidence.text), "{}", evidence.text);
            assert!(!evidence.numbers.is_empty(), "{}", evidence.text);
            for (name, estimate) in &evidence.numbers {
                let unit = name.rsplit('_').next().unwrap();
                let units = ["ns", "share", "s", "ratio", "bytes", "events", "commits"];
                assert!(units.contains(&unit), "{name}");
                assert!(estimate.value.is_finite(), "{name}");
            }
        }
    }
}

#[test]
fn every_text_has_units_and_fits() {
    let known = Facts {
        journal_bytes: Some(64 << 20),
        block_bytes: Some(4096),
        mount_options: Some("rw,sync,nobarrier,data=journal,commit=2".into()),
        rotational: Some(true),
        ..facts()
    };
    let mut seen: Vec<VerdictKind> = Vec::new();
    for (_, little, _) in cases() {
        let trace = little.trace();
        let blind = Trace {
            unseen: Unseen::from([Sight::WaitSpace]),
            ..trace.clone()
        };
        for (trace, facts) in [(&blind, &known), (&trace, &Facts::default())] {
            let got = diagnose(trace, DEV, facts);
            check_text(&got);
            assert!(has_unit(render(&got).lines().next().unwrap()));
            seen.extend(got.verdicts.iter().map(|verdict| verdict.kind));
        }
    }
    // Writes are almost all that happens.
    let writes = (0..100).map(|n| span(SpanKind::Write, 7, n * 100 * MS, n * 100 * MS + 90 * MS));
    let busy = span(SpanKind::Fsync, 8, 0, 3 * SECOND);
    let got = diagnose(&Trace::from_spans(writes.chain([busy])), DEV, &facts());
    check_text(&got);
    seen.extend(got.verdicts.iter().map(|verdict| verdict.kind));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 7, "{seen:?}");
    check_text(&diagnose(&Trace::default(), DEV, &facts()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_spans_get_a_verdict(
        spans in prop::sample::select(vec![1, US, 10 * MS])
            .prop_flat_map(|scale| prop::collection::vec(any_span(scale), 0..80)),
        spans_lost in any::<u64>(),
        facts in (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<bool>>()),
        watched_ns in any::<Option<(u64, u64)>>(),
        unseen in prop::collection::btree_set(prop::sample::select(Sight::ALL.to_vec()), 0..4),
    ) {
        let facts = Facts {
            journal_bytes: facts.0,
            block_bytes: facts.1,
            fast_commit: facts.2,
            watched_ns,
            ..Facts::default()
        };
        for trace in [
            Trace { spans_lost, ..Trace::from_spans(spans.clone()) },
            Trace { unseen, ..Trace::from_spans(spans.clone()) },
            // Built by hand, unsorted.
            Trace { spans, ..Trace::default() },
        ] {
            let got = diagnose(&trace, DEV, &facts);
            prop_assert!(!got.verdicts.is_empty());
            for verdict in &got.verdicts {
                prop_assert!((0.0..=1.0).contains(&verdict.cost_share.value));
            }
            check_text(&got);
            prop_assert_eq!(&got, &diagnose(&trace, DEV, &facts));
        }
    }
}
