//! Code that the command lines of LUC have in common.
//!
//! A program is a type that parses its command line ([`Program`]) and a [`main`]. A verb declares a
//! [`Verb`] and prints through its [`Context`]. [`Failure`] has every way a verb can fail.
//! [`man`] and [`completions`] come from the same definition as `--help` ([`help`]).

pub mod completions;
mod exit;
pub mod help;
pub mod man;
pub mod progress;
pub mod recordings;
pub mod units;
mod verb;

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use luc_base::Stop;
use luc_host::{Machine, System};

pub use exit::{Code, Failure};
pub use verb::{Interrupt, Verb};

/// A command line.
pub trait Program: clap::Parser {
    /// The verbs as `--help` groups them, each group with its heading.
    const GROUPS: &[(&str, &[&str])];

    fn verb(&self) -> &dyn Verb;

    /// The directory that `--sysroot` names.
    fn sysroot(&self) -> Option<PathBuf>;

    /// Names the command to type instead of these words, if another program has them.
    fn moved(_words: &[String]) -> Option<String> {
        None
    }
}

/// Environment variable to use instead of `--sysroot`.
const SYSROOT: &str = "LUC_SYSROOT";

static NAME: OnceLock<String> = OnceLock::new();

/// Sets the name of the program once; [`main`] does so.
pub fn set_name(name: &str) {
    let _ = NAME.set(name.to_owned());
}

/// The name of the program, which begins each of its remarks.
pub fn name() -> &'static str {
    NAME.get().map_or("luc", String::as_str)
}

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
        writeln!(self.err, "{}: note: {text}", name())
    }

    /// True once the user pressed Ctrl-C or the process was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Writes a value as indented JSON with a newline at its end.
    pub fn print_json(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut *self.out, value)
            .map_err(|error| Failure::from(io::Error::from(error)))?;
        writeln!(self.out)?;
        Ok(())
    }
}

/// The command line of a program as clap sees it.
pub fn command<P: Program>() -> clap::Command {
    let command = P::command();
    let codes = Code::table(&verbs_of(&command));
    let command = help::with_examples(command.after_long_help(codes));
    help::grouped(command, P::GROUPS)
}

/// The names of a program's verbs; those that its help hides have no codes there either.
fn verbs_of(program: &clap::Command) -> Vec<&str> {
    let verbs = program.get_subcommands();
    let shown = verbs.filter(|verb| !verb.is_hide_set());
    shown.map(clap::Command::get_name).collect()
}

/// Runs a whole program: parses the command line, runs the verb, reports the outcome.
pub fn main<P: Program>() -> ExitCode {
    let command = command::<P>();
    set_name(command.get_name());
    let parsed = command.try_get_matches().and_then(|matches| {
        let verb = matches.subcommand_name().unwrap_or_default().to_owned();
        Ok((P::from_arg_matches(&matches)?, verb))
    });
    let (program, verb) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage::<P>(&error),
    };
    let sysroot = program
        .sysroot()
        .or_else(|| std::env::var_os(SYSROOT).map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/"));
    let reader_gone = Cell::new(false);
    let stop = watched(program.verb().interrupt()).map_err(Failure::from);
    let outcome = stop.and_then(|stop| {
        let machine = Machine::new(sysroot);
        let mut out = io::BufWriter::new(Output(io::stdout(), &reader_gone));
        let mut context = Context {
            system: &machine,
            out: &mut out,
            err: &mut Output(io::stderr(), &reader_gone),
            stop,
        };
        let outcome = program.verb().run(&mut context);
        // Output before a failure is part of the answer.
        let flushed = out.flush().map_err(Failure::from);
        outcome.and(flushed)
    });
    match outcome {
        Ok(()) => ExitCode::from(Code::Ok.number()),
        // The reader has what it wanted: `luc status | head`.
        Err(Failure::Unexpected(_)) if reader_gone.get() => ExitCode::from(Code::Ok.number()),
        Err(failure) => {
            let code = failure.code();
            debug_assert!(code.ends(&verb), "{verb} does not list {code:?}: {failure}");
            let _ = writeln!(io::stderr(), "{}: {failure}", name());
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

/// Prints clap's error, which `--help` and `--version` are, too; or tells which program has the
/// verb.
fn usage<P: Program>(error: &clap::Error) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let moved = Some(error).filter(|it| it.kind() == clap::error::ErrorKind::InvalidSubcommand);
    if let Some(now) = moved.and_then(|_| P::moved(&words)) {
        let _ = writeln!(io::stderr(), "{}: {now}", name());
        return ExitCode::from(Code::Usage.number());
    }
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
