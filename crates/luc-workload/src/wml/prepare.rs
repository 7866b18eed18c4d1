//! Makes the files that exist before the run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use luc_wml::plan::Plan;
use rustix::fs::OFlags;

use super::draw::Draws;
use super::fileset::{Kind, LiveFileset, Made, PathBuffer};
use super::park::Park;
use super::tree::Tree;
use crate::dir::Dir;
use crate::{Result, Stop};

/// Bytes of each write, as in Filebench.
const CHUNK: usize = 1 << 20;
/// Threads that write the files if a fileset asks for several.
const THREADS: usize = 32;
/// The largest number of the generator that decides which files exist.
const RAND_MAX: u64 = 0x7fff_ffff;

/// A callback for each step that begins, with the step's length if it is known.
pub type Say<'a> = dyn FnMut(&str, Option<Duration>) + 'a;

type Live = LiveFileset<Park>;

/// Draws all filesets and makes their directories and files. If `stop` is raised, it returns with
/// the filesets incomplete.
pub fn prepare(
    plan: &Plan,
    draws: &mut Draws,
    root: &Dir,
    stop: &Stop,
    say: &mut Say<'_>,
) -> Result<Vec<Live>> {
    lay_out(plan, draws, |live: &mut Live, files, leaf_dirs| {
        say(&format!("preparing fileset {}", live.plan.name), None);
        let made = make(live, files, leaf_dirs, root, stop)?;
        live.cut_short = stop.is_set().then_some(made);
        Ok(())
    })
}

fn make(live: &Live, files: &[u32], leaf_dirs: &[u32], root: &Dir, stop: &Stop) -> Result<Made> {
    let mut made = Made::default();
    if stop.is_set() {
        return Ok(made);
    }
    make_dirs(live, root)?;
    made.dirs = live.tree.dirs.len() as u64;
    (made.files, made.bytes) = make_files(live, files, root, stop)?;
    if !stop.is_set() {
        make_leaf_dirs(live, leaf_dirs, root)?;
        made.leaf_dirs = leaf_dirs.len() as u64;
    }
    Ok(made)
}

/// Draws all filesets; `make` gets each with the files and leaf directories to make, in order.
///
/// Filebench goes through its filesets from the one defined last, so the draws here do, too.
///
/// # Errors
/// If a tree cannot be laid out, or the first error of `make`.
pub fn lay_out<W: Default>(
    plan: &Plan,
    draws: &mut Draws,
    mut make: impl FnMut(&mut LiveFileset<W>, &[u32], &[u32]) -> Result<()>,
) -> Result<Vec<LiveFileset<W>>> {
    let mut all = Vec::with_capacity(plan.filesets.len());
    for fileset in plan.filesets.iter().rev() {
        let tree = Tree::draw(fileset, draws)?;
        let mut live = LiveFileset::new(fileset, tree);
        let (files, leaf_dirs) = choose(&mut live, draws);
        make(&mut live, &files, &leaf_dirs)?;
        all.push(live);
    }
    all.reverse();
    Ok(all)
}

/// Decides which entries exist and in which order they are made. Filebench picks entries at random,
/// to scatter them, and draws for each whether it exists.
fn choose<W: Default>(live: &mut LiveFileset<W>, draws: &mut Draws) -> (Vec<u32>, Vec<u32>) {
    let percent = draws.whole(live.plan.prealloc_percent).min(100);
    let missing = RAND_MAX * (100 - percent) / 100;
    let mut files = order(live.files.count(), draws, |drawn| {
        missing == 0 || drawn > missing
    });
    let leaf_dirs = order(live.leaf_dirs.count(), draws, |drawn| drawn >= missing);
    for &index in &files {
        live.files.set_existing(index);
    }
    for &index in &leaf_dirs {
        live.leaf_dirs.set_existing(index);
    }
    live.preallocated = files.len() as u64;
    files.shrink_to_fit();
    (files, leaf_dirs)
}

