//! Compares the model with calculations on paper, which use the parameters alone.

use luc_disk::{Completion, Model, Op, Params, Queue, Ran, Request, preset, run};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const BLOCK: u32 = 4096;
/// 64 GiB: many tracks, so that edges do not show.
const SECTORS: u64 = 64 << 21;

fn params(knobs: &[(&str, i64)]) -> Params {
    let mut params = Params::default();
    for (name, value) in knobs {
        params.set(name, *value).unwrap();
    }
    params
}

fn model(knobs: &[(&str, i64)]) -> Model {
    Model::new(params(knobs), SECTORS)
}

/// A bare rotating disk: 10 ms a turn, 1 MiB tracks, seeks of 1 to 16 ms.
const ARM: [(&str, i64); 5] = [
    ("seek_min_ns", 1_000_000),
    ("seek_max_ns", 16_000_000),
    ("rotation_ns", 10_000_000),
    ("track_outer_bytes", 1 << 20),
    ("track_inner_bytes", 1 << 20),
];

fn arm(more: &[(&str, i64)]) -> Model {
    model(&[&ARM[..], more].concat())
}

fn close(value: f64, want: f64, percent: f64) {
    assert!(
        (value - want).abs() <= want * percent / 100.0,
        "{value} is not within {percent}% of {want}"
    );
}

/// Returns the first sector of a random block, drawn by Marsaglia's xorshift64.
fn random_block(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % (SECTORS / 8) * 8
}

fn random_reads(model: Model, depth: usize, count: usize) -> Ran {
    let mut seed = 7;
    run(model, depth, count, |_| {
        Request::read(random_block(&mut seed), BLOCK)
    })
}

/// Returns all completions of a queue.
fn drain(mut queue: Queue) -> Vec<Completion> {
    std::iter::from_fn(|| queue.complete()).collect()
}

/// Submits each request after the one before has completed.
fn one_by_one(model: Model, requests: &[Request]) -> Vec<Completion> {
    let mut queue = Queue::new(model);
    let complete = |request: &Request| {
        queue.submit(*request);
        queue.complete().unwrap()
    };
    requests.iter().map(complete).collect()
}

#[test]
fn a_disk_without_parameters_takes_no_time() {
    let requests = [
        Request::write(0, BLOCK),
        Request::flush(),
        Request::write_fua(SECTORS - 8, BLOCK),
        Request::read(123, 1 << 20),
    ];
    for done in one_by_one(Model::new(Params::default(), SECTORS), &requests) {
        assert_eq!((done.started_ns, done.done_ns), (0, 0));
    }
}

#[test]
fn random_accesses_wait_half_a_turn_and_eight_fifteenths_of_the_seeks() {
    // Without seeks, only rotation and transfer are left.
    let no_seeks = [("rotation_ns", 10_000_000)];
    let ran = random_reads(model(&no_seeks), 1, 20_000);
    let want = 5e6 + 10e6 * 4096.0 / 1_048_576.0;
    close(ran.latency_mean_ns(), want, 2.0);
    // The square root of the distance between random pairs averages 8/15.
    let ran = random_reads(arm(&[]), 1, 20_000);
    close(ran.latency_mean_ns(), 1e6 + 15e6 * 8.0 / 15.0 + 5e6, 2.0);
    // On the outer quarter of the tracks, the part of a seek that depends on distance halves.
    let ran = random_reads(arm(&[("stroke_permille", 250)]), 1, 20_000);
    close(ran.latency_mean_ns(), 1e6 + 7.5e6 * 8.0 / 15.0 + 5e6, 2.0);
}

