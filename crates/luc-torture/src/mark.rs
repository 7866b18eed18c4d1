//! Marks: the workload's intents, and the syncs that the kernel acknowledged.
//!
//! One mark is one write(2) of at most [`MARK_BYTES_MAX`] bytes, to a file opened for appending or
//! to the log of a recorded disk. Numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | `LUCM` |
//! | 4 | version of the format, 1 |
//! | 5 | kind of the event |
//! | 6..8 | length of the whole mark |
//! | 8..16 | hash of everything after it, seeded with the four bytes before it |
//! | 16..20 | thread |
//! | 20..24 | number of the mark within its thread |
//! | 24.. | the event's fields in the order of [`Event`]; texts with their length in 2 bytes |
//!
//! In a disk's log, each mark follows its length (4 bytes, in the machine's own order) and its
//! place in the log (8 bytes). [`read`] takes both formats; in a plain file the place is the
//! ordinal.

use luc_base::random::mix;

/// Most bytes of a mark: a disk's log takes them in one piece.
pub const MARK_BYTES_MAX: usize = 4096;
const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"LUCM";
const HEAD_BYTES: usize = 24;
/// Length and place before each mark in a disk's log.
const FRAME_BYTES: usize = 12;

/// Target of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file: fsync or fdatasync.
    File(u32),
    /// A directory: fsync.
    Dir(String),
    /// The file system: syncfs.
    All,
}

/// The promise that a write's own flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A plain write.
    None,
    /// `O_DSYNC`.
    Data,
    /// `O_SYNC`.
    Full,
}

/// An intent of a thread, or an acknowledgement to it. All but the last three are written before
/// their system call, so that a mark explains everything in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first mark of all.
    Start {
        /// Tells the sectors of this run from those of others.
        session: u64,
        /// Threads, besides thread 0 which prepares.
        threads: u32,
    },
    /// Creates a file, which must not exist. Its number is never used again.
    Create { file: u32, path: String },
    /// Makes a directory.
    MakeDir { path: String },
    /// Removes an empty directory.
    RemoveDir { path: String },
    /// Gives a file a further name.
    Link { file: u32, path: String },
    /// Renames a file, perhaps over another.
    Rename { from: String, to: String },
    /// Removes a name of a file.
    Unlink { path: String },
    /// Writes whole sectors. With a durability, [`Event::Synced`] follows.
    Write {
        file: u32,
        /// The first sector.
        sector: u32,
        /// Number of sectors.
        sectors: u32,
        /// The version of all of them.
        version: u64,
        durability: Durability,
    },
    /// Sets the size of a file.
    Truncate { file: u32, bytes: u64 },
    /// Syncs; [`Event::Synced`] follows.
    Sync {
        target: Target,
        /// fdatasync.
        data_only: bool,
    },
    /// Calls `sync_file_range`, which promises nothing about a crash.
    SyncRange { file: u32 },
    /// The sync, or the durable write, before this mark returned success.
    Synced,
    /// The call before this mark failed; the thread does nothing more.
    Failed { errno: i32 },
    /// The thread has ended.
    Done,
}

/// An event with its thread and its number within the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub thread: u32,
    /// Counts the marks of the thread from 0, so that a lost mark is noticed.
    pub number: u32,
    pub event: Event,
}

/// A mark with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Place in the log of the disk, or ordinal from 0.
    pub index: u64,
    pub mark: Mark,
}

/// Why marks cannot be used. `at` is a mark's ordinal or place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// Neither a plain file of marks nor the log of a disk.
    #[error("contains no marks: it starts neither with a mark nor like a disk's log")]
    NoMarks,
    /// The bytes end within a mark.
    #[error("mark {at} is truncated")]
    CutOff { at: u64 },
    /// The mark is not as it was written.
    #[error("mark {at} is damaged: {what}")]
    Damaged { at: u64, what: &'static str },
    /// The mark is from another version of this program.
    #[error("mark {at} has format version {version}, this program reads version {VERSION}")]
    Version { at: u64, version: u8 },
    /// The mark makes no sense after the marks before it.
    #[error("mark {at} of thread {thread} makes no sense: {why}")]
    Nonsense { at: u64, thread: u32, why: String },
    /// A name is too long for a mark.
    #[error("a mark of {bytes} bytes is too long, at most {MARK_BYTES_MAX}")]
    TooLong { bytes: usize },
}

