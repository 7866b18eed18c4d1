//! What must still be there after the power failed, and whether it is.
//!
//! A workload ([`work`]) writes files that say themselves what they hold, and *marks* that say what
//! it is about to do and what the kernel acknowledged. After a crash the judge ([`verify()`]) takes
//! the marks made up to then and the files found, and names every promise that was broken. It is a
//! pure function of the two.
//!
//! # Data that tells what it is
//!
//! A file is made of sectors of 512 bytes, the unit in which disks keep or lose data. A sector
//! begins with a label: run, file, place, version; the rest follows from the label
//! ([`record`]). No two sectors ever written are alike, so stale, foreign, misplaced, torn and
//! damaged data is told apart by looking at it.
//!
//! # Marks
//!
//! One mark is one write(2) to a file opened for appending, or to the log of a recorded disk, which
//! puts it in order with what the disk did ([`mark`]). A mark with the *intent* comes before each
//! call, so that nothing can be found that no mark explains; an *acknowledgement* comes after a
//! sync has returned. That a thread makes a mark tells, too, that its call before it is over.
//!
//! # What is promised
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
//! | syncfs | everything that was over | Linux |
//! | `sync_file_range` | nothing: neither the disk's cache nor the journal is asked | its man page |
//! | a size that is promised | every truncation before it | the size is of one piece |
//!
//! # What holds without any sync
//!
//! - A sector holds one of the states it had since it was last promised; each sector by itself,
//!   since writing back takes no order. Zeros are a state: that before the first write. A write
//!   that was being copied while the page was on its way may show its beginning over the state
//!   before it.
//! - A size was the file's since the promised one; while a file grows, any size between.
//! - A change of names happens whole or not at all: with rename the target is the old or the new
//!   file, and the new one is not under its old name.
//! - Names are of one moment. A commit holds what was changed before what it holds, in every
//!   directory and by every thread, since transactions are written in order. Thus each thread's
//!   names are those after one of its changes, and one moment suits all threads.
//! - A size that is only possible after a truncation shows that the truncation is done: then no
//!   sector shows data that it cut off. What it left need not be the latest: a truncation does not
//!   write back what was not.
//! - A file shows no other file's data, nor that of another place (`data=ordered`). With
//!   [`DataMode::Writeback`] sectors that no sync promised may show anything.
//! - Names of one file lead to one inode, and the inode counts them.
//! - Nothing is there that no mark explains, and no version that was not yet written.
//!
//! A call that failed, or that the crash interrupted, may have happened or not; a thread stops
//! after a failure. A sync that failed promises nothing.
//!
//! # Cost
//!
//! [`History`] grows by a mark at a time and forgets what a promise has settled. To judge many cuts
//! of one run, push the marks up to each cut and call [`verify()`]: it reads every file once, and
//! otherwise costs as much as there is unsettled.

mod content;
mod cuts;
mod file_history;
mod history;
mod kernel_log;
pub mod mark;
mod moments;
pub mod plan;
pub mod record;
mod run;
pub mod tree;
mod verify;
mod violation;

pub use content::DataMode;
pub use cuts::{CutError, Cuts, Loss, Summary};
pub use history::{History, SECTORS_MAX, THREADS_MAX};
pub use run::{Done, Length, WORK_THREADS_MAX, Work, WorkError, work, work_rank};
pub use tree::DirTree;
pub use verify::{Report, verify};
pub use violation::{Kind, Violation};
