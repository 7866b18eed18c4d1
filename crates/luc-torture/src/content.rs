//! Judges the content of one file: its size, then each sector.

use crate::file_history::{FileHistory, SectorHistory, State};
use crate::sector::{Label, SECTOR_BYTES};
use crate::violation::{Kind, Violation};
use serde::Serialize;

/// How the file system was mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DataMode {
    /// data=ordered or data=journal
    // A block is on the disk before a file shows it.
    #[default]
    Ordered,
    /// data=writeback: data that no sync acknowledged may hold anything
    Writeback,
}

/// A file that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Size in the inode.
    pub(crate) size: u64,
    /// The content, up to [`READ_MAX`] bytes.
    pub(crate) data: Vec<u8>,
    /// The file that most of its sectors name.
    pub(crate) claims: Option<u32>,
}

/// Larger content is not read: none of our files can have it, and its size is a violation.
pub(crate) const READ_MAX: u64 = crate::history::SECTORS_MAX as u64 * crate::sector::SECTOR + 1;

impl Found {
    pub(crate) fn new(size: u64, data: Vec<u8>, session: u64) -> Self {
        let claims = claims(&data, session);
        Self { size, data, claims }
    }
}

/// The file that most labels name; on a tie, the lower number.
fn claims(data: &[u8], session: u64) -> Option<u32> {
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for label in data.chunks(SECTOR_BYTES).filter_map(Label::read) {
        if label.session != session {
            continue;
        }
        match counts.iter_mut().find(|(file, _)| *file == label.file) {
            Some((_, count)) => *count += 1,
            None => counts.push((label.file, 1)),
        }
    }
    counts.sort_unstable();
    counts
        .iter()
        .rev()
        .max_by_key(|(_, count)| *count)
        .map(|(file, _)| *file)
}

/// Judges one file.
pub(crate) struct Judge<'a> {
    pub(crate) session: u64,
    pub(crate) file: u32,
    pub(crate) history: &'a FileHistory,
    pub(crate) mode: DataMode,
}

