//! The disk of a recording, by its commits.
//!
//! What a request takes, a recording does not tell, but how long commits take. So the threads run on
//! disks that could be it, and the one counts whose commits take as long: one whose requests all take
//! the same time, the time that makes the mean right; or a disk of the lab as it is, if that is much
//! nearer. A platter shows by that: a commit that begins later ends with the same turn. What the
//! processors do to commits is in both.

use std::collections::BTreeSet;

use luc_control::Dev;
use luc_disk::presets;
use luc_trace::{SpanKind, Trace};

use super::threads::{Threads, locked_ns};
use crate::disk::DiskKind;
use crate::node::Setup;
use crate::recorder;

/// So many commits of the recording are looked at.
pub(super) const COMMITS_MAX: usize = 128;
/// A disk of the lab counts whose commits differ by less than this share of their mean,
const FITS_SHARE: f64 = 0.01;
/// and by less than this share of what they differ on a disk of one time.
const NEARER_SHARE: f64 = 0.5;
/// The mean is right within this share, or as near as so many runs bring it.
const MEAN_SHARE: f64 = 0.003;
const RUNS_MAX: usize = 6;
/// Times of a request, ns.
const REQUEST_NS: (f64, f64) = (1_000.0, 1e10);
/// Requests at once: waits for other requests are in the recording's times.
const DEPTH: u32 = 64;

/// Lengths of commits, and the times between their ends, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Commits {
    pub lengths: Vec<f64>,
    between: Vec<f64>,
    /// When the last of them ended, ns.
    end_ns: u64,
}

impl Commits {
    /// The first that syncs waited for, or the first of all if none did.
    pub fn of(trace: &Trace, dev: Dev, most: usize) -> Self {
        let wanted: BTreeSet<u32> = trace
            .on(dev)
            .filter(|span| span.kind.is_file_sync() && span.commits_ahead() > 0)
            .map(|span| span.tid)
            .collect();
        let commits = || trace.on(dev).filter(|span| span.kind == SpanKind::Commit);
        let is_any_wanted = commits().any(|span| wanted.contains(&span.tid));
        let counts = |tid| !is_any_wanted || wanted.contains(&tid);
        let mut found = Self::default();
        for commit in commits().filter(|span| counts(span.tid)).take(most) {
            let end_ns = commit.end_ns.max(commit.begin_ns);
            found.lengths.push((end_ns - locked_ns(commit)) as f64);
            if found.end_ns > 0 {
                found
                    .between
                    .push(end_ns.saturating_sub(found.end_ns) as f64);
            }
            found.end_ns = end_ns;
        }
        found
    }

    pub fn mean_ns(&self) -> f64 {
        self.lengths.iter().sum::<f64>() / self.lengths.len().max(1) as f64
    }

    /// The mean distance of deciles, as a share of the mean length: of the lengths or of the times
    /// between, whichever differ more.
    fn distance(&self, other: &Self) -> f64 {
        let apart = |a: &[f64], b: &[f64]| {
            let deciles = 1..10;
            let each = deciles.map(|tenth| (decile(a, tenth) - decile(b, tenth)).abs());
            each.sum::<f64>() / 9.0
        };
        let lengths_ns = apart(&self.lengths, &other.lengths);
        lengths_ns.max(apart(&self.between, &other.between)) / self.mean_ns()
    }
}

fn decile(values: &[f64], tenth: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
        .get(values.len() * tenth / 10)
        .copied()
        .unwrap_or(0.0)
}

/// A disk on which the recording's commits take as long as they did.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// In the words of `luc sim run --disk`.
    pub text: String,
    pub kind: DiskKind,
    /// Of one that is no disk of the lab.
    pub request_ns: Option<f64>,
    /// How far commits on it are from the recording's, as a share of their mean.
    pub off_share: f64,
}

impl Fit {
    /// `setup` has another disk; the recording began at `first_ns`.
    pub fn of(recorded: &Commits, threads: &Threads, setup: &Setup, first_ns: u64) -> Self {
        let until_ns = recorded.end_ns.saturating_sub(first_ns);
        let on = |disk: &DiskKind| {
            let mut setup = setup.clone();
            setup.disk = disk.clone();
            let most = recorded.lengths.len();
            let found = Commits::of(&threads.run(&setup, until_ns), recorder::DEV, most);
            (!found.lengths.is_empty()).then_some(found)
        };
        let steady = Self::steady(recorded, &on);
        let near_share = FITS_SHARE.min(steady.off_share * NEARER_SHARE);
        let known = presets().iter().filter_map(|preset| {
            let kind: DiskKind = preset.name.parse().ok()?;
            let off_share = recorded.distance(&on(&kind)?);
            (off_share < near_share).then(|| Self {
                text: preset.name.to_owned(),
                kind,
                request_ns: None,
                off_share,
            })
        });
        let nearest = known.min_by(|a, b| a.off_share.total_cmp(&b.off_share));
        nearest.unwrap_or(steady)
    }

    /// A disk whose requests all take as long.
    fn steady(recorded: &Commits, on: &impl Fn(&DiskKind) -> Option<Commits>) -> Self {
        // A commit is two requests, one after the other.
        let mut request_ns = recorded.mean_ns() / 2.0;
        let mut best = Self::constant(request_ns);
        let mut best_share = f64::INFINITY;
        for _ in 0..RUNS_MAX {
            let mut next = Self::constant(request_ns);
            let found = on(&next.kind).unwrap_or_default();
            let off_ns = recorded.mean_ns() - found.mean_ns();
            let share = off_ns.abs() / recorded.mean_ns();
            request_ns += off_ns / 2.0;
            if share < best_share {
                next.off_share = recorded.distance(&found);
                (best, best_share) = (next, share);
            }
            if share < MEAN_SHARE {
                break;
            }
        }
        best
    }

    /// One that has not been tried.
    fn constant(request_ns: f64) -> Self {
        let (least_ns, most_ns) = REQUEST_NS;
        let request_ns = request_ns.clamp(least_ns, most_ns).round();
        let text = format!("{request_ns}ns:{DEPTH}");
        Self {
            kind: text.parse().unwrap_or_default(),
            text,
            request_ns: Some(request_ns),
            off_share: f64::INFINITY,
        }
    }
}
