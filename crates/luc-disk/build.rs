//! Compiles the model and embeds the driver's sources, so that the lab can build the driver
//! wherever the program is.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Folders and files that the driver is made of.
const SOURCES: [&str; 2] = ["lab/disk", "abi/luc_types.h"];
/// Names of the driver's source files; a build in the source tree leaves other files there.
const SOURCE_ENDINGS: [&str; 2] = ["c", "h"];
const SOURCE_NAMES: [&str; 2] = ["Kbuild", "Makefile"];

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let disk = root.join("lab/disk");
    println!("cargo::rerun-if-changed=shim");
    for path in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }

    let mut build = luc_cc::freestanding(&[&disk]);
    luc_cc::trap_in_debug(&mut build)?;
    build.file("shim/tables.c");
    build.file(disk.join("lucdisk_model.c"));
    build.try_compile("luc_disk")?;

    let mut files = Vec::new();
    for path in SOURCES {
        collect(&root, Path::new(path), &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(env::var("OUT_DIR")?).join("sources.rs");
    fs::write(out, sources(&root, &files)?)?;
    Ok(())
}

fn collect(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let at = root.join(path);
    if at.is_dir() {
        for entry in fs::read_dir(&at)? {
            collect(root, &path.join(entry?.file_name()), files)?;
        }
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let is_source = SOURCE_NAMES.contains(&&*name)
        || SOURCE_ENDINGS.contains(&&*ending)
            && !name.ends_with(".mod.c")
            && !name.starts_with('.');
    if is_source {
        files.push(path.to_owned());
    }
    Ok(())
}

fn sources(root: &Path, files: &[PathBuf]) -> Result<String> {
    let mut out = String::from("[\n");
    for path in files {
        let name = path.to_str().ok_or("a file name that is not UTF-8")?;
        let whole = fs::canonicalize(root.join(path))?;
        let whole = whole.to_str().ok_or("a path that is not UTF-8")?;
        writeln!(out, "    ({name:?}, include_str!({whole:?})),")?;
    }
    out.push(']');
    Ok(out)
}
