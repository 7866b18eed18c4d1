//! An engine for workload files in Filebench's language: `luc-lab bench run`.
//!
//! It runs a [`Plan`](luc_wml::plan::Plan) as Filebench 1.5 does, down to which entry an operation
//! takes, when sizes are drawn, and what counts as an operation. It differs in these points:
//!
//! - Processes of the workload are groups of threads of one process. Each thread has its own table
//!   of open files, as in Filebench, so nothing but the address space and descriptors is shared.
//! - No lock is shared by all threads on the path of an operation: entries of a fileset are picked
//!   with atomic operations (`rotor`), counts are kept per thread, events are taken from a clock
//!   (`sync`). A thread sleeps where Filebench spins.
//! - If every entry in the wanted state is busy, a thread waits for one; Filebench waits only while
//!   no entry at all is idle, and otherwise ends the run.
//! - The filesets are made in one new directory inside the given one, whatever path the file names,
//!   and are removed with it, so there is nothing to reuse.
//! - A thread that only reads and writes at random offsets opens a file once, not once in each slot
//!   of `opennext`: all processes share one table of descriptors, and its limit may be low.
//! - The threads' memory is not touched before it is used, and the data written are zeros.

mod aio;
mod chosen;
mod draw;
mod engine;
mod fileset;
mod halt;
mod jobs;
mod ops_files;
mod ops_flow;
mod ops_io;
mod options;
mod park;
mod prepare;
mod queue;
mod random;
mod real;
mod report;
mod rotor;
mod run;
mod statements;
mod stats;
mod sync;
mod system;
#[cfg(test)]
mod tests;
mod thread;
mod tree;

pub use chosen::{Chosen, NoPreset};
pub use options::{AioWait, WmlOptions};
pub use prepare::Say;
pub use report::{FilesetResult, FlowopResult, WmlResult};
pub use run::run;

/// The engine without the real system, for plans on another [`System`](parts::System).
pub mod parts {
    pub use super::aio::THREADS_MAX;
    pub use super::engine::{Engine, Job};
    pub use super::fileset::Kind;
    pub use super::halt::{Flow, Halt};
    pub use super::jobs::{aio_bytes, draws, program};
    pub use super::prepare::lay_out;
    pub use super::queue::Queue;
    pub use super::run::timing;
    pub use super::statements::commands;
    pub use super::system::{ByName, Chunk, Counted, EntryId, Position, System, Ticket, Work};
    pub use super::thread::Thread;
}
