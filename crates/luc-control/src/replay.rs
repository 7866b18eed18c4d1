//! Repeats recorded decisions and compares them bit for bit.
//!
//! Replay checks two claims. For each record: the same params, input and state give the same
//! output. For the chain: a step of a file system starts from the state that the step before left.
//! A chain may be interrupted for a known reason: records were lost, or the file system was
//! attached again. Such interruptions are counted and are not failures. A changed knob is not a
//! reason: only steps change a state.

use crate::dev::Dev;
use crate::layout::{Decision, Output, Params, State, Step};
use crate::step::control_step;
use std::collections::HashMap;
use std::fmt;

/// An item of a recording, as replay needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One step of a controller.
    Decision {
        /// The file system.
        dev: Dev,
        /// The transaction.
        tid: u32,
        /// The record.
        decision: Box<Decision>,
    },
    /// Records are missing here.
    Lost {
        /// Number of records, if it is known.
        events: Option<u64>,
    },
}

/// Where in a recording something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the decision in the recording, from 1.
    pub record: u64,
    /// The file system.
    pub dev: Dev,
    /// The transaction.
    pub tid: u32,
    /// The step as recorded.
    pub step: i64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Step::from_value(self.step).map(Step::text);
        let step = known.map_or_else(|| self.step.to_string(), str::to_owned);
        let Self {
            record, dev, tid, ..
        } = self;
        write!(f, "decision {record} (dev {dev} tid {tid} step {step})")
    }
}

/// A field of a record that differs from the computed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Place of the record.
    pub place: Place,
    /// The first field that differs.
    pub field: &'static str,
    /// Value in the recording.
    pub recorded: i64,
    /// Computed value; `None` for a step that no controller has.
    pub computed: Option<i64>,
    /// Whether the computed value is what the step before left, rather than what this record's own
    /// inputs give.
    pub of_chain: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, field, recorded) = (&self.place, self.field, self.recorded);
        match self.computed {
            Some(left) if self.of_chain => write!(
                f,
                "{place}: starts with {field} {recorded}, but the previous step left {left}"
            ),
            Some(computed) => write!(
                f,
                "{place}: {field} is {recorded} in the recording, but replay computes {computed}"
            ),
            None => write!(f, "{place}: {field} is {recorded}, which no controller has"),
        }
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Decisions seen.
    pub records: u64,
    /// Decisions of each [`Step`]: open, poll, close, copyout.
    pub by_step: [u64; Step::ALL.len()],
    /// Decisions whose output came out the same.
    pub matching: u64,
    /// Decisions whose output did not.
    pub mismatching: u64,
    /// The first of them.
    pub first_mismatch: Option<Difference>,
    /// File systems seen.
    pub devices: u64,
    /// States that equal what the step before left.
    pub chain_checked: u64,
    /// States that do not, without a known reason.
    pub chain_breaks: u64,
    /// The first of them.
    pub first_break: Option<Difference>,
    /// How often the knobs of a file system changed between two records.
    pub knob_changes: u64,
    /// How often a controller began anew because the file system was attached again.
    pub restarts: u64,
    /// Places where records are missing.
    pub losses: u64,
    /// Number of missing records, as far as it is known.
    pub lost_events: u64,
}

impl Summary {
    /// Tells whether there were decisions to repeat, and all outputs and chains matched.
    pub fn passed(&self) -> bool {
        self.records > 0 && self.mismatching == 0 && self.chain_breaks == 0
    }
}

/// Repeats the decisions of a whole recording.
pub fn replay(items: impl IntoIterator<Item = Item>) -> Summary {
    let mut replay = Replay::default();
    for item in items {
        replay.feed(&item);
    }
    replay.finish()
}

/// A replay that is fed record by record. Memory grows with the number of file systems, not of
/// records.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    summary: Summary,
    chains: HashMap<Dev, Option<Link>>,
}

/// Knobs and state that the last record of a file system left.
#[derive(Clone, Debug)]
struct Link {
    params: Params,
    state: State,
}

impl Replay {
    /// Takes the next item.
    pub fn feed(&mut self, item: &Item) {
        match item {
            Item::Decision { dev, tid, decision } => self.decision(*dev, *tid, decision),
            Item::Lost { events } => {
                self.summary.losses += 1;
                self.summary.lost_events =
                    self.summary.lost_events.saturating_add(events.unwrap_or(0));
                // The kernel does not tell which file system's records are lost.
                self.chains.values_mut().for_each(|link| *link = None);
            }
        }
    }

    /// Returns the result.
    pub fn finish(mut self) -> Summary {
        self.summary.devices = u64::try_from(self.chains.len()).unwrap_or(u64::MAX);
        self.summary
    }

    fn decision(&mut self, dev: Dev, tid: u32, decision: &Decision) {
        self.summary.records += 1;
        let place = Place {
            record: self.summary.records,
            dev,
            tid,
            step: decision.step,
        };
        self.follow_chain(place, decision);
        let link = Step::from_value(decision.step).map(|step| self.repeat(place, step, decision));
        if link.is_none() {
            self.mismatch(Difference {
                place,
                field: "step",
                recorded: decision.step,
                computed: None,
                of_chain: false,
            });
        }
        self.chains.insert(dev, link);
    }

