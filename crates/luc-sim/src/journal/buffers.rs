//! Numbers of the buffers that changes of metadata take.

use super::BufferId;

// A block group: its bitmap of inodes, its descriptor, its bitmap of blocks.
pub const INODES: BufferId = 0;
pub const GROUP: BufferId = 1;
pub const BLOCKS: BufferId = 2;
/// It begins the list of files that are removed but not freed yet.
pub const SUPER: BufferId = 3;
// The directory above all.
pub const PARENT: BufferId = 4;
pub const PARENT_INODE: BufferId = 5;
/// The inode table begins here.
pub const TABLE: BufferId = 8;
/// Blocks of directories come behind it.
pub const DIRS: BufferId = 1 << 20;
