//! Passes digests of the sources behind results to the program: of the benchmarks, their language
//! and the lab with its disks, and of the simulator. A result with another digest does not count as
//! done.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Sources behind results of the lab and the host, relative to this crate.
const SOURCES: [&str; 8] = [
    "../luc-workload/src",
    "../luc-wml/src",
    "../luc-vm/src",
    "../luc-disk/src",
    "../../lab/apps",
    "../../lab/disk",
    "../../workloads",
    "src/steps.rs",
];

/// Sources behind the simulator's results.
const SIM_SOURCES: [&str; 9] = [
    "../luc-sim/src",
    "../luc-sim-loads/src",
    "../luc-trace/src",
    "../luc-model/src",
    "../luc-workload/src",
    "../luc-disk/src",
    "../../lab/disk",
    "../../control",
    "../../abi",
];

fn main() {
    println!("cargo::rustc-env=LUC_SOURCES={}", digest(&SOURCES));
    println!("cargo::rustc-env=LUC_SIM_SOURCES={}", digest(&SIM_SOURCES));
}

fn digest(sources: &[&str]) -> String {
    let mut files = Vec::new();
    for source in sources {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        hash.update(file.to_string_lossy().as_bytes());
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    format!("{:.16x}", hash.finalize())
}

/// Collects source files only: a build of the disk's driver may leave other files beside them.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_source = path.extension().is_some_and(|kind| {
            ["rs", "c", "h", "f", "sh", "toml"]
                .iter()
                .any(|known| kind == *known)
        });
        if path.is_dir() {
            collect(&path, files);
        } else if is_source || path.file_name().is_some_and(|name| name == "Kbuild") {
            files.push(path);
        }
    }
}