fn order(count: usize, draws: &mut Draws, exists: impl Fn(u64) -> bool) -> Vec<u32> {
    let mut free = Free::new(count);
    let mut chosen = Vec::with_capacity(count);
    while let Some(index) = free.take(draws.generator.scaled(count as u64, 0)) {
        if exists(draws.generator.bits31()) {
            chosen.push(index);
        }
    }
    chosen
}

/// The entries that were not yet picked: each entry points to the next of these at or after itself.
struct Free {
    next: Vec<u32>,
    left: usize,
}

impl Free {
    fn new(count: usize) -> Self {
        // A tree has fewer than 2^32 entries; the index past the end stands for none.
        let last = u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            next: (0..=last).collect(),
            left: count,
        }
    }

    /// Takes the first free entry at or after `from`, or else the first of all.
    fn take(&mut self, from: u64) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let end = self.next.len() - 1;
        let from = usize::try_from(from).map_or(end, |from| from.min(end));
        let mut found = self.find(from);
        if found == end {
            found = self.find(0);
        }
        self.next[found] += 1;
        u32::try_from(found).ok()
    }

    fn find(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.next[at] as usize != at {
            // Each step shortens the path for the next search.
            let further = self.next[self.next[at] as usize];
            self.next[at] = further;
            at = further as usize;
        }
        at
    }
}

/// Makes the directories from the one drawn last, each after its parents: Filebench's order.
fn make_dirs(live: &Live, root: &Dir) -> Result<()> {
    let mut made = vec![false; live.tree.dirs.len()];
    let mut way = Vec::new();
    for last in (0..live.tree.dirs.len()).rev() {
        let mut at = last;
        while !made[at] {
            way.push(at);
            made[at] = true;
            match live.tree.dirs[at].parent {
                Some(parent) => at = parent as usize,
                None => break,
            }
        }
        while let Some(dir) = way.pop() {
            // There are fewer than 2^32 directories.
            let dir = u32::try_from(dir).unwrap_or(u32::MAX);
            root.mkdir(live.dir(dir), 0o755)?;
        }
    }
    Ok(())
}

/// Returns how many files were made, and their bytes.
fn make_files(live: &Live, order: &[u32], root: &Dir, stop: &Stop) -> Result<(u64, u64)> {
    let threads = if live.plan.parallel_alloc {
        THREADS.min(order.len())
    } else {
        1
    };
    let next = AtomicUsize::new(0);
    let failed = Stop::new();
    let work = || -> Result<(u64, u64)> {
        let (mut files, mut bytes) = (0, 0);
        let zeros = vec![0_u8; CHUNK];
        let mut path = PathBuffer::default();
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.is_set() || failed.is_set() {
                break;
            }
            let made = make_file(live, index, &zeros, &mut path, root);
            made.inspect_err(|_| failed.set())?;
            files += 1;
            bytes += live.leaf(Kind::File, index).bytes;
        }
        Ok((files, bytes))
    };
    if threads <= 1 {
        return work();
    }
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut result = Ok((0, 0));
        for handle in handles {
            match handle.join() {
                Ok(one) => {
                    result = result.and_then(|sum| one.map(|one| (sum.0 + one.0, sum.1 + one.1)));
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })
}

fn make_file(
    live: &Live,
    index: u32,
    zeros: &[u8],
    path: &mut PathBuffer,
    root: &Dir,
) -> Result<()> {
    let leaf = live.leaf(Kind::File, index);
    live.leaf_path(leaf, path);
    let flags = OFlags::CREATE | OFlags::RDWR;
    let file = root.open_as("create", path.get(), flags, 0o644)?;
    let mut left = leaf.bytes;
    while left > 0 {
        let length = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        root.write(&file, path.get(), &zeros[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn make_leaf_dirs(live: &Live, order: &[u32], root: &Dir) -> Result<()> {
    let mut path = PathBuffer::default();
    for &index in order {
        live.leaf_path(live.leaf(Kind::LeafDir, index), &mut path);
        root.mkdir(path.get(), 0o755)?;
    }
    Ok(())
}
