//! A workload file that has been read.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::ast::{self, Assigned, Expr, Part, Spanned, Statement};
use crate::builtin::{BUILTINS, builtin};
use crate::diagnostic::{Diagnostic, Diagnostics, Messages, one_of, quoted};
use crate::plan::{Plan, Position};
use crate::{lexer, parser, resolve};

/// Largest workload file, bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// A parsed workload file; its variables have no values yet.
#[derive(Clone, Debug)]
pub struct Script {
    source_name: String,
    statements: Vec<Spanned<Statement>>,
    /// Parts of statements that have no effect.
    notes: Vec<Diagnostic>,
}

/// The reason why a workload could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Neither a file nor the name of a workload.
    #[error(
        "there is no workload or file {name:?}; give the path of a file, or {}",
        builtin_names()
    )]
    Unknown { name: String },
    /// The file was read and refused.
    #[error(transparent)]
    Refused(#[from] Diagnostics),
}

/// Returns the names of [`BUILTINS`] as a list for messages.
pub fn builtin_names() -> String {
    let names: Vec<&str> = BUILTINS.iter().map(|(name, _)| *name).collect();
    one_of(&names)
}

/// Reads a workload: a file, or one of [`BUILTINS`] by its name if there is no such file.
///
/// # Errors
/// [`LoadError`] if there is no such workload, or if the file cannot be read or is refused.
pub fn load(file_or_name: &str) -> Result<Script, LoadError> {
    let path = Path::new(file_or_name);
    let read = File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        // One byte more than allowed shows that the file is too large.
        file.take(SOURCE_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    match read {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(parse(file_or_name, &text)?),
            // The cut may lie in the middle of a character, so check the size first.
            Err(error) if error.as_bytes().len() > SOURCE_BYTES_MAX => {
                Err(too_large(file_or_name).into())
            }
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                Err(not_utf8(file_or_name, &error.as_bytes()[..good]).into())
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => match builtin(file_or_name) {
            Some(text) => Ok(parse(&format!("{file_or_name}.f"), text)?),
            None => Err(LoadError::Unknown {
                name: file_or_name.into(),
            }),
        },
        Err(source) => Err(LoadError::Read {
            path: path.into(),
            source,
        }),
    }
}

fn too_large(source_name: &str) -> Diagnostics {
    let message =
        format!("a workload file may have at most {SOURCE_BYTES_MAX} bytes; this one has more");
    Diagnostics::one(source_name, None, message)
}

fn not_utf8(source_name: &str, before: &[u8]) -> Diagnostics {
    let lines = before.split(|byte| *byte == b'\n');
    let column = lines.clone().next_back().map_or(0, <[u8]>::len) + 1;
    let at = Position {
        line: u32::try_from(lines.count()).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    };
    let message = "expected text in UTF-8, found something else";
    Diagnostics::one(source_name, Some(at), message.into())
}

/// Reads a workload file's text. `source_name` is its name in messages.
///
/// # Errors
/// All syntax errors.
pub fn parse(source_name: &str, text: &str) -> Result<Script, Diagnostics> {
    if text.len() > SOURCE_BYTES_MAX {
        return Err(too_large(source_name));
    }
    let mut messages = Messages::default();
    let tokens = lexer::tokens(text, &mut messages);
    let mut notes = Messages::default();
    let statements = parser::statements(&tokens, &mut messages, &mut notes);
    messages.unless_any(
        source_name,
        Script {
            source_name: source_name.into(),
            statements,
            notes: notes.list,
        },
    )
}

impl Script {
    /// Returns the file's name in messages.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Returns the variables that the file sets, in the order in which it first sets them: their
    /// names, without the dollar sign, and their first values as they could be written in a file.
    pub fn variables(&self) -> Vec<(String, String)> {
        let variables = ast::variables(&self.statements).into_iter();
        variables
            .map(|(name, value)| (name.to_owned(), written(value)))
            .collect()
    }

    /// Reports statements and attributes that have no effect, and a missing `run`.
    pub fn notes(&self) -> Vec<Diagnostic> {
        let mut notes = self.notes.clone();
        let set: HashSet<&str> = ast::variables(&self.statements)
            .into_iter()
            .map(|it| it.0)
            .collect();
        let mut note = |at, message: String| notes.push(Diagnostic { at, message });
        let mut left = false;
        let mut processes = false;
        let mut ignored_from = None;
        for statement in &self.statements {
            if left {
                ignored_from = Some(statement.at);
                break;
            }
            match &statement.value {
                Statement::Ignored(why) => note(Some(statement.at), format!("ignored: {why}")),
                Statement::Files(files) => {
                    let path = files.attributes.iter().find(|it| it.name == "path");
                    let path = path.and_then(|path| path.value.as_ref());
                    for name in path.iter().flat_map(|path| path.value.variables()) {
                        if !set.contains(name) {
                            let why = "files are made in the directory given to the run anyway";
                            let unset = quoted(&format!("${name}"));
                            note(path.map(|it| it.at), format!("{unset} is not set: {why}"));
                        }
                    }
                }
                Statement::Process(_) => processes = true,
                Statement::Run { report_every_s, .. } => {
                    if let Some(every_s) = report_every_s {
                        let why = format!("psrun: one report at the end, none every {every_s} s");
                        note(Some(statement.at), why);
                    }
                    left = true;
                }
                Statement::Leave => left = true,
                _ => {}
            }
        }
        if ignored_from.is_some() {
            notes.retain(|note| note.at < ignored_from);
            let end = "ignored, like everything after it: a file ends with its `run` or `quit`";
            notes.push(Diagnostic {
                at: ignored_from,
                message: end.into(),
            });
        } else if !left && processes {
            let added = "the file has no `run`: it runs as if one stood at its end";
            notes.push(Diagnostic {
                at: None,
                message: added.into(),
            });
        }
        notes.sort_by_key(|note| (note.at.is_none(), note.at));
        notes
    }

    /// Gives every variable its value, those of `overrides` (name, value) instead of the file's,
    /// and checks the plan. Values are written as after `set $name=`; anything else is a text.
    ///
    /// # Errors
    /// All errors in the plan, unknown overrides included.
    pub fn plan(&self, overrides: &[(String, String)]) -> Result<Plan, Diagnostics> {
        let mut messages = Messages::default();
        let mut plan = resolve::plan(&self.statements, overrides, &mut messages);
        let notes = self.notes();
        plan.notes = notes.iter().map(|it| it.line(&self.source_name)).collect();
        messages.unless_any(&self.source_name, plan)
    }
}

/// Writes a value as it could stand in a file.
fn written(value: &Assigned) -> String {
    match value {
        Assigned::Plain(expr) => written_expr(&expr.value),
        Assigned::Randvar(randvar) => {
            let mut parts = written_attributes(&randvar.value.attributes);
            if let Some(table) = &randvar.value.table {
                let rows: Vec<String> = table
                    .value
                    .iter()
                    .map(|row| {
                        let cells: Vec<_> =
                            row.cells.iter().map(|c| written_expr(&c.value)).collect();
                        format!("{{{}}}", cells.join(","))
                    })
                    .collect();
                parts.push(format!("randtable={{{}}}", rows.join(",")));
            }
            format!("randvar({})", parts.join(","))
        }
        Assigned::Cvar(attributes) => {
            format!("cvar({})", written_attributes(&attributes.value).join(","))
        }
    }
}

fn written_attributes(attributes: &[ast::Attribute]) -> Vec<String> {
    attributes
        .iter()
        .map(|attribute| match &attribute.value {
            Some(value) => format!("{}={}", attribute.name, written_expr(&value.value)),
            None => attribute.name.to_owned(),
        })
        .collect()
}

fn written_expr(expr: &Expr) -> String {
    match expr {
        Expr::Int(value) => written_number(*value),
        Expr::Bool(value) => value.to_string(),
        Expr::Variable(name) => format!("${name}"),
        Expr::Text(parts) => {
            if let [Part::Text(text)] = parts.as_slice()
                && lexer::is_word(text)
            {
                return text.clone();
            }
            let mut written = String::from("\"");
            for part in parts {
                match part {
                    Part::Variable(name) => written.extend(["${", name, "}"]),
                    Part::Text(text) => {
                        for c in text.chars() {
                            match c {
                                '\n' => written += "\\n",
                                '\t' => written += "\\t",
                                '"' | '\\' | '$' => written.extend(['\\', c]),
                                c => written.push(c),
                            }
                        }
                    }
                }
            }
            written.push('"');
            written
        }
    }
}

/// Writes a number with the largest suffix that leaves it whole.
fn written_number(value: u64) -> String {
    for (shift, suffix) in [(30, "g"), (20, "m"), (10, "k")] {
        if value > 0 && value.trailing_zeros() >= shift {
            return format!("{}{suffix}", value >> shift);
        }
    }
    value.to_string()
}
