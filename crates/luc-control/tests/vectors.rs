//! Golden vectors: decisions that were right once, pinned. A change of a
//! heuristic shows up here as the fields that it moved.
//!
//! Each line of `vectors/*.txt` is one decision; it names the fields that
//! differ from the line before, all of which start at 0. After a change that
//! is meant, `LUC_VECTORS_WRITE=1 cargo test -p luc-control --test vectors`
//! writes the files anew.

mod common;

use common::{Sim, Workload};
use luc_control::{Batching, Copyout, Decision, Dev, Params, replay, replay::Item};
use std::fmt::Write as _;
use std::path::PathBuf;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// All fields 0: defaults may change, old answers to old knobs may not.
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

fn pinned(name: &str, sim: &mut Sim, commits: usize) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name)
        .with_extension("txt");
    let now = encode(&sim.run(commits).items);
    if std::env::var_os("LUC_VECTORS_WRITE").is_some() {
        std::fs::write(&path, &now).expect("vectors/ is writable");
    }
    let then = std::fs::read_to_string(&path).expect("vectors/ is part of the crate");

    // The controllers still answer the old questions the same way,
    let items = decode(&then);
    let summary = replay::replay(items.clone());
    assert!(
        summary.passed(),
        "{name}: {:?} {:?}",
        summary.first_mismatch.map(|mismatch| mismatch.to_string()),
        summary.first_break.map(|chain| chain.to_string())
    );
    assert_eq!(summary.chain_checked + 1, summary.records, "{name}");
    // and still ask the same ones.
    assert_eq!(encode(&items), then, "{name} was edited by hand");
    let line = now.lines().zip(then.lines()).position(|(a, b)| a != b);
    assert!(
        now == then,
        "{name}: line {:?} differs",
        line.map(|at| at + 1)
    );
}

#[test]
fn two_convoys_merge() {
    let mut workload = Workload::new(6, 50 * US, 4 * MS);
    workload.stagger_ns = 600 * US;
    workload.jitter_ns = 90 * US;
    workload.commit_avg_ns = 0;
    pinned("merge", &mut Sim::new(workload, Params::default()), 20);
}

#[test]
fn waits_in_vain_are_doubted() {
    let mut workload = Workload::new(3, 3 * MS, MS);
    workload.jitter_ns = 5 * MS;
    workload.stagger_ns = 300 * US;
    pinned("doubt", &mut Sim::new(workload, Params::default()), 40);
}

#[test]
fn fixed_set_point_with_urgent_steps() {
    let mut workload = Workload::new(12, 100 * US, 2 * MS);
    workload.jitter_ns = 900 * US;
    workload.urgent_every = 5;
    let params = Params {
        batching: Batching::Pid.value(),
        copyout: Copyout::Off.value(),
        setpoint_events: 8,
        ..Params::default()
    };
    pinned("setpoint", &mut Sim::new(workload, params), 25);
}

#[test]
fn static_resets() {
    let mut workload = Workload::new(8, 100 * US, 2 * MS);
    workload.jitter_ns = 1_500 * US;
    workload.stagger_ns = 400 * US;
    let params = Params {
        batching: Batching::Static.value(),
        copyout: Copyout::Off.value(),
        static_resets_max: 5,
        ..Params::default()
    };
    pinned("static", &mut Sim::new(workload, params), 15);
}

#[test]
fn copyout_comes_and_goes() {
    let mut workload = Workload::new(2, 100 * US, 2 * MS);
    workload.writes = 40;
    workload.delayed = 3;
    let params = Params {
        batching: Batching::Off.value(),
        copyout_clean_runs: 2,
        ..Params::default()
    };
    pinned("copyout", &mut Sim::new(workload, params), 60);
}
