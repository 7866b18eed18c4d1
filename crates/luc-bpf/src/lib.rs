//! The tracer: BPF programs that watch file systems, their journals and the tasks that wait for
//! them, on an unmodified kernel.
//!
//! The programs (`bpf/`) are compiled in and fitted to the running kernel by libbpf.
//! [`Tracer::attach`] takes the best means that the host offers, lists the missing hooks, and does
//! without them. It delivers [spans](luc_trace::Span), or sums and histograms that are cheap enough
//! to stay on ([`Detail`]). Losses are counted: spans without room in the ring, and events that the
//! kernel skipped because the processor was already running their program.
//!
//! [`JournalLister`] lists the states of journals without watching anything.
//!
//! When a [`Tracer`] is dropped or its process is killed, nothing of it stays in the kernel.

mod counts;
mod error;
mod going_on;
mod health;
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

pub use counts::{Counts, Histogram, OTHER_CGROUPS, TaskCounts};
pub use error::TracerError;
pub use going_on::{EARLIER_MAX, EarlierSync, GoingOn};
pub use health::{JournalLister, JournalState};
pub use hooks::{HOOKS, Hook, Means, Wait};
pub use host::{Offer, offer};
pub use settings::{Detail, Settings};
pub use sites::{Extent, Site};
pub use tracer::{Attached, Lack, Tracer};
