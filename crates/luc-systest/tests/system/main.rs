//! System tests: the program and the module in virtual machines, on stock kernels. All are in this
//! one program, so that no processor waits for the last test of a file.
//!
//! With `LUC_LONG` set the long ones run, too (`make test LONG=1`); with `--include-ignored` all
//! run on every kernel (`make test-all`). A word selects tests by name or suite. Tests that this
//! machine cannot run are counted as skipped.

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

/// Tests of two to ten minutes each, which nobody has to wait for before each change.
const LONG: [(&str, &str); 19] = [
    ("toy", "new_rows_on_6.12"),
    ("sight", "hosts_on_6.12"),
    ("unload", "virtual_time_on_6.12"),
    ("doctor", "doctor_on_6.12"),
    ("doctor", "module_on_6.12"),
    ("try", "guard_on_6.12"),
    ("try", "try_on_6.12"),
    ("disk", "disk_on_6.12"),
    ("pressure", "disk_on_6.12"),
    ("pressure", "system_on_6.12"),
    ("faults", "faults_on_6.12"),
    ("faults", "owners_on_6.12"),
    ("faults", "offline_and_container_on_6.12"),
    ("trace", "kprobes_on_6.12"),
    ("trace", "shared_on_6.12"),
    ("trace", "bad_conditions_on_6.12"),
    ("truth", "programs_on_6.12"),
    ("apps", "programs_run_on_ext4_and_xfs"),
    ("verbs", "every_verb_keeps_its_word_on_6.1"),
];

/// All tests, with their suites.
fn tests() -> Vec<Trial> {
    let of = |(suite, tests): Suite| tests().into_iter().map(move |test| test.with_kind(suite));
    let mut tests: Vec<Trial> = SUITES.into_iter().flat_map(of).collect();
    if std::env::var_os("LUC_LONG").is_some_and(|set| !set.is_empty()) {
        return tests;
    }
    for long in LONG {
        let at = tests.iter().position(|it| (it.kind(), it.name()) == long);
        let at = at.unwrap_or_else(|| panic!("no test {long:?}"));
        let test = tests.remove(at).with_ignored_flag(true);
        tests.insert(at, test);
    }
    tests
}

fn main() -> ExitCode {
    let tests = tests();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
