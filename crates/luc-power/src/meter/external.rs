//! A meter outside of the machine: a command or a device that gives one number of watts a line.
//!
//! A sample holds until the next one comes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::MeterError;
use super::source::{Counted, Lost, Source};

/// Longest time without a sample: meters give one a second, slow ones one in a few seconds.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Time between looks at samples that have come.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest line of a meter; the limit keeps a device that is no meter from filling the memory.
const LINE_MAX: u64 = 256;
/// Fewest samples of a reading: of fewer, the one before it decides.
const SAMPLES_MIN: u64 = 3;

/// Where samples of an external meter come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum External {
    /// A command for the shell, which prints them.
    Command(String),
    /// A serial device or a FIFO.
    Device(PathBuf),
}

impl External {
    /// Takes the path of a file that is not a program as a device, other text as a command.
    pub fn named(text: &str) -> Self {
        let path = Path::new(text);
        let is_program =
            |file: &std::fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
        match path.metadata() {
            Ok(file) if !is_program(&file) => Self::Device(path.to_owned()),
            _ => Self::Command(text.to_owned()),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Command(command) => format!("`{command}`"),
            Self::Device(path) => path.display().to_string(),
        }
    }
}

/// Watts from this moment on.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: Instant,
    watts: f64,
}

type Line = Result<Held, Lost>;

/// A running meter.
pub struct Stream {
    name: String,
    lines: Receiver<Line>,
    held: Held,
    /// Energy up to `held.at`.
    counted: Counted,
    _child: Option<Running>,
}

impl Stream {
    /// Starts the meter and waits for its first sample.
    pub fn start(external: &External) -> Result<Self, MeterError> {
        let name = external.name();
        let failed = |why: String| MeterError::External {
            meter: external.name(),
            why,
        };
        let (sender, lines) = mpsc::channel();
        let (child, reader) = open(external).map_err(&failed)?;
        let read = move || match reader() {
            Ok(input) => read(input, &sender),
            // Nobody listens if the meter was dropped.
            Err(error) => drop(sender.send(Err(format!("cannot read it: {error}")))),
        };
        // Not joined: the thread ends with its input, which may be a silent device.
        let thread = thread::Builder::new().name("meter-lines".into());
        thread
            .spawn(read)
            .map_err(|error| failed(format!("cannot start a thread for it: {error}")))?;
        let first = lines.recv_timeout(SILENCE_MAX).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => silence(),
                RecvTimeoutError::Disconnected => "it ended".to_owned(),
            })
        });
        Ok(Self {
            name,
            lines,
            held: first.map_err(|why| failed(format!("{why}; {FORM}")))?,
            counted: Counted::default(),
            _child: child,
        })
    }

    fn until(&self, at: Instant) -> f64 {
        self.held.watts * at.saturating_duration_since(self.held.at).as_secs_f64()
    }
}

/// The remedy for a meter that gives no samples.
const FORM: &str = "it must give one number of watts a line, every few seconds";

fn silence() -> Lost {
    format!("it gave no sample for {} s", SILENCE_MAX.as_secs())
}

