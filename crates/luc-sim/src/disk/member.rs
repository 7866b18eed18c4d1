//! One disk with its queue.

use luc_disk::{Model, Params, Request};

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// A disk whose clock is ahead of the simulator's by its phase. The model's platter stands where the
/// clock says, so that two members with phases of their own turn apart.
#[derive(Debug)]
pub struct Member {
    model: Model,
    phase_ns: u64,
    has_arm: bool,
    waiting: Vec<Request>,
    /// The whole requests that the waiting ones are parts of, in the same order.
    wholes: Vec<u64>,
    in_service: usize,
    /// Behind the last request that it was sent.
    next_sector: u64,
}

impl Member {
    pub fn new(params: Params, sectors: u64, phase_ns: u64) -> Self {
        Self {
            has_arm: params.get("rotation_ns").is_some_and(|turn_ns| turn_ns > 0),
            model: Model::new(params, sectors),
            phase_ns,
            waiting: Vec::new(),
            wholes: Vec::new(),
            in_service: 0,
            next_sector: 0,
        }
    }

    /// A part of a request arrives.
    pub fn enter(&mut self, mut part: Request, whole: u64, now_ns: u64) {
        part.arrived_ns = self.own_ns(now_ns);
        let sectors = u64::from(part.bytes).div_ceil(SECTOR_BYTES);
        if sectors > 0 {
            self.next_sector = part.sector.saturating_add(sectors);
        }
        self.waiting.push(part);
        self.wholes.push(whole);
    }

    /// Starts the next part, if one can start now: the part, its whole, and when it ends.
    pub fn start(&mut self, now_ns: u64) -> Option<(Request, u64, u64)> {
        if self.waiting.is_empty() || self.model.free_channels() == 0 {
            return None;
        }
        let own_ns = self.own_ns(now_ns);
        let at = self.model.choose(&self.waiting, own_ns)?;
        let part = self.waiting.remove(at);
        let whole = self.wholes.remove(at);
        let done_ns = self.model.start(&part, own_ns);
        self.in_service += 1;
        Some((part, whole, done_ns - self.phase_ns))
    }

    /// A started part has ended.
    pub fn end(&mut self, part: &Request, now_ns: u64) {
        self.model.end(part, self.own_ns(now_ns));
        self.in_service = self.in_service.saturating_sub(1);
    }

    /// How little it suits to read here; compared with that of the other copies. What continues is
    /// best, then what finds the disk idle, then what is near.
    pub fn reluctance(&self, sector: u64) -> (bool, bool, u64) {
        let requests = self.waiting.len() + self.in_service;
        let far = if self.has_arm {
            self.next_sector.abs_diff(sector)
        } else {
            requests as u64
        };
        (self.next_sector != sector, requests > 0, far)
    }

    fn own_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.phase_ns)
    }
}
