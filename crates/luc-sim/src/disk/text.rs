//! The text form of a disk.
//!
//! ```text
//! DISK   = SYSTEM | [LEVEL:MEMBERS:]SINGLE, then :KNOB=VALUE as often as wanted, then :SIZE or not
//! SINGLE = TIME:DEPTH | PRESET
//! ```
//!
//! The knobs are those of a preset's disk, and two for what is in front of the disks ([`KNOBS`]).

use std::str::FromStr;

use luc_disk::file_system::{SIZE_MIB_DEFAULT, SMALL_DISK_MIB, parse_size_mib};
use luc_disk::{Knob, Params, Spec};
use thiserror::Error;

use super::DiskKind;
use super::layout::Layout;
use super::systems::system;
use crate::units::time_ns;

/// Why a text does not describe a disk.
#[derive(Debug, Error)]
#[error(
    "disk {text}: {why}; give TIME:DEPTH (4ms:1), a preset of `luc-lab disks` (hdd-7200), an array \
     of either (raid10:4:hdd-15k), or a name of `luc-lab sim disks`"
)]
pub struct NoDisk {
    text: String,
    why: String,
}

/// A kind of array that the simulator has.
pub struct Level {
    pub name: &'static str,
    members_min: u32,
    /// Members of a column; `None` for all of them.
    copies: Option<u32>,
    pub help: &'static str,
}

impl Level {
    /// Describes how many members it may have.
    pub fn members(&self) -> String {
        let even = match self.copies {
            Some(2) => "an even number from ",
            _ => "",
        };
        format!("{even}{} to {MEMBERS_MAX}", self.members_min)
    }
}

pub const LEVELS: [Level; 3] = [
    Level {
        name: "raid0",
        members_min: 2,
        copies: Some(1),
        help: "chunks are distributed over the members in turn",
    },
    Level {
        name: "raid1",
        members_min: 2,
        copies: None,
        help: "all members hold the same data",
    },
    Level {
        name: "raid10",
        members_min: 4,
        copies: Some(2),
        help: "chunks are distributed in turn over pairs of members that hold the same data",
    },
];
const MEMBERS_MAX: u32 = 64;
const BLOCK_BYTES: u64 = 4096;
/// The default of mdadm(8) without `--chunk`.
const CHUNK_DEFAULT_BYTES: u64 = 512 << 10;
/// The knob for a disk's own cache.
const OWN_CACHE: &str = "cache_bytes";

/// Knobs for what is in front of the disks: the array and its controller.
pub const KNOBS: [Knob; 2] = [
    Knob {
        name: "chunk_bytes",
        min: 4096,
        max: 1 << 30,
        default: CHUNK_DEFAULT_BYTES.cast_signed(),
        help: "size of a chunk of raid0 or raid10; the default is mdadm's",
    },
    Knob {
        name: "controller_cache_bytes",
        min: 0,
        max: 1 << 40,
        default: 0,
        help: "battery-backed write cache of a controller: flush and FUA cost nothing, and the \
               disks' own caches are off",
    },
];

/// Tells whether a text names, correctly or not, a disk that the lab lacks: an array or a
/// documents' system.
pub fn is_only_simulated(text: &str) -> bool {
    let head = text.split(':').next().unwrap_or_default();
    is_array(head) || system(head).is_some()
}

impl FromStr for DiskKind {
    type Err = NoDisk;

    fn from_str(text: &str) -> Result<Self, NoDisk> {
        read(text).map_err(|why| NoDisk {
            text: text.to_owned(),
            why,
        })
    }
}

/// The words of a disk: its name and its changes.
struct Words<'a> {
    names: Vec<&'a str>,
    changes: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn split(text: &'a str) -> Self {
        let mut names: Vec<_> = text.split(':').collect();
        let end = names.iter().position(|word| word.contains('='));
        let changes = names.split_off(end.unwrap_or(names.len()));
        Self { names, changes }
    }

    /// Replaces a system's name by the system's own words.
    fn expand(mut self) -> Self {
        let Some(system) = self.names.last().and_then(|name| system(name)) else {
            return self;
        };
        self.names.pop();
        self.names.extend(system.disk.split(':'));
        let given = std::mem::take(&mut self.changes);
        let is_given = |name| given.iter().any(|word| knob_name(word) == name);
        let kept = system.knobs().filter(|knob| !is_given(knob.name));
        self.changes.extend(kept.map(|knob| knob.change));
        self.changes.extend(given);
        self
    }

    /// Removes a knob from the changes and returns its value, which must be a multiple of a block.
    fn take(&mut self, knob: &Knob) -> Result<Option<u64>, String> {
        let all = std::mem::take(&mut self.changes);
        let (found, others) = all
            .into_iter()
            .partition(|word| knob_name(word) == knob.name);
        self.changes = others;
        let found: Vec<&str> = found;
        match found.as_slice() {
            [] => Ok(None),
            [word] => {
                let text = &word[knob.name.len() + 1..];
                let value = knob.parse(text).map_err(|error| error.to_string())?;
                let value = u64::try_from(value).unwrap_or(0);
                if value.is_multiple_of(BLOCK_BYTES) {
                    Ok(Some(value))
                } else {
                    Err(format!("{word}: must be a multiple of {BLOCK_BYTES}"))
                }
            }
            _ => Err(format!("{} is given twice", knob.name)),
        }
    }
}

