//! A fileset in a run: its tree, the state of its entries, and their paths.

use std::ffi::{CStr, CString};

use luc_wml::plan::Fileset;

use super::rotor::{Entries, Want};
use super::tree::{DirId, Leaf, Tree};
use crate::dir::set_digits;

pub struct LiveFileset<W> {
    pub plan: Fileset,
    pub tree: Tree,
    pub files: Entries<W>,
    pub leaf_dirs: Entries<W>,
    /// The state of its directories, which always exist.
    pub dirs: Entries<W>,
    /// Number of files that existed before the run.
    pub preallocated: u64,
    /// The files made before an interrupt; `None` if the whole fileset was.
    pub cut_short: Option<Made>,
    /// Path of each directory, relative to the run's directory.
    paths: Vec<CString>,
}

/// The files of a fileset that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    pub files: u64,
    pub bytes: u64,
    pub dirs: u64,
    pub leaf_dirs: u64,
}

/// A kind of entry of a fileset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    LeafDir,
}

impl<W: Default> LiveFileset<W> {
    /// Makes a fileset in which only the directories count as existing.
    pub fn new(plan: &Fileset, tree: Tree) -> Self {
        let dirs = Entries::new(tree.dirs.len());
        let mut paths: Vec<CString> = Vec::with_capacity(tree.dirs.len());
        for (id, dir) in (0_u32..).zip(&tree.dirs) {
            dirs.set_existing(id);
            // Parents come before their children.
            let path = match dir.parent {
                None => plan.name.clone().into_bytes(),
                Some(parent) => {
                    let mut path = paths[parent as usize].as_bytes().to_vec();
                    path.push(b'/');
                    path.extend_from_slice(&digits(dir.serial));
                    path
                }
            };
            // Names with a NUL are refused before anything is made.
            paths.push(CString::new(path).unwrap_or_default());
        }
        Self {
            plan: plan.clone(),
            files: Entries::new(tree.files.len()),
            leaf_dirs: Entries::new(tree.leaf_dirs.len()),
            dirs,
            preallocated: 0,
            cut_short: None,
            paths,
            tree,
        }
    }

    pub fn entries(&self, kind: Kind) -> &Entries<W> {
        match kind {
            Kind::File => &self.files,
            Kind::LeafDir => &self.leaf_dirs,
        }
    }

    pub fn leaf(&self, kind: Kind, index: u32) -> Leaf {
        match kind {
            Kind::File => self.tree.files[index as usize],
            Kind::LeafDir => self.tree.leaf_dirs[index as usize],
        }
    }

    /// Sets `buffer` to the path of a leaf, relative to the run's directory.
    pub fn leaf_path(&self, leaf: Leaf, buffer: &mut PathBuffer) {
        buffer.set(self.dir(leaf.parent).to_bytes(), leaf.serial);
    }

    /// Returns the path of a directory, relative to the run's directory.
    pub fn dir(&self, dir: DirId) -> &CStr {
        &self.paths[dir as usize]
    }

    /// Says why a pick found nothing.
    pub fn lacking(&self, kind: Kind, want: Want) -> String {
        let (count, what) = match kind {
            Kind::File => (self.files.count(), "files"),
            Kind::LeafDir => (self.leaf_dirs.count(), "leaf directories"),
        };
        let name = &self.plan.name;
        match want {
            Want::Existing => format!("none of the {count} {what} of fileset {name} exists"),
            Want::Missing => format!("all {count} {what} of fileset {name} exist"),
        }
    }
}

/// A path that is rewritten in place: no allocation in a measured loop.
#[derive(Default)]
pub struct PathBuffer(Vec<u8>);

impl PathBuffer {
    fn set(&mut self, dir: &[u8], serial: u32) {
        self.0.clear();
        self.0.extend_from_slice(dir);
        self.0.push(b'/');
        self.0.extend_from_slice(&digits(serial));
        self.0.push(0);
    }

    /// Returns the path that was set last; an empty one before the first.
    pub fn get(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.0).unwrap_or(c"")
    }
}

/// Formats a serial number as Filebench does: eight digits (a tree has fewer than 10^8 entries).
fn digits(serial: u32) -> [u8; 8] {
    let mut text = [0; 8];
    set_digits(&mut text, serial.into());
    text
}