fn hash(bytes: &[u8], seed: u64) -> u64 {
    bytes.chunks(8).fold(mix(seed ^ 1), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word)).wrapping_add(chunk.len() as u64)
    })
}

fn seed(head: &[u8]) -> u64 {
    head.iter()
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

struct Out(Vec<u8>);

impl Out {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        // A longer text makes the mark too long, which `encode` notices at its end.
        let bytes = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.0.extend(bytes.to_le_bytes());
        self.0.extend(text.as_bytes());
        self
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn text(&mut self) -> Option<String> {
        let bytes = self.array().map(u16::from_le_bytes)?;
        let text = self.take(usize::from(bytes))?;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Event {
    fn kind(&self) -> u8 {
        match self {
            Event::Start { .. } => 0,
            Event::Create { .. } => 1,
            Event::MakeDir { .. } => 2,
            Event::RemoveDir { .. } => 3,
            Event::Link { .. } => 4,
            Event::Rename { .. } => 5,
            Event::Unlink { .. } => 6,
            Event::Write { .. } => 7,
            Event::Truncate { .. } => 8,
            Event::Sync { .. } => 9,
            Event::SyncRange { .. } => 10,
            Event::Synced => 11,
            Event::Failed { .. } => 12,
            Event::Done => 13,
        }
    }

    fn put(&self, out: &mut Out) {
        match self {
            Event::Start { session, threads } => out.u64(*session).u32(*threads),
            Event::Create { file, path } | Event::Link { file, path } => out.u32(*file).text(path),
            Event::MakeDir { path } | Event::RemoveDir { path } | Event::Unlink { path } => {
                out.text(path)
            }
            Event::Rename { from, to } => out.text(from).text(to),
            Event::Write {
                file,
                sector,
                sectors,
                version,
                durability,
            } => out
                .u32(*file)
                .u32(*sector)
                .u32(*sectors)
                .u64(*version)
                .byte(*durability as u8),
            Event::Truncate { file, bytes } => out.u32(*file).u64(*bytes),
            Event::Sync { target, data_only } => {
                out.byte(u8::from(*data_only));
                match target {
                    Target::File(file) => out.byte(0).u32(*file),
                    Target::Dir(path) => out.byte(1).text(path),
                    Target::All => out.byte(2),
                }
            }
            Event::SyncRange { file } => out.u32(*file),
            Event::Failed { errno } => out.u32(errno.cast_unsigned()),
            Event::Synced | Event::Done => out,
        };
    }

    fn get(kind: u8, from: &mut In) -> Option<Event> {
        Some(match kind {
            0 => Event::Start {
                session: from.u64()?,
                threads: from.u32()?,
            },
            1 => Event::Create {
                file: from.u32()?,
                path: from.text()?,
            },
            2 => Event::MakeDir { path: from.text()? },
            3 => Event::RemoveDir { path: from.text()? },
            4 => Event::Link {
                file: from.u32()?,
                path: from.text()?,
            },
            5 => Event::Rename {
                from: from.text()?,
                to: from.text()?,
            },
            6 => Event::Unlink { path: from.text()? },
            7 => Event::Write {
                file: from.u32()?,
                sector: from.u32()?,
                sectors: from.u32()?,
                version: from.u64()?,
                durability: match from.byte()? {
                    0 => Durability::None,
                    1 => Durability::Data,
                    2 => Durability::Full,
                    _ => return None,
                },
            },
            8 => Event::Truncate {
                file: from.u32()?,
                bytes: from.u64()?,
            },
            9 => Event::Sync {
                data_only: match from.byte()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                },
                target: match from.byte()? {
                    0 => Target::File(from.u32()?),
                    1 => Target::Dir(from.text()?),
                    2 => Target::All,
                    _ => return None,
                },
            },
            10 => Event::SyncRange { file: from.u32()? },
            11 => Event::Synced,
            12 => Event::Failed {
                errno: from.u32()?.cast_signed(),
            },
            13 => Event::Done,
            _ => return None,
        })
    }
}

impl Mark {
    /// The mark's bytes.
    ///
    /// # Errors
    /// A name is too long.
    pub fn encode(&self) -> Result<Vec<u8>, MarkError> {
        let mut out = Out(MAGIC.to_vec());
        out.byte(VERSION).byte(self.event.kind());
        // Room for length and hash, until they are known.
        out.0.resize(16, 0);
        out.u32(self.thread).u32(self.number);
        self.event.put(&mut out);
        let mut bytes = out.0;
        if bytes.len() > MARK_BYTES_MAX {
            return Err(MarkError::TooLong { bytes: bytes.len() });
        }
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        bytes[6..8].copy_from_slice(&length.to_le_bytes());
        let sum = hash(&bytes[16..], seed(&bytes[4..8]));
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// The mark at the beginning of `bytes`, and its length.
    fn decode(bytes: &[u8], at: u64) -> Result<(Mark, usize), MarkError> {
        let damaged = |what| MarkError::Damaged { at, what };
        let head = bytes.get(..HEAD_BYTES).ok_or(MarkError::CutOff { at })?;
        if head[..4] != MAGIC {
            return Err(damaged("it does not start like a mark"));
        }
        let version = head[4];
        if version != VERSION {
            return Err(MarkError::Version { at, version });
        }
        let length = usize::from(u16::from_le_bytes([head[6], head[7]]));
        if !(HEAD_BYTES..=MARK_BYTES_MAX).contains(&length) {
            return Err(damaged("its length is impossible"));
        }
        let whole = bytes.get(..length).ok_or(MarkError::CutOff { at })?;
        let sum = hash(&whole[16..], seed(&whole[4..8]));
        if whole[8..16] != sum.to_le_bytes() {
            return Err(damaged("its hash is wrong"));
        }
        let mut from = In(&whole[16..]);
        let mark = (|| {
            Some(Mark {
                thread: from.u32()?,
                number: from.u32()?,
                event: Event::get(whole[5], &mut from)?,
            })
        })();
        match mark {
            Some(mark) if from.0.is_empty() => Ok((mark, length)),
            _ => Err(damaged("its fields are not those of its kind")),
        }
    }
}

/// All marks of a plain file or of a disk's log; none if it is empty.
///
/// # Errors
/// The first place at which there is no mark.
pub fn read(bytes: &[u8]) -> Result<Vec<Placed>, MarkError> {
    let framed = bytes.get(FRAME_BYTES..FRAME_BYTES + 4) == Some(&MAGIC[..]);
    if !bytes.is_empty() && !framed && !bytes.starts_with(&MAGIC) {
        return Err(MarkError::NoMarks);
    }
    let mut marks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let ordinal = marks.len() as u64;
        if !framed {
            let (mark, length) = Mark::decode(rest, ordinal)?;
            marks.push(Placed {
                index: ordinal,
                mark,
            });
            rest = &rest[length..];
            continue;
        }
        let mut from = In(rest);
        let cut_off = MarkError::CutOff { at: ordinal };
        let frame = from.array().map(u32::from_ne_bytes).zip(from.array());
        let (length, index) = frame.ok_or(cut_off.clone())?;
        let index = u64::from_ne_bytes(index);
        let whole = usize::try_from(length).ok().and_then(|n| from.take(n));
        let whole = whole.ok_or(cut_off)?;
        let (mark, length) = Mark::decode(whole, index)?;
        if length != whole.len() {
            return Err(MarkError::Damaged {
                at: index,
                what: "its length is not that in the log",
            });
        }
        marks.push(Placed { index, mark });
        rest = from.0;
    }
    Ok(marks)
}
