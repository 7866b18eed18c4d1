//! The events to watch, and the means.

use crate::hooks::{HOOKS, Hook, Means, TIMELINE_TRACEPOINTS, TRACEPOINTS};
use crate::host::Offer;
use luc_control::Dev;
use std::path::PathBuf;

/// File systems that can be watched at once: `LUC_COUNTS_SLOTS` of `abi/luc_tracer.h`.
pub(crate) const SLOTS: usize = 64;

/// The tracer's output: spans or sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A span of every operation, commit and wait.
    Spans,
    /// Sums and histograms.
    Sums,
}

/// The events to watch, and the means.
#[derive(Clone, Debug)]
pub struct Settings {
    pub devs: Vec<Dev>,
    pub detail: Detail,
    /// Watches only operations of these processes; of all if empty.
    pub processes: Vec<u32>,
    /// Watches only operations of tasks in these control groups or below them; of all if empty.
    pub cgroups: Vec<PathBuf>,
    /// Size of the ring of spans, KiB; rounded up so that the number of spans is a power of two.
    pub ring_kib: u32,
    /// Allowed means; fewer in tests, and on hosts where one causes trouble.
    pub means: Vec<Means>,
}

impl Settings {
    /// Settings to watch all operations on these file systems.
    pub fn new(devs: Vec<Dev>, detail: Detail) -> Self {
        Self {
            devs,
            detail,
            processes: Vec::new(),
            cgroups: Vec::new(),
            ring_kib: 16 * 1024,
            means: vec![Means::Fentry, Means::Kprobe],
        }
    }

    /// The hooks that this detail needs.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &'static Hook> {
        let spans = self.detail == Detail::Spans;
        HOOKS
            .iter()
            .filter(move |hook| spans || !hook.timeline_only)
    }

    /// The programs of the tracepoints that this detail needs.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = &'static str> {
        let timeline = TIMELINE_TRACEPOINTS
            .iter()
            .filter(|_| self.detail == Detail::Spans);
        TRACEPOINTS.iter().chain(timeline).copied()
    }

    /// Whether to look for calls inside functions.
    pub(crate) fn sites_wanted(&self, offer: &Offer) -> bool {
        self.means.contains(&Means::Kprobe) && offer.kprobes
    }
}
