//! The module's tracepoints as a source of a recording.

use std::io;

use luc_host::tracefs::{self, Instance};
use luc_host::{HostError, System, kernel, sysfs};

use crate::WatchError;

/// A tracefs instance that is being read line by line.
pub struct ModuleEvents {
    instance: Instance,
    buffer: Vec<u8>,
    /// Start of a line whose end has not arrived yet.
    rest: Vec<u8>,
}

impl ModuleEvents {
    /// Returns why the module's tracepoints cannot be recorded; `None` if they can.
    pub fn obstacle(system: &dyn System) -> Option<WatchError> {
        if !sysfs::loaded(system) {
            let failure = HostError::ModuleUnavailable {
                why: "not loaded, so it has nothing to record".into(),
                fix: "switch LUC on first".into(),
            };
            return Some(failure.into());
        }
        if tracefs::root(system).is_some() {
            return None;
        }
        Some(if kernel::capable(system, kernel::Capability::SysAdmin) {
            WatchError::trace(
                "recording",
                "tracefs is not mounted; mount -t tracefs tracefs /sys/kernel/tracing",
            )
        } else {
            sysfs::denied("record a trace").into()
        })
    }

    /// Switches the tracepoints on.
    pub fn new(system: &dyn System, buffer_kib: u32) -> Result<Self, WatchError> {
        let root = tracefs::root(system).unwrap_or_default();
        let instance = Instance::new(system, root, buffer_kib)
            .map_err(|error| WatchError::recording("instance of tracefs", &error))?;
        Ok(Self {
            instance,
            buffer: vec![0; 1 << 16],
            rest: Vec::new(),
        })
    }

    /// Passes the available lines to `each`.
    pub fn lines(&mut self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        loop {
            let got = self.instance.read(&mut self.buffer)?;
            if got == 0 {
                return Ok(());
            }
            self.rest.extend_from_slice(&self.buffer[..got]);
            let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            let whole: Vec<u8> = self.rest.drain(..=end).collect();
            for line in whole.split_inclusive(|byte| *byte == b'\n') {
                each(line)?;
            }
        }
    }

    /// Switches the tracepoints off, passes the rest to `each`, and returns what each CPU lost.
    pub fn end(mut self, each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Vec<(u32, u64)>> {
        self.instance.stop()?;
        self.lines(each)?;
        self.instance.losses()
    }
}
