//! `luc top` in a terminal, on a fake machine: what keys do, and that the
//! terminal is restored however the view ends.

mod common;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::Pretended;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, kill_process, setrlimit, waitpid,
};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// Longest wait for anything; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(30);

const STEP: Duration = Duration::from_millis(50);

/// Sequence that returns to the screen that was there before.
const LEAVE: &str = "\x1b[?1049l";

/// The program in a terminal.
struct View {
    machine: Pretended,
    keyboard: File,
    /// Kept open, so that the terminal outlives the program.
    terminal: File,
    before: Termios,
    child: Child,
    pieces: Receiver<Vec<u8>>,
    shown: String,
}

impl View {
    fn new() -> Self {
        Self::with(|machine| {
            let mut luc = Command::new(assert_cmd::cargo::cargo_bin("luc"));
            luc.args(["top", "--interval", "0.2", "--sysroot"])
                .arg(machine.dir.path());
            luc
        })
    }

    /// Starts a view with the command that shows it.
    fn with(command: impl FnOnce(&Pretended) -> Command) -> Self {
        let machine = Pretended::new();
        machine.run(&["on", "/srv/data"]);
        let (keyboard, terminal) = luc_test::terminal();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).expect("a size");
        let before = tcgetattr(&terminal).expect("settings");
        let end = || terminal.try_clone().expect("another end");
        let child = command(&machine)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program runs");
        let mut screen = keyboard.try_clone().expect("another end");
        let (send, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                if send.send(piece[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut view = View {
            machine,
            keyboard,
            terminal,
            before,
            child,
            pieces,
            shown: String::new(),
        };
        view.wait_for("/srv/data");
        view
    }

    fn wait_for(&mut self, text: &str) {
        let begin = Instant::now();
        while !self.shown.contains(text) {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let piece = self.pieces.recv_timeout(left);
            let piece = piece.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.shown));
            self.shown += &String::from_utf8_lossy(&piece);
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("pressed");
    }

    fn batching(&self) -> String {
        let knob = self.machine.at("/sys/fs/luc/vdb/knobs/batching");
        std::fs::read_to_string(knob).expect("a knob")
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("sent");
    }

    /// Makes the program hang: the mount table becomes a pipe, whose other end this returns.
    fn hang(&self) -> File {
        let table = self.machine.at("/proc/self/mountinfo");
        let pipe = table.with_extension("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe");
        std::fs::rename(&pipe, &table).expect("renamed");
        let begin = Instant::now();
        loop {
            // This succeeds once the program reads the pipe.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK;
            if let Ok(end) = rustix::fs::open(&table, flags, Mode::empty()) {
                return end.into();
            }
            assert!(begin.elapsed() < PATIENCE, "nobody reads the mount table");
            std::thread::sleep(STEP);
        }
    }

    /// Waits for the end, and checks that the terminal is as before.
    fn end(self) -> ExitStatus {
        self.end_with("")
    }

    /// As [`View::end`], and waits for this text after the view.
    fn end_with(mut self, text: &str) -> ExitStatus {
        self.wait_for(LEAVE);
        let (_, left) = self.shown.split_once(LEAVE).expect("it left");
        self.shown = left.to_owned();
        self.wait_for(text);
        let status = self.child.wait().expect("it ended");
        let now = tcgetattr(&self.terminal).expect("settings");
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        status
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // The program is still there only if a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_do_what_they_say() {
    let mut view = View::new();
    assert_eq!(view.batching(), "returns\n");
    // The first journal is that of /, the next one that of /srv/data, with LUC on.
    view.press("p");
    view.wait_for("switch");
    view.press("jp");
    view.wait_for("(was");
    assert!(view.batching().starts_with("off"), "{}", view.batching());
    view.press("h");
    view.wait_for("inside");
    view.press("q");
    assert!(view.end().success());
}

#[test]
fn signals_and_control_c_give_the_terminal_back() {
    let mut view = View::new();
    view.press("\x03");
    assert!(view.end().success());
    for signal in [Signal::TERM, Signal::INT] {
        let view = View::new();
        view.send(signal);
        assert!(view.end().success());
    }
}

/// Both by the key and by a SIGTSTP from another process.
#[test]
fn stopped_it_gives_the_terminal_back_and_takes_it_again() {
    let mut view = View::new();
    for by_key in [true, false] {
        view.shown.clear();
        if by_key {
            view.press("\x1a");
        } else {
            view.send(Signal::TSTP);
        }
        view.wait_for(LEAVE);
        let pid = Pid::from_child(&view.child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED)
            .expect("a child")
            .expect("it stopped");
        assert!(status.stopped(), "{status:?}");
        let now = tcgetattr(&view.terminal).expect("settings");
        assert_eq!(now.local_modes, view.before.local_modes);
        view.shown.clear();
        view.send(Signal::CONT);
        view.wait_for("\x1b[?1049h");
        view.wait_for("/srv/data");
    }
    view.press("q");
    assert!(view.end().success());
}

/// The program is stuck, so that it cannot end by itself.
#[test]
fn a_second_signal_ends_it_and_gives_the_terminal_back() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut view = View::new();
        let _pipe = view.hang();
        view.send(signal);
        std::thread::sleep(Duration::from_millis(300));
        assert!(view.child.try_wait().expect("a child").is_none());
        // Two pending signals count as one: send it again.
        let begin = Instant::now();
        while view.child.try_wait().expect("a child").is_none() {
            assert!(begin.elapsed() < PATIENCE, "{signal:?} does not end it");
            view.send(signal);
            std::thread::sleep(STEP);
        }
        assert_eq!(view.end().code(), Some(130));
    }
}

