//! Progress of long work, on standard error and only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line that says what is going on and for how long. Off a terminal it shows
/// nothing but remarks.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar that shows nothing yet.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar }
    }

    fn remark(&self, text: &str) {
        self.bar.suspend(|| eprintln!("luc: note: {text}"));
    }

    fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl luc_report::Progress for Bar {
    fn step(&self, done: usize, total: usize, now: &str) {
        self.say(&format!("{done} of {total} measured: {now}"));
    }

    fn note(&self, text: &str) {
        self.remark(text);
    }
}

impl luc_lab::Progress for Bar {
    fn stage(&mut self, text: &str) {
        self.say(text);
    }

    fn guest(&mut self, done: u32, total: u32, text: &str) {
        if total > 1 {
            self.say(&format!("guest, {done} of {total}: {text}"));
        } else {
            self.say(&format!("guest: {text}"));
        }
    }

    fn note(&mut self, text: &str) {
        self.remark(text);
    }
}
