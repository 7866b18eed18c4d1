//! Spans: operations, commits and waits that the tracer saw, with start and end.
//!
//! Records are those of `abi/luc_span.h`, little-endian; a test compares this file with the header.

use luc_control::Dev;
use std::fmt;

/// Size of a span in a recording and in the tracer's ring buffer, bytes.
pub const SPAN_BYTES: usize = 88;

/// Flag of [`Span::flags`]: the file is a directory.
pub const DIRECTORY: u32 = 1;
/// Flag of [`Span::flags`]: opened with `O_CREAT`.
pub const CREATED: u32 = 2;
/// Flag of [`Span::flags`]: it began before the watch, at its start at the latest.
pub const EARLIER: u32 = 4;
/// Flag of [`Span::flags`]: it was going on at its end, the end of the watch.
pub const UNFINISHED: u32 = 8;
/// Flag of [`Span::flags`]: an operation that waits for a commit and is no sync of a file or a file
/// system. Only its start was seen.
pub const UNTIMED: u32 = 16;

/// Kind of a span, with the numbers of `abi/luc_span.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum SpanKind {
    /// Not an operation: a task appears for the first time, or under a new name.
    #[default]
    Task,
    /// Open or creation of a file.
    Open,
    /// Write to a file.
    Write,
    /// fsync, msync, or the sync of an `O_SYNC` write.
    Fsync,
    /// fdatasync, or the sync of an `O_DSYNC` write.
    Fdatasync,
    /// One file system's part of sync or syncfs.
    Sync,
    /// Last close of an open file.
    Close,
    /// A journal commit, from its start to its end.
    Commit,
    /// A task slept on metadata that a commit was writing: a write delay.
    WaitBuffer,
    /// A task slept until a commit released its locked transaction.
    WaitLocked,
    /// A task slept until the journal had space.
    WaitSpace,
}

impl SpanKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Task,
        Self::Open,
        Self::Write,
        Self::Fsync,
        Self::Fdatasync,
        Self::Sync,
        Self::Close,
        Self::Commit,
        Self::WaitBuffer,
        Self::WaitLocked,
        Self::WaitSpace,
    ];

    /// Waits inside another operation, in the order in which the tracer counts them.
    pub const WAITS: [Self; 3] = [Self::WaitBuffer, Self::WaitLocked, Self::WaitSpace];

    /// Returns the kind with this number, if there is one.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its number in a record.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Its name in exports.
    pub fn text(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Open => "open",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Sync => "sync",
            Self::Close => "close",
            Self::Commit => "commit",
            Self::WaitBuffer => "wait-buffer",
            Self::WaitLocked => "wait-locked",
            Self::WaitSpace => "wait-space",
        }
    }

    /// Tells whether it is a call that makes one file durable.
    pub fn is_file_sync(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync)
    }

    /// Tells whether it is a thread's call on a file: open, write, sync or close.
    pub fn is_operation(self) -> bool {
        matches!(self, Self::Open | Self::Write | Self::Close) || self.is_file_sync()
    }

    /// Tells whether it is a wait inside another operation.
    pub fn is_wait(self) -> bool {
        Self::WAITS.contains(&self)
    }
}

impl fmt::Display for SpanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// An operation, a commit or a wait, or the name of a task. The table of `abi/luc_span.h` tells
/// which fields a kind has; the others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub kind: SpanKind,
    /// Start, ns of the monotonic clock.
    pub begin_ns: u64,
    /// End, ns of the monotonic clock.
    pub end_ns: u64,
    /// Inode number, the control group of a task, or the block of a [`SpanKind::WaitBuffer`].
    pub object: u64,
    /// Bytes written.
    pub amount: i64,
    /// Moments between start and end, ns, or the bytes of a task's name.
    pub marks_ns: [u64; 3],
    pub dev: Dev,
    /// The thread.
    pub pid: u32,
    /// The process.
    pub tgid: u32,
    /// The transaction: a commit's own, or the one for which a sync waits.
    pub tid: u32,
    /// The last transaction that was committed when a sync asked for its own.
    pub done_tid: u32,
    /// 0, or an error as a negative errno.
    pub result: i32,
    /// The operation in which a wait happened; [`SpanKind::Task`] if none is traced.
    pub within: SpanKind,
    /// [`DIRECTORY`], [`CREATED`], [`EARLIER`], [`UNFINISHED`], [`UNTIMED`].
    pub flags: u32,
}