/// Signals that end a process by default; the program is stuck.
#[test]
fn other_signals_give_the_terminal_back() {
    // No core dump.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).expect("a limit");
    for signal in [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::ALARM] {
        let view = View::new();
        let _pipe = view.hang();
        view.send(signal);
        assert_eq!(view.end().signal(), Some(signal.as_raw()));
    }
}

/// Environment variable that tells the next test's child at which file to panic.
const PANIC_AT: &str = "LUC_TEST_PANIC_AT";

/// The panic's message must stay readable: it belongs on the screen from before the view.
#[test]
fn a_panic_gives_the_terminal_back() {
    if let Some(file) = std::env::var_os(PANIC_AT) {
        // This is the child.
        let mut machine = Pretended::new();
        machine.run(&["on", "/srv/data"]);
        machine.panic_at = Some(file.into());
        machine.run(&["top", "--interval", "0.2"]);
        return;
    }
    let file = |machine: &Pretended| machine.dir.path().join("panic");
    let view = View::with(|machine| {
        let mut test = Command::new(std::env::current_exe().expect("this program"));
        test.args(["--exact", "a_panic_gives_the_terminal_back", "--nocapture"])
            .env(PANIC_AT, file(machine));
        test
    });
    std::fs::write(file(&view.machine), "").expect("a file");
    view.end_with("as was asked for");
}

/// A user who might press Ctrl-C sees how long it would still take.
#[test]
fn a_doctor_says_how_long_it_still_watches() {
    let mut view = View::with(|machine| {
        let mut luc = Command::new(assert_cmd::cargo::cargo_bin("luc"));
        luc.args(["doctor", "/srv/data", "--seconds", "3", "--sysroot"])
            .arg(machine.dir.path())
            .env("TERM", "xterm");
        luc
    });
    view.wait_for("as far as LUC's module");
    let watching = view.shown.find("watching").expect("what it does");
    let left = view.shown.find(" left").expect("how long it still does");
    let answer = view
        .shown
        .find("as far as LUC's module")
        .expect("an answer");
    assert!(watching < answer && left < answer, "{}", view.shown);
    assert!(view.child.wait().expect("it ended").success());
}
