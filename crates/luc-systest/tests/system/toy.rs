//! A new controller, a new benchmark, a new export format, a new verdict of the doctor: each takes
//! one file and one row. A toy of each is added to a copy of the sources, which must build and show
//! them on the command line. The controller steers a kernel in the lab, and its decisions replay;
//! the benchmark runs there. `fuzzing` fuzzes the controller.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use luc_systest::{
    Job, Outcome, Trouble, fail, failed, guest, module, root, run_jobs, scratch, test,
};
use luc_trace::{Header, Span, SpanKind, Writer};

/// Folders that a build of the program needs, besides the files at the top. Not `.cargo`: it
/// applies to the copy, which lies below it, and a second one would give its flags twice.
const FOLDERS: [&str; 10] = [
    "abi",
    "bpf",
    "campaigns",
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
    let luc = build(&copy, &dir.join("target"))?;
    verdict_is_told(&luc)?;
    spec.luc_lab = Some(luc.with_file_name("luc-lab"));
    run_jobs(&spec, &jobs)?;
    Ok(())
}

/// Copies the times of the files as well, by which cargo knows what it has compiled before.
fn copy_sources(copy: &Path) -> Outcome {
    let _ = fs::remove_dir_all(copy);
    fs::create_dir_all(copy).map_err(failed)?;
    let top = ["Cargo.toml", "Cargo.lock", "kernels.toml"];
    let paths = FOLDERS.iter().chain(&top).map(|name| root().join(name));
    run_to_end(Command::new("cp").arg("-a").args(paths).arg(copy))
}

/// Builds the program for the guest in a folder of its own, so that no other test gets the toys.
fn build(copy: &Path, target: &Path) -> Result<PathBuf, Trouble> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run_to_end(
        Command::new(cargo)
            .args([
                "build",
                "--release",
                "--locked",
                "--quiet",
                "--bin",
                "luc",
                "--bin",
                "luc-lab",
            ])
            .arg("--target-dir")
            .arg(target)
            // It need not run fast, but must build fast.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .current_dir(copy),
    )?;
    Ok(target.join("x86_64-unknown-linux-gnu/release/luc"))
}

/// Checks the toy's verdict on a recording that no other verdict is about: tasks mostly write.
fn verdict_is_told(luc: &Path) -> Outcome {
    const MS: u64 = 1_000_000;
    let write = |n: u64| Span::new(SpanKind::Write, n * 100 * MS, n * 100 * MS + 90 * MS);
    let sync = Span::new(SpanKind::Fsync, 0, 3_000 * MS);
    let recording = || -> std::io::Result<tempfile::NamedTempFile> {
        let mut writer = Writer::new(tempfile::NamedTempFile::new()?, &Header::default())?;
        for span in (0..100).map(write).chain([sync]) {
            writer.span(&span)?;
        }
        writer.finish()
    };
    let recording = recording().map_err(failed)?;
    let output = Command::new(luc)
        .args(["doctor", "--from"])
        .arg(recording.path())
        .output()
        .map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stdout);
    for part in [
        "0:0: writes take long without any commit: 75% of the time in syncs and writes\n",
        "Writes alone take 901 ms",
        "Write less.",
    ] {
        if !said.contains(part) {
            return fail(format!("luc doctor does not say '{part}': {said}"));
        }
    }
    Ok(())
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
