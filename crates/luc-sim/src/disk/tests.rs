//! Single disks and arrays, driven by their own calendar.

use std::collections::BTreeSet;

use luc_disk::{Figures, Request};
use proptest::collection::vec;
use proptest::prelude::*;

use super::systems::SYSTEMS;
use super::{Disk, DiskKind, SECTORS, ServiceEnd, is_only_simulated};
use crate::calendar::Calendar;

fn kind(text: &str) -> DiskKind {
    text.parse().unwrap()
}

/// A disk and its events. The owner of a request is the request's number.
struct Rig {
    disk: Disk<usize>,
    calendar: Calendar<ServiceEnd>,
    begun: Vec<ServiceEnd>,
    submitted: usize,
}

impl Rig {
    fn new(text: &str, seed: u64) -> Self {
        Self {
            disk: Disk::new(kind(text), seed),
            calendar: Calendar::new(),
            begun: Vec::new(),
            submitted: 0,
        }
    }

    fn submit(&mut self, request: Request) {
        let now_ns = self.calendar.now_ns();
        let owner = self.submitted;
        self.submitted += 1;
        self.disk.submit(request, owner, now_ns, |end| {
            self.calendar.enter(end.at_ns, end);
            self.begun.push(end);
        });
    }

    /// Advances the time to the end of the next request; returns its number and the time.
    fn next(&mut self, until_ns: u64) -> Option<(usize, u64)> {
        while let Some(end) = self.calendar.next(until_ns) {
            let now_ns = self.calendar.now_ns();
            let ended = self.disk.ended(end.number, now_ns, |end| {
                self.calendar.enter(end.at_ns, end);
                self.begun.push(end);
            });
            if let Some(owner) = ended {
                return Some((owner, now_ns));
            }
        }
        None
    }

    /// Submits a request and waits for it; returns how long it took.
    fn one(&mut self, request: Request) -> u64 {
        let from_ns = self.calendar.now_ns();
        self.submit(request);
        let (_, end_ns) = self.next(u64::MAX).unwrap();
        end_ns - from_ns
    }

    /// Keeps `depth` requests in the disk until `count` have ended; returns when the last one did.
    fn run(&mut self, depth: usize, count: usize, request: impl Fn(usize) -> Request) -> u64 {
        for at in 0..depth {
            self.submit(request(at));
        }
        for ended in 0..count {
            self.next(u64::MAX).unwrap();
            if ended + depth < count {
                self.submit(request(ended + depth));
            }
        }
        self.calendar.now_ns()
    }
}

/// Returns the first sector of a scattered block, to make the arm seek.
fn scattered(at: usize) -> u64 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (SECTORS / 8) * 8
}

const KINDS: [&str; 9] = [
    "2ms:1",
    "hdd-7200",
    "nvme",
    "raid0:3:100us:2",
    "raid0:4:hdd-15k:chunk_bytes=4096",
    "raid1:2:hdd-7200",
    "raid1:3:sata-ssd",
    "raid10:4:hdd-15k:chunk_bytes=65536",
    "nehalem-raid10-cache",
];