impl Span {
    /// Creates a span with these times, which is otherwise empty.
    pub fn new(kind: SpanKind, begin_ns: u64, end_ns: u64) -> Self {
        Self {
            kind,
            begin_ns,
            end_ns,
            ..Self::default()
        }
    }

    /// Returns how long it took, ns; 0 if the clock went back.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Tells whether the watch saw all of it, from its start to its end.
    pub fn is_whole(&self) -> bool {
        self.flags & (EARLIER | UNFINISHED | UNTIMED) == 0
    }

    /// Tells whether it was going on at the end of the watch.
    pub fn is_unfinished(&self) -> bool {
        self.flags & UNFINISHED != 0
    }

    /// Tells whether only its start was seen.
    pub fn is_untimed(&self) -> bool {
        self.flags & UNTIMED != 0
    }

    /// Returns when a commit locked its transaction, ns; its start if that is unknown.
    pub fn locked_ns(&self) -> u64 {
        let [locked_ns, ..] = self.marks_ns;
        let inside = (self.begin_ns..=self.end_ns).contains(&locked_ns);
        if inside { locked_ns } else { self.begin_ns }
    }

    /// Start and end of the data flush of a sync, if there was one.
    pub fn flush_ns(&self) -> Option<(u64, u64)> {
        let [begin, end, _] = self.marks_ns;
        (self.kind.is_file_sync() && end > 0).then_some((begin, end))
    }

    /// Returns when a sync asked for its transaction: after its data was written.
    pub fn asked_ns(&self) -> u64 {
        self.flush_ns().map_or(self.begin_ns, |(_, end)| end)
    }

    /// Returns how many commits a sync had to wait for when it asked.
    pub fn commits_ahead(&self) -> u32 {
        let ahead = self.tid.wrapping_sub(self.done_tid);
        // Transaction numbers wrap; they are compared as in the kernel.
        if ahead > u32::MAX / 2 { 0 } else { ahead }
    }

    /// The file system and the number of the block for which a task waited.
    pub fn waited_block(&self) -> Option<(Dev, u64)> {
        let known = self.kind == SpanKind::WaitBuffer && self.object > 0;
        known.then_some((self.dev, self.object))
    }