#[test]
fn a_stream_loses_a_track_switch_per_track_and_nothing_else() {
    let reads = |bytes: u32, depth| {
        let step = u64::from(bytes) / 512;
        let count = usize::try_from((256 << 20) / bytes).unwrap();
        run(arm(&[]), depth, count, |n| Request::read(n * step, bytes))
    };
    // 256 tracks of 10 ms and the switches between them, whatever the size of the requests.
    let want = 256 * 10 * MS + 255 * MS;
    for bytes in [512, 4096, 5 * 4096, 128 << 10, 1 << 20] {
        let elapsed = reads(bytes, 4).elapsed_ns;
        let bytes_of_all = (256 << 20) / u64::from(bytes) * u64::from(bytes);
        let short = ((256 << 20) - bytes_of_all) * 10 * MS / (1 << 20);
        assert_eq!(elapsed.div_ceil(US), (want - short).div_ceil(US), "{bytes}");
    }
}

#[test]
fn the_inner_tracks_are_slower() {
    let zoned = || arm(&[("track_inner_bytes", 512 << 10)]);
    let stream = |first: u64| {
        run(zoned(), 4, 1000, |n| {
            Request::read(first + n * 256, 128 << 10)
        })
        .bytes_per_s()
    };
    let (outer, inner) = (stream(0), stream(SECTORS - 1000 * 256));
    // Rates in the middle of the first and of the last of 16 zones.
    let rate = |share: f64| (1.0 - 0.5 * share) * 1_048_576.0 / 11e-3;
    close(outer, rate(0.5 / 16.0), 1.0);
    close(inner, rate(15.5 / 16.0), 1.0);
}

#[test]
fn a_late_sequential_request_costs_a_turn_unless_the_disk_reads_ahead() {
    let late = |model: Model| {
        let mut queue = Queue::new(model);
        queue.submit(Request::read(0, 65536));
        queue.complete().unwrap();
        assert!(queue.idle_until(queue.now_ns() + 300 * US));
        queue.submit(Request::read(128, 65536));
        queue.complete().unwrap()
    };
    // 64 KiB take 0.625 ms of a turn.
    let missed = late(arm(&[]));
    assert_eq!(missed.latency_ns(), (10_000 + 625 - 300) * US);
    let ahead = late(arm(&[("read_ahead_bytes", 1 << 20)]));
    assert_eq!(ahead.latency_ns(), (625 - 300) * US);
}

#[test]
fn what_was_read_ahead_is_there_at_once_but_no_more_than_fits() {
    let mut queue = Queue::new(arm(&[("read_ahead_bytes", 64 << 10)]));
    queue.submit(Request::read(0, 4096));
    queue.complete().unwrap();
    assert!(queue.idle_until(queue.now_ns() + 100 * MS));
    queue.submit(Request::read(8, 64 << 10));
    assert_eq!(queue.complete().unwrap().latency_ns(), 0);
    // The disk had stopped reading ahead: the platter must first turn to the next block.
    queue.submit(Request::read(8 + 128, 64 << 10));
    let next = queue.complete().unwrap().latency_ns();
    assert!((625 * US..=(10_000 + 625) * US).contains(&next), "{next}");
}

#[test]
fn what_is_being_read_ahead_is_nearest() {
    // During the command's fixed time, the platter turns past the next block, which the disk has
    // read by then.
    let mut queue = Queue::new(arm(&[
        ("read_latency_ns", 1_000_000),
        ("read_ahead_bytes", 1 << 20),
    ]));
    for sector in [0, 8, 1024, 16] {
        queue.submit(Request::read(sector, BLOCK));
    }
    let order: Vec<_> = drain(queue)
        .iter()
        .map(|done| done.request.sector)
        .collect();
    assert_eq!(order, [0, 8, 16, 1024]);
}

#[test]
fn the_nearest_of_many_comes_first_and_the_oldest_at_its_limit() {
    let far = SECTORS - 8;
    let order = |age_limit_ns: i64| {
        let mut queue = Queue::new(arm(&[("age_limit_ns", age_limit_ns)]));
        // The first two keep the arm busy; then the disk chooses.
        for sector in [0, 8, far, 4000, 2000, 6000, 1000, 3000] {
            queue.submit(Request::read(sector, BLOCK));
        }
        drain(queue)
            .iter()
            .map(|done| done.request.sector)
            .collect::<Vec<_>>()
    };
    let patient = order(0);
    assert_eq!(patient.last(), Some(&far), "{patient:?}");
    let strict = order(1);
    assert_eq!(strict[2..4], [far, 4000], "{strict:?}");
}

