//! The stages of an operation on its way through the kernel.

/// The position of a task within its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Begin,
    /// Wants a handle.
    Handle,
    /// Wants its n-th buffer.
    Buffer(u8),
    /// Holds its handle.
    Inside,
    After,
    /// Wants the lock of the directory that it changes, or of the file that it writes. A write then
    /// updates the file's times, fills pages and makes the file longer.
    Lock,
    Times,
    Pages,
    /// Fills the next page within a handle.
    Page,
    Size,
    Unlock,
    /// A sync looks for dirty data, sends it, waits for it, and waits for the data of other tasks.
    Data,
    Send,
    Sent,
    Written,
    Others,
    /// The sync asks for its commit.
    Ask,
    /// It waits for its commit.
    Committed,
    /// It checks whether its commit was the one that ended.
    Again,
    /// It flushes the disk, because no commit does that for it.
    Flush,
    Flushed,
    Done,
}
