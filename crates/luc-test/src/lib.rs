//! Helpers that the tests of several crates share.
//!
//! A test that cannot run here calls [`skip`]. That prints the reason past the test harness, which
//! would swallow it, and notes it in the file that `LUC_SKIPS` names: `make check` and `make test`
//! end with a count. With `CI` set only tests of optional things may be skipped
//! ([`skip_expected`]).
//!
//! Everything here panics if it fails, as tests do.

#![allow(clippy::missing_panics_doc)]

pub mod command;
pub mod completions;
pub mod machine;
pub mod pages;
pub mod toy;
pub mod waiting;

use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Whether a test may be skipped here.
pub fn may_skip() -> bool {
    std::env::var_os("CI").is_none()
}

/// Prints that `test` is skipped and why, and has it counted.
pub fn skip(test: &str, why: &str) {
    assert!(may_skip(), "{test} may not be skipped with CI set: {why}");
    tell(&format!("SKIP {test}: {why}\n"));
}

/// Skips a test of something optional, such as a kernel that takes long to build, even with `CI`
/// set. It is counted, and its line says that it is expected.
pub fn skip_expected(test: &str, why: &str) {
    tell(&format!("SKIP {test} (optional, also for CI): {why}\n"));
}

/// Records how long a test took, in the file that `LUC_TIMES` names; the slowest are printed at the
/// end.
pub fn took(test: &str, seconds: f64) {
    note("LUC_TIMES", &format!("{seconds:.0} s {test}\n"));
}

fn tell(line: &str) {
    // Not eprint!, which the harness captures. A closed stderr is no failure.
    let _ = std::io::stderr().write_all(line.as_bytes());
    note("LUC_SKIPS", line);
}

/// Adds a line to the file that the variable names, if it is set.
fn note(variable: &str, line: &str) {
    if let Some(path) = std::env::var_os(variable) {
        File::options()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("cannot note a test in {}: {error}", path.display()));
    }
}

/// Opens a pseudo-terminal: the keyboard's end and the programs' end. It controls no process yet.
pub fn terminal() -> (File, File) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&keyboard).expect("granted");
    unlockpt(&keyboard).expect("unlocked");
    let name = ptsname(&keyboard, Vec::new()).expect("a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let program = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("opened");
    (File::from(keyboard), File::from(program))
}

/// Runs `body` with the path of a tmpfs that is mounted with `options`; skips the test if nothing
/// can be mounted. `body` must leave nothing in use.
pub fn with_tmpfs(options: &str, body: impl FnOnce(&Path)) {
    // The harness names a test's thread after the test.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let dir = tempfile::tempdir().expect("temporary directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "luc-test"])
        .arg(dir.path())
        .output();
    match mounted {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().next().unwrap_or_default();
            return skip(test, &format!("needs root: {why}"));
        }
        Err(error) => return skip(test, &format!("cannot run mount: {error}")),
    }
    let result = catch_unwind(AssertUnwindSafe(|| body(dir.path())));
    // A program that another test is starting keeps a copy of a descriptor until its exec.
    waiting::until("end of the use of a tmpfs", || {
        let unmounted = Command::new("umount").arg(dir.path()).output();
        unmounted.expect("umount runs").status.success()
    });
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}
