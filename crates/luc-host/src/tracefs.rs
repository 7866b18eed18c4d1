//! A private tracefs instance: it disturbs no other tracing, and is removed at the end.

use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::system::System;

/// The module's tracepoints.
pub const EVENTS: [&str; 3] = ["luc_commit", "luc_write_delay", "luc_decision"];

/// Where tracefs is mounted, if it is.
pub fn root(system: &dyn System) -> Option<&'static str> {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .into_iter()
        .find(|root| system.exists(&format!("{root}/instances")))
}

/// A private instance with the module's tracepoints on; removed when dropped.
pub struct Instance {
    dir: PathBuf,
    pipe: fs::File,
}

impl Instance {
    /// Makes the instance and switches the tracepoints on.
    ///
    /// Instances that killed recordings left are removed first, as they would go on tracing.
    /// `buffer_kib` is the size of each CPU's buffer in KiB.
    ///
    /// # Errors
    /// A file of tracefs cannot be made or written.
    pub fn new(system: &dyn System, root: &str, buffer_kib: u32) -> io::Result<Self> {
        sweep(system, root);
        let name = format!("{root}/instances/luc-{}", std::process::id());
        let dir = system.path(&name);
        fs::create_dir(&dir)?;
        let made = Self::set_up(&dir, buffer_kib);
        if made.is_err() {
            let _ = remove(&dir);
        }
        made
    }

    fn set_up(dir: &Path, buffer_kib: u32) -> io::Result<Self> {
        put(dir, "buffer_size_kb", &buffer_kib.to_string())?;
        // The clock of the module's own time stamps, so that the two can be compared.
        put(dir, "trace_clock", "mono")?;
        let pipe = fs::OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking())
            .open(dir.join("trace_pipe"))?;
        for event in EVENTS {
            put(dir, &format!("events/luc/{event}/enable"), "1")?;
        }
        Ok(Instance {
            dir: dir.to_owned(),
            pipe,
        })
    }

    /// The bytes traced since the last call; 0 if none.
    ///
    /// # Errors
    /// The kernel refuses to read.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Ends tracing; what is in the buffers can still be read.
    ///
    /// # Errors
    /// A file of tracefs cannot be written.
    pub fn stop(&self) -> io::Result<()> {
        put(&self.dir, "tracing_on", "0")
    }

    /// Records that each CPU lost, by its number.
    ///
    /// # Errors
    /// A file of tracefs cannot be read.
    pub fn losses(&self) -> io::Result<Vec<(u32, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.dir.join("per_cpu"))? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            let Some(cpu) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let stats = fs::read_to_string(entry.path().join("stats"))?;
            found.push((cpu, lost_in(&stats)));
        }
        found.sort_unstable();
        Ok(found)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
        // An instance whose pipe is open cannot be removed: replace it first.
        if let Ok(nothing) = fs::File::open("/dev/null") {
            self.pipe = nothing;
        }
        let _ = remove(&self.dir);
    }
}

fn sweep(system: &dyn System, root: &str) {
    let instances = format!("{root}/instances");
    for name in system.list(&instances).unwrap_or_default() {
        let process = name.strip_prefix("luc-").and_then(|id| id.parse().ok());
        let alive = |id: u32| system.exists(&format!("/proc/{id}"));
        if process.is_some_and(|id| !alive(id)) {
            let _ = remove(&system.path(&format!("{instances}/{name}")));
        }
    }
}

/// tracefs removes the contents of a folder by itself.
fn remove(dir: &Path) -> io::Result<()> {
    fs::remove_dir(dir)
}

fn put(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    let path = dir.join(file);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .map_err(named)?;
    file.write_all(text.as_bytes()).map_err(named)
}

/// The flag as `open` takes it.
fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// Sums `overrun: 12` and `dropped events: 3`, among other lines.
fn lost_in(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| ["overrun", "dropped events"].contains(&name.trim()))
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn overruns_and_drops_are_losses() {
        let stats = "entries: 5\noverrun: 12\ncommit overrun: 7\nbytes: 99\n\
                     oldest event ts:  1.5\ndropped events: 3\nread events: 4\n";
        assert_eq!(super::lost_in(stats), 15);
        assert_eq!(super::lost_in(""), 0);
    }
}
