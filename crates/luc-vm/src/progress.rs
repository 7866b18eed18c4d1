//! Progress of the lab, for its caller.

/// Receives progress. All methods have empty defaults.
pub trait Progress {
    /// A new piece of work begins; one short line.
    fn stage(&mut self, _text: &str) {}
    /// The guest has finished `done` of `total` cells and is working on `text`. Called a few times
    /// per second at most while the guest runs.
    fn guest(&mut self, _done: u32, _total: u32, _text: &str) {}
    /// More of what the step under way writes to standard output and to standard error; only for a
    /// run that asks for it.
    fn output(&mut self, _stdout: &[u8], _stderr: &[u8]) {}
    /// Something that the user should know but that stops nothing; one line.
    fn note(&mut self, _text: &str) {}
}

/// Shows nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}
