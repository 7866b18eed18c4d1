//! The errors of a workload file.

use luc_base::nearest_name;
use serde::Serialize;

use crate::plan::Position;

/// Most messages kept for one file: more would not help the reader.
const MESSAGES_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The position where it begins; `None` if it is not in the file, such as an override.
    pub at: Option<Position>,
    /// The fault, the expectation and the remedy, in one line.
    pub message: String,
}

impl Diagnostic {
    /// Returns it as `FILE:LINE:COLUMN: message`.
    pub(crate) fn line(&self, source_name: &str) -> String {
        let place = self
            .at
            .map_or(String::new(), |at| format!("{}:{}:", at.line, at.column));
        format!("{source_name}:{place} {}", self.message)
    }
}

/// All errors of a workload file, in the order of its lines; at least one.
///
/// Shown as one `FILE:LINE:COLUMN: message` per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", lines(.source_name, .list))]
pub struct Diagnostics {
    /// The file's name as given.
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

    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    pub(crate) fn one(source_name: &str, at: Option<Position>, message: String) -> Self {
        Self::new(source_name, vec![Diagnostic { at, message }])
    }

    /// Returns the name of the file that they are about, as given.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }
}

fn lines(source_name: &str, list: &[Diagnostic]) -> String {
    let lines: Vec<String> = list.iter().map(|it| it.line(source_name)).collect();
    lines.join("\n")
}

#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub list: Vec<Diagnostic>,
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

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= MESSAGES_MAX
    }

    /// Returns the value, or the messages if there are any.
    pub fn unless_any<T>(self, source_name: &str, value: T) -> Result<T, Diagnostics> {
        if self.list.is_empty() {
            Ok(value)
        } else {
            Err(Diagnostics::new(source_name, self.list))
        }
    }
}

/// Formats the user's text for a message: quoted, on one line, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("`{}`", shown.escape_debug())
}

/// Suggests names for an error: the closest one, or all.
pub(crate) fn instead_of<S: AsRef<str>>(found: &str, names: &[S]) -> String {
    match nearest_name(found, names.iter().map(AsRef::as_ref)) {
        Some(name) => format!("did you mean {}?", quoted(name)),
        None => format!("expected {}", one_of(names)),
    }
}

/// Lists names for a message: `a`, `b` or `c`.
pub(crate) fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN_MAX: usize = 40;
    let shown = names.iter().take(SHOWN_MAX);
    let shown: Vec<String> = shown.map(|name| quoted(name.as_ref())).collect();
    match shown.as_slice() {
        _ if names.len() > SHOWN_MAX => shown.join(", ") + " and more",
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => shown.concat(),
    }
}
