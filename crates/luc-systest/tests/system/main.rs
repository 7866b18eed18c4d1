//! System tests: the program and the module in virtual machines, on stock kernels. All are in this
//! one program, so that no processor waits for the last test of a file.
//!
//! With `--include-ignored` they run on every kernel (`make test-all`); a word selects tests by
//! name or suite. Tests that this machine cannot run are counted as skipped.

mod apps;
mod debug;
mod determinism;
mod disk;
mod doctor;
mod faults;
mod guests;
mod lines;
mod packages;
mod pressure;
mod sight;
mod slurm;
mod smoke;
mod torture;
mod toy;
mod trace;
mod truth;
mod trying;
mod unload;
mod verbs;
mod watch;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A suite: its name, and the function that returns its tests.
type Suite = (&'static str, fn() -> Vec<Trial>);

/// Suites with the longest tests come first, so that the last tests are short; before them come
/// suites with tests that run alone, which would wait for the others.
const SUITES: [Suite; 21] = [
    ("lines", lines::tests),
    ("debug", debug::tests),
    ("packages", packages::tests),
    ("toy", toy::tests),
    ("sight", sight::tests),
    ("unload", unload::tests),
    ("doctor", doctor::tests),
    ("try", trying::tests),
    ("disk", disk::tests),
    ("pressure", pressure::tests),
    ("faults", faults::tests),
    ("trace", trace::tests),
    ("truth", truth::tests),
    ("apps", apps::tests),
    ("verbs", verbs::tests),
    ("torture", torture::tests),
    ("watch", watch::tests),
    ("slurm", slurm::tests),
    ("smoke", smoke::tests),
    ("determinism", determinism::tests),
    ("guests", guests::tests),
];

fn main() -> ExitCode {
    let of = |(suite, tests): Suite| tests().into_iter().map(move |test| test.with_kind(suite));
    let tests = SUITES.into_iter().flat_map(of).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), tests);
    if doctor::well() {
        conclusion.exit_code()
    } else {
        ExitCode::FAILURE
    }
}
