//! Numbers of the buffers that metadata changes use.

use luc_trace::BlockKind;

use super::BufferId;

// A block group: its bitmap of inodes, its descriptor, its bitmap of blocks.
pub const INODES: BufferId = 0;
pub const GROUP: BufferId = 1;
pub const BLOCKS: BufferId = 2;
/// The superblock; the list of files that are removed but not yet freed starts here.
pub const SUPER: BufferId = 3;
// The parent of the directories.
pub const PARENT: BufferId = 4;
pub const PARENT_INODE: BufferId = 5;
/// The inode table starts here.
pub const TABLE: BufferId = 8;
/// Blocks of directories start here.
pub const DIRS: BufferId = 1 << 20;

/// Returns what a buffer holds.
pub fn kind(buffer: BufferId) -> BlockKind {
    match buffer {
        INODES => BlockKind::InodeBitmap,
        GROUP => BlockKind::GroupDescriptors,
        BLOCKS => BlockKind::BlockBitmap,
        SUPER => BlockKind::Superblock,
        PARENT | DIRS.. => BlockKind::Directory,
        _ => BlockKind::InodeTable,
    }
}
