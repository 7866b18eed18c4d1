//! The screen of a terminal after everything that was written to it. It knows as much as the
//! program's own view needs.

use std::fmt;

const COLUMNS: usize = 120;
const LINES: usize = 40;

/// Characters by line and column.
pub struct Screen(Vec<Vec<char>>);

impl Screen {
    /// The last screen of the view, before the terminal's former screen comes back.
    pub fn last(written: &str) -> Self {
        let (view, _) = written.split_once("\x1b[?1049l").unwrap_or((written, ""));
        let mut screen = Screen(vec![vec![' '; COLUMNS]; LINES]);
        let (mut line, mut column) = (0, 0);
        let mut chars = view.chars();
        while let Some(c) = chars.next() {
            match c {
                '\x1b' => {
                    let Some((words, end)) = sequence(&mut chars) else {
                        break;
                    };
                    let numbers: Vec<usize> =
                        words.split(';').map(|n| n.parse().unwrap_or(1)).collect();
                    match (end, numbers.as_slice()) {
                        ('H', [at, across]) => (line, column) = (at - 1, across - 1),
                        ('H', _) => (line, column) = (0, 0),
                        ('J', _) => screen.0.iter_mut().for_each(|line| line.fill(' ')),
                        _ => {}
                    }
                }
                '\r' => column = 0,
                '\n' => line += 1,
                c => {
                    let cell = screen.0.get_mut(line).and_then(|line| line.get_mut(column));
                    if let Some(cell) = cell {
                        *cell = c;
                    }
                    column += 1;
                }
            }
        }
        screen
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|line| line.iter().collect())
    }

    /// Whether a line holds this.
    pub fn has(&self, text: &str) -> bool {
        self.lines().any(|line| line.contains(text))
    }

    /// Number of the one line whose word at `place` is this.
    pub fn line(&self, place: usize, word: &str) -> Option<usize> {
        let is = |line: &String| line.split_whitespace().nth(place) == Some(word);
        let found: Vec<usize> = self
            .lines()
            .enumerate()
            .filter_map(|(at, line)| is(&line).then_some(at))
            .collect();
        match found[..] {
            [at] => Some(at),
            _ => None,
        }
    }

    /// The words of that line; none if no line matches, or several do.
    pub fn row(&self, place: usize, word: &str) -> Vec<String> {
        let line = self.line(place, word).and_then(|at| self.lines().nth(at));
        let line = line.unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    }
}

/// Parameters and last character of a control sequence, from after the escape on.
fn sequence(chars: &mut impl Iterator<Item = char>) -> Option<(String, char)> {
    let first = chars.next()?;
    if first != '[' {
        return Some((String::new(), first));
    }
    let mut words = String::new();
    loop {
        match chars.next()? {
            end @ '@'..='~' => return Some((words, end)),
            c => words.push(c),
        }
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "  |{}", line.trim_end())?;
        }
        Ok(())
    }
}
