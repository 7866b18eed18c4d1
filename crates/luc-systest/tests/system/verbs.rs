//! The command line against the real module, in a lab guest, and what `luc-lab run` promises.

use std::process::Command;

use libtest_mimic::Trial;
use luc_systest::{Outcome, Trouble, check, fail, failed, guest_source, lab_binary, root, test};

pub fn tests() -> Vec<Trial> {
    vec![
        test("every_verb_keeps_its_word_on_6.1", || {
            keeps_its_word("6.1", "6.12")
        }),
        test("every_verb_keeps_its_word_on_6.12", || {
            keeps_its_word("6.12", "6.1")
        }),
        test("the_last_thread_of_the_dead_is_waited_for", dead_threads),
    ]
}

/// Returns standard output, or why the lab is not available.
fn luc_lab(words: &[&str]) -> Result<String, Trouble> {
    let output = Command::new(lab_binary())
        .args(words)
        .output()
        .map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let remarks = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(said),
        Some(code) if code == i32::from(luc_cli::Code::LabUnavailable.number()) => {
            Err(Trouble::Skip(remarks))
        }
        _ => fail(format!("luc-lab {words:?} failed: {remarks}\n{said}")),
    }
}

/// Runs the checks on a kernel, with a module for another one at hand.
fn run(kernel: &str, other_kernel: &str) -> Result<String, Trouble> {
    let root = root().to_string_lossy();
    let other = luc_lab(&["build", "--kernel", other_kernel, "--source", &root])?;
    let other = format!("{}:/other/luc.ko", other.trim());
    let script = format!("{}:/verbs.sh", guest_source("verbs.sh").display());
    let folder = format!("{}:/folder", guest_source("owners").display());
    luc_lab(&[
        "run",
        "--kernel",
        kernel,
        "--source",
        &root,
        "--cpu-mips",
        "250",
        "--disk",
        "20us:64",
        "--disk",
        "20us:64:64M",
        "--disk",
        "20us:64:64M:ext2",
        "--disk",
        "20us:64:64M:ext4-nojournal:mount=noatime,dirsync",
        "--file",
        &script,
        "--file",
        &other,
        "--file",
        &folder,
        "--",
        "sh",
        "/verbs.sh",
    ])
}

fn keeps_its_word(kernel: &str, other_kernel: &str) -> Outcome {
    let said = run(kernel, other_kernel)?;
    let failed: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("FAIL"))
        .collect();
    check(failed.is_empty(), failed.join("\n"))?;
    check(
        said.ends_with("end of checks\n"),
        format!("the script did not end: {said}"),
    )
}

/// A killed process whose first thread is dead keeps its files open while another thread is in an
/// fsync: the lab must wait for that thread before it unmounts.
fn dead_threads() -> Outcome {
    const LEFT: &str = "luc-lab bench create-fsync --threads 4 --seconds 100 /mnt/0 & \
        waiting() { cat /proc/$!/task/*/stat | grep -c ') D '; }; \
        until [ $(waiting) -ge 2 ]; do sleep 0.05; done; \
        kill -KILL $!; sleep 0.05; cat /proc/$!/stat; waiting";
    let words = ["run", "--kernel", "6.12", "--disk", "300ms:1"];
    // The kernel's messages about a file system without its disk would fail the run.
    let said = luc_lab(&[&words[..], &["--", "sh", "-c", LEFT]].concat())?;
    check(
        said.contains(" Z ") && !said.ends_with("\n0\n"),
        format!("not tried: {said}"),
    )
}
