//! The tree found after the crash, behind a trait: a directory, or a tree made up by a test.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Type of a found name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// Anything else.
    Other,
}

/// A name that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the top, parts separated by `/`.
    pub path: String,
    pub kind: Type,
    /// Equal for two names of one file.
    pub inode: u64,
    /// Link count of the file.
    pub links: u64,
    /// The file's size.
    pub bytes: u64,
}

/// All names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The names found, in any order.
    pub entries: Vec<Entry>,
    /// Names whose metadata cannot be read, with the error.
    pub unreadable: Vec<(String, String)>,
}

/// A tree of files.
pub trait Tree {
    /// All names in it, without the top itself.
    ///
    /// # Errors
    /// The top cannot be read.
    fn list(&self) -> io::Result<Listing>;

    /// The content of a file, at most `bytes_max` of it.
    ///
    /// # Errors
    /// The file system returns an error.
    fn read(&self, path: &str, bytes_max: u64, into: &mut Vec<u8>) -> io::Result<()>;
}

/// A directory.
#[derive(Clone, Debug)]
pub struct DirTree {
    top: PathBuf,
}

impl DirTree {
    /// The tree below this directory.
    pub fn new(top: &Path) -> Self {
        Self {
            top: top.to_owned(),
        }
    }

    /// Lists one directory; notes entries whose metadata cannot be read.
    fn list_dir(&self, dir: &str, listing: &mut Listing) -> io::Result<()> {
        for entry in fs::read_dir(self.top.join(dir))? {
            let entry = entry?;
            // A name that is not UTF-8 is not ours: it is a violation in any form.
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if dir.is_empty() {
                name
            } else {
                format!("{dir}/{name}")
            };
            match entry.metadata() {
                Ok(metadata) => listing.entries.push(Entry {
                    path,
                    kind: if metadata.is_dir() {
                        Type::Dir
                    } else if metadata.is_file() {
                        Type::File
                    } else {
                        Type::Other
                    },
                    inode: metadata.ino(),
                    links: metadata.nlink(),
                    bytes: metadata.len(),
                }),
                Err(error) => listing.unreadable.push((path, error.to_string())),
            }
        }
        Ok(())
    }
}

impl Tree for DirTree {
    fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        self.list_dir("", &mut listing)?;
        let mut next = 0;
        while let Some(entry) = listing.entries.get(next) {
            next += 1;
            if entry.kind != Type::Dir {
                continue;
            }
            let dir = entry.path.clone();
            if let Err(error) = self.list_dir(&dir, &mut listing) {
                listing.unreadable.push((dir, error.to_string()));
            }
        }
        Ok(listing)
    }

    fn read(&self, path: &str, bytes_max: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let file = File::open(self.top.join(path))?;
        file.take(bytes_max).read_to_end(into)?;
        Ok(())
    }
}