    /// The name of a [`SpanKind::Task`].
    pub fn name(&self) -> String {
        let bytes = self.marks_ns.map(u64::to_le_bytes);
        let bytes: Vec<u8> = bytes[..2].concat();
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// Returns the span with this task name, of which it keeps 15 bytes, as the kernel does.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        let mut bytes = [0; 16];
        let kept = name.len().min(15);
        bytes[..kept].copy_from_slice(&name.as_bytes()[..kept]);
        let (low, high) = bytes.split_at(8);
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or_default());
        self.marks_ns = [word(low), word(high), 0];
        self
    }

    /// Returns the span as a record.
    pub fn to_bytes(&self) -> [u8; SPAN_BYTES] {
        let mut out = [0; SPAN_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        for value in [self.begin_ns, self.end_ns, self.object] {
            put(&value.to_le_bytes());
        }
        put(&self.amount.to_le_bytes());
        for value in self.marks_ns {
            put(&value.to_le_bytes());
        }
        let dev = encode(self.dev);
        for value in [dev, self.pid, self.tgid, self.tid, self.done_tid] {
            put(&value.to_le_bytes());
        }
        put(&self.result.to_le_bytes());
        put(&self.kind.number().to_le_bytes());
        put(&self.within.number().to_le_bytes());
        put(&self.flags.to_le_bytes());
        out
    }

    /// Parses a record; `None` if its kind is unknown.
    pub fn from_bytes(bytes: &[u8; SPAN_BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(part(bytes, at));
        let half = |at: usize| u32::from_le_bytes(part(bytes, at));
        let short = |at: usize| u16::from_le_bytes(part(bytes, at));
        Some(Self {
            begin_ns: word(0),
            end_ns: word(8),
            object: word(16),
            amount: i64::from_le_bytes(part(bytes, 24)),
            marks_ns: [word(32), word(40), word(48)],
            dev: decode(half(56)),
            pid: half(60),
            tgid: half(64),
            tid: half(68),
            done_tid: half(72),
            result: i32::from_le_bytes(part(bytes, 76)),
            kind: SpanKind::from_number(short(80))?,
            within: SpanKind::from_number(short(82))?,
            flags: half(84),
        })
    }
}

fn part<const N: usize>(bytes: &[u8; SPAN_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Encodes a device number as the kernel does: 12 bits of major, 20 of minor.
pub fn encode(dev: Dev) -> u32 {
    dev.major << 20 | dev.minor & 0xf_ffff
}

/// Reverses [`encode`].
pub fn decode(dev: u32) -> Dev {
    Dev {
        major: dev >> 20,
        minor: dev & 0xf_ffff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: shim/offsets.c defines an array of this length and type.
    unsafe extern "C" {
        /// In the order of the fields of `struct luc_span`.
        static luc_span_offsets: [usize; 14];
    }

    const ABI: &str = include_str!("../../../abi/luc_span.h");

    #[test]
    fn kinds_are_those_of_the_contract() {
        let rows: Vec<&str> = ABI
            .lines()
            .filter_map(|line| line.strip_prefix("\tLUC_SPAN("))
            .filter_map(|row| row.split('"').nth(1))
            .collect();
        assert_eq!(rows, SpanKind::ALL.map(SpanKind::text));
        for (number, kind) in (0..).zip(SpanKind::ALL) {
            assert_eq!(kind.number(), number);
            assert_eq!(SpanKind::from_number(number), Some(kind));
        }
        assert_eq!(SpanKind::from_number(11), None);
    }

    /// Checks the positions of the fields against the C compiler's.
    #[test]
    fn fields_lie_where_the_contract_puts_them() {
        for (name, value) in [
            ("LUC_SPAN_DIRECTORY", DIRECTORY),
            ("LUC_SPAN_CREATED", CREATED),
            ("LUC_SPAN_EARLIER", EARLIER),
            ("LUC_SPAN_UNFINISHED", UNFINISHED),
            ("LUC_SPAN_UNTIMED", UNTIMED),
            ("LUC_SPAN_BYTES", u32::try_from(SPAN_BYTES).unwrap()),
            ("LUC_SPAN_MARKS", 3),
            ("LUC_SPAN_NAME_BYTES", 16),
        ] {
            let row = format!("#define {name} {value}");
            assert!(
                ABI.lines()
                    .any(|line| line.split('\t').next() == Some(&row)),
                "{row}"
            );
        }
        let span = Span {
            begin_ns: 1,
            end_ns: 2,
            object: 3,
            amount: 4,
            marks_ns: [5, 0, 0],
            dev: decode(6),
            pid: 7,
            tgid: 8,
            tid: 9,
            done_tid: 10,
            result: 11,
            kind: SpanKind::Commit,
            within: SpanKind::WaitBuffer,
            flags: 12,
        };
        let bytes = span.to_bytes();
        // SAFETY: the array of shim/offsets.c is constant.
        let offsets = unsafe { luc_span_offsets };
        let values = offsets.map(|at| bytes[at]);
        assert_eq!(values, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 7, 8, 12]);
        assert_eq!(Span::from_bytes(&bytes), Some(span));
    }

    #[test]
    fn names_of_tasks() {
        let span = Span::default().with_name("kworker/u8:0-a-long-name");
        assert_eq!(span.name(), "kworker/u8:0-a-");
        assert_eq!(Span::default().name(), "");
        let full = Span {
            marks_ns: [u64::MAX, u64::MAX, 7],
            ..Span::default()
        };
        assert_eq!(full.name().chars().count(), 16);
    }

    #[test]
    fn commits_ahead_of_a_sync() {
        for (tid, done_tid, ahead) in [(7, 5, 2), (5, 5, 0), (4, 5, 0), (0, u32::MAX, 1)] {
            let span = Span {
                tid,
                done_tid,
                ..Span::default()
            };
            assert_eq!(span.commits_ahead(), ahead, "{tid} {done_tid}");
        }
    }
}
