//! The mapping of an array's bytes to its members.
//!
//! Chunks are distributed over the columns in turn; a column is one member, or several copies. The
//! copies of a column are adjacent members, as in md's "near" layout.

use std::ops::Range;

use luc_disk::Request;

const SECTOR_BYTES: u64 = crate::units::SECTOR_BYTES as u64;
/// The model has no larger disk; byte offsets of larger sector numbers could overflow.
const SECTORS_MAX: u64 = 1 << 41;

/// The shape of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub columns: u32,
    /// Members of each column.
    pub copies: u32,
    pub chunk_bytes: u64,
}

impl Layout {
    /// The layout of a single disk.
    pub const SINGLE: Self = Self {
        columns: 1,
        copies: 1,
        chunk_bytes: SECTOR_BYTES,
    };

    pub fn members(self) -> usize {
        self.columns as usize * self.copies as usize
    }

    /// Returns the sectors of each member of an array of at least `sectors`: whole chunks.
    pub fn member_sectors(self, sectors: u64) -> u64 {
        if self.columns == 1 {
            return sectors;
        }
        let chunk_sectors = self.chunk_bytes / SECTOR_BYTES;
        let share = sectors.div_ceil(u64::from(self.columns));
        share.div_ceil(chunk_sectors) * chunk_sectors
    }

    /// Returns the members that hold copies of a column.
    pub fn copies_of(self, column: usize) -> Range<usize> {
        let copies = self.copies as usize;
        column * copies..(column + 1) * copies
    }

    /// Returns the columns that a request touches, with its part on each. The chunks of a column
    /// are contiguous, so a request has one contiguous part on it.
    pub fn parts(self, request: Request) -> impl Iterator<Item = (usize, Request)> {
        let first_byte = request.sector.min(SECTORS_MAX) * SECTOR_BYTES;
        let end_byte = first_byte + u64::from(request.bytes);
        (0..self.columns as usize).filter_map(move |column| {
            let from = self.bytes_before(column, first_byte);
            let bytes = self.bytes_before(column, end_byte) - from;
            // A request of 0 bytes needs a part, too, so that its end is reported.
            let is_touched = bytes > 0 || (request.bytes == 0 && self.column(first_byte) == column);
            is_touched.then(|| {
                let mut part = request;
                part.sector = from / SECTOR_BYTES;
                // No part is longer than the request.
                part.bytes = u32::try_from(bytes).unwrap_or(request.bytes);
                (column, part)
            })
        })
    }

    /// Returns the column that holds a byte.
    fn column(self, byte: u64) -> usize {
        let chunk = byte / self.chunk_bytes;
        usize::try_from(chunk % u64::from(self.columns)).unwrap_or(0)
    }

    /// Returns how many of the bytes before this one lie in a column.
    fn bytes_before(self, column: usize, byte: u64) -> u64 {
        let stripe_bytes = self.chunk_bytes * u64::from(self.columns);
        let whole = byte / stripe_bytes * self.chunk_bytes;
        let before = column as u64 * self.chunk_bytes;
        let rest = (byte % stripe_bytes).saturating_sub(before);
        whole + rest.min(self.chunk_bytes)
    }
}
