//! The content of the blocks of an ext4 file system, as its superblock and group descriptors tell
//! it and, for blocks that can lie anywhere, the block itself.
//!
//! The kernel keeps metadata in the block device's cache, so that a read of the device shows it as
//! the mounted file system has it.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::Dev;
use luc_trace::{BlockKind, MetadataBlock};

use crate::journal;
use crate::superblock::{self, Superblock, number};
use crate::system::System;

/// Most bytes of group descriptors that are read: those of 64 TiB with blocks of 4 KiB.
const DESCRIPTORS_BYTES_MAX: u64 = 32 << 20;

/// Blocks of one kind that follow each other.
#[derive(Debug)]
struct Region {
    first: u64,
    blocks: u64,
    kind: BlockKind,
    /// The first inode of an inode table.
    first_inode: u64,
}

/// The location of the metadata that every file system has.
#[derive(Debug)]
struct Layout {
    node: String,
    block_bytes: u64,
    inodes_per_block: u32,
    /// By their first block.
    regions: Vec<Region>,
}

/// The layouts of file systems, each read when it is first asked for.
#[derive(Debug, Default)]
pub struct Layouts(BTreeMap<Dev, Option<Layout>>);

impl Layouts {
    /// Returns what these blocks hold, as far as it can be read now.
    pub fn blocks(
        &mut self,
        system: &dyn System,
        wanted: &BTreeSet<(Dev, u64)>,
    ) -> BTreeMap<(Dev, u64), MetadataBlock> {
        let mut found = BTreeMap::new();
        for (dev, number) in wanted {
            let layout = self.0.entry(*dev);
            let layout = layout.or_insert_with(|| Layout::of_device(system, *dev));
            let block = layout.as_ref().and_then(|it| it.block(system, *number));
            found.extend(block.map(|block| ((*dev, *number), block)));
        }
        found
    }
}

impl Layout {
    fn of_device(system: &dyn System, dev: Dev) -> Option<Self> {
        let journals = journal::journals(system).ok()?;
        let journal = journals.iter().find(|journal| journal.device == dev)?;
        Self::read(system, &journal.name)
    }

    fn read(system: &dyn System, name: &str) -> Option<Self> {
        let node = superblock::node(name);
        let bytes = Superblock::bytes(system, name)?;
        let groups = Groups::parse(&bytes)?;
        let length = groups.count.checked_mul(groups.descriptor_bytes)?;
        if length == 0 || length > DESCRIPTORS_BYTES_MAX {
            return None;
        }
        let at = groups.descriptors_at.checked_mul(groups.block_bytes)?;
        let descriptors = system.read_at(&node, at, usize::try_from(length).ok()?);
        let descriptors = descriptors.ok()?;
        let mut regions = groups.regions(&descriptors)?;
        regions.sort_by_key(|region| region.first);
        Some(Self {
            node,
            block_bytes: groups.block_bytes,
            inodes_per_block: u32::try_from(groups.block_bytes / groups.inode_bytes).ok()?,
            regions,
        })
    }

    fn block(&self, system: &dyn System, number: u64) -> Option<MetadataBlock> {
        let past = self
            .regions
            .partition_point(|region| region.first <= number);
        let region = past.checked_sub(1).map(|at| &self.regions[at]);
        if let Some(region) = region.filter(|it| number - it.first < it.blocks) {
            let mut block = MetadataBlock::plain(region.kind);
            if region.kind == BlockKind::InodeTable {
                let before = (number - region.first) * u64::from(self.inodes_per_block);
                block.first_inode = region.first_inode + before;
                block.inodes = self.inodes_per_block;
            }
            return Some(block);
        }
        let at = number.checked_mul(self.block_bytes)?;
        let length = usize::try_from(self.block_bytes).ok()?;
        let content = system.read_at(&self.node, at, length).ok()?;
        content_kind(&content).map(MetadataBlock::plain)
    }
}

/// The fields of the superblock about block groups.
struct Groups {
    count: u64,
    block_bytes: u64,
    inode_bytes: u64,
    inodes_per_group: u64,
    descriptor_bytes: u64,
    /// The block with the first descriptor.
    descriptors_at: u64,
}

impl Groups {
    const AT_INODES: usize = 0x0;
    const AT_FIRST_BLOCK: usize = 0x14;
    const AT_INODES_PER_GROUP: usize = 0x28;
    const AT_REVISION: usize = 0x4c;
    const AT_INODE_SIZE: usize = 0x58;
    const AT_INCOMPAT: usize = 0x60;
    const AT_DESCRIPTOR_SIZE: usize = 0xfe;
    /// Descriptors are scattered over the groups.
    const INCOMPAT_META_BG: u64 = 0x10;
    const INCOMPAT_64BIT: u64 = 0x80;

