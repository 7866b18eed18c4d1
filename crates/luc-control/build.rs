//! Compiles the controllers and turns the tables of `abi/` into Rust.

use std::env;
use std::error::Error;
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
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for part in to_rust(&String::from_utf8(rows)?).split("@part ").skip(1) {
        let (name, text) = part
            .split_once(char::is_whitespace)
            .ok_or("an empty part")?;
        fs::write(out.join(name).with_extension("rs"), text)?;
    }

    let mut build = luc_cc::freestanding(&[&control, &abi]);
    luc_cc::trap_in_debug(&mut build)?;
    build.file("shim/layout.c");
    for entry in fs::read_dir(&control)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            build.file(path);
        }
    }
    build.try_compile("luc_control")?;
    Ok(())
}

/// Joins adjacent string literals, as C does, and writes `@NO_SPACE` as `NoSpace`.
fn to_rust(rows: &str) -> String {
    let mut out = String::new();
    let mut words = rows.split('@');
    out.push_str(words.next().unwrap_or_default());
    for text in words {
        let end = text.find(|c: char| c != '_' && !c.is_ascii_uppercase());
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        if name.is_empty() {
            out.push('@');
        }
        for part in name.split('_') {
            let (first, others) = part.split_at(part.len().min(1));
            out.push_str(first);
            out.push_str(&others.to_ascii_lowercase());
        }
        out.push_str(rest);
    }
    out.replace("\" \"", "")
}
