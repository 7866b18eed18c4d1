//! What expressions and attributes come to.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::Resolver;
use crate::ast::{Attribute, Expr, Part, Spanned};
use crate::diagnostic::quoted;
use crate::plan::{Position, RandomId, Value};

/// Longest text that a value can be, bytes: that of a path.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Longest name of anything, bytes: that of a file.
const NAME_BYTES_MAX: usize = 255;

/// A variable's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val {
    Int(u64),
    Bool(bool),
    Text(String),
    Random(RandomId),
}

/// Variables of a composite flowop's own.
pub(super) type Locals = HashMap<String, Val>;

/// Attributes where they are used: the locals are those of the flowop around them.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub attributes: &'a [Attribute],
    pub locals: &'a Locals,
}

impl<'a> Given<'a> {
    pub fn find(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// Where its value stands.
    pub fn place(&self, name: &str) -> Option<Position> {
        self.find(name).map(place)
    }
}

fn place(attribute: &Attribute) -> Position {
    attribute
        .value
        .as_ref()
        .map_or(attribute.at, |value| value.at)
}

impl Resolver<'_, '_> {
    /// `None` after a complaint.
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
                    // At once, or a few lines could double a text beyond all memory.
                    if text.len() > TEXT_BYTES_MAX {
                        self.messages.at(
                            expr.at,
                            format!("expected a text of at most {TEXT_BYTES_MAX} bytes"),
                        );
                        return None;
                    }
                }
                Some(Val::Text(text))
            }
            Expr::Variable(name) => self.variable(name, expr.at, locals),
        }
    }

    fn variable(&mut self, name: &str, at: Position, locals: &Locals) -> Option<Val> {
        if let Some(value) = locals.get(name).or_else(|| self.globals.get(name)) {
            return Some(value.clone());
        }
        if self.missed.insert(name.into()) {
            self.messages.at(
                at,
                format!(
                    "variable {} has no value; expected a `set ${name}=...` before the run",
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

    /// As it is shown after "found".
    pub(super) fn describe(value: &Val) -> String {
        match value {
            Val::Int(value) => format!("the number {value}"),
            Val::Bool(value) => format!("`{value}`"),
            Val::Text(value) => format!("the text {}", quoted(value)),
            Val::Random(_) => "a random variable".into(),
        }
    }

    /// A text to be shown: what is no variable is left as it stands.
    pub(super) fn shown(&self, parts: &[Part]) -> String {
        let mut shown = String::new();
        for part in parts {
            match part {
                Part::Text(text) => shown += text,
                Part::Variable(name) => match self.globals.get(name.as_str()) {
                    Some(value) => shown += &self.as_text(value),
                    None => shown.extend(["$", name]),
                },
            }
            if shown.len() > TEXT_BYTES_MAX {
                return shown.chars().take(TEXT_BYTES_MAX / 4).collect();
            }
        }
        shown
    }

    /// The attribute's value; a name alone is true. `None` if it is not given or wrong.
    fn attribute(&mut self, given: &Given<'_>, name: &str) -> Option<Val> {
        let attribute = given.find(name)?;
        match &attribute.value {
            Some(value) => self.evaluate(value, given.locals),
            None => Some(Val::Bool(true)),
        }
    }

    fn wrong(&mut self, given: &Given<'_>, name: &str, expected: &str, found: &Val) {
        let Some(attribute) = given.find(name) else {
            return;
        };
        let mut message = format!("{} must be {expected}, found ", quoted(name));
        match &attribute.value {
            Some(Spanned {
                value: Expr::Variable(variable),
                ..
            }) => {
                message += &Self::describe(found);
                message += " in ";
                message += &quoted(&format!("${variable}"));
            }
            Some(_) => message += &Self::describe(found),
            None => message += "no value",
        }
        self.messages.at(place(attribute), message);
    }

    /// A number, fixed or random.
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

    /// A number, fixed or random, that is within bounds if it is fixed.
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
            && given.find(name).is_some()
        {
            let expected = format!("from {} to {}", range.start(), range.end());
            self.wrong(given, name, &expected, &Val::Int(number));
            return Value::Fixed(default);
        }
        value
    }

    /// A number that is the same at every use.
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

    /// True or false; numbers count as true unless they are zero.
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

    /// A text that is not empty. `None` if it is not given or wrong.
    pub(super) fn text(&mut self, given: &Given<'_>, name: &str) -> Option<String> {
        match self.attribute(given, name)? {
            Val::Text(text) if !text.is_empty() => Some(text),
            other => {
                self.wrong(given, name, "a text", &other);
                None
            }
        }
    }

    /// A text that must be given. Empty after a complaint.
    pub(super) fn needed(
        &mut self,
        given: &Given<'_>,
        name: &str,
        owner: &str,
        at: Position,
    ) -> String {
        if given.find(name).is_none() {
            self.messages.at(at, format!("{owner} needs `{name}=`"));
            return String::new();
        }
        self.text(given, name).unwrap_or_default()
    }

    /// The name of something, which must be given. Empty after a complaint.
    pub(super) fn name(&mut self, given: &Given<'_>, owner: &str, at: Position) -> String {
        let name = self.needed(given, "name", owner, at);
        if name.len() > NAME_BYTES_MAX {
            let place = given.place("name").unwrap_or(at);
            self.messages.at(
                place,
                format!("expected a name of at most {NAME_BYTES_MAX} bytes"),
            );
            return String::new();
        }
        name
    }

    /// A share, percent: a truth value stands for all or nothing.
    pub(super) fn percent(&mut self, given: &Given<'_>, name: &str) -> Value {
        if let Some(Val::Bool(all)) = self.attribute(given, name) {
            return Value::Fixed(if all { 100 } else { 0 });
        }
        self.value_in(given, name, &(0..=100), 0)
    }
}
