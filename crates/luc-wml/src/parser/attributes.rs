//! Lists of attributes and their values.

use super::{Parsed, Parser, STATEMENTS};
use crate::ast::{Attribute, Expr, Local, RandTable, Randvar, Row, Spanned};
use crate::diagnostic::{instead_of, quoted};
use crate::lexer::Kind;
use crate::plan::Position;
use crate::schema;

/// Most variables of a composite flowop.
const LOCALS_MAX: usize = 64;

/// Most rows of a table: one per percent.
const ROWS_MAX: usize = 100;

impl Parser<'_, '_> {
    /// Reads one or more attributes, out of those that the owner may have.
    pub(super) fn attributes(&mut self, owner: &str, known: &str) -> Parsed<Vec<Attribute>> {
        let mut attributes = Vec::new();
        loop {
            let attribute = self.attribute(owner, known)?;
            self.keep(&mut attributes, attribute);
            if !self.takes_comma()? {
                return Ok(attributes);
            }
        }
    }

    /// Reads the attributes and variables of a flowop. Those that it ignores get a note.
    pub(super) fn attributes_and_locals(
        &mut self,
        owner: &str,
        known: &str,
        ignores: impl Fn(&str) -> bool,
    ) -> Parsed<(Vec<Attribute>, Vec<Local>)> {
        let mut attributes = Vec::new();
        let mut locals: Vec<Local> = Vec::new();
        loop {
            if let Kind::Variable(name) = self.peek() {
                let at = self.at();
                self.advance();
                if locals.iter().any(|local| local.name.value == *name) {
                    let message = format!("{} is given twice", quoted(&format!("${name}")));
                    return self.complain(at, message);
                }
                if locals.len() == LOCALS_MAX {
                    let message = format!("a flowop has at most {LOCALS_MAX} variables");
                    return self.complain(at, message);
                }
                let value = self.value_if_any()?;
                locals.push(Local {
                    name: Spanned {
                        value: name.clone(),
                        at,
                    },
                    value,
                });
            } else if !self.skips_attribute(owner, known, &ignores)? {
                let attribute = self.attribute(owner, known)?;
                self.keep(&mut attributes, attribute);
            }
            if !self.takes_comma()? {
                return Ok((attributes, locals));
            }
        }
    }

    /// Reads the attributes of a random variable; the table may stand anywhere among them.
    pub(super) fn randvar(&mut self, at: Position) -> Parsed<Randvar> {
        let mut attributes = Vec::new();
        let mut table = None;
        loop {
            if self.is_word("randtable") {
                let begins = self.at();
                self.advance();
                self.sign('=', "after `randtable`")?;
                if table.is_some() {
                    return self.complain(begins, "`randtable` is given twice");
                }
                table = Some(self.table()?);
            } else {
                let attribute = self.attribute("randvar", schema::RANDVAR)?;
                self.keep(&mut attributes, attribute);
            }
            if !self.takes_comma()? {
                break;
            }
        }
        if attributes.is_empty() && table.is_none() {
            return self.complain(at, "expected attributes of the randvar");
        }
        Ok(Randvar { attributes, table })
    }

    fn keep(&mut self, list: &mut Vec<Attribute>, attribute: Attribute) {
        let earlier = list.iter_mut().find(|it| it.name == attribute.name);
        let Some(earlier) = earlier else {
            return list.push(attribute);
        };
        let name = quoted(attribute.name);
        let note = format!("{name} is given twice: the last one counts, as in Filebench 1.5");
        self.notes.at(attribute.at, note);
        *earlier = attribute;
    }

    /// Skips an attribute that the owner accepts but never reads, with a note.
    fn skips_attribute(
        &mut self,
        owner: &str,
        known: &str,
        ignores: impl Fn(&str) -> bool,
    ) -> Parsed<bool> {
        let Some(word) = self.word() else {
            return Ok(false);
        };
        let name = schema::canonical(word)
            .filter(|name| ignores(name) && !known.split_whitespace().any(|known| known == *name));
        if name.is_none() {
            return Ok(false);
        }
        let note = format!("{owner} ignores {}, as in Filebench 1.5", quoted(word));
        self.notes.at(self.at(), note);
        self.advance();
        self.value_if_any()?;
        Ok(true)
    }

