//! Compiles the controllers and turns the tables of `abi/` into Rust.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let control = root.join("control");
    let abi = root.join("abi");
    for path in [&control, &abi, &PathBuf::from("shim")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }

    let rows = luc_cc::freestanding(&[&control, &abi])
        .file("shim/rows.c")
        .flag("-P")
        .try_expand()?;
    let rows = parse_rows(&String::from_utf8(rows)?)?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("layout.rs");
    fs::write(out, generate(&rows)?)?;

    let mut build = luc_cc::freestanding(&[&control, &abi]);
    luc_cc::trap_in_debug(&mut build)?;
    build.file("shim/tables.c");
    for entry in fs::read_dir(&control)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            build.file(path);
        }
    }
    build.try_compile("luc_control")?;
    Ok(())
}

/// One row: the table it belongs to, its name, its string literals as written.
struct Row {
    table: String,
    name: String,
    strings: Vec<String>,
}

/// Reads `@table name "string"...` rows; everything before the first `@rows`
/// is what the headers themselves left behind.
fn parse_rows(text: &str) -> Result<Vec<Row>> {
    let (_, text) = text.split_once("@rows").ok_or("no @rows in shim/rows.c")?;
    let mut rows: Vec<Row> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('@') {
            let (table, after) = word(after.trim_start());
            let (name, after) = word(after.trim_start());
            rows.push(Row {
                table: table.to_owned(),
                name: name.to_owned(),
                strings: Vec::new(),
            });
            rest = after.trim_start();
        } else {
            let (literal, after) = literal(rest)?;
            let row = rows.last_mut().ok_or("a string before the first row")?;
            row.strings.push(literal.to_owned());
            rest = after.trim_start();
        }
    }
    Ok(rows)
}

fn word(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Splits a string literal, quotes included, off the front of `text`.
fn literal(text: &str) -> Result<(&str, &str)> {
    let mut escaped = true; // the opening quote does not close
    for (at, c) in text.char_indices() {
        match c {
            _ if at == 0 && c != '"' => break,
            '"' if !escaped => return Ok(text.split_at(at + 1)),
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    let start: String = text.chars().take(40).collect();
    Err(format!("not a row of shim/rows.c: {start}").into())
}

fn generate(rows: &[Row]) -> Result<String> {
    let mut out = String::new();
    for (table, name) in [
        ("params", "Params"),
        ("input", "Input"),
        ("state", "State"),
        ("output", "Output"),
    ] {
        writeln!(out, "record! {{ {name}")?;
        for row in rows.iter().filter(|row| row.table == table) {
            let help = row.strings.first().ok_or("a field without help")?;
            writeln!(out, "    {help} {},", row.name)?;
        }
        writeln!(out, "}}")?;
    }
    for (table, name) in [
        ("batching", "Batching"),
        ("copyout", "Copyout"),
        ("mode", "Mode"),
        ("reason", "Reason"),
    ] {
        writeln!(out, "enumeration! {{ {name}")?;
        for row in rows.iter().filter(|row| row.table == table) {
            let [text, help] = row.strings.as_slice() else {
                return Err(format!("{table} {} needs a text and a help", row.name).into());
            };
            writeln!(out, "    {} {text} {help},", camel(&row.name))?;
        }
        writeln!(out, "}}")?;
    }
    Ok(out)
}

/// `NO_SPACE` becomes `NoSpace`.
fn camel(name: &str) -> String {
    let mut out = String::new();
    for part in name.split('_') {
        let (first, rest) = part.split_at(part.len().min(1));
        out.push_str(first);
        out.push_str(&rest.to_ascii_lowercase());
    }
    out
}