    fn repeat(&mut self, place: Place, step: Step, decision: &Decision) -> Link {
        let mut state = decision.state;
        let out = control_step(step, &decision.params, &mut state, &decision.input);
        // Step::ALL is in the order of the values.
        self.summary.by_step[step as usize] += 1;
        match first_difference(&decision.out.values(), &out.values()) {
            None => self.summary.matching += 1,
            Some((at, recorded, computed)) => self.mismatch(Difference {
                place,
                field: Output::FIELDS[at].name,
                recorded,
                computed: Some(computed),
                of_chain: false,
            }),
        }
        Link {
            params: decision.params,
            state,
        }
    }

    fn follow_chain(&mut self, place: Place, decision: &Decision) {
        let Some(Some(before)) = self.chains.get(&place.dev) else {
            return;
        };
        let summary = &mut self.summary;
        summary.knob_changes += u64::from(before.params != decision.params);
        let difference = first_difference(&decision.state.values(), &before.state.values());
        let Some((at, recorded, left)) = difference else {
            summary.chain_checked += 1;
            return;
        };
        if decision.state == State::default() {
            summary.restarts += 1;
        } else {
            summary.chain_breaks += 1;
            summary.first_break.get_or_insert(Difference {
                place,
                field: State::FIELDS[at].name,
                recorded,
                computed: Some(left),
                of_chain: true,
            });
        }
    }

    fn mismatch(&mut self, mismatch: Difference) {
        self.summary.mismatching += 1;
        self.summary.first_mismatch.get_or_insert(mismatch);
    }
}

/// Returns the index and both values of the first place where two records differ.
fn first_difference(recorded: &[i64], other: &[i64]) -> Option<(usize, i64, i64)> {
    recorded
        .iter()
        .zip(other)
        .enumerate()
        .find(|(_, (a, b))| a != b)
        .map(|(at, (a, b))| (at, *a, *b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(state: &mut State, step: Step, params: Params, now_ns: i64) -> Item {
        let mut decision = Decision {
            step: step.value(),
            params,
            state: *state,
            ..Decision::default()
        };
        decision.input.now_ns = now_ns;
        decision.input.events = 1;
        decision.input.expected_events = 3;
        decision.input.commit_avg_ns = 4_000_000;
        decision.out = control_step(step, &params, state, &decision.input);
        Item::Decision {
            dev: Dev::default(),
            tid: 5,
            decision: Box::new(decision),
        }
    }

    fn trace() -> Vec<Item> {
        let mut state = State::default();
        let params = Params::default();
        [
            (Step::Open, 100),
            (Step::Poll, 1_100_000),
            (Step::Close, 1_100_100),
            (Step::Copyout, 0),
        ]
        .map(|(step, now_ns)| record(&mut state, step, params, now_ns))
        .to_vec()
    }

    #[test]
    fn an_untouched_recording_matches_and_nothing_proves_nothing() {
        let summary = replay(trace());
        assert!(summary.passed(), "{summary:?}");
        assert_eq!(summary.by_step, [1, 1, 1, 1]);
        assert_eq!((summary.matching, summary.chain_checked), (4, 3));
        assert!(!replay([]).passed());
    }

    #[test]
    fn mismatches_are_named() {
        let wrong_output = |decision: &mut Decision| decision.out.reason += 1;
        let wrong_step = |decision: &mut Decision| decision.step = 9;
        for (at, change, text) in [
            (
                1,
                wrong_output as fn(&mut Decision),
                "decision 2 (dev 0:0 tid 5 step poll): reason is 4 in the recording, but replay computes 3",
            ),
            (
                0,
                wrong_step as fn(&mut Decision),
                "decision 1 (dev 0:0 tid 5 step 9): step is 9, which no controller has",
            ),
        ] {
            let mut items = trace();
            if let Item::Decision { decision, .. } = &mut items[at] {
                change(decision);
            }
            let summary = replay(items);
            assert!(!summary.passed());
            assert_eq!((summary.matching, summary.mismatching), (3, 1));
            assert_eq!(summary.first_mismatch.unwrap().to_string(), text);
        }
    }

    #[test]
    fn broken_chains_are_named_unless_there_is_a_reason() {
        // Remove the CLOSE: its state change is missing afterwards.
        let mut items = trace();
        items.remove(2);
        let summary = replay(items.clone());
        assert_eq!((summary.mismatching, summary.chain_breaks), (0, 1));
        let text = summary.first_break.unwrap().to_string();
        assert!(
            text.starts_with("decision 3 (dev 0:0 tid 5 step copyout): starts with "),
            "{text}"
        );

        // The kernel said that records were lost.
        items.insert(2, Item::Lost { events: Some(1) });
        let summary = replay(items);
        assert!(summary.passed(), "{summary:?}");
        assert_eq!((summary.losses, summary.lost_events), (1, 1));
    }

    #[test]
    fn a_restart_is_a_reason_and_a_knob_is_none() {
        let mut items = trace();
        let mut fresh = State::default();
        let mut params = Params::default();
        items.push(record(&mut fresh, Step::Open, params, 200));
        params.kp_milli += 1;
        items.push(record(&mut fresh, Step::Poll, params, 300));
        let summary = replay(items.clone());
        assert!(summary.passed(), "{summary:?}");
        assert_eq!((summary.restarts, summary.knob_changes), (1, 1));

        params.kp_milli += 1;
        fresh.gap_ns += 77;
        items.push(record(&mut fresh, Step::Poll, params, 400));
        let summary = replay(items);
        assert_eq!((summary.chain_breaks, summary.knob_changes), (1, 2));
        assert_eq!(summary.first_break.unwrap().field, "gap_ns");
    }
}
