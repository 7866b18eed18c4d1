//! The driver's loop, on its own clock.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::request::Request;

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number given by [`Queue::submit`].
    pub id: u64,
    pub request: Request,
    /// Time of the start of service.
    pub started_ns: u64,
    /// Time of completion.
    pub done_ns: u64,
}

impl Completion {
    /// Time from arrival to completion.
    pub fn latency_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.request.arrived_ns)
    }
}

/// A disk with its waiting requests and its clock. Requests complete in the order of their
/// completion times, those with equal times in the order in which they started.
#[derive(Clone, Debug)]
pub struct Queue {
    model: Model,
    now_ns: u64,
    next_id: u64,
    started: u64,
    waiting: Vec<Request>,
    waiting_ids: Vec<u64>,
    running: BTreeMap<(u64, u64), Completion>,
}

impl Queue {
    /// Creates an idle disk at time 0.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            now_ns: 0,
            next_id: 0,
            started: 0,
            waiting: Vec::new(),
            waiting_ids: Vec::new(),
            running: BTreeMap::new(),
        }
    }

    /// Current time of the disk's clock.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of requests that wait or are in service.
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Advances the clock to this time, or returns false if a request completes before it.
    pub fn idle_until(&mut self, now_ns: u64) -> bool {
        let limit = self
            .running
            .first_key_value()
            .map(|((done_ns, _), _)| *done_ns);
        let reachable = limit.is_none_or(|limit| now_ns <= limit);
        if reachable {
            self.now_ns = self.now_ns.max(now_ns);
        }
        reachable
    }

    /// Submits a request that arrives now; returns its number.
    pub fn submit(&mut self, request: Request) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = request;
        request.arrived_ns = self.now_ns;
        self.waiting.push(request);
        self.waiting_ids.push(id);
        self.dispatch();
        id
    }

    /// Advances the clock to the next completion; `None` if the disk is idle.
    pub fn complete(&mut self) -> Option<Completion> {
        let ((done_ns, _), completion) = self.running.pop_first()?;
        self.now_ns = self.now_ns.max(done_ns);
        self.model.end(&completion.request, self.now_ns);
        self.dispatch();
        Some(completion)
    }

    fn dispatch(&mut self) {
        while !self.waiting.is_empty() && self.model.free_channels() > 0 {
            let Some(index) = self.model.choose(&self.waiting, self.now_ns) else {
                break;
            };
            let request = self.waiting.remove(index);
            let id = self.waiting_ids.remove(index);
            let done_ns = self.model.start(&request, self.now_ns);
            let completion = Completion {
                id,
                request,
                started_ns: self.now_ns,
                done_ns,
            };
            self.running.insert((done_ns, self.started), completion);
            self.started += 1;
        }
    }
}

/// Result of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Time of the last completion.
    pub elapsed_ns: u64,
    /// All requests, in the order of completion.
    pub completions: Vec<Completion>,
}

impl Ran {
    /// Requests per second.
    pub fn per_s(&self) -> f64 {
        self.completions.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        let bytes = self.completions.iter().map(|c| u64::from(c.request.bytes));
        bytes.sum::<u64>() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Average time from arrival to completion.
    pub fn latency_mean_ns(&self) -> f64 {
        let sum: u64 = self.completions.iter().map(Completion::latency_ns).sum();
        sum as f64 / self.completions.len().max(1) as f64
    }
}

/// Runs a closed loop: keeps `depth` requests in the disk until `count` have completed.
pub fn run(model: Model, depth: usize, count: usize, mut next: impl FnMut(u64) -> Request) -> Ran {
    let mut queue = Queue::new(model);
    let mut completions = Vec::with_capacity(count);
    let mut submitted = 0;
    while completions.len() < count {
        while submitted < count as u64 && queue.in_flight() < depth.max(1) {
            queue.submit(next(submitted));
            submitted += 1;
        }
        let Some(completion) = queue.complete() else {
            break;
        };
        completions.push(completion);
    }
    Ran {
        elapsed_ns: queue.now_ns(),
        completions,
    }
}
