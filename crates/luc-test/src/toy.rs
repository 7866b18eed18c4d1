//! Toys: things that people add to LUC, each added to a copy of the sources by one file and its row
//! in a table. `CONTRIBUTING.md` says where.

use std::fs;
use std::path::Path;

/// A text that stands once in a file, and what is put behind it.
type Row = (&'static str, &'static str, &'static str);

/// A toy: its file, what stands in it, and its rows.
struct Toy {
    file: &'static str,
    source: &'static str,
    rows: &'static [Row],
}

const CONTROLLER: Toy = Toy {
    file: "control/batching_toy.c",
    source: include_str!("../toys/batching_toy.c"),
    rows: &[(
        "abi/luc_controllers.h",
        "as jbd2 does for O_SYNC handles\")",
        " \\\n\tLUC_CONTROLLER(TOY, toy, \"\", \"hold for 2 ms or three sync events\")",
    )],
};

const BENCHES: &str = "crates/luc-workload/src/benches/mod.rs";
const BENCHMARK: Toy = Toy {
    file: "crates/luc-workload/src/benches/toy.rs",
    source: include_str!("../toys/bench_toy.rs"),
    rows: &[
        (BENCHES, "mod scaling;\n", "mod toy;\n"),
        (
            BENCHES,
            "pub use scaling::{Scaling, ScalingResult, ScalingStep};\n",
            "pub use toy::{Toy, ToyResult};\n",
        ),
        (
            BENCHES,
            "\"fsync-storm\" FsyncStorm FsyncStormResult,\n",
            "    /// Makes one file durable, over and over\n    \"toy\" Toy ToyResult,\n",
        ),
    ],
};

const EXPORTS: &str = "crates/luc-trace/src/export/mod.rs";
const FORMAT: Toy = Toy {
    file: "crates/luc-trace/src/export/toy.rs",
    source: include_str!("../toys/export_toy.rs"),
    rows: &[
        (EXPORTS, "mod perfetto;\n", "mod toy;\n"),
        (
            EXPORTS,
            "        write: csv,\n    },\n",
            "    Format {\n        name: \"toy\",\n        help: \"Number of spans\",\n        write: toy::toy,\n    },\n",
        ),
    ],
};

/// Adds all to the sources below `root`.
///
/// # Panics
/// When a row has no place, or a file cannot be read or written.
pub fn add_all(root: &Path) {
    for toy in [CONTROLLER, BENCHMARK, FORMAT] {
        toy.add(root, |source| source);
    }
}

/// Adds the controller, with `change` made to its code.
///
/// # Panics
/// As [`add_all`].
pub fn add_controller(root: &Path, change: impl FnOnce(String) -> String) {
    CONTROLLER.add(root, change);
}

impl Toy {
    fn add(&self, root: &Path, change: impl FnOnce(String) -> String) {
        for (table, before, row) in self.rows {
            let path = root.join(table);
            let text = fs::read_to_string(&path).expect("a table");
            assert_eq!(text.matches(before).count(), 1, "{table}: {before}");
            let text = text.replace(before, &format!("{before}{row}"));
            fs::write(path, text).expect("a row");
        }
        fs::write(root.join(self.file), change(self.source.to_owned())).expect("a file");
    }
}
