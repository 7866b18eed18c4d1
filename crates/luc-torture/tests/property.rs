//! Random histories on a file system that works: whatever it holds after a power cut is accepted,
//! and whatever it cannot hold is not.

mod support;

use luc_torture::sector::SECTOR_BYTES;
use luc_torture::{DataMode, Kind, Violation, verify};
use proptest::prelude::*;
use support::sim::{Bug, Sim};
use support::{MemTree, sector};

fn judge(sim: &Sim, tree: &MemTree) -> Vec<Violation> {
    judge_in(sim, tree, DataMode::Ordered)
}

fn judge_in(sim: &Sim, tree: &MemTree, mode: DataMode) -> Vec<Violation> {
    let report = verify(tree, &sim.marker.history, mode);
    report.expect("a tree").violations
}

fn has(violations: &[Violation], kinds: &[Kind]) -> bool {
    let mut found = violations.iter().map(|violation| violation.kind);
    found.any(|kind| kinds.contains(&kind))
}

/// A random one of the names for which the condition holds.
fn pick(sim: &mut Sim, tree: &MemTree, is: impl Fn(&Sim, u64) -> bool) -> Option<String> {
    let names = tree.names.iter().filter(|(_, inode)| is(sim, **inode));
    let names: Vec<&String> = names.map(|(path, _)| path).collect();
    let index = usize::try_from(sim.below(names.len() as u64)).unwrap();
    names.get(index).map(|path| (*path).clone())
}

/// A file with at least a sector.
fn long(sim: &mut Sim, tree: &MemTree) -> Option<String> {
    pick(sim, tree, |_, inode| {
        tree.inodes[&inode].len() >= SECTOR_BYTES
    })
}

/// A file whose whole state is promised.
fn promised(sim: &mut Sim, tree: &MemTree) -> Option<String> {
    pick(sim, tree, |sim, inode| {
        sim.pristine.contains(&u32::try_from(inode).unwrap())
    })
}

fn written(data: &[u8]) -> impl Iterator<Item = usize> {
    let sectors = data.chunks(SECTOR_BYTES).enumerate();
    sectors.filter(|(_, bytes)| bytes[0] != 0).map(|(at, _)| at)
}

/// Makes a tree impossible and returns the violation; `None` if the tree has no place for it.
fn spoil(sim: &mut Sim, tree: &mut MemTree, how: u8) -> Option<Kind> {
    Some(match how {
        0 => {
            tree.names.insert("common/stranger".into(), 1 << 40);
            tree.inodes.insert(1 << 40, vec![]);
            Kind::Unexplained
        }
        1 => {
            let path = long(sim, tree)?;
            let bits = tree.data(&path).len() as u64 * 8;
            let bit = usize::try_from(sim.below(bits)).unwrap();
            tree.data(&path)[bit / 8] ^= 1 << (bit % 8);
            Kind::Garbage
        }
        2 => {
            let path = long(sim, tree)?;
            let file = u32::try_from(tree.names[&path]).unwrap();
            tree.put(&path, 0, &sector(file, 0, 1 << 50));
            Kind::Future
        }
        3 => {
            let path = long(sim, tree)?;
            // A file whose labels all name another file counts as that file.
            if written(tree.data(&path)).count() < 3 {
                return None;
            }
            tree.put(&path, 0, &sector(0xfff_ffff, 0, 1));
            Kind::Foreign
        }
        4 => {
            let path = long(sim, tree)?;
            // More than any file can have, shared ones included.
            let bytes = tree.data(&path).len() + (1 << 19);
            tree.data(&path).resize(bytes, 0);
            Kind::Size
        }
        5 => {
            let path = promised(sim, tree)?;
            tree.names.remove(&path);
            Kind::NameLost
        }
        6 => {
            let path = promised(sim, tree)?;
            tree.data(&path).pop()?;
            Kind::Size
        }
        7 => {
            let path = promised(sim, tree)?;
            tree.data(&path).push(0);
            Kind::Size
        }
        8 => {
            let path = promised(sim, tree)?;
            let data = tree.data(&path);
            let start = written(data).next()? * SECTOR_BYTES;
            let end = data.len().min(start + SECTOR_BYTES);
            data[start..end].fill(0);
            Kind::Zeroed
        }
        9 => {
            let path = promised(sim, tree)?;
            let inode = tree.names.remove(&path)?;
            tree.names.insert("t1/unheard-of".into(), inode);
            Kind::NameLost
        }
        // One of two names leads to a copy.
        _ => {
            let path = promised(sim, tree)?;
            let inode = tree.names[&path];
            let data = tree.data(&path).clone();
            if tree.names.values().filter(|other| **other == inode).count() < 2 {
                return None;
            }
            tree.names.insert(path, 1 << 41);
            tree.inodes.insert(1 << 41, data);
            Kind::Links
        }
    })
}

