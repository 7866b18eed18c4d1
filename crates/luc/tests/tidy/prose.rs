//! Functions that documents name exist, and lines of documents are short.

use std::fs;
use std::path::Path;

use super::{File, ROOT, enforce};

/// Documents whose `function()`s must exist, and the folders of their sources.
const NAMES_FUNCTIONS: [&str; 1] = ["docs/life-of-an-fsync.md"];
const SOURCES: [&str; 2] = ["control", "kmod"];

/// The C of the module and its controllers, which names each kernel function that it hooks.
fn sources() -> String {
    let mut text = String::new();
    for dir in SOURCES {
        let files = fs::read_dir(Path::new(ROOT).join(dir)).expect("a folder of the table");
        for path in files.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == "c") {
                text.push_str(&fs::read_to_string(path).expect("C is text"));
            }
        }
    }
    text
}

/// Tells whether a function of this name is defined, called or hooked.
fn is_there(function: &str, sources: &str) -> bool {
    let (called, quoted) = (format!("{function}("), format!("\"{function}\""));
    let whole = |(at, _): (usize, &str)| {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !sources[..at].ends_with(part)
    };
    sources.contains(&quoted) || sources.match_indices(&called).any(whole)
}

fn functions(file: &File) -> Vec<String> {
    if !NAMES_FUNCTIONS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let sources = sources();
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        for word in line.split('`').skip(1).step_by(2) {
            if let Some(function) = word.strip_suffix("()")
                && !is_there(function, &sources)
            {
                complaints.push(file.at(number, &format!("there is no {function}()")));
            }
        }
    }
    complaints
}

const COLUMNS: usize = 100;

/// Complains about long lines of a document, except tables and code, which cannot be wrapped.
fn long_lines(file: &File) -> Vec<String> {
    if !file.is(&["md"]) {
        return Vec::new();
    }
    let mut fenced = false;
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        fenced ^= line.starts_with("```");
        let whole = fenced || line.starts_with(['|', '\t']) || line.starts_with("    ");
        if !whole && line.chars().count() > COLUMNS {
            complaints.push(file.at(number, &format!("longer than {COLUMNS} columns")));
        }
    }
    complaints
}

#[test]
fn lines_of_documents_are_short() {
    let (long, row) = ("a ".repeat(51), format!("| {} |", "a ".repeat(51)));
    let (code, fence) = (format!("    {long}\n"), format!("```\n{long}\n```\n"));
    enforce(
        long_lines,
        &[
            &format!("docs/x.md: {long}"),
            &format!("docs/x.md: {fence}{long}\n"),
        ],
        &[
            &format!("docs/x.md: {row}"),
            &format!("docs/x.md: {code}"),
            &format!("docs/x.md: {fence}"),
            &format!("x.rs: {long}"),
        ],
    );
}

#[test]
fn functions_that_documents_name_exist() {
    let path = NAMES_FUNCTIONS[0];
    assert!(Path::new(ROOT).join(path).exists(), "{path} is gone");
    enforce(
        functions,
        &[
            &format!("{path}: then `no_such_function()` runs\n"),
            // The end of another function's name.
            &format!("{path}: then `on_commit()` runs\n"),
        ],
        &[&format!(
            "{path}: `luc_on_commit()` at `ext4_sync_file()`\n"
        )],
    );
}
