//! Properties that hold for all disks and all requests. Debug builds of the C code trap on
//! overflow, so every case tests that, too.

use luc_disk::{Model, Params, Queue, Request, knobs, presets};
use proptest::collection::vec;
use proptest::prelude::*;

/// Values in and out of bounds, small and huge.
fn any_params() -> impl Strategy<Value = Params> {
    let value = |knob: &luc_disk::Knob| {
        prop_oneof![
            4 => Just(knob.default),
            2 => Just(knob.min),
            2 => Just(knob.max),
            6 => knob.min..=knob.max,
            6 => (0..=40_u32).prop_map(|bits| 1_i64 << bits),
            1 => any::<i64>(),
        ]
    };
    knobs()
        .iter()
        .map(value)
        .collect::<Vec<_>>()
        .prop_map(|values| Params::from_values(&values))
}

/// Presets with a few knobs turned: the combinations that people use.
fn likely_params() -> impl Strategy<Value = Params> {
    let change = (any::<prop::sample::Index>(), any::<u64>());
    (0..presets().len(), vec(change, 0..3)).prop_map(|(at, changes)| {
        let mut params = presets()[at].params().unwrap();
        for (index, value) in changes {
            let knob = index.get(knobs());
            let span = knob.max.abs_diff(knob.min) + 1;
            let value = knob.min + i64::try_from(value % span).unwrap();
            params.set(knob.name, value).unwrap();
        }
        params
    })
}

fn params() -> impl Strategy<Value = Params> {
    prop_oneof![any_params(), likely_params()]
}

fn request() -> impl Strategy<Value = (Request, u64)> {
    let sector = prop_oneof![4 => 0..1_000_000_u64, 1 => any::<u64>()];
    let bytes = prop_oneof![4 => (0..256_u32).prop_map(|n| n * 512), 1 => any::<u32>()];
    let step = prop_oneof![2 => Just(0), 4 => 0..50_000_000_u64, 1 => 0..u64::MAX / 64];
    (0..4, sector, bytes, step).prop_map(|(kind, sector, bytes, step)| {
        let request = match kind {
            0 => Request::read(sector, bytes),
            1 => Request::write(sector, bytes),
            2 => Request::write_fua(sector, bytes),
            _ => Request::flush(),
        };
        (request, step)
    })
}

fn sectors() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 1..1_u64 << 24, any::<u64>()]
}

proptest! {
    #[test]
    fn nothing_is_done_before_it_begins(
        params in params(),
        sectors in sectors(),
        requests in vec(request(), 1..60),
    ) {
        let mut model = Model::new(params, sectors);
        let mut now_ns = 0_u64;
        for (request, step) in &requests {
            now_ns = now_ns.saturating_add(*step);
            if model.free_channels() == 0 {
                model.end(request, now_ns);
            }
            model.choose(&[*request, *request], now_ns);
            let mut copy = model.clone();
            let done_ns = model.start(request, now_ns);
            prop_assert!(done_ns >= now_ns);
            // A copy gives the same answer: the state is the model's only memory.
            prop_assert_eq!(copy.start(request, now_ns), done_ns);
            prop_assert!(copy == model);
        }
    }

    #[test]
    fn every_request_ends_and_repeats(
        params in params(),
        sectors in sectors(),
        requests in vec(request(), 1..80),
        depth in 1..40_usize,
    ) {
        let go = || {
            let mut queue = Queue::new(Model::new(params.clone(), sectors));
            let mut ends = Vec::new();
            for (request, _) in &requests {
                queue.submit(*request);
                while queue.in_flight() >= depth {
                    ends.push(queue.complete().expect("something is in service"));
                }
            }
            ends.extend(std::iter::from_fn(|| queue.complete()));
            assert_eq!(queue.in_flight(), 0);
            ends
        };
        let ends = go();
        prop_assert_eq!(ends.len(), requests.len());
        prop_assert!(ends.iter().all(|end| end.done_ns >= end.started_ns));
        prop_assert_eq!(ends, go());
    }

    #[test]
    fn more_bytes_never_take_less_time(
        params in params(),
        before in vec(request(), 0..20),
        kind in 0..3_usize,
        place in request(),
        more in 0..(1_u32 << 20),
    ) {
        let mut model = Model::new(params, 1 << 23);
        let mut now_ns = 0_u64;
        for (request, step) in &before {
            now_ns = now_ns.saturating_add(*step);
            model.start(request, now_ns);
            model.end(request, now_ns);
        }
        let make = [Request::read, Request::write, Request::write_fua][kind];
        let small = make(place.0.sector, place.0.bytes);
        let mut large = small;
        large.bytes = small.bytes.saturating_add(more);
        let small_ns = model.clone().start(&small, now_ns);
        let large_ns = model.start(&large, now_ns);
        prop_assert!(large_ns >= small_ns, "{large_ns} < {small_ns}");
    }
}
