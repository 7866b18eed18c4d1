//! Judges the files that a power cut left.
//!
//! A workload ([`work`]) writes files whose data describes itself, and *marks* with its intents and
//! with the kernel's acknowledgements. After a crash the judge ([`verify()`]) takes the marks made
//! up to then and the files found, and names every broken promise. It is a pure function of the
//! two.
//!
//! # Data that describes itself
//!
//! A file is made of sectors of 512 bytes, the unit in which disks keep or lose data. A sector
//! begins with a label: run, file, place, version; the other bytes follow from the label
//! ([`sector`]). No two sectors ever written are alike, so stale, foreign, misplaced, torn and
//! damaged data can be told apart.
//!
//! # Marks
//!
//! One mark is one write(2) to a file opened for appending, or to the log of a recorded disk, which
//! puts it in order with the disk's operations ([`mark`]). A mark with the *intent* comes before
//! each call, so that a mark explains everything found; an *acknowledgement* comes after a sync has
//! returned. A mark of a thread also tells that the thread's call before it is over.
//!
//! # Promises
//!
//! | call returned | promised from then on | source |
//! |---|---|---|
//! | fsync of a file | all data of calls over when it began, its size | POSIX |
//! | the same | its names: create, link, rename, unlink of it | ext4: each marks the inode in the transaction that changes the directory (`ext4_update_inode_fsync_trans`), and fsync waits for that transaction |
//! | fdatasync | data and size as above | POSIX |
//! | the same | that it was created | ext4: a new inode has its `i_datasync_tid` |
//! | write with `O_SYNC` | data of this write, a size that holds it, names as with fsync | POSIX, ext4 as above |
//! | write with `O_DSYNC` | data and size as above, names as with fdatasync | the same |
//! | fsync of a directory | the names in it, and its own | Linux; POSIX leaves it open |
//! | syncfs | all calls that were over | Linux |
//! | `sync_file_range` | nothing: it flushes neither disk cache nor journal | its man page |
//! | a size that is promised | every truncation before it | the size is a single value |
//!
//! # Rules without any sync
//!
//! - A sector holds one of the states it had since it was last promised; each sector by itself,
//!   since writing back follows no order. Zeros are a state: that before the first write. If a
//!   write was being copied while the page was on its way, its beginning may be found over the
//!   state before it.
//! - A size is one that the file had since the promised one; while a file grows, any size between.
//! - A change of names happens as a whole or not at all: with rename the target is the old or the
//!   new file, and the new one is not under its old name.
//! - All names are as of one moment. A commit includes all earlier changes, in every directory and
//!   by every thread, since transactions are written in order. Thus each thread's names are those
//!   after one of its changes, and one moment fits all threads.
//! - A size that is only possible after a truncation shows that the truncation is done: then no
//!   sector shows data that it cut off. The data that it left need not be the latest: a truncation
//!   writes no dirty data back.
//! - A file shows no other file's data, nor that of another place (`data=ordered`). With
//!   [`DataMode::Writeback`] sectors that no sync promised may show anything.
//! - Names of one file lead to one inode, and the inode counts them.
//! - A mark explains every name, and no version appears before its write.
//!
//! A call that failed, or that the crash interrupted, may have happened or not; a thread stops
//! after a failure. A sync that failed promises nothing.
//!
//! # Cost
//!
//! [`History`] grows by one mark at a time and forgets states that a promise has settled. To judge
//! many cuts of one run, push the marks up to each cut and call [`verify()`]: it reads every file
//! once, and its other cost depends on what is unsettled.

mod content;
mod cuts;
mod file_history;
mod history;
mod kernel_log;
pub mod mark;
mod moments;
pub mod plan;
mod run;
pub mod sector;
pub mod tree;
mod verify;
mod violation;

pub use content::DataMode;
pub use cuts::{CutError, Cuts, Loss, Summary};
pub use history::{History, SECTORS_MAX, THREADS_MAX};
pub use run::{Done, WORK_THREADS_MAX, Work, WorkError, work, work_rank};
pub use tree::DirTree;
pub use verify::{Report, verify};
pub use violation::{Kind, Violation};
