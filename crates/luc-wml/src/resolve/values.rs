//! The values of expressions and attributes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Resolver;
use crate::ast::{Attribute, Expr, Part, Spanned};
use crate::diagnostic::quoted;
use crate::plan::{Position, RandomId, Value};

/// Longest text value, bytes: as long as a path.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Longest name, bytes: as long as a file name.
const NAME_BYTES_MAX: usize = 255;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val {
    Int(u64),
    Bool(bool),
    Text(String),
    Random(RandomId),
}

/// A composite flowop's own variables.
pub(super) type Locals = BTreeMap<String, Val>;

pub(super) static NO_LOCALS: Locals = BTreeMap::new();

/// Attributes, with the context in which they are used.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub attributes: &'a [Attribute],
    /// Variables of the flowop around them.
    pub locals: &'a Locals,
    /// Their owner's name in messages.
    pub owner: &'a str,
    /// The owner's position.
    pub at: Position,
}

impl<'a> Given<'a> {
    pub fn new(owner: &'a str, at: Position, attributes: &'a [Attribute]) -> Self {
        Self {
            attributes,
            locals: &NO_LOCALS,
            owner,
            at,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub fn find(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// Returns the position of the attribute's value, or else of the owner that lacks it.
    pub fn place(&self, name: &str) -> Position {
        self.find(name).map_or(self.at, |attribute| {
            let value = attribute.value.as_ref();
            value.map_or(attribute.at, |value| value.at)
        })
    }
}

impl Resolver<'_, '_> {
    pub(super) fn complain<T>(&mut self, at: Position, message: impl Into<String>) -> Option<T> {
        self.messages.at(at, message);
        None
    }

    /// Evaluates an expression; `None` after a message.
    pub(super) fn evaluate(&mut self, expr: &Spanned<Expr>, locals: &Locals) -> Option<Val> {
        match &expr.value {
            Expr::Int(value) => Some(Val::Int(*value)),
            Expr::Bool(value) => Some(Val::Bool(*value)),
            Expr::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Text(part) => text += part,
                        Part::Variable(name) => {
                            let value = self.variable(name, expr.at, locals)?;
                            text += &self.as_text(&value);
                        }
                    }
                    // Checked at each part, or a few lines could double a text until memory runs
                    // out.
                    if text.len() > TEXT_BYTES_MAX {
                        let most = format!("expected a text of at most {TEXT_BYTES_MAX} bytes");
                        return self.complain(expr.at, most);
                    }
                }
                Some(Val::Text(text))
            }
            Expr::Variable(name) => self.variable(name, expr.at, locals),
        }
    }

    fn variable(&mut self, name: &str, at: Position, locals: &Locals) -> Option<Val> {
        self.unused.remove(name);
        if let Some(value) = locals.get(name).or_else(|| self.globals.get(name)) {
            return Some(value.clone());
        }
        if self.missed.insert(name.into()) {
            self.messages.at(
                at,
                format!(
                    "variable {} has no value; expected a `set ${name}=...` before the run, or the \
                     option -D {name}=...",
                    quoted(&format!("${name}"))
                ),
            );
        }
        None
    }

    fn as_text(&self, value: &Val) -> String {
        match value {
            Val::Int(value) => value.to_string(),
            Val::Bool(value) => value.to_string(),
            Val::Text(value) => value.clone(),
            Val::Random(id) => format!("a random variable ${}", self.plan.randoms[id.0].name),
        }
    }

    /// Describes a value for a message, after "found".
    pub(super) fn describe(value: &Val) -> String {
        match value {
            Val::Int(value) => format!("the number {value}"),
            Val::Bool(value) => format!("`{value}`"),
            Val::Text(value) => format!("the text {}", quoted(value)),
            Val::Random(_) => "a random variable".into(),
        }
    }

    /// Formats a text to print; unknown variables stay as written.
    pub(super) fn shown(&mut self, parts: &[Part]) -> String {
        let mut shown = String::new();
        for part in parts {
            match part {
                Part::Text(text) => shown += text,
                Part::Variable(name) => {
                    self.unused.remove(name.as_str());
                    match self.globals.get(name.as_str()) {
                        Some(value) => shown += &self.as_text(value),
                        None => shown.extend(["$", name]),
                    }
                }
            }
            if shown.len() > TEXT_BYTES_MAX {
                return shown.chars().take(TEXT_BYTES_MAX / 4).collect();
            }
        }
        shown
    }

