//! A disk, or an array of disks: the lab's own model, `lab/disk`, driven by the simulator's
//! calendar.
//!
//! - [`member`]: one disk with its queue. [`layout`]: which bytes of an array lie on which members.
//!   [`speed`]: a disk that becomes slower or faster in use.
//! - [`text`]: the text form of a disk. [`systems`]: the disks of the documents' systems.
//!
//! Every kind has 4 GiB ([`SECTORS`]). As in the lab, that is a scaled image of a whole drive; the
//! members of an array hold their shares of it.
//!
//! A request to an array becomes one request to each member that it touches: adjacent parts on a
//! member are merged, as the block layer does. A write goes to all copies, a flush to all members,
//! and each ends with its last part. A read goes to the copy whose last request it continues, else
//! to an idle copy, else to the nearest one, or to the one with the fewest requests if the disks
//! have no arms: the rule of the kernel's md.
//!
//! The spindles of an array are not synchronised: each member has its own phase, which depends on
//! the seed. All spindles have the same speed, so the phases stay constant for the whole run.

mod layout;
mod member;
mod speed;
pub mod systems;
mod text;

use std::collections::BTreeMap;
use std::ops::Range;

use luc_disk::file_system::SIZE_MIB_DEFAULT;
use luc_disk::{Op, Params, Request};
use luc_power::activity::DiskActivity;

use crate::random;
use layout::Layout;
use member::Member;
pub use speed::Speed;
pub use text::{KNOBS, LEVELS, NoDisk, is_only_simulated};

/// Sectors of 512 bytes: 4 GiB, as the lab's disks have.
pub const SECTORS: u64 = 1 << 23;

/// A kind of disk. Its text form is `4ms:1`, a preset of `luc-lab disks` with changes, an array of
/// either, or a name of `luc-lab sim disks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskKind {
    member: Params,
    layout: Layout,
    /// Whether the disk has a cache that loses its data without power, and so needs flushes.
    pub is_volatile: bool,
    /// The largest request that its driver takes; the block layer's own limit, 1280 KiB, is above
    /// it.
    pub request_bytes_max: u32,
    /// Decides the size of the journal and the number of inodes, but not where anything lies.
    pub size_mib: u32,
}

/// `BLK_SAFE_MAX_SECTORS`, and `LUCDISK_SECTORS_MAX` of `lab/disk/kmod/disk.c`.
const NULL_BLK_BYTES_MAX: u32 = 255 * 512;
const LUCDISK_BYTES_MAX: u32 = 1 << 20;

impl DiskKind {
    fn new(member: Params, layout: Layout) -> Self {
        let knob = |name| member.get(name).unwrap_or(0);
        Self {
            is_volatile: knob("cache_bytes") > 0 && knob("cache_volatile") > 0,
            // In the lab, null_blk provides the disks that take a fixed time for each request.
            request_bytes_max: match knob("rotation_ns") + knob("write_per_s_bytes") {
                0 => NULL_BLK_BYTES_MAX,
                _ => LUCDISK_BYTES_MAX,
            },
            size_mib: SIZE_MIB_DEFAULT,
            member,
            layout,
        }
    }
}

impl DiskKind {
    /// Returns how many requests its driver takes at once; for an array, the driver of each member.
    pub fn tags(&self) -> u32 {
        let tags = self.member.get("queue_requests").unwrap_or(1);
        u32::try_from(tags).unwrap_or(1).max(1)
    }
}

impl Default for DiskKind {
    /// A disk that takes no time.
    fn default() -> Self {
        Self::new(Params::default(), Layout::SINGLE)
    }
}

/// The end of a part in service, with the part's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceEnd {
    pub number: u64,
    pub at_ns: u64,
}

/// A part of a request, in service at a member.
#[derive(Debug)]
struct Part {
    member: usize,
    request: Request,
    /// The number of the request that it belongs to.
    whole: u64,
}

