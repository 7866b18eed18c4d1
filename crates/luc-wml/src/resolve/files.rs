//! Filesets and files.

use super::Resolver;
use super::values::{Given, Locals};
use crate::ast::Files;
use crate::diagnostic::quoted;
use crate::plan::{Fileset, FilesetId, Value};

/// Most files or leaf directories of a fileset: each is remembered.
const ENTRIES_MAX: u64 = 10_000_000;

/// Largest file, bytes: what an offset can say.
const FILE_BYTES_MAX: u64 = i64::MAX.unsigned_abs();

/// Most filesets of a workload.
const FILESETS_MAX: usize = 4096;

impl<'a> Resolver<'a, '_> {
    /// Resolves the filesets that were defined since the last time.
    pub(super) fn make_filesets(&mut self) {
        for files in std::mem::take(&mut self.files) {
            self.make_fileset(files);
        }
    }

    fn make_fileset(&mut self, files: &'a Files) {
        let locals = Locals::default();
        let given = Given {
            attributes: &files.attributes,
            locals: &locals,
        };
        let kind = if files.single { "file" } else { "fileset" };
        let name = self.name(&given, kind, files.at);
        let path = self.needed(&given, "path", kind, files.at);
        if name.contains(['/', '\0']) || name == "." || name == ".." {
            let place = given.place("name").unwrap_or(files.at);
            self.messages.at(
                place,
                format!(
                    "the name of a {kind} becomes a file name, which {} cannot be; \
                     put directories into `path`",
                    quoted(&name)
                ),
            );
        }
        let id = FilesetId(self.plan.filesets.len());
        if id.0 == FILESETS_MAX {
            self.messages
                .at(files.at, format!("there may be {FILESETS_MAX} filesets"));
            return;
        }
        if !name.is_empty() && self.fileset_ids.insert(name.clone(), id).is_some() {
            let place = given.place("name").unwrap_or(files.at);
            self.messages
                .at(place, format!("{kind} {} is defined twice", quoted(&name)));
        }
        let (entries, leaf_dirs, dir_width, dir_gamma, dir_depth) = if files.single {
            // As a fileset of one entry without directories of its own.
            (
                Value::Fixed(1),
                Value::Fixed(0),
                Value::Fixed(10),
                Value::Fixed(0),
                None,
            )
        } else {
            let complaints = self.messages.len();
            let entries = self.value_in(&given, "entries", &(0..=ENTRIES_MAX), 0);
            let leaf_dirs = self.value_in(&given, "leafdirs", &(0..=ENTRIES_MAX), 0);
            let sound = self.messages.len() == complaints;
            if sound && entries == Value::Fixed(0) && leaf_dirs == Value::Fixed(0) {
                self.messages.at(
                    files.at,
                    "the fileset has nothing in it: expected `entries=` or `leafdirs=`, above 0",
                );
            }
            let dir_depth = given.find("dirdepthrv").is_some();
            (
                entries,
                leaf_dirs,
                self.value(&given, "dirwidth", 0),
                self.value(&given, "dirgamma", 1500),
                dir_depth.then(|| self.value(&given, "dirdepthrv", 1)),
            )
        };
        let fileset = Fileset {
            name,
            path,
            single_file: files.single,
            entries,
            leaf_dirs,
            dir_width,
            dir_gamma,
            dir_depth,
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
