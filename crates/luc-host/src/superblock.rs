//! Fields of the superblocks of ext4 and of its journal, read from the block device.

use crate::system::System;

/// The fields of the ext4 superblock about the journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub has_journal: bool,
    pub fast_commit: bool,
    pub journal_bytes: Option<u64>,
    pub block_bytes: Option<u64>,
    /// Where the journal begins on the device, in bytes.
    pub journal_at: Option<u64>,
}

impl Superblock {
    pub const OFFSET: u64 = 1024;
    const LENGTH: usize = 1024;
    const MAGIC: u32 = 0xef53;
    /// Byte offsets of little-endian fields.
    const AT_BLOCK_SIZE: usize = 0x18;
    const AT_MAGIC: usize = 0x38;
    const AT_COMPAT: usize = 0x5c;
    const AT_BACKUP_KIND: usize = 0xfd;
    /// `s_jnl_blocks`: 15 words of block map or extents, then the size, high word first.
    const AT_BLOCKS: usize = 0x10c;
    const AT_SIZE_HIGH: usize = Self::AT_BLOCKS + 15 * 4;
    const AT_SIZE_LOW: usize = Self::AT_BLOCKS + 16 * 4;
    /// The header of an extent tree begins with it.
    const EXTENTS_MAGIC: u32 = 0xf30a;
    const COMPAT_HAS_JOURNAL: u32 = 0x4;
    const COMPAT_FAST_COMMIT: u32 = 0x400;

    pub fn read(system: &dyn System, name: &str) -> Option<Self> {
        Self::parse(&Self::bytes(system, name)?)
    }

    /// The superblock of the device with this name, as it is stored.
    pub fn bytes(system: &dyn System, name: &str) -> Option<Vec<u8>> {
        system.read_at(&node(name), Self::OFFSET, Self::LENGTH).ok()
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| u32::try_from(number::<4>(bytes, at)?).ok();
        if word(Self::AT_MAGIC)? & 0xffff != Self::MAGIC {
            return None;
        }
        let compat = word(Self::AT_COMPAT)?;
        let size = u64::from(word(Self::AT_SIZE_HIGH)?) << 32 | u64::from(word(Self::AT_SIZE_LOW)?);
        // The copy of the journal's inode is valid only with this mark.
        let has_size = bytes.get(Self::AT_BACKUP_KIND) == Some(&1) && size > 0;
        // As a power of two times 1 KiB; 64 KiB is the largest that ext4 takes.
        let block_bytes = word(Self::AT_BLOCK_SIZE)
            .filter(|power| *power <= 6)
            .map(|power| 1024_u64 << power);
        let first = has_size.then(|| Self::first_block(bytes)).flatten();
        Some(Superblock {
            journal_at: first
                .zip(block_bytes)
                .and_then(|(first, bytes)| first.checked_mul(bytes)),
            has_journal: compat & Self::COMPAT_HAS_JOURNAL != 0,
            fast_commit: compat & Self::COMPAT_FAST_COMMIT != 0,
            journal_bytes: has_size.then_some(size),
            block_bytes,
        })
    }

    /// The first block of the journal's inode; `None` if it cannot be told without another read.
    fn first_block(bytes: &[u8]) -> Option<u64> {
        let half = |at| u32::try_from(number::<2>(bytes, Self::AT_BLOCKS + at)?).ok();
        let word = |at: usize| Some(half(at)? | half(at + 2)? << 16);
        if half(0)? != Self::EXTENTS_MAGIC {
            return word(0).filter(|block| *block != 0).map(u64::from);
        }
        let (entries, depth, first_logical) = (half(2)?, half(6)?, word(12)?);
        if entries == 0 || depth != 0 || first_logical != 0 {
            return None;
        }
        Some(u64::from(half(18)?) << 32 | u64::from(word(20)?))
    }
}

/// Reads a little-endian number of 2 or 4 bytes.
pub(crate) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(word))
}

/// The node of the device with this name in `/sys`.
pub(crate) fn node(name: &str) -> String {
    format!("/dev/{}", name.replace('!', "/"))
}

/// The error that the superblock of a journal at this place records, without its sign; 0 if none.
/// ext4 clears it when it mounts the file system.
pub(crate) fn journal_errno(system: &dyn System, name: &str, at: u64) -> Option<u32> {
    const MAGIC: u32 = 0xc03b_3998;
    const AT_ERRNO: usize = 0x20;
    let bytes = system.read_at(&node(name), at, AT_ERRNO + 4).ok()?;
    let word = |at: usize| -> Option<u32> {
        let field = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(field.try_into().ok()?))
    };
    (word(0)? == MAGIC)
        .then(|| word(AT_ERRNO))?
        .map(|errno| errno.cast_signed().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_tells_of_its_journal() {
        let mut block = vec![0_u8; Superblock::LENGTH];
        assert_eq!(Superblock::parse(&block), None, "no magic");
        block[0x38] = 0x53;
        block[0x39] = 0xef;
        block[0x5c] = 0x04;
        block[0xfd] = 1;
        block[0x10c + 64..0x10c + 68].copy_from_slice(&(64_u32 << 20).to_le_bytes());
        let plain = Superblock::parse(&block).expect("magic is there");
        assert!(plain.has_journal && !plain.fast_commit);
        assert_eq!(plain.journal_bytes, Some(64 << 20));
        assert_eq!(plain.block_bytes, Some(1024));
        block[0x18] = 2;
        let larger = Superblock::parse(&block).expect("magic");
        assert_eq!(larger.block_bytes, Some(4096));
        block[0x18] = 7;
        let broken = Superblock::parse(&block).expect("magic");
        assert_eq!(broken.block_bytes, None);
        block[0x5d] = 0x04;
        assert!(Superblock::parse(&block).expect("magic").fast_commit);
        assert_eq!(Superblock::parse(&block[..80]), None, "cut off");
    }

    #[test]
    fn the_first_block_of_a_journal() {
        let at = |map: &[(usize, u8)]| {
            let mut block = vec![0_u8; Superblock::LENGTH];
            for (place, byte) in [(0x38, 0x53), (0x39, 0xef), (0x18, 2), (0xfd, 1), (0x14c, 1)] {
                block[place] = byte;
            }
            for (place, byte) in map {
                block[0x10c + place] = *byte;
            }
            Superblock::parse(&block).expect("magic").journal_at
        };
        assert_eq!(at(&[]), None, "a hole");
        assert_eq!(
            at(&[(0, 0x21), (1, 0x40)]),
            Some(0x4021 * 4096),
            "a block map"
        );
        let header = [(0, 0x0a), (1, 0xf3), (2, 1)];
        let extents = |more: &[(usize, u8)]| at(&[&header, more].concat());
        let far = (0x1_0000_0000 + 0x4021) * 4096;
        assert_eq!(extents(&[(18, 1), (20, 0x21), (21, 0x40)]), Some(far));
        assert_eq!(extents(&[(6, 1), (20, 1)]), None, "deeper");
        assert_eq!(extents(&[(12, 1), (20, 1)]), None, "not the first block");
        assert_eq!(at(&[(0, 0x0a), (1, 0xf3)]), None, "no extent");
    }
}
