//! Which bytes of an array lie on which of its members.
//!
//! Chunks go round the columns; a column is one member, or several that hold the same. Members of a
//! column stand beside each other, as in md's layout "near".

use std::ops::Range;

use luc_disk::Request;

const SECTOR_BYTES: u64 = crate::units::SECTOR_BYTES as u64;
/// No disk of the model is longer; byte numbers of longer ones would not fit.
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
    /// One disk.
    pub const SINGLE: Self = Self {
        columns: 1,
        copies: 1,
        chunk_bytes: SECTOR_BYTES,
    };

    pub fn members(self) -> usize {
        self.columns as usize * self.copies as usize
    }

    /// Sectors of each member of an array that has at least `sectors`: whole chunks.
    pub fn member_sectors(self, sectors: u64) -> u64 {
        if self.columns == 1 {
            return sectors;
        }
        let chunk_sectors = self.chunk_bytes / SECTOR_BYTES;
        let share = sectors.div_ceil(u64::from(self.columns));
        share.div_ceil(chunk_sectors) * chunk_sectors
    }

    /// The members that hold the same as a column.
    pub fn copies_of(self, column: usize) -> Range<usize> {
        let copies = self.copies as usize;
        column * copies..(column + 1) * copies
    }

    /// The columns that a request touches, with the part of each. What a request has in one column is
    /// in one piece there, as its chunks lie one behind the other.
    pub fn parts(self, request: Request) -> impl Iterator<Item = (usize, Request)> {
        let first_byte = request.sector.min(SECTORS_MAX) * SECTOR_BYTES;
        let end_byte = first_byte + u64::from(request.bytes);
        (0..self.columns as usize).filter_map(move |column| {
            let from = self.bytes_before(column, first_byte);
            let bytes = self.bytes_before(column, end_byte) - from;
            // A request of no bytes has its end to be told, too.
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

    /// The column where a byte lies.
    fn column(self, byte: u64) -> usize {
        let chunk = byte / self.chunk_bytes;
        usize::try_from(chunk % u64::from(self.columns)).unwrap_or(0)
    }

    /// How many of the bytes before this one lie in a column.
    fn bytes_before(self, column: usize, byte: u64) -> u64 {
        let stripe_bytes = self.chunk_bytes * u64::from(self.columns);
        let whole = byte / stripe_bytes * self.chunk_bytes;
        let before = column as u64 * self.chunk_bytes;
        let rest = (byte % stripe_bytes).saturating_sub(before);
        whole + rest.min(self.chunk_bytes)
    }
}
