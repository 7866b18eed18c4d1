//! A new controller, a new benchmark, a new export format: each is one file and its row. A toy of
//! each is added to a copy of the sources, and then it builds and shows on the command line; the
//! controller steers a kernel in the lab, and its decisions replay; the benchmark runs there. That
//! the controller is fuzzed, too, `fuzzing` shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use luc_systest::{Job, Outcome, Trouble, fail, guest, module, root, run_jobs, scratch, test};

/// Folders that a build of the program needs, beside the files at the top. Not `.cargo`: the copy
/// lies below it, and its flags given twice would be other flags.
const FOLDERS: [&str; 9] = [
    "abi",
    "bpf",
    "control",
    "crates",
    "kmod",
    "lab",
    "workloads",
    "fuzz",
    "upstream",
];

pub fn tests() -> Vec<Trial> {
    vec![test("new_rows_on_6.12", || toys("6.12"))]
}

fn toys(kernel: &str) -> Outcome {
    let dir = scratch().join("toy");
    let copy = dir.join("source");
    copy_sources(&copy)?;
    luc_test::toy::add_all(&copy);
    let jobs = [Job::new("toy", &["1ms:8:64M"])?];
    let mut spec = guest(kernel, &jobs)?;
    spec.luc_module = Some(module(kernel, &copy)?);
    spec.binary = Some(build(&copy, &dir.join("target"))?);
    run_jobs(&spec, &jobs)?;
    Ok(())
}

/// With the times of the files, by which cargo knows what it has compiled before.
fn copy_sources(copy: &Path) -> Outcome {
    let _ = fs::remove_dir_all(copy);
    fs::create_dir_all(copy).map_err(|error| Trouble::Fail(error.to_string()))?;
    let top = ["Cargo.toml", "Cargo.lock", "kernels.toml"];
    let paths = FOLDERS.iter().chain(&top).map(|name| root().join(name));
    run_to_end(Command::new("cp").arg("-a").args(paths).arg(copy))
}

/// The program for the guest, in a folder of its own: no other test gets the toy.
fn build(copy: &Path, target: &Path) -> Result<PathBuf, Trouble> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run_to_end(
        Command::new(cargo)
            .args(["build", "--release", "--locked", "--quiet", "--bin", "luc"])
            .arg("--target-dir")
            .arg(target)
            // It need not be fast, it must be there soon.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .current_dir(copy),
    )?;
    Ok(target.join("x86_64-unknown-linux-gnu/release/luc"))
}

fn run_to_end(command: &mut Command) -> Outcome {
    let output = command
        .output()
        .map_err(|error| Trouble::Fail(format!("{command:?}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    fail(format!("{command:?}: {}", said.trim()))
}