    fn parse(superblock: &[u8]) -> Option<Self> {
        let block_bytes = Superblock::parse(superblock)?.block_bytes?;
        let word = |at| number::<4>(superblock, at);
        let half = |at| number::<2>(superblock, at);
        let incompat = word(Self::AT_INCOMPAT)?;
        if incompat & Self::INCOMPAT_META_BG != 0 {
            return None;
        }
        // The first revision had inodes of one size.
        let inode_bytes = if word(Self::AT_REVISION)? == 0 {
            128
        } else {
            half(Self::AT_INODE_SIZE)?
        };
        let descriptor_bytes = if incompat & Self::INCOMPAT_64BIT == 0 {
            32
        } else {
            half(Self::AT_DESCRIPTOR_SIZE)?
        };
        let inodes_per_group = word(Self::AT_INODES_PER_GROUP)?;
        let sound = (128..=block_bytes).contains(&inode_bytes)
            && (32..=block_bytes).contains(&descriptor_bytes);
        sound.then_some(())?;
        Some(Self {
            count: word(Self::AT_INODES)?.checked_div(inodes_per_group)?,
            block_bytes,
            inode_bytes,
            inodes_per_group,
            descriptor_bytes,
            descriptors_at: word(Self::AT_FIRST_BLOCK)? + 1,
        })
    }

    /// The metadata that these descriptors name; `None` if they are cut off.
    fn regions(&self, descriptors: &[u8]) -> Option<Vec<Region>> {
        let region = |kind, first, blocks, first_inode| Region {
            first,
            blocks,
            kind,
            first_inode,
        };
        let of_descriptors = (self.count * self.descriptor_bytes).div_ceil(self.block_bytes);
        let superblock = Superblock::OFFSET / self.block_bytes;
        let mut regions = vec![
            region(BlockKind::Superblock, superblock, 1, 0),
            region(
                BlockKind::GroupDescriptors,
                self.descriptors_at,
                of_descriptors,
                0,
            ),
        ];
        let table_blocks = (self.inodes_per_group * self.inode_bytes).div_ceil(self.block_bytes);
        let has_high = self.descriptor_bytes >= 64;
        for group in 0..self.count {
            let begin = usize::try_from(group * self.descriptor_bytes).ok()?;
            let place = |at: usize| {
                let low = number::<4>(descriptors, begin + at)?;
                let high = if has_high {
                    number::<4>(descriptors, begin + at + 0x20)?
                } else {
                    0
                };
                Some(high << 32 | low)
            };
            let first_inode = group * self.inodes_per_group + 1;
            regions.push(region(BlockKind::BlockBitmap, place(0x0)?, 1, 0));
            regions.push(region(BlockKind::InodeBitmap, place(0x4)?, 1, 0));
            let table = place(0x8)?;
            regions.push(region(
                BlockKind::InodeTable,
                table,
                table_blocks,
                first_inode,
            ));
        }
        Some(regions)
    }
}

/// Returns the kind of a block that can lie anywhere; `None` for all else, such as a file's data
/// with data=journal.
fn content_kind(content: &[u8]) -> Option<BlockKind> {
    const EXTENTS_MAGIC: u64 = 0xf30a;
    const ATTRIBUTES_MAGIC: u64 = 0xea02_0000;
    if number::<2>(content, 0)? == EXTENTS_MAGIC {
        Some(BlockKind::Extents)
    } else if number::<4>(content, 0)? == ATTRIBUTES_MAGIC {
        Some(BlockKind::Attributes)
    } else {
        is_directory(content).then_some(BlockKind::Directory)
    }
}

