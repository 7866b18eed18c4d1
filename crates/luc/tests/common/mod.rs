//! Code that the tests of `luc` share.

#![allow(dead_code)] // each test file uses its part

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use luc_test::machine::put_whole;
use rustix::process::{Pid, Signal, kill_process};

pub type Pretended = luc_test::machine::Pretended<luc::cmd::Cli>;

pub fn luc() -> assert_cmd::Command {
    luc_test::command::program("luc")
}

/// A load of commits on vdb, counted by LUC, until dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Starts a load with this rate of commits, per second; `None` keeps the last one: a file that
    /// tells the rate is empty for a moment while it is written.
    pub fn new(root: &Path, rate_per_s: impl Fn(&Path) -> Option<f64> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, root) = (Arc::clone(&stop), root.to_owned());
        let counters = root.join("sys/fs/luc/vdb/counters");
        let work = move || {
            let (mut calls, mut rate, mut last) = (1000.0, 0.0, Instant::now());
            while !ended.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(5));
                rate = rate_per_s(&root).unwrap_or(rate);
                let time = last.elapsed();
                last += time;
                calls += rate * time.as_secs_f64();
                for counter in ["sync_events", "commits"] {
                    put_counter(&counters.join(counter), calls);
                }
            }
        };
        let thread = Some(std::thread::spawn(work));
        sleep(Duration::from_millis(30));
        Self { stop, thread }
    }
}

/// Gives the machine a processor package that counts energy, so far none.
pub fn count_energy(machine: &Pretended) {
    let package = "/sys/class/powercap/intel-rapl:0";
    for (file, text) in [
        ("name", "package-0\n"),
        ("energy_uj", "0\n"),
        ("max_energy_range_uj", "262143328850\n"),
    ] {
        machine.put(&format!("{package}/{file}"), text);
    }
}

/// Sets the energy that the package has taken.
pub fn set_energy(root: &Path, joules: f64) {
    put_counter(
        &root.join("sys/class/powercap/intel-rapl:0/energy_uj"),
        joules * 1e6,
    );
}

/// Replaces a counter; its folder may be gone.
pub fn put_counter(file: &Path, value: f64) {
    let _ = put_whole(file, format!("{value:.0}\n"));
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the load ends");
        }
    }
}

/// Starts the program on the fake machine of this tree.
pub fn start(root: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
    command.arg("--sysroot").arg(root).args(words);
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program runs")
}

pub fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a number"), signal).expect("it runs");
}

/// Waits for the next line that a program writes to its standard output, and returns it.
pub fn next_line(child: &mut Child) -> String {
    let output = child.stdout.as_mut().expect("a pipe");
    // One byte at a time: a buffer would keep the beginning of the next line.
    let (mut line, mut byte) = (Vec::new(), [0]);
    while output.read(&mut byte).expect("readable") == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// The output of a program that ends, and its exit code.
pub fn ended(child: Child) -> (String, Option<i32>) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("it ends");
    let mut text = String::from_utf8_lossy(&stdout).into_owned();
    text += &String::from_utf8_lossy(&stderr);
    (text, status.code())
}
