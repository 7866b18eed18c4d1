//! The tracer: BPF programs that watch file systems, their journals and who
//! waits for them, on a kernel as it is.
//!
//! The programs (`bpf/`) are compiled in and fitted to the running kernel by
//! libbpf. [`Tracer::attach`] finds out what the host offers and takes the
//! best of it; what it cannot have it lists, and does without. In
//! [`Mode::Timeline`] it delivers [spans](luc_trace::Span), in
//! [`Mode::Counts`] sums and histograms, at a cost that can be left on. What
//! is lost is counted: spans that found no room in the ring, and programs that
//! the kernel did not run because the processor was running them already.
//!
//! When a [`Tracer`] is dropped nothing of it stays in the kernel, and the
//! kernel sees to that where the process is killed.

mod counts;
mod error;
mod hooks;
mod host;
mod load;
mod misses;
mod ring;
mod said;
mod settings;
mod sites;
mod text;
mod tracer;

pub use counts::{Counts, Histogram, ProcessCounts, WAITS};
pub use error::TracerError;
pub use hooks::{HOOKS, Hook, Means, TRACEPOINTS, Tracepoint, Wait};
pub use host::{Offer, offer};
pub use settings::{Mode, Settings};
pub use sites::{Extent, Place, SITES, Site};
pub use tracer::{Attached, Lack, Tracer};
