//! One disk with its queue.

use luc_disk::{Model, Op, Params, Request};
use luc_power::activity::DiskActivity;

use super::Speed;

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// A disk with a clock of its own, which is ahead of the simulator's by its phase at first. The
/// clock determines the angle of the model's platter, so two members with different phases rotate
/// out of step. All of the model's times are times of this clock, so a disk whose clock runs slower
/// is a slower disk.
#[derive(Debug)]
pub struct Member {
    model: Model,
    /// The clock showed `then_own_ns` at `then_ns`, and has run at this speed since.
    speed: Speed,
    then_ns: u64,
    then_own_ns: u64,
    has_arm: bool,
    waiting: Vec<Request>,
    /// The requests that the waiting parts belong to, in the same order.
    wholes: Vec<u64>,
    in_service: usize,
    /// When it became busy, if it is.
    busy_since_ns: u64,
    activity: DiskActivity,
    /// The sector after the last request that the disk was sent.
    next_sector: u64,
}

impl Member {
    pub fn new(params: Params, sectors: u64, phase_ns: u64) -> Self {
        Self {
            has_arm: params.get("rotation_ns").is_some_and(|turn_ns| turn_ns > 0),
            model: Model::new(params, sectors),
            speed: Speed::default(),
            then_ns: 0,
            then_own_ns: phase_ns,
            waiting: Vec::new(),
            wholes: Vec::new(),
            in_service: 0,
            busy_since_ns: 0,
            activity: DiskActivity {
                disks: 1,
                ..DiskActivity::default()
            },
            next_sector: 0,
        }
    }

    /// Changes the speed of the disk's clock from now on. The parts in service end when they would
    /// have ended.
    pub fn set_speed(&mut self, speed: Speed, now_ns: u64) {
        self.then_own_ns = self.own_ns(now_ns);
        self.then_ns = now_ns;
        self.speed = speed;
    }

    /// Adds a part of a request that arrives now.
    pub fn enter(&mut self, mut part: Request, whole: u64, now_ns: u64) {
        part.arrived_ns = self.own_ns(now_ns);
        let sectors = u64::from(part.bytes).div_ceil(SECTOR_BYTES);
        if sectors > 0 {
            self.next_sector = part.sector.saturating_add(sectors);
        }
        self.waiting.push(part);
        self.wholes.push(whole);
    }

    /// Starts the next part, if one can start now; returns the part, its request and its end time.
    pub fn start(&mut self, now_ns: u64) -> Option<(Request, u64, u64)> {
        if self.waiting.is_empty() || self.model.free_channels() == 0 {
            return None;
        }
        let own_ns = self.own_ns(now_ns);
        let at = self.model.choose(&self.waiting, own_ns)?;
        let part = self.waiting.remove(at);
        let whole = self.wholes.remove(at);
        let done_ns = self.model.start(&part, own_ns);
        if self.in_service == 0 {
            self.busy_since_ns = now_ns;
        }
        self.in_service += 1;
        let takes_ns = self.speed.outside_ns(done_ns.saturating_sub(own_ns));
        Some((part, whole, now_ns.saturating_add(takes_ns)))
    }

    /// Ends a started part.
    pub fn end(&mut self, part: &Request, now_ns: u64) {
        self.model.end(part, self.own_ns(now_ns));
        match part.op() {
            Op::Read => self.activity.read_bytes += u64::from(part.bytes),
            Op::Write => self.activity.written_bytes += u64::from(part.bytes),
            Op::Flush => self.activity.flushes += 1,
        }
        self.in_service = self.in_service.saturating_sub(1);
        if self.in_service == 0 {
            self.activity.busy_ns += now_ns - self.busy_since_ns;
        }
    }

    /// Returns what the disk has done up to now.
    pub fn activity(&self, now_ns: u64) -> DiskActivity {
        let mut activity = self.activity;
        if self.in_service > 0 {
            activity.busy_ns += now_ns - self.busy_since_ns;
        }
        activity
    }

    /// Ranks this copy for a read at a sector; the copy with the lowest value takes the read. A
    /// copy whose last request the read continues comes first, then an idle one, then the nearest
    /// one or, without an arm, the one with the fewest requests.
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
        let passed_ns = self.speed.inside_ns(now_ns.saturating_sub(self.then_ns));
        self.then_own_ns.saturating_add(passed_ns)
    }
}
