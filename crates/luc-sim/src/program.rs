//! What a task does: a program gives one operation after the other.

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sleeps until this time, ns.
    SleepUntil(u64),
    /// Computes so many instructions.
    Compute(u64),
    /// Makes a directory, unless another task has.
    MakeDir {
        dir: u32,
    },
    /// Makes a file in this directory, which is the task's file from then on.
    Create {
        dir: u32,
    },
    /// Appends so many bytes to the task's file.
    Write {
        bytes: u32,
    },
    Fsync,
    Close,
    End,
}

/// How the operation before went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Went {
    pub begun_ns: u64,
    pub ended_ns: u64,
}

impl Went {
    pub fn took_ns(&self) -> u64 {
        self.ended_ns - self.begun_ns
    }
}

/// A task's program.
pub trait Program {
    /// The next operation; `went` tells of the one before, whose end is now.
    fn next(&mut self, went: &Went) -> Op;
}
