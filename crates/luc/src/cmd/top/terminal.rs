//! The terminal: taken when a [`Screen`] is made, given back when it goes,
//! whichever way that is.

use std::io::{self, Stdout};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::Command as _;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::state::Key;

/// The terminal's settings before it was ours; None while it is not.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal while it is ours.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal: no echo, no lines, and a screen of our own, so that
    /// what was on it comes back.
    pub fn new() -> io::Result<Self> {
        // A panic's message would be lost with the screen that it was written to.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        let before = tcgetattr(io::stdin()).ok();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = before;
        enable_raw_mode()?;
        let made = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match made {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Shows what `render` draws.
    pub fn show(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(render)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Once more does no harm, and there is nobody to tell that it failed.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The same for a process that is about to end while another thread may be drawing, or be stuck in
/// it: takes no lock but our own, and does not wait for a terminal that stands still (Ctrl-S).
pub fn give_back_at_once() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = &*before else {
        return;
    };
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
    let stdout = io::stdout();
    let mut ready = [PollFd::new(&stdout, PollFlags::OUT)];
    let at_once = Timespec::default();
    if rustix::event::poll(&mut ready, Some(&at_once)).is_ok_and(|ready| ready > 0) {
        let mut sequences = String::new();
        let _ = LeaveAlternateScreen.write_ansi(&mut sequences);
        let _ = Show.write_ansi(&mut sequences);
        let _ = rustix::io::write(&stdout, sequences.as_bytes());
    }
}

/// What came from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key that means something.
    Key(Key),
    /// Anything else that wants the screen drawn anew: another size, say.
    Other,
}

/// Waits for input, but no longer than this.
pub fn input(limit: Duration) -> io::Result<Option<Input>> {
    if !event::poll(limit)? {
        return Ok(None);
    }
    Ok(Some(match event::read()? {
        event::Event::Key(pressed) => key(pressed).map_or(Input::Other, Input::Key),
        _ => Input::Other,
    }))
}

/// What a key does.
pub fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    if pressed.modifiers.contains(KeyModifiers::CONTROL) {
        // The terminal makes no signal of it while we have it.
        return matches!(pressed.code, KeyCode::Char('c' | 'd')).then_some(Key::Quit);
    }
    Some(match pressed.code {
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Tab | KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('p') => Key::Policy,
        KeyCode::Char('o') => Key::Mode,
        KeyCode::Char(' ') => Key::Pause,
        // The same key as +, without shift.
        KeyCode::Char('+' | '=') => Key::Slower,
        KeyCode::Char('-') => Key::Faster,
        KeyCode::Char('h' | '?') => Key::Help,
        _ => return None,
    })
}
