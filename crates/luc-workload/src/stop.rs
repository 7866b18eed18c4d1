//! Ending a run early.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::Signals;

/// Status of a process that a second signal ended.
const INTERRUPTED: i32 = 130;
/// They ask for the end: the first of them is a wish, the second an order.
const POLITE: [i32; 2] = [SIGINT, SIGTERM];
/// They end a process that does nothing about them.
const RUDE: [i32; 9] = [
    SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
];

/// A flag that asks running workloads to end and report what they have.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

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
                Arc::clone(&stop.0),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// The same for who has changed something that outlives the process, such as a terminal: before
    /// any signal that can be caught ends it, `last` is called. That is on a thread of its own,
    /// whatever the others are stuck in, and of these it should wait for none.
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
                if polite && !raised.0.swap(true, Ordering::Relaxed) {
                    continue;
                }
                last();
                if !polite {
                    // Ends the process as the signal would have; where it fails, the exit does.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                signal_hook::low_level::exit(INTERRUPTED);
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(watch)?;
        Ok(stop)
    }

    /// Asks for the end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
