//! Figures of a disk under the loads that data sheets quote.

use crate::knobs::Params;
use crate::model::Model;
use crate::queue::{Queue, run};
use crate::request::Request;

const GIB: u64 = 1 << 30;
const BLOCK: u32 = 4096;
const SECTORS_PER_BLOCK: u64 = 8;
const STREAM_BYTES: u32 = 128 << 10;
/// Number of measured requests, which follow the warm-up.
const COUNT: usize = 4000;
/// How many times its size a cache takes until it is full, because it drains meanwhile.
const FILLS: i64 = 4;
const WARM_UP_MAX: usize = 100_000;

/// Figures of one disk, computed with the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Random reads of 4 KiB per second, one at a time.
    pub read_4k_per_s: f64,
    /// The same, 32 at a time.
    pub read_4k_depth32_per_s: f64,
    /// Random writes of 4 KiB per second, one at a time.
    pub write_4k_per_s: f64,
    /// The same, 32 at a time.
    pub write_4k_depth32_per_s: f64,
    /// Bytes per second read in sequence, 128 KiB at a time, 4 at once.
    pub read_stream_per_s_bytes: f64,
    /// Bytes per second written in sequence, likewise.
    pub write_stream_per_s_bytes: f64,
    /// Average time of a 4 KiB write that continues the one before, plus a flush: the disk's part
    /// of an fsync in a log.
    pub log_sync_ns: f64,
}

/// Returns the next number of Marsaglia's xorshift64, whose period is 2^64 - 1.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

impl Figures {
    /// Computes the figures of a 4 GiB disk with these parameters, in the long run: its cache is
    /// full and its token buckets are empty.
    pub fn from_params(params: &Params) -> Self {
        let sectors = 4 * GIB / 512;
        let places = sectors / SECTORS_PER_BLOCK;
        let sustained = |depth: usize, bytes: u32, next: &mut dyn FnMut(u64) -> Request| {
            let warm_up = warm_up(params, bytes);
            let model = Model::new(params.clone(), sectors);
            let ran = run(model, depth, warm_up + COUNT, next);
            let begin_ns = ran.completions.get(warm_up).map_or(0, |c| c.done_ns);
            (COUNT - 1) as f64 * 1e9 / ran.elapsed_ns.saturating_sub(begin_ns).max(1) as f64
        };
        let scattered = |depth: usize, make: fn(u64, u32) -> Request| {
            let mut seed = 1;
            let mut next = |_| make(random(&mut seed) % places * SECTORS_PER_BLOCK, BLOCK);
            sustained(depth, BLOCK, &mut next)
        };
        let stream = |make: fn(u64, u32) -> Request| {
            let step = u64::from(STREAM_BYTES) / 512;
            let mut next = |n: u64| make(n * step % sectors, STREAM_BYTES);
            sustained(4, STREAM_BYTES, &mut next) * f64::from(STREAM_BYTES)
        };
        Self {
            read_4k_per_s: scattered(1, Request::read),
            read_4k_depth32_per_s: scattered(32, Request::read),
            write_4k_per_s: scattered(1, Request::write),
            write_4k_depth32_per_s: scattered(32, Request::write),
            read_stream_per_s_bytes: stream(Request::read),
            write_stream_per_s_bytes: stream(Request::write),
            log_sync_ns: log_sync_ns(Model::new(params.clone(), sectors)),
        }
    }
}

/// Number of requests that fill the cache and empty the token buckets, within a limit.
fn warm_up(params: &Params, bytes: u32) -> usize {
    let get = |name| params.get(name).unwrap_or(0);
    let ahead_bytes = get("cache_bytes").saturating_add(get("burst_bytes"));
    let requests = ahead_bytes / i64::from(bytes) * FILLS + get("burst_events");
    usize::try_from(requests).unwrap_or(0).min(WARM_UP_MAX)
}

fn log_sync_ns(model: Model) -> f64 {
    const SYNCS: u64 = 500;
    let mut queue = Queue::new(model);
    for n in 0..SYNCS {
        queue.submit(Request::write(n * SECTORS_PER_BLOCK, BLOCK));
        queue.complete();
        queue.submit(Request::flush());
        queue.complete();
    }
    queue.now_ns() as f64 / SYNCS as f64
}
