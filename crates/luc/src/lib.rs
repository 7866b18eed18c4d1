//! The command line of LUC: thin verbs over the libraries of this workspace.
//!
//! A verb is a module of [`cmd`], which declares a [`verb::Verb`]. [`exit`] has every way a verb
//! can fail, `sample` measures journals and processes. The machine that verbs act on is
//! `luc_host`'s.

pub mod cmd;
pub mod exit;
mod help;
mod losses;
mod means;
mod progress;
mod sample;
mod tracer;
mod trying;
mod units;
pub mod verb;

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use luc_base::Stop;
use luc_host::{Machine, System};

use crate::exit::{Code, Failure};
use crate::verb::Interrupt;

/// The surroundings of a verb: the machine, where its answer goes, and whether
/// an interrupt asked it to stop.
pub struct Context<'a> {
    pub system: &'a dyn System,
    /// Standard output: the answer.
    pub out: &'a mut dyn Write,
    /// Standard error: remarks.
    pub err: &'a mut dyn Write,
    /// Raised by SIGINT and SIGTERM.
    pub stop: Stop,
}

impl Context<'_> {
    pub fn note(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.err, "luc: note: {text}")
    }

    /// True once the user pressed Ctrl-C or the process was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}

/// Runs the whole program: parses the command line, runs the verb, reports the outcome.
pub fn main() -> ExitCode {
    if luc_vm::guest::is_guest_init() {
        luc_vm::guest::init_main();
    }
    let cli = match cmd::Cli::read() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let reader_gone = Cell::new(false);
    let stop = watched(cli.interrupt()).map_err(Failure::from);
    let outcome = stop.and_then(|stop| {
        let machine = Machine::new(cli.sysroot());
        let mut out = io::BufWriter::new(Output(io::stdout(), &reader_gone));
        let mut context = Context {
            system: &machine,
            out: &mut out,
            err: &mut Output(io::stderr(), &reader_gone),
            stop,
        };
        let outcome = cli.run(&mut context);
        // Output before a failure is part of the answer.
        let flushed = out.flush().map_err(Failure::from);
        outcome.and(flushed)
    });
    match outcome {
        Ok(()) => ExitCode::from(Code::Ok.number()),
        // The reader has what it wanted: `luc status | head`.
        Err(Failure::Unexpected(_)) if reader_gone.get() => ExitCode::from(Code::Ok.number()),
        Err(failure) => {
            let _ = writeln!(io::stderr(), "luc: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// An output that notices when its reader goes away. Elsewhere a broken pipe is an ordinary
/// failure.
struct Output<'a, W>(W, &'a Cell<bool>);

impl<W> Output<'_, W> {
    fn told<T>(&self, done: io::Result<T>) -> io::Result<T> {
        let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.1.set(self.1.get() || done.as_ref().is_err_and(broken));
        done
    }
}

impl<W: Write> Write for Output<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        self.told(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        self.told(flushed)
    }
}

/// Prints clap's error, which `--help` and `--version` are, too.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    let code = if error.use_stderr() {
        Code::Usage
    } else {
        Code::Ok
    };
    ExitCode::from(code.number())
}

/// Installs the signal handlers that a verb wants.
fn watched(interrupt: Interrupt) -> io::Result<Stop> {
    match interrupt {
        Interrupt::Ends => Ok(Stop::new()),
        Interrupt::Asks => Stop::on_interrupt(),
        Interrupt::AsksBoth => Stop::on_interrupt_with_command(),
        Interrupt::AsksThen(last) => Stop::on_interrupt_after(last),
    }
}