const SPOILS: u8 = 11;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_can_be_is_accepted_and_what_cannot_is_not(
        seed in any::<u64>(),
        threads in 1_u32..6,
        rounds in 1_usize..20,
        step in 1_usize..120,
    ) {
        let mut sim = Sim::new(seed, threads, None);
        for _ in 0..rounds {
            for _ in 0..step {
                sim.tick();
            }
            let tree = sim.crash();
            let violations = judge(&sim, &tree);
            prop_assert!(violations.is_empty(), "{violations:#?}");
            // Writeback promises less: it accepts the same trees.
            let violations = judge_in(&sim, &tree, DataMode::Writeback);
            prop_assert!(violations.is_empty(), "writeback: {violations:#?}");
            for how in 0..SPOILS {
                let mut spoiled = tree.clone();
                if let Some(kind) = spoil(&mut sim, &mut spoiled, how) {
                    let violations = judge(&sim, &spoiled);
                    prop_assert!(has(&violations, &[kind]), "{how}: {kind}: {violations:#?}");
                }
            }
        }
    }
}

/// The mutations above are of use only if each of them is possible now and then.
#[test]
fn every_way_to_spoil_a_tree_is_tried() {
    let mut tried = [0; SPOILS as usize];
    for seed in 0..10 {
        let mut sim = Sim::new(seed, 3, None);
        for _ in 0..20 {
            for _ in 0..60 {
                sim.tick();
            }
            let tree = sim.crash();
            for how in 0..SPOILS {
                tried[usize::from(how)] +=
                    usize::from(spoil(&mut sim, &mut tree.clone(), how).is_some());
            }
        }
    }
    assert!(tried.iter().all(|times| *times > 2), "{tried:?}");
}

/// Every bug of a file system is found, with the right kind of violation.
#[test]
fn every_bug_is_found() {
    for (bug, kinds) in [
        (Bug::SyncWithoutCommit, &[Kind::NameLost, Kind::Size][..]),
        (
            Bug::AckBeforeWrite,
            &[Kind::NameLost, Kind::Size, Kind::RolledBack],
        ),
        (Bug::FlushMisses, &[Kind::RolledBack, Kind::Zeroed]),
        (Bug::RenameKeepsBoth, &[Kind::NameBack]),
        (Bug::TailNotZeroed, &[Kind::Stale, Kind::Garbage]),
        (Bug::BlocksReusedEarly, &[Kind::Foreign, Kind::Misplaced]),
        (Bug::DirsCommitAlone, &[Kind::Moments]),
        (Bug::SizeFirst, &[Kind::Size]),
    ] {
        let found = (0..200).find(|seed| {
            let mut sim = Sim::new(*seed, 3, Some(bug));
            (0..25).any(|_| {
                (0..60).for_each(|_| sim.tick());
                has(&judge(&sim, &sim.crash()), kinds)
            })
        });
        assert!(found.is_some(), "{bug:?} is not found");
    }
}