impl Judge<'_> {
    /// Tells whether there is no violation.
    pub(crate) fn accepts(&self, found: &Found) -> bool {
        let Some(epoch) = self.epoch(found.size) else {
            return false;
        };
        let mut sectors = (0..).zip(found.data.chunks(SECTOR_BYTES));
        sectors.all(|(sector, bytes)| self.sector(sector, bytes, epoch).is_none())
            && found.missing("").is_none()
    }

    /// All violations of the file found at `path`.
    pub(crate) fn judge(&self, path: &str, found: &Found) -> Vec<Violation> {
        let mut violations = Vec::new();
        let epoch = self.epoch(found.size);
        if epoch.is_none() {
            violations.push(self.wrong_size(path, found.size));
        }
        // If the size is impossible, judge the data as of the promised epoch.
        let epoch = epoch.unwrap_or(self.history.first_epoch);
        for (sector, bytes) in (0..).zip(found.data.chunks(SECTOR_BYTES)) {
            if let Some(wrong) = self.sector(sector, bytes, epoch) {
                push_merged(&mut violations, path, sector, wrong);
            }
        }
        violations.extend(found.missing(path));
        violations
    }

    /// The earliest epoch in which the size is possible.
    fn epoch(&self, size: u64) -> Option<usize> {
        let fits = self
            .history
            .epochs
            .iter()
            .position(|epoch| (epoch.floor_bytes..=epoch.max_bytes).contains(&size));
        fits.map(|epoch| self.history.first_epoch + epoch)
    }

    fn wrong_size(&self, path: &str, size: u64) -> Violation {
        let sizes = self.history.epochs.iter().map(|epoch| {
            if epoch.floor_bytes == epoch.max_bytes {
                epoch.floor_bytes.to_string()
            } else {
                format!("{} to {}", epoch.floor_bytes, epoch.max_bytes)
            }
        });
        Violation {
            kind: Kind::Size,
            path: path.to_owned(),
            expected: format!(
                "file {} with {} bytes",
                self.file,
                sizes.collect::<Vec<_>>().join(" or ")
            ),
            found: format!("{size}"),
            ack: self.history.epochs[0].ack,
        }
    }

    fn sector(&self, sector: u32, found: &[u8], epoch: usize) -> Option<Wrong> {
        let Some(history) = self.history.sectors.get(&sector) else {
            let unwritten = is_zero(found) || self.may_be_anything(sector);
            return (!unwritten).then(|| self.wrong(sector, found, None, &[]));
        };
        let allowed = history.allowed(epoch);
        let may_be = self.is_one_of(sector, found, &allowed)
            || self.is_between(sector, found, history.in_page(epoch))
            || self.may_be_anything(sector);
        (!may_be).then(|| self.wrong(sector, found, Some(history), &allowed))
    }

    fn may_be_anything(&self, sector: u32) -> bool {
        self.mode == DataMode::Writeback && self.history.may_be_fresh(sector)
    }

    fn fill(&self, sector: u32, state: State) -> [u8; SECTOR_BYTES] {
        let mut bytes = [0; SECTOR_BYTES];
        if state.version != 0 {
            let label = Label {
                session: self.session,
                file: self.file,
                sector,
                version: state.version,
            };
            label.fill(&mut bytes);
            bytes[state.keep as usize..].fill(0);
        }
        bytes
    }

    fn is_one_of(&self, sector: u32, found: &[u8], allowed: &[State]) -> bool {
        // The label names the version to compare with; without a label try all.
        let version = Label::read(found).map(|label| label.version);
        let is = |state: &&State| {
            let likely = version.is_none_or(|version| version == state.version);
            likely && self.fill(sector, **state)[..found.len()] == *found
        };
        allowed.iter().rev().find(is).is_some()
    }

    /// Tells whether a write was being copied into the page while the page was being written: then
    /// the sector begins with one state, and ends with the state before it.
    fn is_between(&self, sector: u32, found: &[u8], in_page: &[State]) -> bool {
        in_page.windows(2).any(|pair| {
            let (old, new) = (self.fill(sector, pair[0]), self.fill(sector, pair[1]));
            let same = found.iter().zip(&new).take_while(|(a, b)| a == b).count();
            old[same..found.len()] == found[same..]
        })
    }

    fn wrong(
        &self,
        sector: u32,
        found: &[u8],
        history: Option<&SectorHistory>,
        allowed: &[State],
    ) -> Wrong {
        let newest = history.map_or(0, |history| history.newest_version);
        let least = allowed.iter().map(|state| state.version).min();
        let least = least.unwrap_or(0);
        let expected = match (least, newest) {
            (0, 0) => "zeros".to_owned(),
            (0, newest) => format!("zeros or up to version {newest}"),
            (least, newest) if least == newest => format!("version {least}"),
            (least, newest) => format!("version {least} to {newest}"),
        };
        let (kind, found) = match Label::read(found) {
            None if is_zero(found) => (Kind::Zeroed, "zeros".to_owned()),
            None => (Kind::Garbage, "data that no write produced".to_owned()),
            Some(label) => self.labelled(sector, found, label, least, newest),
        };
        Wrong {
            kind,
            expected: format!("{expected} of file {}", self.file),
            found,
            ack: history.and_then(|history| history.ack),
        }
    }

    /// The fault of a sector that has a label.
    fn labelled(
        &self,
        sector: u32,
        found: &[u8],
        label: Label,
        least: u64,
        newest: u64,
    ) -> (Kind, String) {
        let mut bytes = [0; SECTOR_BYTES];
        label.fill(&mut bytes);
        let version = label.version;
        if label.session != self.session {
            (Kind::Foreign, format!("session {:#x}", label.session))
        } else if label.file != self.file {
            (Kind::Foreign, format!("file {}", label.file))
        } else if label.sector != sector {
            (Kind::Misplaced, format!("sector {}", label.sector))
        } else if version > newest {
            (Kind::Future, format!("version {version}"))
        } else if bytes[..found.len()] != *found {
            (Kind::Garbage, format!("version {version}, damaged"))
        } else if version < least {
            (Kind::RolledBack, format!("version {version}"))
        } else {
            (Kind::Stale, format!("version {version}"))
        }
    }
}

impl Found {
    /// A violation if the file system returned less data than the size includes.
    fn missing(&self, path: &str) -> Option<Violation> {
        let expected = self.size.min(READ_MAX);
        (self.data.len() as u64 != expected).then(|| Violation {
            kind: Kind::Unreadable,
            path: path.to_owned(),
            expected: format!("{expected} bytes of data"),
            found: format!("{}", self.data.len()),
            ack: None,
        })
    }
}

struct Wrong {
    kind: Kind,
    expected: String,
    found: String,
    ack: Option<u64>,
}

/// Adds a fault; neighbouring sectors with the same fault become one violation.
fn push_merged(violations: &mut Vec<Violation>, path: &str, sector: u32, wrong: Wrong) {
    if let Some(last) = violations.last_mut() {
        let same = last.kind == wrong.kind
            && last.expected == wrong.expected
            && last.found == wrong.found
            && last.ack == wrong.ack;
        let prefix = format!("{path} sector ");
        let range = last.path.strip_prefix(&prefix).map(str::to_owned);
        if let Some(range) = range.filter(|_| same) {
            let (first, end) = range.split_once(" to ").unwrap_or((&range, &range));
            if end.parse() == Ok(sector.wrapping_sub(1)) {
                last.path = format!("{prefix}{first} to {sector}");
                return;
            }
        }
    }
    violations.push(Violation {
        kind: wrong.kind,
        path: format!("{path} sector {sector}"),
        expected: wrong.expected,
        found: wrong.found,
        ack: wrong.ack,
    });
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
