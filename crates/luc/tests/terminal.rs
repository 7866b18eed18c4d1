//! `luc top` in a terminal, on a pretended machine: what keys do, and that the
//! terminal is given back whichever way the view ends.

mod common;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::Pretended;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// Longest wait for anything; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Back to the screen that was there before.
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
        let machine = Pretended::new();
        machine.run(&["on", "/srv/data"]);
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("granted");
        unlockpt(&keyboard).expect("unlocked");
        let name = ptsname(&keyboard, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("opened");
        let terminal = File::from(terminal);
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).expect("a size");
        let before = tcgetattr(&terminal).expect("settings");
        let end = || terminal.try_clone().expect("another end");
        let child = Command::new(assert_cmd::cargo::cargo_bin("luc"))
            .args(["top", "--interval", "0.2", "--sysroot"])
            .arg(machine.dir.path())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program runs");
        let keyboard = File::from(keyboard);
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

    fn policy(&self) -> String {
        let knob = self.machine.at("/sys/fs/luc/vdb/knobs/policy");
        std::fs::read_to_string(knob).expect("a knob")
    }

    /// It ends, and everything is as it was.
    fn end(mut self) -> ExitStatus {
        self.wait_for(LEAVE);
        let status = self.child.wait().expect("it ended");
        let now = tcgetattr(&self.terminal).expect("settings");
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        status
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Only where a test failed is it still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_do_what_they_say() {
    let mut view = View::new();
    assert_eq!(view.policy(), "luc\n");
    // The journals are those of / first; the next one is /srv/data, with LUC on.
    view.press("p");
    view.wait_for("switch");
    view.press("jp");
    view.wait_for("(was");
    assert!(view.policy().starts_with("stock"), "{}", view.policy());
    view.press("h");
    view.wait_for("likewise");
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
        let id = Pid::from_child(&view.child);
        kill_process(id, signal).expect("sent");
        assert!(view.end().success());
    }
}