    /// Tells whether the list goes on. Anything else that follows an attribute on its line lacks a
    /// comma.
    fn takes_comma(&mut self) -> Parsed<bool> {
        if self.takes_sign(',') {
            return Ok(true);
        }
        let begins_another = matches!(
            self.peek(),
            Kind::Word(_) | Kind::Variable(_) | Kind::Number(_) | Kind::Text(_) | Kind::Bad
        );
        // `define process name=p { thread ...` may stand on one line.
        let keyword = matches!(self.word(), Some("thread" | "flowop"));
        if begins_another && !keyword && !self.token().first_in_line {
            return self.expected("a comma between attributes");
        }
        Ok(false)
    }

    fn attribute(&mut self, owner: &str, known: &str) -> Parsed<Attribute> {
        let at = self.at();
        let Some(word) = self.word() else {
            return self.expected(&format!("an attribute of {owner}"));
        };
        if self.token().first_in_line && STATEMENTS.contains(&word) {
            // There is a comma too many.
            return self.expected(&format!("an attribute of {owner}"));
        }
        let known: Vec<&str> = known.split_whitespace().collect();
        let name = schema::canonical(word).filter(|name| known.contains(name));
        let Some(name) = name else {
            let instead = schema::what_replaced(word).map(str::to_owned);
            let instead = instead.unwrap_or_else(|| instead_of(word, &known));
            let message = format!("{owner} has no attribute {}: {instead}", quoted(word));
            return self.complain(at, message);
        };
        self.advance();
        let value = self.value_if_any()?;
        Ok(Attribute { name, at, value })
    }

    fn value_if_any(&mut self) -> Parsed<Option<Spanned<Expr>>> {
        if !self.takes_sign('=') {
            return Ok(None);
        }
        let expected = "a number, true, false, a text or a variable after `=`";
        self.value(expected).map(Some)
    }

    /// Reads a number, a truth value, a text or a variable.
    pub(super) fn value(&mut self, expected: &str) -> Parsed<Spanned<Expr>> {
        let at = self.at();
        let value = match self.peek() {
            Kind::Number(number) => Expr::Int(*number),
            Kind::Word(word) if word == "true" => Expr::Bool(true),
            Kind::Word(word) if word == "false" => Expr::Bool(false),
            Kind::Word(word) => Expr::text(word.as_str()),
            Kind::Text(parts) => Expr::Text(parts.clone()),
            Kind::Variable(name) => Expr::Variable(name.clone()),
            _ => return self.expected(expected),
        };
        self.advance();
        Ok(Spanned { value, at })
    }

    fn table(&mut self) -> Parsed<RandTable> {
        let at = self.at();
        self.sign('{', "before the rows of the table")?;
        let mut rows = Vec::new();
        loop {
            let begins = self.at();
            self.sign('{', "before a row: {percent, from, to}")?;
            let percent = self.cell()?;
            self.sign(',', "after the percentage")?;
            let from = self.cell()?;
            self.sign(',', "after the lower end")?;
            let to = self.cell()?;
            self.sign('}', "after the row")?;
            if rows.len() == ROWS_MAX {
                let message = format!("a table has at most {ROWS_MAX} rows");
                return self.complain(begins, message);
            }
            rows.push(Row {
                at: begins,
                cells: [percent, from, to],
            });
            if !self.takes_sign(',') {
                break;
            }
        }
        self.sign('}', "after the rows of the table")?;
        Ok(Spanned { value: rows, at })
    }

    fn cell(&mut self) -> Parsed<Spanned<Expr>> {
        match self.peek() {
            Kind::Number(_) | Kind::Variable(_) => self.value("a number"),
            _ => self.expected("a number or a variable"),
        }
    }

    /// Returns the attribute `name`, which must be a plain word.
    pub(super) fn plain_name(
        &mut self,
        owner: &str,
        at: Position,
        attributes: &[Attribute],
    ) -> Parsed<Spanned<String>> {
        let Some(attribute) = attributes.iter().find(|other| other.name == "name") else {
            return self.complain(at, format!("{owner} needs `name=`"));
        };
        let text = attribute.value.as_ref().and_then(|value| {
            let Expr::Text(parts) = &value.value else {
                return None;
            };
            match parts.as_slice() {
                [crate::ast::Part::Text(text)] if !text.is_empty() => Some((text, value.at)),
                _ => None,
            }
        });
        match text {
            Some((text, at)) => Ok(Spanned {
                value: text.clone(),
                at,
            }),
            None => self.complain(attribute.at, format!("the name of {owner} must be a word")),
        }
    }
}
