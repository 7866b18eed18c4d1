//! Finds the disk of a recording by its commits.
//!
//! A recording does not tell how long requests take, only how long commits take. So the threads run
//! on candidate disks, and the disk whose commits take as long as recorded is chosen: a disk whose
//! requests all take the same time, with the time that makes the mean right; or a disk of the lab,
//! if that is much nearer. This detects a platter: its commits end at the same turn even if they
//! begin later. The effect of the processors on commits is part of both.
//!
//! Running the threads costs most. So only a few commits are run, and a disk of the lab is tried
//! only if the mean could be right, judging by how long commits take on the disk alone.

use std::collections::BTreeSet;

use luc_disk::{Request, presets};
use luc_trace::{Span, SpanKind};

use super::threads::{Threads, whole_ns};
use crate::disk::{Disk, DiskKind};
use crate::node::Setup;
use crate::units::{BLOCK_BYTES, BLOCK_SECTORS};

/// How many commits of the recording are compared.
pub(super) const COMMITS_MAX: usize = 40;
/// A disk of the lab is chosen only if its commits differ by less than this share of their mean,
const FITS_SHARE: f64 = 0.01;
/// and by less than this share of the difference on a disk of constant time.
const NEARER_SHARE: f64 = 0.5;
/// It is tried if the disk alone gives a mean that is off by less than this share.
const ALONE_SHARE: f64 = 0.15;
/// Blocks that a commit writes to the log in that test.
const ALONE_BLOCKS: u32 = 8;
/// The mean is right within this share, or as close as this many runs bring it.
const MEAN_SHARE: f64 = 0.005;
const RUNS_MAX: usize = 4;
/// Bounds of a request's time, ns.
const REQUEST_NS: (f64, f64) = (1_000.0, 1e10);
/// Requests at once: the recorded times include waits for other requests.
const DEPTH: u32 = 64;

/// Lengths of commits, and the times between their ends, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Commits {
    pub lengths: Vec<f64>,
    between: Vec<f64>,
    /// When the last commit ended, ns.
    end_ns: u64,
}

impl Commits {
    /// Collects the first commits that syncs waited for, or the first commits of any kind if syncs
    /// waited for none.
    pub fn collect(spans: &[Span], most: usize) -> Self {
        let wanted: BTreeSet<u32> = spans
            .iter()
            .filter(|span| span.kind.is_file_sync() && span.commits_ahead() > 0)
            .map(|span| span.tid)
            .collect();
        let commits = || spans.iter().filter(|span| span.kind == SpanKind::Commit);
        let is_any_wanted = commits().any(|span| wanted.contains(&span.tid));
        let counts = |tid| !is_any_wanted || wanted.contains(&tid);
        let mut found = Self::default();
        for commit in commits().filter(|span| counts(span.tid)).take(most) {
            let end_ns = commit.end_ns.max(commit.begin_ns);
            found.add(commit.locked_ns(), end_ns);
        }
        found
    }

    fn add(&mut self, locked_ns: u64, end_ns: u64) {
        self.lengths.push((end_ns - locked_ns) as f64);
        if self.end_ns > 0 {
            let between_ns = end_ns.saturating_sub(self.end_ns);
            self.between.push(between_ns as f64);
        }
        self.end_ns = end_ns;
    }

    pub fn mean_ns(&self) -> f64 {
        self.lengths.iter().sum::<f64>() / self.lengths.len().max(1) as f64
    }

    /// Returns the same commits on an otherwise idle disk, with the same pauses between them.
    fn alone(&self, kind: &DiskKind, setup: &Setup) -> Self {
        let mut disk = Disk::new(kind.clone(), setup.seed);
        let log_sector = setup.journal.layout().log_sector;
        let (mut now_ns, mut block) = (0, 0);
        let mut serve = |request, now_ns: &mut u64| {
            let mut end = None;
            disk.submit(request, (), *now_ns, |it| end = Some(it));
            while let Some(it) = end.take() {
                *now_ns = it.at_ns;
                disk.ended(it.number, it.at_ns, |next| end = Some(next));
            }
        };
        let mut found = Self::default();
        for (at, length_ns) in self.lengths.iter().enumerate() {
            let between_ns = at.checked_sub(1).map(|before| self.between[before]);
            now_ns += whole_ns(between_ns.map_or(0.0, |ns| ns - length_ns));
            let locked_ns = now_ns;
            let sector = |block: u64| log_sector + block * BLOCK_SECTORS;
            let log = Request::write(sector(block), ALONE_BLOCKS * BLOCK_BYTES);
            serve(log, &mut now_ns);
            if kind.is_volatile {
                serve(Request::flush(), &mut now_ns);
            }
            block += u64::from(ALONE_BLOCKS);
            serve(Request::write_fua(sector(block), BLOCK_BYTES), &mut now_ns);
            block += 1;
            found.add(locked_ns, now_ns);
        }
        found
    }

