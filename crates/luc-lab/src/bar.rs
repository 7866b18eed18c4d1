//! A bar that shows how far virtual machines and reports are.

use luc_cli::progress::Bar as Line;

/// A progress bar, for the traits of those who report progress.
pub struct Bar(Line);

impl Bar {
    /// Creates a bar without text.
    pub fn new() -> Self {
        Self(Line::new())
    }

    /// Runs `write`, which may write to the terminal, while the bar is not drawn.
    pub fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.above(write)
    }
}

impl luc_report::BatchProgress for Bar {
    fn step(&self, done: usize, total: usize, now: &str) {
        self.0
            .done(done, total, &format!("{done} of {total} measured: {now}"));
    }

    fn note(&self, text: &str) {
        self.0.remark(text);
    }
}

impl luc_vm::Progress for Bar {
    fn stage(&mut self, text: &str) {
        self.0.say(text);
    }

    fn guest(&mut self, done: u32, total: u32, text: &str) {
        if total > 1 {
            self.0.parts(done as usize, total as usize);
            self.0.say(&format!("guest, {done} of {total}: {text}"));
        } else {
            self.0.say(&format!("guest: {text}"));
        }
    }

    fn note(&mut self, text: &str) {
        self.0.remark(text);
    }
}