impl Source for Stream {
    fn count(&mut self, now: Instant) -> Result<Counted, Lost> {
        let told = |name: &str, why: Lost| format!("meter {name}: {why}");
        loop {
            match self.lines.try_recv() {
                Ok(Ok(next)) => {
                    self.counted.joules += self.until(next.at);
                    self.counted.steps += 1;
                    self.held = next;
                }
                Ok(Err(why)) => return Err(told(&self.name, why)),
                Err(TryRecvError::Disconnected) => {
                    return Err(told(&self.name, "it ended".to_owned()));
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        if now.saturating_duration_since(self.held.at) > SILENCE_MAX {
            return Err(told(&self.name, silence()));
        }
        Ok(Counted {
            joules: self.counted.joules + self.until(now),
            ..self.counted
        })
    }

    fn steps_min(&self) -> u64 {
        SAMPLES_MIN
    }

    fn period(&self) -> Duration {
        PERIOD
    }
}

type Opener = Box<dyn FnOnce() -> io::Result<Box<dyn Read>> + Send>;

/// Starts a command, or checks a device; the opener may wait for its other end.
fn open(external: &External) -> Result<(Option<Running>, Opener), String> {
    match external {
        External::Command(command) => {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", command])
                .stdin(Stdio::null())
                .stdout(Stdio::piped());
            // In a group of its own: Ctrl-C ends the load, whose energy is still to be read.
            let mut child = shell
                .process_group(0)
                .spawn()
                .map_err(|error| format!("cannot start it: {error}"))?;
            let output = child.stdout.take();
            let output = output.ok_or_else(|| io::Error::other("it has no output"));
            let opener = move || output.map(|output| Box::new(output) as Box<dyn Read>);
            Ok((Some(Running(child)), Box::new(opener)))
        }
        External::Device(path) => {
            let kind = path
                .metadata()
                .map_err(|error| format!("cannot read it: {error}"))?;
            let kind = kind.file_type();
            if !kind.is_char_device() && !kind.is_fifo() {
                let tail = format!("--meter 'tail -n 0 -f {}'", path.display());
                return Err(format!(
                    "it is neither a serial device nor a FIFO; for a file that grows, give {tail}"
                ));
            }
            let path = path.clone();
            let opener = move || File::open(path).map(|file| Box::new(file) as Box<dyn Read>);
            Ok((None, Box::new(opener)))
        }
    }
}

/// Sends every line until the input ends, or nobody listens.
fn read(input: impl Read, lines: &Sender<Line>) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let got = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        let line = match got {
            Ok(0) => Err("it ended".to_owned()),
            Ok(_) if line.len() as u64 == LINE_MAX => {
                Err(format!("it gave a line of {LINE_MAX} bytes or more"))
            }
            Ok(_) => watts(&String::from_utf8_lossy(&line)),
            Err(error) => Err(format!("cannot read it: {error}")),
        };
        let at = Instant::now();
        let ends = line.is_err();
        if lines.send(line.map(|watts| Held { at, watts })).is_err() || ends {
            return;
        }
    }
}

fn watts(line: &str) -> Result<f64, Lost> {
    let line = line.trim();
    let watts = line.parse().ok();
    watts
        .filter(|watts: &f64| watts.is_finite() && *watts >= 0.0)
        .ok_or_else(|| format!("it gave {line:?}, which is no number of watts"))
}

/// A command that ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id())
            && let Some(group) = Pid::from_raw(pid)
        {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(external: &External) -> Result<Stream, String> {
        Stream::start(external).map_err(|error| error.to_string())
    }

    #[test]
    fn a_sample_holds_until_the_next() {
        let (sender, lines) = mpsc::channel();
        let at = Instant::now();
        let after = |ms| at + Duration::from_millis(ms);
        let mut stream = Stream {
            name: "fake".to_owned(),
            lines,
            held: Held { at, watts: 10.0 },
            counted: Counted::default(),
            _child: None,
        };
        let give = |ms, watts| {
            let at = after(ms);
            sender.send(Ok(Held { at, watts })).unwrap();
        };
        let mut joules = |ms| {
            stream
                .count(after(ms))
                .map(|counted| (counted.joules, counted.steps))
        };
        assert_eq!(joules(500), Ok((5.0, 0)));
        give(1_000, 20.0);
        give(2_000, 40.0);
        assert_eq!(joules(2_500), Ok((10.0 + 20.0 + 20.0, 2)));
        let lost = joules(12_001).unwrap_err();
        assert_eq!(lost, "meter fake: it gave no sample for 10 s");
        sender.send(Err("it ended".to_owned())).unwrap();
        assert_eq!(joules(2_500).unwrap_err(), "meter fake: it ended");
    }

    #[test]
    fn only_a_number_of_watts_is_a_sample() {
        assert_eq!(watts("43.5\n"), Ok(43.5));
        assert_eq!(watts(" 0 "), Ok(0.0));
        for bad in ["", "43 W", "-1", "nan", "inf", "watts"] {
            let why = watts(bad).unwrap_err();
            assert!(
                why.contains("no number of watts") && why.contains(bad),
                "{why}"
            );
        }
        let (sender, lines) = mpsc::channel();
        read(&b"12\n"[..], &sender);
        assert!(
            lines
                .recv()
                .unwrap()
                .is_ok_and(|held| (held.watts - 12.0).abs() < 1e-9)
        );
        assert_eq!(lines.recv().unwrap().unwrap_err(), "it ended");
        read(io::repeat(b'1'), &sender);
        assert!(lines.recv().unwrap().is_err(), "a line without an end");
    }

    #[test]
    fn a_meter_without_a_first_sample_is_refused() {
        let command = |text: &str| stream(&External::Command(text.to_owned())).err().unwrap();
        let why = command("echo garbage");
        assert!(
            why.starts_with("meter `echo garbage`: it gave \"garbage\""),
            "{why}"
        );
        assert!(why.contains("one number of watts a line"), "{why}");
        let why = command("true");
        assert!(why.starts_with("meter `true`: it ended; "), "{why}");
    }

    #[test]
    fn a_command_ends_with_its_meter() {
        let text = "echo $$; exec sleep 1000";
        let stream = stream(&External::Command(text.to_owned())).unwrap();
        let process = PathBuf::from(format!("/proc/{}", stream.held.watts));
        assert!(process.exists());
        drop(stream);
        assert!(!process.exists());
    }

    #[test]
    fn devices_and_commands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("watts");
        std::fs::write(&file, "12\n").unwrap();
        let named = |path: &Path| External::named(path.to_str().unwrap());
        assert_eq!(named(&file), External::Device(file.clone()));
        let why = stream(&named(&file)).err().unwrap();
        assert!(why.contains("tail -n 0 -f"), "{why}");
        let program = dir.path().join("program");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(named(&program), External::Command(_)));
        assert!(matches!(
            External::named("meter --watts"),
            External::Command(_)
        ));
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        let writer = {
            let fifo = fifo.clone();
            thread::spawn(move || std::fs::write(fifo, "7.5\n").unwrap())
        };
        assert!((stream(&named(&fifo)).unwrap().held.watts - 7.5).abs() < 1e-9);
        writer.join().unwrap();
    }
}
