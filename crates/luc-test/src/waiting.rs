//! Waiting for what another thread or process does, in place of sleeping for a guessed time.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(5);

/// Waits until `so` holds; the panic after a minute says that there was no `what`.
pub fn until(what: &str, so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(
            begin.elapsed() < PATIENCE,
            "no {what} within {PATIENCE:.0?}"
        );
        sleep(STEP);
    }
}

/// Waits until a process handles this signal by itself; until then the signal would kill it.
pub fn until_it_catches(pid: u32, signal: Signal) {
    until(&format!("handler of {signal:?} in process {pid}"), || {
        caught(pid) >> (signal.as_raw() - 1) & 1 == 1
    });
}

/// The set of signals that a process handles, a bit each; empty if it is gone.
fn caught(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let set = lines.find_map(|line| line.strip_prefix("SigCgt:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}
