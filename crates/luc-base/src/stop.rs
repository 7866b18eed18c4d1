//! Ending a run early.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Signals, SignalsInfo};

/// Status of a process that a second signal ended.
const INTERRUPTED: i32 = 130;
/// Signals that ask for the end: the first is a request, the second ends the process.
const POLITE: [i32; 2] = [SIGINT, SIGTERM];
/// Signals that end a process unless it handles them.
const RUDE: [i32; 9] = [
    SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
];

/// A flag that asks running workloads to end and report what they have.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    raised: Arc<AtomicBool>,
    command: Arc<Command>,
}

/// A command that runs on behalf of this process.
#[derive(Debug, Default)]
struct Command {
    runs: AtomicBool,
    /// Number of the latest signal that a process, not a terminal, sent; 0 if none.
    sent: AtomicI32,
}

impl Stop {
    /// A flag that nothing but [`Stop::set`] raises.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that Ctrl-C (SIGINT) and SIGTERM raise. A second signal ends the process at once,
    /// with status 130.
    ///
    /// # Errors
    /// When the system refuses the signal handlers.
    pub fn on_interrupt() -> io::Result<Self> {
        let stop = Self::new();
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the exit handler must look before the flag is raised.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                INTERRUPTED,
                Arc::clone(&stop.raised),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&stop.raised))?;
        }
        Ok(stop)
    }

    /// Like [`Stop::on_interrupt`], for a process that runs a command: see [`Stop::command_runs`].
    ///
    /// # Errors
    /// When the system refuses the signal handlers or the thread.
    pub fn on_interrupt_with_command() -> io::Result<Self> {
        let stop = Self::new();
        let mut signals = SignalsInfo::<WithOrigin>::new(POLITE)?;
        for signal in POLITE {
            // Raised by the handler itself, so that a wait ended by the signal finds the flag
            // raised.
            signal_hook::flag::register(signal, Arc::clone(&stop.raised))?;
        }
        let command = Arc::clone(&stop.command);
        let watch = move || {
            let mut first = true;
            for origin in &mut signals {
                // A terminal's signal has no sender: the kernel gives it to the whole group.
                if origin.process.is_some() {
                    command.sent.store(origin.signal, Ordering::Relaxed);
                }
                if !command.runs.load(Ordering::Relaxed) && !std::mem::take(&mut first) {
                    signal_hook::low_level::exit(INTERRUPTED);
                }
            }
        };
        stop.with_thread(watch)
    }

    /// Records whether a command runs. While it does, no signal ends this process: the command
    /// handles the second signal as it would without `luc`.
    pub fn command_runs(&self, runs: bool) {
        self.command.runs.store(runs, Ordering::Relaxed);
    }

    /// Takes the latest signal that another process sent. A terminal also sends its signals to the
    /// command; another process may have signalled this process only.
    #[must_use]
    pub fn take_sent(&self) -> Option<i32> {
        let signal = self.command.sent.swap(0, Ordering::Relaxed);
        (signal != 0).then_some(signal)
    }

    /// Like [`Stop::on_interrupt`], for a process that has changed something that outlives it, such
    /// as a terminal: `last` is called before any signal that can be caught ends the process. It
    /// runs on a thread of its own, and must not wait for another thread.
    ///
    /// # Errors
    /// When the system refuses the signal handlers or the thread.
    pub fn on_interrupt_after(last: fn()) -> io::Result<Self> {
        let stop = Self::new();
        let mut signals = Signals::new(POLITE.into_iter().chain(RUDE))?;
        let raised = stop.clone();
        let watch = move || {
            for signal in &mut signals {
                let polite = POLITE.contains(&signal);
                if polite && !raised.raised.swap(true, Ordering::Relaxed) {
                    continue;
                }
                last();
                if !polite {
                    // Ends the process as the signal would have; if that fails, the exit does.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                signal_hook::low_level::exit(INTERRUPTED);
            }
        };
        stop.with_thread(watch)
    }

    fn with_thread(self, watch: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(watch)?;
        Ok(self)
    }

    pub fn set(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}
