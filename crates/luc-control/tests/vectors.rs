//! Golden vectors: pinned decisions that were right once. A change of a heuristic shows up here as
//! the fields that it changes.
//!
//! Each line of `vectors/*.txt` is one decision; it names the fields that differ from the line
//! before, all of which start at 0. After an intended change,
//! `LUC_VECTORS_WRITE=1 cargo test -p luc-control --test vectors` decides the same inputs again and
//! rewrites the files. They hold two convoys that merge, waits in vain, the published controller
//! with urgent steps, batching static, and copy-out that comes and goes.

use luc_control::{Decision, Dev, Step, control_step, replay, replay::Item};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Returns a decision whose fields are all 0: defaults may change, but not old answers to old
/// knobs.
fn nothing() -> Decision {
    let mut decision = Decision::default();
    for field in Decision::fields() {
        decision.set(field.name, 0);
    }
    decision
}

fn encode(items: &[Item]) -> String {
    let mut text = String::new();
    let mut before = nothing();
    for item in items {
        let Item::Decision { tid, decision, .. } = item else {
            panic!("a simulation loses nothing");
        };
        write!(text, "tid={tid}").unwrap();
        let values = decision.values().zip(before.values());
        for (field, (now, was)) in Decision::fields().zip(values) {
            if now != was {
                write!(text, " {}={now}", field.name).unwrap();
            }
        }
        text.push('\n');
        before = **decision;
    }
    text
}

fn decode(text: &str) -> Vec<Item> {
    let mut decision = nothing();
    text.lines()
        .map(|line| {
            let mut tid = 0;
            for word in line.split(' ') {
                let (name, value) = word.split_once('=').expect("name=value");
                if name == "tid" {
                    tid = value.parse().expect("a tid");
                } else {
                    let value = value.parse().expect("a number");
                    assert!(decision.set(name, value), "no field {name}");
                }
            }
            Item::Decision {
                dev: Dev::default(),
                tid,
                decision: Box::new(decision),
            }
        })
        .collect()
}

/// Returns today's answers to the same knobs and inputs, from the same initial state.
fn answered(items: Vec<Item>) -> Vec<Item> {
    let mut state = None;
    let again = |item| {
        let Item::Decision {
            dev,
            tid,
            mut decision,
        } = item
        else {
            panic!("a vector loses nothing");
        };
        let state = state.get_or_insert(decision.state);
        decision.state = *state;
        let step = Step::from_value(decision.step).expect("a step");
        decision.out = control_step(step, &decision.params, state, &decision.input);
        Item::Decision { dev, tid, decision }
    };
    items.into_iter().map(again).collect()
}

#[test]
fn old_questions_get_the_old_answers() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors");
    for name in ["merge", "doubt", "setpoint", "static", "copyout"] {
        let path = dir.join(name).with_extension("txt");
        let read = || std::fs::read_to_string(&path).expect("vectors/ is part of the crate");
        if std::env::var_os("LUC_VECTORS_WRITE").is_some() {
            let text = encode(&answered(decode(&read())));
            std::fs::write(&path, text).expect("vectors/ is writable");
        }
        let items = decode(&read());
        assert_eq!(encode(&items), read(), "{name} was edited by hand");
        let summary = replay::replay(items.clone());
        assert!(
            summary.passed(),
            "{name}: {:?} {:?}",
            summary.first_mismatch.map(|mismatch| mismatch.to_string()),
            summary.first_break.map(|chain| chain.to_string())
        );
        assert_eq!(summary.chain_checked + 1, summary.records, "{name}");
        assert_eq!(encode(&answered(items)), read(), "{name}");
    }
}
