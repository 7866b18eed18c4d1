//! A new controller, added to a copy of the sources as `abi/luc_controllers.h` says: one file, one
//! row.

use std::fs;
use std::path::Path;

const SOURCE: &str = include_str!("batching_toy.c");
const LAST_ROW: &str = "as jbd2 does for O_SYNC handles\")";
const ROW: &str = " \\\n\tLUC_CONTROLLER(TOY, toy, \"\", \"hold for 2 ms or three sync events\")";

/// Adds it to the sources below `root`, with `change` made to its code.
///
/// # Panics
/// When the table has no such last row, or cannot be read or written.
pub fn add(root: &Path, change: impl FnOnce(String) -> String) {
    let table = root.join("abi/luc_controllers.h");
    let text = fs::read_to_string(&table).expect("the table of controllers");
    assert_eq!(
        text.matches(LAST_ROW).count(),
        1,
        "the last row of batching"
    );
    let text = text.replace(LAST_ROW, &format!("{LAST_ROW}{ROW}"));
    fs::write(table, text).expect("a row");
    let file = root.join("control/batching_toy.c");
    fs::write(file, change(SOURCE.to_owned())).expect("a file");
}
