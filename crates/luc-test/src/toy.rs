//! Toys: example additions to a copy of LUC's sources, each one file and its rows in tables.
//! `CONTRIBUTING.md` says where.

use std::fs;
use std::path::Path;

/// A file, a text that occurs in it once, and the row to insert after that text.
type Row = (&'static str, &'static str, &'static str);

/// A toy: its file, the source, and its rows.
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

const KINDS: &str = "crates/luc-model/src/diagnosis/kinds/mod.rs";
const VERDICT: Toy = Toy {
    file: "crates/luc-model/src/diagnosis/kinds/toy.rs",
    source: include_str!("../toys/verdict_toy.rs"),
    rows: &[
        (KINDS, "mod sync_delays;\n", "mod toy;\n"),
        (KINDS, "    sync_delays::KIND,\n", "    toy::KIND,\n"),
        (
            "crates/luc-model/src/diagnosis/evidence.rs",
            "    Unclear,\n",
            "    /// Writes take long without waiting for a commit.\n    Toy,\n",
        ),
    ],
};

/// Adds all toys to the sources below `root`.
pub fn add_all(root: &Path) {
    for toy in [CONTROLLER, BENCHMARK, FORMAT, VERDICT] {
        toy.add(root, |source| source);
    }
}

/// Adds the controller, with `change` applied to its code.
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
