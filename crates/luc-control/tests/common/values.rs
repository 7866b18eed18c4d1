//! Generators of values that are likely to find bugs.

use luc_control::{Input, Knob, Params, State, knobs};
use proptest::prelude::*;
use proptest::sample::select;

/// Generates any value, edge cases more often.
pub fn wild() -> impl Strategy<Value = i64> {
    let edges = vec![
        i64::MIN,
        i64::MIN + 1,
        -1_000_000_001,
        -1,
        0,
        1,
        2,
        1_000,
        1_000_000_000,
        i64::from(u32::MAX),
        i64::MAX / 1_000,
        i64::MAX - 1,
        i64::MAX,
    ];
    prop_oneof![
        3 => any::<i64>(),
        3 => select(edges),
        2 => -10_i64..100,
        2 => 0_i64..100_000_000_000,
    ]
}

pub fn wild_state() -> impl Strategy<Value = State> {
    prop::collection::vec(wild(), State::LEN)
        .prop_map(|values| State::from_values(values.try_into().expect("as many as fields")))
}

pub fn wild_input() -> impl Strategy<Value = Input> {
    prop::collection::vec(wild(), Input::LEN)
        .prop_map(|values| Input::from_values(values.try_into().expect("as many as fields")))
}

/// Generates any setting that an administrator can make.
pub fn settings() -> impl Strategy<Value = Params> {
    let one = |knob: &Knob| {
        let (min, max, default) = (knob.min, knob.max, knob.default);
        prop_oneof![2 => Just(default), 1 => min..=max, 1 => Just(min), 1 => Just(max)]
    };
    knobs()
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .prop_map(|values| Params::from_values(values.try_into().expect("as many as knobs")))
}
