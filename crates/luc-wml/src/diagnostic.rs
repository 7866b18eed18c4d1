//! What is wrong with a workload file, and where.

use std::fmt;

use serde::Serialize;

use crate::plan::Position;

/// Most messages that are kept for one file: whoever sees more has lost the thread.
const MESSAGES_MAX: usize = 50;

/// One message about one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Where it begins; `None` for what is not in the file, as an override.
    pub at: Option<Position>,
    /// What is wrong, what was expected, and what to do about it: one line.
    pub message: String,
}

/// Everything that is wrong with a workload file, in the order of its lines; at least one message.
///
/// Shown as one `FILE:LINE:COLUMN: message` per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", Lines(.source_name, .list))]
pub struct Diagnostics {
    /// The file's name, as it was given.
    source_name: String,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(crate) fn new(source_name: &str, mut list: Vec<Diagnostic>) -> Self {
        debug_assert!(!list.is_empty(), "no error without a message");
        list.sort_by_key(|diagnostic| diagnostic.at);
        list.dedup();
        Self {
            source_name: source_name.into(),
            list,
        }
    }

    /// The messages.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The file they are about, as it was given.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }
}

struct Lines<'a>(&'a str, &'a [Diagnostic]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, list) = self;
        for (index, diagnostic) in list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{name}:")?;
            if let Some(Position { line, column }) = diagnostic.at {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " {}", diagnostic.message)?;
        }
        Ok(())
    }
}

/// Messages in the making.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    list: Vec<Diagnostic>,
}

impl Messages {
    pub fn at(&mut self, at: Position, message: impl Into<String>) {
        self.add(Some(at), message.into());
    }

    pub fn anywhere(&mut self, message: impl Into<String>) {
        self.add(None, message.into());
    }

    fn add(&mut self, at: Option<Position>, message: String) {
        if self.list.len() < MESSAGES_MAX {
            self.list.push(Diagnostic { at, message });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= MESSAGES_MAX
    }

    /// The value, unless something was wrong.
    pub fn unless_any<T>(self, source_name: &str, value: T) -> Result<T, Diagnostics> {
        if self.list.is_empty() {
            Ok(value)
        } else {
            Err(Diagnostics::new(source_name, self.list))
        }
    }
}

/// Text of the user's in a message: quoted, in one line, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("`{}`", shown.escape_debug())
}

/// What was expected instead of a name that is none of these: the one it is a slip of, or all.
pub(crate) fn instead_of<S: AsRef<str>>(found: &str, names: &[S]) -> String {
    const SLIPS_MAX: usize = 2;
    let near = names
        .iter()
        .map(AsRef::as_ref)
        .map(|name| (distance(found, name), name))
        .filter(|(slips, name)| *slips <= SLIPS_MAX && slips * 2 < name.len())
        .min_by_key(|(slips, _)| *slips);
    match near {
        Some((_, name)) => format!("did you mean {}?", quoted(name)),
        None => format!("expected {}", one_of(names)),
    }
}

/// How many characters must be put in, left out or exchanged to make one name of the other.
fn distance(a: &str, b: &str) -> usize {
    // Names are short; a text that is not is like none of them.
    const LENGTH_MAX: usize = 64;
    if a.len() > LENGTH_MAX || b.len() > LENGTH_MAX {
        return usize::MAX / 4;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, d) in b.iter().enumerate() {
            let above = row[j + 1];
            let exchanged = diagonal + usize::from(c != *d);
            row[j + 1] = exchanged.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

/// Names in a message: `a`, `b` or `c`.
pub(crate) fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN_MAX: usize = 40;
    let mut text = String::new();
    for (index, name) in names.iter().take(SHOWN_MAX).enumerate() {
        if index > 0 {
            text += if index + 1 == names.len() {
                " or "
            } else {
                ", "
            };
        }
        text += &quoted(name.as_ref());
    }
    if names.len() > SHOWN_MAX {
        text += " and more";
    }
    text
}