fn request() -> impl Strategy<Value = Request> {
    let sector = prop_oneof![8 => 0..SECTORS, 1 => any::<u64>()];
    let bytes =
        prop_oneof![1 => Just(0), 8 => (1..300_u32).prop_map(|n| n * 4096), 1 => any::<u32>()];
    (0..4, sector, bytes).prop_map(|(op, sector, bytes)| match op {
        0 => Request::read(sector, bytes),
        1 => Request::write(sector, bytes),
        2 => Request::write_fua(sector, bytes),
        _ => Request::flush(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_request_ends_once_and_the_same_again(
        text in prop::sample::select(&KINDS[..]),
        seed in 0_u64..4,
        requests in vec((request(), 0_u64..3_000_000), 1..60),
    ) {
        let go = || {
            let mut rig = Rig::new(text, seed);
            let mut ends = Vec::new();
            for (request, pause_ns) in &requests {
                rig.submit(*request);
                let until_ns = rig.calendar.now_ns() + pause_ns;
                ends.extend(std::iter::from_fn(|| rig.next(until_ns)));
            }
            ends.extend(std::iter::from_fn(|| rig.next(u64::MAX)));
            ends
        };
        let ends = go();
        let owners: BTreeSet<usize> = ends.iter().map(|(owner, _)| *owner).collect();
        prop_assert_eq!(ends.len(), requests.len());
        prop_assert_eq!(owners.len(), requests.len());
        prop_assert!(ends.is_sorted_by_key(|(_, at_ns)| *at_ns));
        prop_assert_eq!(ends, go());
    }

    /// With one request at a time, all parts that began since the last request belong to this one.
    #[test]
    fn a_request_ends_with_its_last_part(
        text in prop::sample::select(&KINDS[..]),
        requests in vec(request(), 1..30),
    ) {
        let mut rig = Rig::new(text, 1);
        for request in requests {
            rig.begun.clear();
            rig.submit(request);
            let (_, end_ns) = rig.next(u64::MAX).unwrap();
            let last_ns = rig.begun.iter().map(|end| end.at_ns).max().unwrap();
            prop_assert_eq!(end_ns, last_ns);
        }
    }

    /// Compares with a look at each sector: the sectors touched on each member, contiguous there.
    #[test]
    fn parts_are_where_the_sectors_lie(
        columns in 1_u32..6,
        chunk in 1_u64..5,
        sector in 0_u64..500,
        sectors in 1_u32..300,
    ) {
        let layout = super::layout::Layout { columns, copies: 1, chunk_bytes: chunk * 4096 };
        let chunk_sectors = chunk * 8;
        let mut expected = vec![Vec::new(); columns as usize];
        for at in sector..sector + u64::from(sectors) {
            let (number, offset) = (at / chunk_sectors, at % chunk_sectors);
            let column = usize::try_from(number % u64::from(columns)).unwrap();
            expected[column].push(number / u64::from(columns) * chunk_sectors + offset);
        }
        let mut found = vec![Vec::new(); columns as usize];
        for (column, part) in layout.parts(Request::write(sector, sectors * 512)) {
            prop_assert!(found[column].is_empty());
            found[column] = (part.sector..).take(part.bytes as usize / 512).collect();
        }
        prop_assert_eq!(found, expected);
    }

    /// Both get the same requests at the same times, and the first copy's phase is the single
    /// disk's.
    #[test]
    fn a_mirror_writes_no_faster_than_its_members(
        member in prop::sample::select(&["hdd-15k", "hdd-7200-wc-off", "nvme", "1ms:4"][..]),
        seed in 0_u64..100,
        writes in vec((0..SECTORS / 8, 1_u32..40, any::<bool>(), 0_u64..20_000_000), 1..40),
    ) {
        let ends = |text: &str| {
            let mut rig = Rig::new(text, seed);
            let mut ends = vec![0; writes.len()];
            for (block, blocks, is_fua, pause_ns) in &writes {
                let make = if *is_fua { Request::write_fua } else { Request::write };
                rig.submit(make(block * 8, blocks * 4096));
                let until_ns = rig.calendar.now_ns() + pause_ns;
                while let Some((owner, at_ns)) = rig.next(until_ns) {
                    ends[owner] = at_ns;
                }
            }
            while let Some((owner, at_ns)) = rig.next(u64::MAX) {
                ends[owner] = at_ns;
            }
            ends
        };
        let mirrored = ends(&format!("raid1:2:{member}"));
        let single = ends(member);
        prop_assert!(mirrored.iter().zip(&single).all(|(both, one)| both >= one));
    }

    #[test]
    fn half_the_time_is_twice_the_rate(
        array in prop::sample::select(&["", "raid0:3:", "raid1:2:", "raid10:4:"][..]),
        time_us in 1_u64..5000,
        disk_depth in 1_u32..5,
        depth in 1_usize..12,
    ) {
        let took_ns = |time_us: u64| {
            let mut rig = Rig::new(&format!("{array}{time_us}us:{disk_depth}"), 1);
            rig.run(depth, 200, |at| Request::write(scattered(at), 4096))
        };
        prop_assert_eq!(took_ns(2 * time_us), 2 * took_ns(time_us));
    }
}

#[test]
fn a_disk_of_one_request_at_a_time() {
    let mut rig = Rig::new("4ms:1", 1);
    assert!(!rig.disk.kind.is_volatile);
    rig.submit(Request::write(0, 4096));
    rig.submit(Request::write(8, 4096));
    let end = |number, at_ns| ServiceEnd { number, at_ns };
    assert_eq!(rig.begun, [end(0, 4_000_000)]);
    assert_eq!(rig.next(u64::MAX), Some((0, 4_000_000)));
    assert_eq!(rig.begun[1], end(1, 8_000_000));
    assert_eq!(rig.disk.ended(0, 4_000_000, |_| ()), None);
}

/// Reads and writes from the first byte to the last, 1 MiB at a time, on disks of one zone: in the
/// smaller image of a member, several zones would be rounded differently.
#[test]
fn stripes_multiply_the_bandwidth_of_a_stream() {
    for member in [
        "hdd-15k:cache_bytes=0:track_inner_bytes=930240",
        "hdd-7200-wc-off:track_inner_bytes=2206600",
        "sata-ssd:cache_bytes=0",
    ] {
        for make in [Request::read, Request::write] {
            let took_ns = |text: &str| {
                let mut rig = Rig::new(text, 3);
                rig.run(16, 1024, |at| make(at as u64 * 2048, 1 << 20))
            };
            let single_ns = took_ns(member);
            for members in [2, 4, 8] {
                let array_ns = took_ns(&format!("raid0:{members}:{member}:chunk_bytes=65536"));
                let gain = single_ns as f64 / array_ns as f64 / f64::from(members);
                assert!((0.9..=1.001).contains(&gain), "{members} {member}: {gain}");
            }
        }
    }
}

/// A lone write waits for half a turn on average, the later one of two for two thirds of a turn:
/// the largest of n uniform draws averages n/(n+1).
#[test]
fn spindles_are_not_synchronised() {
    let mean_ns = |text: &str| {
        let mut sum_ns = 0;
        for seed in 0..200 {
            let mut rig = Rig::new(text, seed);
            let first = usize::try_from(seed).unwrap() * 20;
            for at in first..first + 20 {
                let pause_ns = scattered(at + 10_000) * 7;
                rig.calendar.next(rig.calendar.now_ns() + pause_ns);
                sum_ns += rig.one(Request::write(scattered(at), 4096));
            }
        }
        sum_ns as f64 / 4000.0
    };
    let turn_ns = 4e6;
    let single_ns = mean_ns("hdd-15k:cache_bytes=0");
    for (members, share) in [(2.0, 1.0 / 6.0), (3.0, 1.0 / 4.0)] {
        let later_ns = mean_ns(&format!("raid1:{members}:hdd-15k:cache_bytes=0")) - single_ns;
        assert!(
            (later_ns / turn_ns - share).abs() < 0.02,
            "{members}: {later_ns}"
        );
    }
}

#[test]
fn reads_go_to_the_copy_that_has_time() {
    let per_s = |text: &str, depth, request: fn(usize) -> Request| {
        2000.0 * 1e9 / Rig::new(text, 1).run(depth, 2000, request) as f64
    };
    let random = |at| Request::read(scattered(at), 4096);
    let gain = per_s("raid1:2:hdd-15k", 2, random) / per_s("hdd-15k", 1, random);
    assert!((1.9..2.6).contains(&gain), "{gain}");
    // Two streams in turns: each has its own disk, whose arm stays there.
    let streams = |at: usize| {
        let begin = (at as u64 % 2) * SECTORS / 2;
        Request::read(begin + at as u64 / 2 * 128, 64 << 10)
    };
    let (two, one) = (
        per_s("raid1:2:hdd-15k", 2, streams),
        per_s("hdd-15k", 2, streams),
    );
    assert!(two > 3.0 * one, "{two} and {one}");
}

#[test]
fn a_flush_ends_when_all_members_are_clean() {
    let mut rig = Rig::new("raid0:2:hdd-7200:chunk_bytes=65536", 1);
    assert!(rig.disk.kind.is_volatile);
    let cached_ns = rig.one(Request::write(0, 4096));
    assert!(cached_ns < 1_000_000, "{cached_ns}");
    rig.begun.clear();
    rig.submit(Request::flush());
    let times: Vec<u64> = rig.begun.iter().map(|end| end.at_ns).collect();
    let (_, end_ns) = rig.next(u64::MAX).unwrap();
    let [dirty_ns, clean_ns] = times[..] else {
        panic!("{times:?}")
    };
    assert!(clean_ns < dirty_ns && end_ns == dirty_ns, "{times:?}");
}

/// Writes are as fast as the cache while it has room, and in the long run as the disks behind it.
#[test]
fn a_controllers_cache_takes_writes_and_needs_no_flush() {
    let text = "raid10:4:hdd-15k:controller_cache_bytes=16777216";
    let mut rig = Rig::new(text, 1);
    assert!(!rig.disk.kind.is_volatile);
    let fua_ns = rig.one(Request::write_fua(1 << 20, 4096));
    assert!(fua_ns < 100_000, "{fua_ns}");
    assert_eq!(rig.one(Request::flush()), 0);
    let per_s = |text, count| {
        let mut rig = Rig::new(text, 1);
        count as f64 * 1e9 / rig.run(32, count, |at| Request::write(scattered(at), 4096)) as f64
    };
    assert!(per_s(text, 3000) > 50_000.0);
    let (long, member) = (per_s(text, 40_000), per_s("hdd-15k", 20_000));
    assert!((1.5..3.0).contains(&(long / member)), "{long} and {member}");
}

#[test]
fn an_array_is_as_large_as_a_single_disk() {
    for (text, members, sectors) in [
        ("hdd-15k", 1, SECTORS),
        ("raid1:2:hdd-15k", 2, SECTORS),
        ("raid10:4:hdd-15k", 4, SECTORS / 2),
        // 10923 chunks of 128 KiB each.
        ("raid0:3:hdd-15k:chunk_bytes=131072", 3, 10_923 * 256),
    ] {
        let layout = kind(text).layout;
        assert_eq!(layout.members(), members, "{text}");
        assert_eq!(layout.member_sectors(SECTORS), sectors, "{text}");
    }
    let chunk = kind("raid0:2:4ms:1").layout.chunk_bytes;
    assert_eq!(chunk, 512 << 10, "the default that mdadm(8) documents");
}

#[test]
fn disks_that_are_none() {
    for (text, why) in [
        ("4ms", "depth"),
        ("4:1", "unit"),
        ("4hours:1", "not a unit of time"),
        ("4ms:x", "not a depth"),
        ("4ms:1:2", "1:2 is not a depth"),
        ("4ms:0", "channels"),
        ("4ms:1:flush_ns=1", "TIME:DEPTH takes no knobs"),
        ("99999999999999s:1", "too long"),
        ("hdd-7300", "hdd-7200"),
        ("nvme:flush_ns", "KNOB=VALUE"),
        ("nvme:chunk_bytes=4096", "a single disk has no chunks"),
        ("", ""),
        (
            "raid5:4:hdd-15k",
            "raid5 is not simulated; available: raid0, raid1, raid10",
        ),
        ("raid0", "the number of members is missing"),
        ("raid0:2", "the disk is missing"),
        ("raid0:hdd-15k", "raid0 takes 2 to 64 members, not hdd-15k"),
        ("raid0:1:hdd-15k", "raid0 takes 2 to 64 members, not 1"),
        ("raid1:0:hdd-15k", "raid1 takes 2 to 64 members, not 0"),
        ("raid1:1:hdd-15k", "raid1 takes 2 to 64 members, not 1"),
        (
            "raid10:2:hdd-15k",
            "raid10 takes an even number from 4 to 64 members, not 2",
        ),
        (
            "raid10:5:hdd-15k",
            "raid10 takes an even number from 4 to 64 members, not 5",
        ),
        ("raid10:66:hdd-15k", "64 members, not 66"),
        (
            "raid1:2:raid0:2:hdd-15k",
            "an array of arrays is not simulated",
        ),
        (
            "raid1:2:nehalem-raid10",
            "an array of arrays is not simulated",
        ),
        (
            "raid0:2:hdd-15k:chunk_bytes=0",
            "chunk_bytes cannot be '0'; it takes a whole number from 4096",
        ),
        (
            "raid0:2:hdd-15k:chunk_bytes=6000",
            "chunk_bytes=6000: must be a multiple of 4096",
        ),
        (
            "raid0:2:hdd-15k:chunk_bytes=4k",
            "chunk_bytes cannot be '4k'",
        ),
        (
            "raid0:2:hdd-15k:chunk_bytes=4096:chunk_bytes=8192",
            "chunk_bytes is given twice",
        ),
        ("raid1:2:hdd-15k:chunk_bytes=4096", "raid1 has no chunks"),
        ("raid0:2:hdd-15k:chunk=4096", "no knob is named 'chunk'"),
        (
            "raid0:2:hdd-15k:flush_ns=1:flush_ns=2",
            "flush_ns is given twice",
        ),
        (
            "hdd-15k:controller_cache_bytes=1",
            "must be a multiple of 4096",
        ),
        (
            "raid1:2:4ms:1:controller_cache_bytes=1048576",
            "how fast it would drain",
        ),
        (
            "hdd-15k:cache_bytes=0:controller_cache_bytes=1048576",
            "replaces cache_bytes=0: give only one of them",
        ),
        ("nehalem", "no preset is named 'nehalem'"),
    ] {
        let error = text.parse::<DiskKind>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
        assert!(
            error.contains("luc-lab disks") && !error.contains('\n'),
            "{error}"
        );
    }
    assert!(kind("hdd-7200").is_volatile);
    assert!(!kind("nvme-plp").is_volatile);
}

#[test]
fn the_documents_systems_are_disks() {
    for system in &SYSTEMS {
        let found = kind(system.name);
        for knob in system.knobs() {
            assert!(
                knob.source.len() > 5 && knob.change.contains('='),
                "{}",
                knob.change
            );
        }
        assert!(system.mhz.is_sorted() && is_only_simulated(system.name));
        assert!(!found.is_volatile || found.layout.members() == 1 || system.cpus == 8);
        // The energy model has machines of the same names, with the same processors.
        if let Some(machine) = luc_power::machine::MACHINES.get(system.name) {
            let mhz: Vec<f64> = machine.points.iter().map(|point| point.mhz).collect();
            assert!(
                mhz.iter()
                    .copied()
                    .eq(system.mhz.iter().map(|mhz| f64::from(*mhz)))
            );
            assert_eq!(machine.cores, u32::from(system.cpus), "{}", system.name);
        }
        // The user's changes take precedence over the system's.
        let changed = kind(&format!(
            "{}:track_outer_bytes=700000:cache_write_ns=7",
            system.name
        ));
        assert_eq!(changed.member.get("track_outer_bytes"), Some(700_000));
    }
    let with_watts = SYSTEMS
        .iter()
        .filter(|it| luc_power::machine::MACHINES.contains_key(it.name));
    assert_eq!(with_watts.count(), 3);
    let members = |name| kind(name).layout.members();
    assert_eq!((members("nehalem-hdd"), members("nehalem-raid10")), (1, 4));
    let cached = kind("nehalem-hdd:controller_cache_bytes=1048576").member;
    assert_eq!(cached.get("cache_bytes"), Some(1 << 20));
    // The data sheets' sustained rates, less the decline over an eighth of the disk.
    for (name, per_s_bytes) in [("nehalem-hdd", 67.8e6), ("nehalem-raid10", 171e6)] {
        let found = Figures::from_params(&kind(name).member).read_stream_per_s_bytes;
        assert!(
            (0.92..1.0).contains(&(found / per_s_bytes)),
            "{name}: {found}"
        );
    }
    assert!(is_only_simulated("raid10:3:hdd-15k") && !is_only_simulated("hdd-15k:1G"));
}