    /// Returns the attribute's value; a name alone is true. `None` if it is not given or wrong.
    fn attribute(&mut self, given: &Given<'_>, name: &str) -> Option<Val> {
        let attribute = given.find(name)?;
        match &attribute.value {
            Some(value) => self.evaluate(value, given.locals),
            None => Some(Val::Bool(true)),
        }
    }

    fn wrong(&mut self, given: &Given<'_>, name: &str, expected: &str, found: &Val) {
        let value = given.find(name).and_then(|it| it.value.as_ref());
        let found = match value.map(|value| &value.value) {
            Some(Expr::Variable(variable)) => {
                let variable = quoted(&format!("${variable}"));
                format!("{} in {variable}", Self::describe(found))
            }
            Some(_) => Self::describe(found),
            None => "no value".into(),
        };
        let message = format!("{} must be {expected}, found {found}", quoted(name));
        self.messages.at(given.place(name), message);
    }

    /// Returns a number, fixed or random.
    pub(super) fn value(&mut self, given: &Given<'_>, name: &str, default: u64) -> Value {
        match self.attribute(given, name) {
            None => Value::Fixed(default),
            Some(Val::Int(value)) => Value::Fixed(value),
            Some(Val::Random(id)) => Value::Random(id),
            Some(other) => {
                self.wrong(given, name, "a number", &other);
                Value::Fixed(default)
            }
        }
    }

    /// Returns a number, fixed or random, that is within bounds if it is fixed.
    pub(super) fn value_in(
        &mut self,
        given: &Given<'_>,
        name: &str,
        range: &RangeInclusive<u64>,
        default: u64,
    ) -> Value {
        let value = self.value(given, name, default);
        if let Value::Fixed(number) = value
            && !range.contains(&number)
            && given.has(name)
        {
            let expected = format!("from {} to {}", range.start(), range.end());
            self.wrong(given, name, &expected, &Val::Int(number));
            return Value::Fixed(default);
        }
        value
    }

    /// Returns a number that is the same at every use.
    pub(super) fn fixed(
        &mut self,
        given: &Given<'_>,
        name: &str,
        range: &RangeInclusive<u64>,
        default: u64,
    ) -> u64 {
        match self.attribute(given, name) {
            None => default,
            Some(Val::Int(value)) if range.contains(&value) => value,
            Some(other) => {
                let expected = if *range.end() == i64::MAX.unsigned_abs() {
                    "a fixed number".into()
                } else {
                    format!("a fixed number from {} to {}", range.start(), range.end())
                };
                self.wrong(given, name, &expected, &other);
                default
            }
        }
    }

    /// Returns true or false; numbers other than zero count as true.
    pub(super) fn flag(&mut self, given: &Given<'_>, name: &str) -> bool {
        match self.attribute(given, name) {
            None => false,
            Some(Val::Bool(value)) => value,
            Some(Val::Int(value)) => value != 0,
            Some(other) => {
                self.wrong(given, name, "true or false", &other);
                false
            }
        }
    }

    /// Returns a text that is not empty; `None` if it is not given or wrong.
    pub(super) fn text(&mut self, given: &Given<'_>, name: &str) -> Option<String> {
        match self.attribute(given, name)? {
            Val::Text(text) if !text.is_empty() => Some(text),
            other => {
                self.wrong(given, name, "a text", &other);
                None
            }
        }
    }

    /// Returns a text that must be given; empty after a message.
    pub(super) fn needed(&mut self, given: &Given<'_>, name: &str) -> String {
        if !given.has(name) {
            let message = format!("{} needs `{name}=`", given.owner);
            self.messages.at(given.at, message);
            return String::new();
        }
        self.text(given, name).unwrap_or_default()
    }

    /// Returns the owner's name, which must be given; empty after a message.
    pub(super) fn name(&mut self, given: &Given<'_>) -> String {
        let name = self.needed(given, "name");
        if name.len() > NAME_BYTES_MAX {
            let message = format!("expected a name of at most {NAME_BYTES_MAX} bytes");
            self.messages.at(given.place("name"), message);
            return String::new();
        }
        name
    }

    /// Returns a share, percent: a truth value stands for all or nothing.
    pub(super) fn percent(&mut self, given: &Given<'_>, name: &str) -> Value {
        if let Some(Val::Bool(all)) = self.attribute(given, name) {
            return Value::Fixed(if all { 100 } else { 0 });
        }
        self.value_in(given, name, &(0..=100), 0)
    }
}
