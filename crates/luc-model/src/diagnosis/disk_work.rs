//! Requests that keep the disk busy while syncs wait for it.

use super::facts::{DiskWork, Facts, Work};
use super::words;

/// With fewer requests in progress on average, the disk is free of them for four fifths of the time
/// or more.
const IN_PROGRESS_MIN: f64 = 0.20;

/// Returns the work that keeps the disk busy.
pub(super) fn competing(facts: &Facts) -> Vec<DiskWork> {
    let busy = |work: &&DiskWork| work.in_progress_mean >= IN_PROGRESS_MIN;
    facts.disk_work.iter().filter(busy).cloned().collect()
}

impl DiskWork {
    /// `syncer` is the process whose syncs take most time.
    pub(super) fn advice(&self, facts: &Facts, syncer: Option<&str>) -> Vec<String> {
        let node = &self.node;
        // A cast saturates, and the rate is not negative.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bytes = words::bytes(self.bytes_per_s as u64);
        let size = format!(
            "{bytes} per second in {} requests, {} of them in progress on average",
            luc_base::words::rate(self.requests_per_s),
            words::three(self.in_progress_mean)
        );
        match (self.work, self.by.as_deref()) {
            (Work::Reads, Some(reader)) if Some(reader) == syncer => vec![
                format!(
                    "{reader} also reads from {node}, {size}: its syncs wait behind its reads."
                ),
                "More memory for its cache saves reads.".into(),
            ],
            (Work::Reads, reader) => {
                let reader = reader.unwrap_or("Something");
                vec![
                    format!("{reader} reads from {node}, {size}: syncs wait behind these reads."),
                    format!(
                        "Let {} read at another time, or limit it (io.max).",
                        self.by.as_deref().unwrap_or("it")
                    ),
                ]
            }
            (Work::Discards, _) => vec![
                format!("{node} discards freed space, {size}: syncs wait behind these discards."),
                if facts.option("discard") {
                    "Mount without discard, and let fstrim do it at a quiet time.".into()
                } else {
                    "Wait until that ends, or let fstrim run at a quiet time.".into()
                },
            ],
            (Work::Others, by) => vec![
                format!(
                    "{node} also serves others than this file system{}, {size}.",
                    by.map_or_else(String::new, |by| format!(", mostly {by}"))
                ),
                "Give one of them a disk of its own, or limit the others (io.max).".into(),
            ],
        }
    }
}