fn knob_name(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

fn is_array(name: &str) -> bool {
    let level = name.strip_prefix("raid").unwrap_or_default();
    level.starts_with(|first: char| first.is_ascii_digit())
}

fn read(text: &str) -> Result<DiskKind, String> {
    let sized = text.rsplit_once(':');
    let sized = sized.and_then(|(rest, size)| Some((rest, parse_size_mib(size)?)));
    let (text, size_mib) = sized.unwrap_or((text, SIZE_MIB_DEFAULT));
    if size_mib < SMALL_DISK_MIB {
        return Err(format!(
            "below {SMALL_DISK_MIB}M ext4 uses blocks of 1 KiB, which are not simulated"
        ));
    }
    let given = Words::split(text);
    let own_cache = given
        .changes
        .iter()
        .find(|word| knob_name(word) == OWN_CACHE);
    let own_cache = own_cache.copied();
    let mut words = given.expand();
    let [chunk, cache] = &KNOBS;
    let (chunk_bytes, cache_bytes) = (words.take(chunk)?, words.take(cache)?);
    let (layout, disk) = match words.names.as_slice() {
        [level, rest @ ..] if is_array(level) => array(level, rest, chunk_bytes)?,
        disk if chunk_bytes.is_none() => (Layout::SINGLE, disk),
        _ => return Err("a single disk has no chunks: chunk_bytes is for raid0 and raid10".into()),
    };
    let mut member = member(disk, &words.changes)?;
    match (cache_bytes, own_cache) {
        (None | Some(0), _) => {}
        (Some(_), Some(own)) => {
            return Err(format!(
                "{} replaces {own}: give only one of them",
                cache.name
            ));
        }
        (Some(bytes), None) => put_cache(&mut member, bytes / u64::from(layout.columns))?,
    }
    Ok(DiskKind {
        size_mib,
        ..DiskKind::new(member, layout)
    })
}

/// Parses the shape of an array, and returns the words of its members' disk as well.
fn array<'a>(
    name: &str,
    rest: &'a [&'a str],
    chunk_bytes: Option<u64>,
) -> Result<(Layout, &'a [&'a str]), String> {
    let level = LEVELS.iter().find(|level| level.name == name);
    let level = level.ok_or_else(|| {
        let names = LEVELS.map(|level| level.name).join(", ");
        format!("{name} is not simulated; available: {names}")
    })?;
    let (members, disk) = rest
        .split_first()
        .ok_or("the number of members is missing")?;
    let copies_of = |members| level.copies.unwrap_or(members);
    let members: u32 = members
        .parse()
        .ok()
        .filter(|members| (level.members_min..=MEMBERS_MAX).contains(members))
        .filter(|members| members.is_multiple_of(copies_of(*members)))
        .ok_or_else(|| {
            let allowed = level.members();
            format!("{name} takes {allowed} members, not {members}")
        })?;
    if disk.first().is_some_and(|name| is_array(name)) {
        return Err("an array of arrays is not simulated: members are single disks".into());
    }
    let copies = copies_of(members);
    let columns = members / copies;
    if columns == 1 && chunk_bytes.is_some() {
        return Err(format!(
            "{name} has no chunks: chunk_bytes is for raid0 and raid10"
        ));
    }
    let layout = Layout {
        columns,
        copies,
        chunk_bytes: chunk_bytes.unwrap_or(CHUNK_DEFAULT_BYTES),
    };
    Ok((layout, disk))
}

/// Parses a single disk.
fn member(names: &[&str], changes: &[&str]) -> Result<Params, String> {
    let (name, more) = names.split_first().ok_or("the disk is missing")?;
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        if let Some(change) = changes.first() {
            return Err(format!("TIME:DEPTH takes no knobs, but {change} is given"));
        }
        return match more {
            [depth] => fixed(name, depth),
            [] => Err("the depth is missing".into()),
            _ => Err(format!("{} is not a depth", more.join(":"))),
        };
    }
    let mut spec = Spec::new(name).map_err(|error| error.to_string())?;
    for change in more.iter().chain(changes) {
        spec.change(change).map_err(|error| error.to_string())?;
    }
    spec.params().map_err(|error| error.to_string())
}

/// Creates a disk that takes a fixed time for each request, and serves `depth` at once.
fn fixed(time: &str, depth: &str) -> Result<Params, String> {
    let time_ns = time_ns(time)?;
    let depth: i64 = depth
        .parse()
        .map_err(|_| format!("{depth} is not a depth"))?;
    let mut params = Params::default();
    set(&mut params, "read_latency_ns", time_ns)?;
    set(&mut params, "write_latency_ns", time_ns)?;
    set(&mut params, "channels", depth)?;
    set(&mut params, "queue_requests", depth)?;
    Ok(params)
}

/// Replaces a member's own cache by its share of a controller's cache. The members' model drains
/// it: a controller, too, drains its cache to each disk separately.
fn put_cache(member: &mut Params, share_bytes: u64) -> Result<(), String> {
    let knob = |name| member.get(name).unwrap_or(0);
    // The time of a command is the same for the disk and for its cache.
    let write_ns = match knob("cache_write_ns") {
        0 => knob("write_latency_ns"),
        own_ns => own_ns,
    };
    let drains = ["rotation_ns", "write_per_s_bytes", "flush_block_ns"];
    if drains.iter().all(|name| knob(name) == 0) {
        return Err(
            "no parameter of this disk says how fast it would drain a controller's cache".into(),
        );
    }
    let share_bytes = i64::try_from(share_bytes).unwrap_or(i64::MAX);
    set(member, OWN_CACHE, share_bytes)?;
    set(member, "cache_volatile", 0)?;
    set(member, "cache_write_ns", write_ns)
}

fn set(params: &mut Params, knob: &str, value: i64) -> Result<(), String> {
    params.set(knob, value).map_err(|error| error.to_string())
}
