//! Blocks of metadata, by what they hold.

use std::fmt;

/// The content of a block of ext4's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    Superblock,
    GroupDescriptors,
    BlockBitmap,
    InodeBitmap,
    InodeTable,
    Directory,
    /// A part of a file's extent tree that its inode has no room for.
    Extents,
    /// Extended attributes that an inode has no room for.
    Attributes,
}

impl BlockKind {
    const WORDS: [(Self, &str, &str); 8] = [
        (Self::Superblock, "superblock", "the superblock"),
        (
            Self::GroupDescriptors,
            "group-descriptors",
            "group descriptors",
        ),
        (Self::BlockBitmap, "block-bitmap", "block bitmaps"),
        (Self::InodeBitmap, "inode-bitmap", "inode bitmaps"),
        (Self::InodeTable, "inode-table", "inode tables"),
        (Self::Directory, "directory", "directories"),
        (Self::Extents, "extents", "extent trees"),
        (Self::Attributes, "attributes", "extended attributes"),
    ];

    fn row(self) -> (Self, &'static str, &'static str) {
        let at = Self::WORDS.iter().position(|(kind, ..)| *kind == self);
        Self::WORDS[at.unwrap_or_default()]
    }

    /// Its word in recordings and JSON.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// All blocks of this kind, for people.
    pub fn plural(self) -> &'static str {
        self.row().2
    }

    /// Returns the kind with this word, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        let mut words = Self::WORDS.into_iter();
        words.find_map(|(kind, it, _)| (it == word).then_some(kind))
    }
}

/// A block of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataBlock {
    pub kind: BlockKind,
    /// The first inode of a block of an inode table; 0 for other kinds.
    pub first_inode: u64,
    /// Number of inodes in it.
    pub inodes: u32,
}

impl MetadataBlock {
    /// A block that holds no inodes.
    pub fn plain(kind: BlockKind) -> Self {
        Self {
            kind,
            first_inode: 0,
            inodes: 0,
        }
    }

    /// Tells whether it holds this inode.
    pub fn holds(&self, inode: u64) -> bool {
        let past = inode.checked_sub(self.first_inode);
        past.is_some_and(|past| past < u64::from(self.inodes))
    }

    /// Parses the words that [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = BlockKind::parse(words.next()?)?;
        let mut block = Self::plain(kind);
        if kind == BlockKind::InodeTable {
            block.first_inode = words.next()?.parse().ok()?;
            block.inodes = words.next()?.parse().ok()?;
        }
        words.next().is_none().then_some(block)
    }
}

/// As `inode-table 129 16` or `directory`.
impl fmt::Display for MetadataBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        if self.kind == BlockKind::InodeTable {
            write!(f, " {} {}", self.first_inode, self.inodes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_written() {
        for (kind, word, _) in BlockKind::WORDS {
            let mut block = MetadataBlock::plain(kind);
            assert_eq!((kind.word(), BlockKind::parse(word)), (word, Some(kind)));
            if kind == BlockKind::InodeTable {
                (block.first_inode, block.inodes) = (129, 16);
                assert_eq!(block.to_string(), "inode-table 129 16");
                assert!(block.holds(129) && block.holds(144));
                assert!(!block.holds(128) && !block.holds(145) && !block.holds(0));
            }
            assert_eq!(MetadataBlock::parse(&block.to_string()), Some(block));
        }
        for text in [
            "",
            "table",
            "inode-table",
            "inode-table 1",
            "inode-table 1 x",
            "directory 1",
        ] {
            assert_eq!(MetadataBlock::parse(text), None, "{text:?}");
        }
    }
}
