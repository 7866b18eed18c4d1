//! Resolves filesets and files.

use super::Resolver;
use super::values::Given;
use crate::ast::{Expr, Files};
use crate::diagnostic::quoted;
use crate::plan::{Fileset, FilesetId, Value};

/// Most files or leaf directories of a fileset: each takes memory.
const ENTRIES_MAX: u64 = 10_000_000;

/// Largest file, bytes: the largest offset.
const FILE_BYTES_MAX: u64 = i64::MAX.unsigned_abs();

/// Most filesets of a workload.
const FILESETS_MAX: usize = 4096;

impl<'a> Resolver<'a, '_> {
    /// Resolves the filesets defined since the last call.
    pub(super) fn make_filesets(&mut self) {
        for files in std::mem::take(&mut self.files) {
            self.make_fileset(files);
        }
    }

    /// Returns the path. A variable in it needs no value, because a run makes its files elsewhere.
    fn path(&mut self, given: &Given<'_>) -> String {
        let value = given.find("path").and_then(|path| path.value.as_ref());
        let unset = value.is_some_and(|path| {
            let mut variables = path.value.variables();
            variables.any(|name| !self.globals.contains_key(name) && !self.missed.contains(name))
        });
        match value.map(|path| &path.value) {
            Some(Expr::Text(parts)) if unset => self.shown(parts),
            Some(Expr::Variable(name)) if unset => format!("${name}"),
            _ => self.needed(given, "path"),
        }
    }

    fn make_fileset(&mut self, files: &'a Files) {
        let kind = if files.single { "file" } else { "fileset" };
        let given = Given::new(kind, files.at, &files.attributes);
        let name = self.name(&given);
        let path = self.path(&given);
        if name.contains(['/', '\0']) || name == "." || name == ".." {
            let message = format!(
                "the name of a {kind} becomes a file name, and {} is not a valid one; put \
                 directories into `path`",
                quoted(&name)
            );
            self.messages.at(given.place("name"), message);
        }
        let id = FilesetId(self.plan.filesets.len());
        if id.0 == FILESETS_MAX {
            let message = format!("there may be at most {FILESETS_MAX} filesets");
            return self.messages.at(files.at, message);
        }
        if !name.is_empty() && self.fileset_ids.insert(name.clone(), id).is_some() {
            let message = format!("{kind} {} is defined twice", quoted(&name));
            self.messages.at(given.place("name"), message);
        }
        // A file is a fileset of one entry without directories of its own.
        let (mut entries, mut leaf_dirs) = (Value::Fixed(1), Value::Fixed(0));
        let (mut dir_width, mut dir_gamma) = (Value::Fixed(10), Value::Fixed(0));
        if !files.single {
            let complaints = self.messages.len();
            entries = self.value_in(&given, "entries", &(0..=ENTRIES_MAX), 0);
            leaf_dirs = self.value_in(&given, "leafdirs", &(0..=ENTRIES_MAX), 0);
            let sound = self.messages.len() == complaints;
            if sound && entries == Value::Fixed(0) && leaf_dirs == Value::Fixed(0) {
                self.messages.at(
                    files.at,
                    "the fileset is empty: expected `entries=` or `leafdirs=` above 0",
                );
            }
            dir_width = self.value(&given, "dirwidth", 0);
            dir_gamma = self.value(&given, "dirgamma", 1500);
        }
        let fileset = Fileset {
            name,
            path,
            single_file: files.single,
            entries,
            leaf_dirs,
            dir_width,
            dir_gamma,
            // `define file` cannot have this attribute.
            dir_depth: given
                .has("dirdepthrv")
                .then(|| self.value(&given, "dirdepthrv", 1)),
            size: self.value_in(&given, "size", &(0..=FILE_BYTES_MAX), 1024),
            prealloc_percent: self.percent(&given, "prealloc"),
            parallel_alloc: self.flag(&given, "paralloc"),
            reuse: self.flag(&given, "reuse"),
            trust_tree: self.flag(&given, "trusttree"),
            read_only: self.flag(&given, "readonly"),
            write_only: self.flag(&given, "writeonly"),
        };
        if fileset.read_only && fileset.write_only {
            self.messages.at(
                files.at,
                "`readonly` and `writeonly` exclude each other: expected at most one of them",
            );
        }
        self.plan.filesets.push(fileset);
    }
}