/// A disk with its requests; `W` identifies the waiter for each.
#[derive(Debug)]
pub struct Disk<W> {
    pub kind: DiskKind,
    members: Vec<Member>,
    running: BTreeMap<u64, Part>,
    started: u64,
    /// The waiter for each request, and how many of its parts have not ended.
    requests: BTreeMap<u64, (W, usize)>,
    submitted: u64,
}

impl<W> Disk<W> {
    /// Creates an idle disk; the seed decides the phases of an array's spindles.
    pub fn new(kind: DiskKind, seed: u64) -> Self {
        let turn_ns = kind.member.get("rotation_ns").unwrap_or(0);
        let turn_ns = u64::try_from(turn_ns).unwrap_or(0);
        let sectors = kind.layout.member_sectors(SECTORS);
        let member = |at: usize| {
            // Only differences matter. Purposes of small numbers are the seed's draws for tasks.
            let phase_ns = match at {
                0 => 0,
                _ => random::below(seed, u64::MAX - at as u64, turn_ns),
            };
            Member::new(kind.member.clone(), sectors, phase_ns)
        };
        Self {
            members: (0..kind.layout.members()).map(member).collect(),
            kind,
            running: BTreeMap::new(),
            started: 0,
            requests: BTreeMap::new(),
            submitted: 0,
        }
    }

    /// Changes the speed of all members from now on.
    pub fn set_speed(&mut self, speed: Speed, now_ns: u64) {
        for member in &mut self.members {
            member.set_speed(speed, now_ns);
        }
    }

    /// Submits a request. Calls `begun` for each part that starts because of it.
    pub fn submit(
        &mut self,
        request: Request,
        owner: W,
        now_ns: u64,
        mut begun: impl FnMut(ServiceEnd),
    ) {
        let whole = self.submitted;
        self.submitted += 1;
        let mut parts = 0;
        let mut enter = |disk: &mut Self, member: usize, part| {
            parts += 1;
            disk.members[member].enter(part, whole, now_ns);
            disk.dispatch(member, now_ns, &mut begun);
        };
        if request.op() == Op::Flush {
            for member in 0..self.members.len() {
                enter(self, member, request);
            }
        } else {
            let layout = self.kind.layout;
            for (column, part) in layout.parts(request) {
                let copies = layout.copies_of(column);
                if request.op() == Op::Read {
                    let member = self.reader(copies, part.sector);
                    enter(self, member, part);
                } else {
                    for member in copies {
                        enter(self, member, part);
                    }
                }
            }
        }
        self.requests.insert(whole, (owner, parts));
    }

    /// Ends a part of a request; returns the waiter for the request if this was its last part.
    /// Calls `begun` for each part that starts because of it.
    pub fn ended(
        &mut self,
        number: u64,
        now_ns: u64,
        mut begun: impl FnMut(ServiceEnd),
    ) -> Option<W> {
        let part = self.running.remove(&number)?;
        self.members[part.member].end(&part.request, now_ns);
        self.dispatch(part.member, now_ns, &mut begun);
        let (_, left) = self.requests.get_mut(&part.whole)?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.requests.remove(&part.whole).map(|(owner, _)| owner)
    }

    /// Returns what the disk, or all members of an array together, have done up to now.
    pub fn activity(&self, now_ns: u64) -> DiskActivity {
        let members = self.members.iter().map(|member| member.activity(now_ns));
        members.fold(DiskActivity::default(), DiskActivity::and)
    }

    /// Returns the copy to which a read goes.
    fn reader(&self, copies: Range<usize>, sector: u64) -> usize {
        let first = copies.start;
        let best = copies.min_by_key(|member| self.members[*member].reluctance(sector));
        best.unwrap_or(first)
    }

    fn dispatch(&mut self, at: usize, now_ns: u64, begun: &mut impl FnMut(ServiceEnd)) {
        while let Some((request, whole, at_ns)) = self.members[at].start(now_ns) {
            let number = self.started;
            self.started += 1;
            let part = Part {
                member: at,
                request,
                whole,
            };
            self.running.insert(number, part);
            begun(ServiceEnd { number, at_ns });
        }
    }
}

#[cfg(test)]
mod tests;