#[test]
fn depth_gives_a_rotating_disk_what_the_essay_computes() {
    let alone = random_reads(arm(&[]), 1, 4000).per_s();
    let deep = random_reads(arm(&[]), 32, 4000).per_s();
    close(alone, 1e9 / 14.04e6, 3.0);
    // a + 0.893 cbrt(3 R b^2 / (2 n)), R = 10, b = 15 ms.
    let nearest_ms = 1.0 + 0.893 * f64::cbrt(1.5 * 10.0 * 225.0 / 32.0);
    close(deep, 1e3 / nearest_ms, 20.0);
}

#[test]
fn channels_and_latency_bound_a_flash_disk_and_so_does_its_interface() {
    let flash = [("read_latency_ns", 90_000), ("channels", 8)];
    let alone = random_reads(model(&flash), 1, 1000).per_s();
    close(alone, 1e9 / 90e3, 0.1);
    let deep = random_reads(model(&flash), 32, 8000).per_s();
    close(deep, 8e9 / 90e3, 0.1);
    let bus = [&flash[..], &[("command_ns", 50_000)]].concat();
    close(random_reads(model(&bus), 32, 1000).per_s(), 1e9 / 50e3, 1.0);
    let slow = [&flash[..], &[("read_per_s_bytes", 100_000_000)]].concat();
    let ran = run(model(&slow), 8, 1000, |n| Request::read(n * 2048, 1 << 20));
    close(ran.bytes_per_s(), 1e8, 0.1);
}

/// A flash disk with a volatile cache of 256 blocks that drains one in 10 us.
const CACHED: [(&str, i64); 4] = [
    ("cache_bytes", 1 << 20),
    ("cache_write_ns", 1_000),
    ("flush_block_ns", 10_000),
    ("flush_ns", 500_000),
];

#[test]
fn a_flush_waits_for_every_dirty_block() {
    for n in [0_u32, 1, 2, 100, 256] {
        let requests = [Request::write(0, n * BLOCK), Request::flush()];
        let done = one_by_one(model(&CACHED), &requests);
        assert_eq!(done[0].latency_ns(), 1000);
        let want = 500 * US + u64::from(n) * 10 * US;
        assert_eq!(done[1].latency_ns(), want, "{n} blocks");
    }
    // The cache has drained a part between write and flush.
    let mut queue = Queue::new(model(&CACHED));
    queue.submit(Request::write(0, 100 * BLOCK));
    queue.complete().unwrap();
    assert!(queue.idle_until(queue.now_ns() + 255 * US));
    queue.submit(Request::flush());
    let flushed = queue.complete().unwrap();
    assert_eq!(flushed.latency_ns(), (500 + 1000 - 255) * US);
}

#[test]
fn a_full_cache_makes_writers_wait_for_room() {
    // 256 blocks at once fill it; the next block waits for one to drain.
    let writes = [Request::write(0, 256 * BLOCK), Request::write(0, BLOCK)];
    let done = one_by_one(model(&CACHED), &writes);
    assert_eq!(done[0].latency_ns(), 1000);
    assert_eq!(done[1].latency_ns(), 10 * US);
    // In the long run writes are as slow as the medium.
    let ran = run(model(&CACHED), 4, 10_000, |n| Request::write(n * 8, BLOCK));
    close(ran.per_s(), 1e9 / 10e3, 3.0);
    // A write larger than the cache waits until it is empty, once.
    let writes = [
        Request::write(0, 256 * BLOCK),
        Request::write(0, 512 * BLOCK),
    ];
    let done = one_by_one(model(&CACHED), &writes);
    assert_eq!(done[1].latency_ns(), 2560 * US);
}

