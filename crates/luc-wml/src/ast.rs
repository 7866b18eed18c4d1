//! A workload file as written: statements, attributes and expressions with their positions.
//!
//! No name is looked up here. Filebench binds an attribute to a variable and not to its value, so
//! the meaning of an expression is known only when the run begins.

use std::collections::HashSet;

use crate::plan::{Position, Quit};

/// A value with the position where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub at: Position,
}

/// Part of a quoted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Variable(String),
}

/// The value of an attribute or a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Int(u64),
    Bool(bool),
    /// A bare word, or a quoted text with the variables in it.
    Text(Vec<Part>),
    Variable(String),
}

impl Expr {
    /// Returns the names of the variables in it.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let (alone, parts) = match self {
            Self::Variable(name) => (Some(name.as_str()), &[][..]),
            Self::Text(parts) => (None, parts.as_slice()),
            Self::Int(_) | Self::Bool(_) => (None, &[][..]),
        };
        let within = parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Text(_) => None,
        });
        alone.into_iter().chain(within)
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(vec![Part::Text(text.into())])
    }
}

/// `name=value`, or a name alone, which means true.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The canonical name for all spellings (`filename` and `filesetname` are the same).
    pub name: &'static str,
    pub at: Position,
    pub value: Option<Spanned<Expr>>,
}

/// A row of a `randtable`: percent, lower and upper end.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub at: Position,
    pub cells: [Spanned<Expr>; 3],
}

/// A table with its position.
pub type RandTable = Spanned<Vec<Row>>;

/// `randvar(...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Randvar {
    pub attributes: Vec<Attribute>,
    pub table: Option<RandTable>,
}

/// The right side of a `set`.
#[derive(Clone, Debug, PartialEq)]
pub enum Assigned {
    Plain(Spanned<Expr>),
    Randvar(Spanned<Randvar>),
    Cvar(Spanned<Vec<Attribute>>),
}

/// A composite flowop's own variable, with its value if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    pub name: Spanned<String>,
    pub value: Option<Spanned<Expr>>,
}

/// `flowop KIND attributes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flowop {
    pub kind: Spanned<String>,
    pub attributes: Vec<Attribute>,
    pub locals: Vec<Local>,
}

/// `thread ... { flowops }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub at: Position,
    pub attributes: Vec<Attribute>,
    pub flowops: Vec<Flowop>,
}

/// `define process ... { threads }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub at: Position,
    pub attributes: Vec<Attribute>,
    pub threads: Vec<Thread>,
}

/// `define flowop ... { flowops }`. Its name is a plain word, because the parser looks flowops up
/// by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    pub name: Spanned<String>,
    pub locals: Vec<Local>,
    pub flowops: Vec<Flowop>,
}

/// Returns the variables that statements set, each with its first value, in the order of those
/// first settings.
pub fn variables(statements: &[Spanned<Statement>]) -> Vec<(&str, &Assigned)> {
    let mut known = HashSet::new();
    let sets = statements
        .iter()
        .filter_map(|statement| match &statement.value {
            Statement::Set { variable, value } => Some((variable.value.as_str(), value)),
            _ => None,
        });
    sets.filter(|(name, _)| known.insert(*name)).collect()
}

/// `define fileset` or `define file`.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    pub at: Position,
    pub single: bool,
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Set {
        variable: Spanned<String>,
        value: Assigned,
    },
    Quit(Quit),
    Files(Files),
    Process(Process),
    Composite(Composite),
    EventGenerator(Vec<Attribute>),
    CreateFiles,
    Echo(Vec<Part>),
    /// A command line for the shell.
    System(Vec<Part>),
    Run {
        seconds: Option<Spanned<Expr>>,
        /// Seconds between the reports of `psrun`.
        report_every_s: Option<u64>,
    },
    Sleep(Spanned<Expr>),
    LatencyHistograms,
    /// Ends the script.
    Leave,
    /// It has no effect here, for this reason.
    Ignored(&'static str),
}
