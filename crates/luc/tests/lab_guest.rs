//! The command line against the real module, in a lab guest.
//!
//! Where the lab cannot run, the test prints SKIP with the reason; with `CI`
//! set that is a failure.

use assert_cmd::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Standard output, or why the lab is not to be had.
fn luc(words: &[&str]) -> Result<String, String> {
    let mut command = Command::cargo_bin("luc").expect("the program is built");
    let output = command.args(words).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let remarks = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(said),
        Some(code) if code == i32::from(luc::exit::Code::LabUnavailable.number()) => Err(remarks),
        _ => panic!("luc {words:?} failed: {remarks}\n{said}"),
    }
}

/// Runs the checks on a kernel, with a module of another one at hand.
fn run(kernel: &str, other_kernel: &str) -> Result<String, String> {
    let other = luc(&["lab", "build", "--kernel", other_kernel, "--source", ROOT])?;
    let other = format!("{}:/other/luc.ko", other.trim());
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/in_guest.sh:/in_guest.sh"
    );
    luc(&[
        "lab",
        "run",
        "--kernel",
        kernel,
        "--source",
        ROOT,
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
        script,
        "--file",
        &other,
        "--",
        "sh",
        "/in_guest.sh",
    ])
}

fn keeps_its_word(test: &str, kernel: &str, other_kernel: &str) {
    match run(kernel, other_kernel) {
        Ok(said) => {
            print!("{said}");
            let failed: Vec<_> = said
                .lines()
                .filter(|line| line.starts_with("FAIL"))
                .collect();
            assert!(failed.is_empty(), "{}", failed.join("\n"));
            assert!(said.ends_with("end of checks\n"), "the script did not end");
        }
        Err(why) => luc_test::skip(test, &why),
    }
}

#[test]
fn every_verb_keeps_its_word_on_6_1() {
    keeps_its_word("every_verb_keeps_its_word_on_6_1", "6.1", "6.12");
}

#[test]
fn every_verb_keeps_its_word_on_6_12() {
    keeps_its_word("every_verb_keeps_its_word_on_6_12", "6.12", "6.1");
}

/// A killed process whose first thread is dead has its files open as long as another thread is
/// in an fsync: the lab waits for that one before it unmounts.
#[test]
fn the_last_thread_of_the_dead_is_waited_for() {
    const LEFT: &str = "luc bench create-fsync --threads 4 --seconds 100 /mnt/0 & \
        waiting() { cat /proc/$!/task/*/stat | grep -c ') D '; }; \
        until [ $(waiting) -ge 2 ]; do sleep 0.05; done; \
        kill -KILL $!; sleep 0.05; cat /proc/$!/stat; waiting";
    let words = ["lab", "run", "--kernel", "6.12", "--disk", "300ms:1"];
    match luc(&[&words[..], &["--", "sh", "-c", LEFT]].concat()) {
        // What the kernel says of a file system whose disk is gone has failed the run.
        Ok(said) => assert!(
            said.contains(" Z ") && !said.ends_with("\n0\n"),
            "not tried: {said}"
        ),
        Err(why) => luc_test::skip("the_last_thread_of_the_dead_is_waited_for", &why),
    }
}
