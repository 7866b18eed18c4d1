//! Signals while a command runs: each test runs this program again, as luc with a command.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use luc_base::Stop;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::during;

/// Environment variable with the folder of the program that is run again.
const DIR: &str = "LUC_TEST_DURING";
/// Longest wait for anything; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Logs an interrupt and then cleans up for 0.5 s, unless it is interrupted again. Ends by itself
/// after 10 s.
const COMMAND: &str = "trap 'echo interrupted >>log; trap \"echo again >>log; exit 4\" INT TERM; \
     sleep 0.5; echo in order >>log; exit 3' INT TERM; \
     : >up; i=0; while [ $i -lt 100 ]; do i=$((i + 1)); sleep 0.1; done";

/// Acts as luc if a test below asks for it.
#[test]
fn luc_with_a_command() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    std::env::set_current_dir(dir).expect("the folder");
    let stop = Stop::on_interrupt_with_command().expect("handlers");
    let command = ["sh", "-c", COMMAND].map(String::from);
    let status = during(&command, None, Duration::from_millis(100), &stop, || Ok(()));
    let status = status.expect("it ran").expect("it ended");
    fs::write("status", status.to_string()).expect("written");
}

/// Starts luc, interrupts it, and returns what the command logged and its status.
fn interrupted(start: impl FnOnce(&Path) -> Child, interrupt: impl FnOnce(&Child)) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let mut luc = start(dir.path());
    wait_for(&dir.path().join("up"));
    interrupt(&luc);
    wait_for(&dir.path().join("status"));
    let _ = luc.wait();
    let read = |name| fs::read_to_string(dir.path().join(name)).expect("a file");
    read("log") + &read("status")
}

fn wait_for(file: &Path) {
    let begin = Instant::now();
    while fs::metadata(file).is_err() {
        assert!(begin.elapsed() < PATIENCE, "no {}", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The command that runs this program as luc, as an argument of `prefix` if there is one.
fn luc(prefix: &[&str], dir: &Path) -> Command {
    let this = std::env::current_exe().expect("this program");
    let name = format!("{}::luc_with_a_command", module_path!());
    let name = name.split_once("::").expect("a crate").1;
    let mut words = prefix.iter().map(Into::into).chain([this.into_os_string()]);
    let mut command = Command::new(words.next().expect("a program"));
    command
        .args(words)
        .args(["--exact", name])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

const IN_ORDER: &str = "interrupted\nin order\nexit status: 3";

#[test]
fn a_terminal_interrupts_the_command_once() {
    let (mut keyboard, terminal) = luc_test::terminal();
    let start = |dir: &Path| {
        luc(&["setsid", "--ctty", "--wait"], dir)
            .stdin(terminal)
            .spawn()
            .expect("it runs")
    };
    let said = interrupted(start, |_| keyboard.write_all(b"\x03").expect("pressed"));
    assert_eq!(said, IN_ORDER);
}

/// As timeout(1) and service managers do.
#[test]
fn a_signal_to_the_group_reaches_the_command_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let start = |dir: &Path| luc(&[], dir).process_group(0).spawn().expect("it runs");
        let said = interrupted(start, |luc| {
            kill_process_group(Pid::from_child(luc), signal).expect("sent");
        });
        assert_eq!(said, IN_ORDER);
    }
}

#[test]
fn a_signal_to_luc_alone_reaches_the_command() {
    for signal in [Signal::INT, Signal::TERM] {
        let start = |dir: &Path| luc(&[], dir).process_group(0).spawn().expect("it runs");
        let said = interrupted(start, |luc| {
            kill_process(Pid::from_child(luc), signal).expect("sent");
        });
        assert_eq!(said, IN_ORDER);
    }
}

/// The command alone decides what a second signal means.
#[test]
fn a_second_interrupt_is_the_command_s() {
    let start = |dir: &Path| luc(&[], dir).process_group(0).spawn().expect("it runs");
    let said = interrupted(start, |luc| {
        let group = Pid::from_child(luc);
        kill_process_group(group, Signal::INT).expect("sent");
        std::thread::sleep(Duration::from_millis(200));
        kill_process_group(group, Signal::INT).expect("sent");
    });
    assert!(
        said.starts_with("interrupted\n") && said.ends_with("\nexit status: 4"),
        "{said}"
    );
}
