//! What to watch, and how.

use crate::hooks::{HOOKS, Hook, Means};
use crate::host::Offer;
use luc_control::Dev;
use std::path::PathBuf;

/// File systems that can be watched at once, as `abi/luc_tracer.h` says.
pub(crate) const SLOTS: usize = 64;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A span of every operation, commit and wait.
    Timeline,
    /// Sums and histograms.
    Counts,
}

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// File systems.
    pub devs: Vec<Dev>,
    /// Spans or counts.
    pub mode: Mode,
    /// Only operations of these processes; empty: of all.
    pub processes: Vec<u32>,
    /// Only operations of tasks in these control groups, or below them; empty: of all.
    pub cgroups: Vec<PathBuf>,
    /// Size of the ring of spans, KiB; rounded up to a power of two of spans.
    pub ring_kib: u32,
    /// Means that may be taken, for tests and for hosts with trouble.
    pub means: Vec<Means>,
}

impl Settings {
    /// All operations on these file systems.
    pub fn new(devs: Vec<Dev>, mode: Mode) -> Self {
        Self {
            devs,
            mode,
            processes: Vec::new(),
            cgroups: Vec::new(),
            ring_kib: 16 * 1024,
            means: vec![Means::Fentry, Means::Kprobe],
        }
    }

    /// The functions that this mode looks at.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &'static Hook> {
        let timeline = self.mode == Mode::Timeline;
        HOOKS
            .iter()
            .filter(move |hook| timeline || !hook.timeline_only)
    }

    /// Whether calls inside of functions are to be looked for.
    pub(crate) fn sites_wanted(&self, offer: &Offer) -> bool {
        self.means.contains(&Means::Kprobe) && offer.kprobes
    }
}
