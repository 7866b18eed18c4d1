//! The shape of a fileset: its directories and files, and the size of each file.
//!
//! The tree grows from the root by recursion. Every directory draws a depth and a width. It holds
//! as many entries as its width: files if it lies at its drawn depth or deeper, else directories.
//! The root holds only directories, and goes on making them until all files have a place.

use luc_wml::plan::{Fileset, Value};

use super::draw::{Draws, gamma};
use crate::{Result, WorkloadError};

/// Deeper than the paths of any file system: a tree that goes beyond this would not end.
const DEPTH_MAX: u32 = 256;

/// Index of a directory in [`Tree::dirs`].
pub type DirId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dir {
    /// The directory that holds it; `None` for the root.
    pub parent: Option<DirId>,
    /// Its name is this number with eight digits; the root has the fileset's name instead.
    pub serial: u32,
}

/// A file, or a directory without entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub parent: DirId,
    /// Its name is this number with eight digits.
    pub serial: u32,
    /// Size before the run writes to it, bytes; 0 for directories.
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Directories; the first is the root.
    pub dirs: Vec<Dir>,
    pub files: Vec<Leaf>,
    pub leaf_dirs: Vec<Leaf>,
    /// Mean depth from which the shape was drawn.
    pub mean_depth: f64,
}

impl Tree {
    pub fn draw(fileset: &Fileset, draws: &mut Draws) -> Result<Self> {
        let files = draws.whole(fileset.entries);
        let leaf_dirs = draws.whole(fileset.leaf_dirs);
        let mean_width = match fileset.dir_width {
            Value::Fixed(width) => width as f64,
            random @ Value::Random(_) => draws.mean(random).trunc(),
        };
        let mut growth = Growth {
            fileset,
            draws,
            files_wanted: files,
            leaf_dirs_wanted: leaf_dirs,
            mean_width,
            tree: Self {
                mean_depth: ((files + leaf_dirs) as f64).ln() / mean_width.ln(),
                ..Self::default()
            },
        };
        growth.grow(None, 1, 0)?;
        Ok(growth.tree)
    }

    /// Returns the bytes of all files together, whether they exist before the run or not.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

struct Growth<'a> {
    fileset: &'a Fileset,
    draws: &'a mut Draws,
    files_wanted: u64,
    leaf_dirs_wanted: u64,
    mean_width: f64,
    tree: Tree,
}

impl Growth<'_> {
    fn grow(&mut self, parent: Option<DirId>, serial: u32, depth: u32) -> Result<()> {
        let depth = depth + 1;
        let id = index(self.tree.dirs.len(), &self.fileset.name)?;
        if depth > DEPTH_MAX {
            return Err(WorkloadError::Tree {
                fileset: self.fileset.name.clone(),
                why: "its directories nest too deeply; give it a dirwidth of at least 2".into(),
            });
        }
        self.tree.dirs.push(Dir { parent, serial });
        let shape = self.draws.whole(self.fileset.dir_gamma) as f64 / 1000.0;
        let mean_depth = self.tree.mean_depth;
        // Depths are whole numbers, widths are not. The order of the draws matters.
        let drawn_depth = match self.fileset.dir_depth {
            Some(random) => self.draws.real_with_mean(random, mean_depth).trunc(),
            None => self.around(shape, mean_depth).trunc(),
        };
        let width = match self.fileset.dir_width {
            Value::Random(_) => self.draws.real(self.fileset.dir_width),
            Value::Fixed(_) => self.around(shape, self.mean_width),
        };
        let at_least_one = |drawn: f64| if drawn == 0.0 { 1.0 } else { drawn };
        // A mean width of one gives an infinite depth, which Filebench's conversion to an integer
        // turns into none at all.
        let holds_leaves =
            !drawn_depth.is_finite() || f64::from(depth) >= at_least_one(drawn_depth);
        let width = at_least_one(width);
        let room = |number: u32| parent.is_none() || f64::from(number) < width + 1.0;

        let mut number = 1;
        while room(number) && (self.tree.files.len() as u64) < self.files_wanted {
            if parent.is_some() && holds_leaves {
                let bytes = self.draws.whole(self.fileset.size);
                index(self.tree.files.len(), &self.fileset.name)?;
                self.tree.files.push(Leaf {
                    parent: id,
                    serial: number,
                    bytes,
                });
            } else {
                self.grow(Some(id), number, depth)?;
            }
            number += 1;
        }
        // Filebench begins at 1 again, and collides with its own files and directories if a fileset
        // has both kinds of entries.
        let taken = number - 1;
        number = 1;
        while room(number) && (self.tree.leaf_dirs.len() as u64) < self.leaf_dirs_wanted {
            if parent.is_some() && holds_leaves {
                index(self.tree.leaf_dirs.len(), &self.fileset.name)?;
                self.tree.leaf_dirs.push(Leaf {
                    parent: id,
                    serial: taken + number,
                    bytes: 0,
                });
            } else {
                self.grow(Some(id), taken + number, depth)?;
            }
            number += 1;
        }
        Ok(())
    }

    fn around(&mut self, shape: f64, mean: f64) -> f64 {
        if shape > 0.0 {
            let generator = &mut self.draws.generator;
            gamma(shape, mean / shape, || generator.unit48())
        } else {
            mean
        }
    }
}

/// Checks an index: names have eight digits and indices 32 bits, and more entries would not fit in
/// memory either.
fn index(count: usize, fileset: &str) -> Result<u32> {
    const MOST: usize = 50_000_000;
    match u32::try_from(count) {
        Ok(id) if count < MOST => Ok(id),
        _ => Err(WorkloadError::Tree {
            fileset: fileset.to_owned(),
            why: format!("it has more than {MOST} entries; ask for fewer"),
        }),
    }
}