/// Tells whether entries of a directory fill the block: each has an inode, its own length, the
/// length of its name, and its type.
fn is_directory(content: &[u8]) -> bool {
    const HEAD_BYTES: u64 = 8;
    let mut at = 0;
    while at < content.len() {
        let (Some(length), Some(name)) = (number::<2>(content, at + 4), content.get(at + 6)) else {
            return false;
        };
        // 64 KiB do not fit into the field.
        let length = match length {
            0 | 0xffff if content.len() == 1 << 16 => 1 << 16,
            length => length,
        };
        if length % 4 != 0 || length < HEAD_BYTES + u64::from(*name) || length < 12 {
            return false;
        }
        let Some(next) = usize::try_from(length)
            .ok()
            .and_then(|it| at.checked_add(it))
        else {
            return false;
        };
        at = next;
    }
    at == content.len() && at > 0
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::system::Machine;

    fn run(program: &str, arguments: &[&str]) -> String {
        // They are in folders on root's PATH.
        let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap());
        let out = Command::new(program)
            .args(arguments)
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(out.status.success(), "{program} {arguments:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    fn made(root: &Path, options: &[&str]) -> String {
        std::fs::create_dir_all(root.join("dev")).unwrap();
        let image = root.join("dev/disk").to_str().unwrap().to_owned();
        File::create(&image).unwrap().set_len(300 << 20).unwrap();
        run(
            "mke2fs",
            &[&["-q", "-F", "-t", "ext4"], options, &[&image]].concat(),
        );
        image
    }

    /// The first number in a text.
    fn first(text: &str) -> u64 {
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit());
        digits[..end.unwrap_or(digits.len())].parse().unwrap()
    }

    /// The layout is the one that debugfs shows, for every kind of group.
    #[test]
    fn blocks_hold_what_debugfs_says() {
        for options in [
            &["-b", "4096"][..],
            &["-b", "1024"],
            &["-b", "1024", "-O", "^flex_bg,^64bit", "-I", "128"],
            &["-b", "4096", "-O", "64bit", "-I", "512"],
            &["-b", "2048", "-G", "4"],
        ] {
            let root = tempfile::tempdir().unwrap();
            let image = made(root.path(), options);
            let system = Machine::new(root.path());
            let layout = Layout::read(&system, "disk").unwrap();
            let kind = |number| layout.block(&system, number).map(|block| block.kind);
            for inode in [2, 11, 100, 5_000] {
                let said = run("debugfs", &["-R", &format!("imap <{inode}>"), &image]);
                let at = said.split("located at block ").nth(1).unwrap();
                let block = layout.block(&system, first(at)).unwrap();
                assert_eq!(block.kind, BlockKind::InodeTable, "{options:?}: {said}");
                assert!(block.holds(inode), "{options:?}: {said}: {block:?}");
            }
            let said = run("dumpe2fs", &[&image]);
            let mut seen = 0;
            for line in said.lines() {
                for (words, wanted) in [
                    ("Block bitmap at ", BlockKind::BlockBitmap),
                    ("Inode bitmap at ", BlockKind::InodeBitmap),
                    ("Inode table at ", BlockKind::InodeTable),
                    ("Primary superblock at ", BlockKind::Superblock),
                ] {
                    for place in line.split(words).skip(1) {
                        assert_eq!(kind(first(place)), Some(wanted), "{options:?}: {line}");
                        seen += 1;
                    }
                }
                if let Some((head, place)) = line.split_once("Group descriptors at ")
                    && head.contains("Primary")
                {
                    assert_eq!(kind(first(place)), Some(BlockKind::GroupDescriptors));
                }
            }
            assert!(seen > 6, "{said}");
            let said = run("debugfs", &["-R", "blocks /lost+found", &image]);
            assert_eq!(
                kind(first(&said)),
                Some(BlockKind::Directory),
                "{options:?}"
            );
            let past = (300 << 20) / layout.block_bytes - 1;
            assert_eq!(kind(past), None, "an empty block");
            assert_eq!(kind(u64::MAX), None);
        }
    }

    #[test]
    fn bad_superblocks_tell_nothing() {
        let root = tempfile::tempdir().unwrap();
        let image = made(root.path(), &["-b", "4096"]);
        let system = Machine::new(root.path());
        let bytes = Superblock::bytes(&system, "disk").unwrap();
        assert!(Groups::parse(&bytes).is_some());
        for at in [Groups::AT_INODES_PER_GROUP, Groups::AT_INODE_SIZE] {
            for value in [0_u16, u16::MAX] {
                let mut damaged = bytes.clone();
                damaged[at..at + 2].copy_from_slice(&value.to_le_bytes());
                damaged[at + 2..at + 4].fill(0);
                if let Some(groups) = Groups::parse(&damaged) {
                    assert!(groups.regions(&[0; 64]).is_none_or(|it| it.len() < 6));
                }
            }
        }
        assert!(Groups::parse(&bytes[..100]).is_none());
        run(
            "mke2fs",
            &[
                "-q",
                "-F",
                "-t",
                "ext4",
                "-O",
                "meta_bg,^resize_inode",
                &image,
            ],
        );
        assert!(
            Layout::read(&system, "disk").is_none(),
            "scattered descriptors"
        );
    }
}