#[test]
fn a_protected_cache_makes_flush_and_fua_free() {
    let protected = [&CACHED[..], &[("cache_volatile", 0)]].concat();
    let requests = [
        Request::write(0, 100 * BLOCK),
        Request::flush(),
        Request::write_fua(0, BLOCK),
    ];
    let done = one_by_one(model(&protected), &requests);
    assert_eq!(done[1].latency_ns(), 0);
    assert_eq!(done[2].latency_ns(), 1000);
    let plp = preset("nvme-plp").unwrap().params().unwrap();
    assert_eq!(plp.get("cache_volatile"), Some(0));
    let done = one_by_one(Model::new(plp, SECTORS), &requests);
    assert_eq!(done[1].latency_ns(), 0);
}

#[test]
fn fua_goes_to_the_medium_past_the_cache() {
    let disk = [
        &CACHED[..],
        &[
            ("write_latency_ns", 70_000),
            ("write_per_s_bytes", 4_096_000_000),
        ],
    ]
    .concat();
    let requests = [Request::write_fua(0, BLOCK), Request::write(8, BLOCK)];
    let done = one_by_one(model(&disk), &requests);
    assert_eq!(done[0].latency_ns(), 71 * US);
    assert_eq!(done[1].latency_ns(), US);
    // On a rotating disk it costs as much as a write without a cache.
    let cached = arm(&[("cache_bytes", 1 << 20)]);
    let bare = one_by_one(arm(&[]), &[Request::write(5000, BLOCK)]);
    let fua = one_by_one(cached, &[Request::write_fua(5000, BLOCK)]);
    assert_eq!(fua[0].done_ns, bare[0].done_ns);
}

#[test]
fn a_rotating_cache_drains_runs_in_one_go_and_rewrites_once() {
    let flush_after = |writes: &[Request]| {
        let all = [writes, &[Request::flush()]].concat();
        let done = one_by_one(arm(&[("cache_bytes", 16 << 20)]), &all);
        done.last().unwrap().done_ns
    };
    // One run of 64 blocks, written as 64 requests in time 0, is one pass.
    let run: Vec<_> = (0..64).map(|n| Request::write(n * 8, BLOCK)).collect();
    assert_eq!(flush_after(&run), 2500 * US);
    // The same block again and again is one block.
    let same = [Request::write(0, BLOCK); 50];
    assert_eq!(flush_after(&same), 10 * MS * 4096 / (1 << 20));
    // Two half-block writes of one block are one block, too.
    let halves = [Request::write(0, 2048), Request::write(4, 2048)];
    assert_eq!(flush_after(&halves), 10 * MS * 4096 / (1 << 20));
    // Each scattered block costs positioning, but less than if it were written alone.
    let mut seed = 3;
    let scattered: Vec<_> = (0..100)
        .map(|_| Request::write(random_block(&mut seed), BLOCK))
        .collect();
    let each = flush_after(&scattered) as f64 / 100.0;
    let nearest_ms = |n: f64| 1.0 + 0.893 * f64::cbrt(1.5 * 10.0 * 225.0 / n);
    let mean_ms = (1..=100)
        .map(|n| nearest_ms(f64::from(n)).min(14.0))
        .sum::<f64>()
        / 100.0;
    close(each, mean_ms * 1e6, 20.0);
}

#[test]
fn runs_of_different_length_drain_to_the_last_block() {
    // More runs than the model knows the places of, some of them longer: it rounds their average
    // length up.
    for runs in 17..80 {
        for long in 1..8 {
            let write = |n: u64| {
                let blocks = if n < long { 2 } else { 1 };
                Request::write(n * 7919 % 1000 * 8000, blocks * BLOCK)
            };
            let mut all: Vec<_> = (0..runs).map(write).collect();
            all.push(Request::flush());
            let done = one_by_one(arm(&[("cache_bytes", 16 << 20)]), &all);
            assert!(done.last().unwrap().latency_ns() > 16 * MS, "{runs} runs");
        }
    }
}