    /// Returns the mean distance of the deciles, as a share of the mean length: of the lengths or
    /// of the times between, whichever is larger.
    fn distance(&self, other: &Self) -> f64 {
        let apart = |a: &[f64], b: &[f64]| {
            let (a, b) = (sorted(a), sorted(b));
            let each = (1..10).map(|tenth| (decile(&a, tenth) - decile(&b, tenth)).abs());
            each.sum::<f64>() / 9.0
        };
        let lengths_ns = apart(&self.lengths, &other.lengths);
        lengths_ns.max(apart(&self.between, &other.between)) / self.mean_ns()
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn decile(sorted: &[f64], tenth: usize) -> f64 {
    let at = sorted.len() * tenth / 10;
    sorted.get(at).copied().unwrap_or(0.0)
}

/// A disk on which the recording's commits take as long as recorded.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The disk, in the words of `luc-lab sim run --disk`.
    pub text: String,
    pub kind: DiskKind,
    /// Time of a request; `None` for a disk of the lab.
    pub request_ns: Option<f64>,
    /// Distance of its commits from the recording's, as a share of their mean.
    off_share: f64,
    /// How much longer a commit takes on average than its requests.
    more_ns: f64,
}

impl Fit {
    /// Finds the disk; that of `setup` does not matter. The recording began at `first_ns`.
    pub fn search(recorded: &Commits, threads: &Threads, setup: &Setup, first_ns: u64) -> Self {
        let until_ns = recorded.end_ns.saturating_sub(first_ns);
        let on = |disk: &DiskKind| {
            let mut setup = setup.clone();
            setup.disk = disk.clone();
            let most = recorded.lengths.len();
            let found = Commits::collect(&threads.run(&setup, until_ns).spans, most);
            (!found.lengths.is_empty()).then_some(found)
        };
        let steady = Self::steady(recorded, &on);
        let near_share = FITS_SHARE.min(steady.off_share * NEARER_SHARE);
        let known = presets().iter().filter_map(|preset| {
            let kind: DiskKind = preset.name.parse().ok()?;
            let alone_ns = recorded.alone(&kind, setup).mean_ns() + steady.more_ns;
            let alone_share = (alone_ns / recorded.mean_ns() - 1.0).abs();
            if alone_share > ALONE_SHARE {
                return None;
            }
            let off_share = recorded.distance(&on(&kind)?);
            (off_share < near_share).then(|| Self {
                text: preset.name.to_owned(),
                kind,
                request_ns: None,
                off_share,
                more_ns: 0.0,
            })
        });
        let nearest = known.min_by(|a, b| a.off_share.total_cmp(&b.off_share));
        nearest.unwrap_or(steady)
    }

    /// Finds the disk whose requests all take the same time.
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
            if share < best_share {
                next.off_share = recorded.distance(&found);
                next.more_ns = found.mean_ns() - 2.0 * request_ns;
                (best, best_share) = (next, share);
            }
            if share < MEAN_SHARE {
                break;
            }
            request_ns += off_ns / 2.0;
        }
        best
    }

    /// Creates a disk of constant time that has not been tried.
    fn constant(request_ns: f64) -> Self {
        let (least_ns, most_ns) = REQUEST_NS;
        let request_ns = request_ns.clamp(least_ns, most_ns).round();
        let text = format!("{request_ns}ns:{DEPTH}");
        Self {
            kind: text.parse().unwrap_or_default(),
            text,
            request_ns: Some(request_ns),
            off_share: f64::INFINITY,
            more_ns: 0.0,
        }
    }
}
