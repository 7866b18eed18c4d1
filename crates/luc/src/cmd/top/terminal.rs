//! The terminal: taken when a [`Screen`] is made, and restored when it goes,
//! also after a panic or a signal.

use std::io::{self, Stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::Command as _;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGTSTP};

use super::state::Key;

/// The terminal's settings before a [`Screen`] took it; `None` while no screen has it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal while the view has it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Raised by SIGTSTP: the shell wants the terminal for a while.
    stop: Arc<AtomicBool>,
    /// Raised by SIGCONT: the view may take the terminal again.
    go_on: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal: raw mode, and the alternate screen, so that the old
    /// content comes back.
    pub fn new() -> io::Result<Self> {
        // A panic's message would vanish with the alternate screen.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        let (stop, go_on) = (Arc::default(), Arc::default());
        signal_hook::flag::register(SIGTSTP, Arc::clone(&stop))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&go_on))?;
        take()?;
        match Terminal::new(CrosstermBackend::new(io::stdout())) {
            Ok(terminal) => Ok(Screen {
                terminal,
                stop,
                go_on,
            }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Stops the process after SIGTSTP, and takes the terminal again after SIGCONT. Returns true if
    /// the screen must be redrawn.
    pub fn heed_signals(&mut self) -> io::Result<bool> {
        if self.stop.load(Ordering::Relaxed) {
            self.stop()?;
            return Ok(true);
        }
        let again = self.go_on.swap(false, Ordering::Relaxed);
        if again {
            self.take_again()?;
        }
        Ok(again)
    }

    /// Restores the terminal and stops the process until SIGCONT.
    pub fn stop(&mut self) -> io::Result<()> {
        give_back();
        // SIGTSTP would only raise the flag once more.
        kill_process(getpid(), Signal::STOP)?;
        self.stop.store(false, Ordering::Relaxed);
        self.go_on.store(false, Ordering::Relaxed);
        self.take_again()
    }

    fn take_again(&mut self) -> io::Result<()> {
        take()?;
        // The screen's content is gone: clear the rest, and make the library forget what it drew.
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    pub fn show(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(render)?;
        Ok(())
    }
}

/// Takes the terminal and saves its settings; taking it twice does no harm.
fn take() -> io::Result<()> {
    {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if before.is_none() {
            *before = tcgetattr(io::stdin()).ok();
        }
    }
    let taken = enable_raw_mode().and_then(|()| execute!(io::stdout(), EnterAlternateScreen));
    if taken.is_err() {
        give_back();
    }
    taken
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal; doing so twice does no harm. Nobody could read about a failure.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// As `give_back`, for a process about to end while another thread may be drawing or stuck in it:
/// takes no lock but `BEFORE`, and does not wait for a terminal that Ctrl-S has stopped.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key that the view knows.
    Key(Key),
    Stop,
    /// Anything else that needs a redraw, such as another size.
    Other,
}

/// Waits for input, but no longer than this. While a filter is typed, keys are its characters.
pub fn input(limit: Duration, typing: bool) -> io::Result<Option<Input>> {
    let key = if typing { typed } else { key };
    if !event::poll(limit)? {
        return Ok(None);
    }
    Ok(Some(match event::read()? {
        event::Event::Key(pressed) if is_stop(pressed) => Input::Stop,
        event::Event::Key(pressed) => key(pressed).map_or(Input::Other, Input::Key),
        _ => Input::Other,
    }))
}

/// Tells whether a key is Ctrl-Z, for which a terminal in raw mode sends no signal.
fn is_stop(pressed: KeyEvent) -> bool {
    pressed.kind != KeyEventKind::Release
        && pressed.modifiers.contains(KeyModifiers::CONTROL)
        && pressed.code == KeyCode::Char('z')
}

/// Tells whether a key is one of those for which a terminal in raw mode sends no signal.
fn is_quit(pressed: KeyEvent) -> bool {
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    control && matches!(pressed.code, KeyCode::Char('c' | 'd'))
}

pub fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    if pressed.modifiers.contains(KeyModifiers::CONTROL) {
        return is_quit(pressed).then_some(Key::Quit);
    }
    Some(match pressed.code {
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Tab | KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('p') => Key::Policy,
        KeyCode::Char('o') => Key::Mode,
        KeyCode::Char('b') => Key::Blame,
        KeyCode::Char(' ') => Key::Pause,
        // The same key as +, without shift.
        KeyCode::Char('+' | '=') => Key::Slower,
        KeyCode::Char('-') => Key::Faster,
        KeyCode::Char('h' | '?') => Key::Help,
        KeyCode::Char('/') => Key::Filter,
        _ => return None,
    })
}

/// The meaning of a key while a filter is typed.
pub fn typed(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    Some(match pressed.code {
        _ if is_quit(pressed) => Key::Quit,
        KeyCode::Char(letter) if !pressed.modifiers.contains(KeyModifiers::CONTROL) => {
            Key::Type(letter)
        }
        KeyCode::Backspace => Key::Erase,
        KeyCode::Enter => Key::Keep,
        KeyCode::Esc => Key::Drop,
        _ => return None,
    })
}
