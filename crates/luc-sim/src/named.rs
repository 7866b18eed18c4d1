//! Rows of the simulator's tables, by name.

use thiserror::Error;

/// The error for a row that the simulator lacks.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the simulator has no {table} {name}; it has {known}")]
pub struct NotSimulated {
    table: &'static str,
    name: String,
    known: String,
}

/// Finds a row; `table` is the word for one.
pub(crate) fn find<T>(
    table: &'static str,
    rows: &'static [T],
    name_of: fn(&T) -> &'static str,
    name: &str,
) -> Result<&'static T, NotSimulated> {
    let found = rows.iter().find(|row| name_of(row) == name);
    found.ok_or_else(|| NotSimulated {
        table,
        name: name.to_owned(),
        known: rows.iter().map(name_of).collect::<Vec<_>>().join(", "),
    })
}
