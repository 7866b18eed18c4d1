//! Progress of long work, on standard error: what is going on, for how long already, and how much
//! longer if that is known. A terminal has a line that is drawn again; elsewhere a plain line tells
//! now and then how much is done.

use std::io::{IsTerminal as _, Read};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A shorter wait shows nothing.
const LATE: Duration = Duration::from_secs(2);
/// Time between two plain lines.
const PLAIN: Duration = Duration::from_secs(20);

/// A line that says what is going on.
pub struct Bar {
    drawn: ProgressBar,
    plain: Option<Plain>,
    /// How many parts were done before this bar began, as in a campaign that is resumed: they say
    /// nothing about its pace.
    done_before: OnceLock<u64>,
}

/// When the last plain line was written, or the work began.
struct Plain(Mutex<Instant>);

impl Bar {
    /// Creates a bar without text; how much there is to do is not known.
    // A bar draws itself from then on, which nobody expects of a default.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::drawn(ProgressBar::new_spinner(), |state| {
            left_of(state.elapsed(), state.pos(), state.len())
        })
    }

    /// Shows a wait of this length; nothing if it is short.
    pub fn wait(what: &str, length: Duration) -> Self {
        let bar = ProgressBar::new_spinner();
        if length <= LATE {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let bar = Self::drawn(bar, move |state| {
            Some(length.saturating_sub(state.elapsed()))
        });
        bar.say(what);
        bar
    }

    /// Shows a wait of this length, or for `None`, work of unknown length.
    pub fn wait_or_work(what: &str, length: Option<Duration>) -> Self {
        if let Some(length) = length {
            return Self::wait(what, length);
        }
        let bar = Self::new();
        bar.say(what);
        bar
    }

    fn drawn(
        bar: ProgressBar,
        left: impl Fn(&ProgressState) -> Option<Duration> + Clone + Send + Sync + 'static,
    ) -> Self {
        let left = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            if let Some(left) = left(state) {
                // A failure is harmless: it is drawn again soon.
                let _ = write!(out, ", {:#} left", HumanDuration(left));
            }
        };
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}{left}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style.with_key("left", left));
        bar.enable_steady_tick(Duration::from_millis(200));
        let is_plain = !std::io::stderr().is_terminal();
        let plain = is_plain.then(|| Plain(Mutex::new(Instant::now())));
        Bar {
            drawn: bar,
            plain,
            done_before: OnceLock::new(),
        }
    }

    /// Wraps a source of `bytes` bytes, and shows how much of it has been read.
    pub fn reading<R: Read>(what: &str, bytes: u64, source: R) -> impl Read + use<R> {
        let bar = Self::new();
        bar.say(what);
        bar.drawn.set_length(bytes);
        Reading { bar, source }
    }

    /// Shows a remark above the bar.
    pub fn remark(&self, text: &str) {
        self.above(|| eprintln!("{}: note: {text}", crate::name()));
    }

    /// Runs `write`, which may write to the terminal, while the bar is not drawn.
    pub fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        self.drawn.suspend(write)
    }

    /// Shows this text.
    pub fn say(&self, text: &str) {
        self.drawn.set_message(text.to_owned());
    }

    /// Shows this text, and that `done` of `total` parts are done: at first, those that were done
    /// before.
    pub fn done(&self, done: usize, total: usize, text: &str) {
        self.done_before.get_or_init(|| done as u64);
        self.parts(done, total);
        self.say(text);
        if let Some(plain) = &self.plain
            && plain.is_due(Instant::now())
        {
            let left = left_of(
                self.drawn.elapsed(),
                self.drawn.position(),
                self.drawn.length(),
            );
            let left = left.map(|left| format!(", {:#} left", HumanDuration(left)));
            eprintln!("{}: {text}{}", crate::name(), left.unwrap_or_default());
        }
    }

    /// Shows that `done` of `total` parts are done.
    pub fn parts(&self, done: usize, total: usize) {
        let before = self.done_before.get().copied().unwrap_or(0);
        self.drawn.set_length((total as u64).saturating_sub(before));
        self.drawn
            .set_position((done as u64).saturating_sub(before));
    }
}

impl Plain {
    /// Tells whether the next line is due, and if so takes it for written.
    fn is_due(&self, now: Instant) -> bool {
        // A panic of another thread leaves a time as good as any.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now.duration_since(*last) >= PLAIN;
        if is_due {
            *last = now;
        }
        is_due
    }
}

/// The time left if the rest goes on at the same pace.
fn left_of(elapsed: Duration, done: u64, total: Option<u64>) -> Option<Duration> {
    let total = total.filter(|total| done > 0 && *total >= done)?;
    Some(elapsed.mul_f64((total - done) as f64 / done as f64))
}

struct Reading<R> {
    bar: Bar,
    source: R,
}

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bar.drawn.inc(read as u64);
        Ok(read)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(left_of(minute, 1, Some(4)), Some(3 * minute));
        assert_eq!(left_of(minute, 4, Some(4)), Some(Duration::ZERO));
        // Unknown before something is done, and without a total.
        assert_eq!(left_of(minute, 0, Some(4)), None);
        assert_eq!(left_of(minute, 1, None), None);
    }

    #[test]
    fn parts_that_were_done_before_have_no_pace() {
        let bar = Bar::new();
        let shown = || (bar.drawn.position(), bar.drawn.length());
        bar.done(29, 100, "");
        assert_eq!(shown(), (0, Some(71)));
        bar.done(33, 100, "");
        assert_eq!(shown(), (4, Some(71)));
        // A rule that repeats until intervals are narrow adds parts.
        bar.done(34, 120, "");
        assert_eq!(shown(), (5, Some(91)));
    }

    #[test]
    fn a_file_gets_a_line_every_now_and_then() {
        let begin = Instant::now();
        let plain = Plain(Mutex::new(begin));
        assert!(!plain.is_due(begin + PLAIN / 2));
        assert!(plain.is_due(begin + PLAIN));
        assert!(!plain.is_due(begin + PLAIN * 3 / 2));
        assert!(plain.is_due(begin + PLAIN * 2));
    }

    #[test]
    fn reading_passes_on_what_is_read() {
        let mut text = String::new();
        let mut source = Bar::reading("a file", 5, &b"bytes"[..]);
        source.read_to_string(&mut text).expect("read");
        assert_eq!(text, "bytes");
    }
}