#[test]
fn the_cache_takes_writes_while_the_arm_is_busy() {
    let mut queue = Queue::new(arm(&[
        ("cache_bytes", 16 << 20),
        ("cache_write_ns", 50_000),
    ]));
    queue.submit(Request::read(SECTORS / 2, BLOCK));
    queue.submit(Request::read(SECTORS - 8, BLOCK));
    queue.submit(Request::write(0, BLOCK));
    let first = queue.complete().unwrap();
    assert_eq!(
        (first.request.op(), first.latency_ns()),
        (Op::Write, 50 * US)
    );
}

#[test]
fn an_exclusive_flush_runs_alone() {
    let ends = |exclusive: i64| {
        let disk = [
            &CACHED[..],
            &[("flush_exclusive", exclusive), ("read_latency_ns", 90_000)],
        ];
        let mut queue = Queue::new(model(&disk.concat()));
        queue.submit(Request::read(0, BLOCK));
        queue.submit(Request::flush());
        queue.submit(Request::read(0, BLOCK));
        let done = drain(queue).into_iter();
        done.map(|done| (done.id, done.done_ns / US))
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(0), [(0, 90), (2, 90), (1, 500)]);
    assert_eq!(ends(1), [(0, 90), (1, 590), (2, 680)]);
}

#[test]
fn a_token_bucket_lets_a_burst_pass_and_then_its_rate() {
    let bucket = [
        ("requests_per_s_events", 1000),
        ("burst_events", 100),
        ("channels", 1024),
    ];
    let ends: Vec<_> = run(model(&bucket), 500, 500, |_| Request::read(0, BLOCK))
        .completions
        .iter()
        .map(|done| done.done_ns)
        .collect();
    assert_eq!(ends.iter().filter(|ns| **ns == 0).count(), 100);
    // The 100 tokens are gone; then one comes each millisecond.
    for (n, done_ns) in ends.iter().enumerate().skip(100) {
        assert_eq!(*done_ns, (n as u64 - 99) * MS, "request {n}");
    }
    // At the peak rate while the bucket lasts: 100 + t = 4 t for t in ms.
    let peak = [&bucket[..], &[("peak_per_s_events", 4000)]].concat();
    let ran = run(model(&peak), 500, 500, |_| Request::read(0, BLOCK));
    assert_eq!(ran.completions[100].done_ns, 25 * MS);
    assert_eq!(ran.completions[499].done_ns, 400 * MS);
    // Ten seconds of rest fill the bucket again, but no further.
    let mut queue = Queue::new(model(&bucket));
    for _ in 0..150 {
        queue.submit(Request::read(0, BLOCK));
    }
    while queue.complete().is_some() {}
    assert!(queue.idle_until(queue.now_ns() + 10_000 * MS));
    let begin_ns = queue.now_ns();
    for _ in 0..150 {
        queue.submit(Request::read(0, BLOCK));
    }
    let again = drain(queue);
    let at_once = again.iter().filter(|done| done.done_ns == begin_ns);
    assert_eq!(at_once.count(), 100);
}

#[test]
fn throughput_is_throttled_and_large_requests_count_more_than_once() {
    let throttle = [("throttle_per_s_bytes", 100 << 20), ("channels", 1024)];
    let ran = run(model(&throttle), 32, 1000, |_| Request::write(0, 1 << 20));
    close(ran.bytes_per_s(), 104_857_600.0, 0.2);
    let units = [
        ("requests_per_s_events", 1000),
        ("request_unit_bytes", 256 << 10),
    ];
    let ran = run(model(&units), 32, 1000, |_| Request::read(0, 1 << 20));
    close(ran.per_s(), 250.0, 0.5);
    let network = [("network_ns", 500_000)];
    let ran = random_reads(model(&network), 1, 100);
    close(ran.latency_mean_ns(), 500e3, 0.0);
}

#[test]
fn a_log_on_a_disk_without_write_cache_takes_a_turn_per_write() {
    let mut queue = Queue::new(arm(&[]));
    for n in 0..100 {
        queue.submit(Request::write(n * 8, BLOCK));
        queue.complete().unwrap();
        assert!(queue.idle_until(queue.now_ns() + 10 * US));
    }
    close(queue.now_ns() as f64, 100.0 * 10e6, 2.0);
}
