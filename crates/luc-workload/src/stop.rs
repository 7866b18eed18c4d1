//! Ending a run early.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

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
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop.0))?;
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
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
