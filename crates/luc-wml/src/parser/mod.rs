//! Turns tokens into statements.
//!
//! After an error the parser skips to the next statement, so that one pass reports all errors. Line
//! ends have no meaning in the language, except here: the statement after a broken one is
//! recognised by a keyword at the beginning of a line.

mod attributes;
mod definitions;

use std::collections::BTreeSet;

use crate::ast::{Assigned, Expr, Spanned, Statement};
use crate::diagnostic::{Messages, quoted};
use crate::lexer::{Kind, Token};
use crate::plan::{Position, Quit};
use crate::schema;

/// Words that begin a statement.
const STATEMENTS: [&str; 16] = [
    "create",
    "debug",
    "define",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "list",
    "psrun",
    "quit",
    "run",
    "set",
    "sleep",
    "system",
    "usage",
    "version",
];

/// The error has a message.
#[derive(Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// Returns the statements of a file, each with its position. `notes` gets what has no effect.
pub(crate) fn statements(
    tokens: &[Token],
    messages: &mut Messages,
    notes: &mut Messages,
) -> Vec<Spanned<Statement>> {
    let mut parser = Parser::new(tokens, messages, notes);
    let mut statements = Vec::new();
    while *parser.peek() != Kind::End && !parser.messages.is_full() {
        let at = parser.at();
        match parser.statement() {
            Ok(value) => statements.push(Spanned { value, at }),
            Err(Reported) => parser.skip_to(&[]),
        }
    }
    statements
}

struct Parser<'a, 'm> {
    /// Ends with [`Kind::End`].
    tokens: &'a [Token],
    next: usize,
    messages: &'m mut Messages,
    notes: &'m mut Messages,
    composites: BTreeSet<String>,
    defining: Option<String>,
    /// Whether the name of a composite flowop could not be read.
    broken_definition: bool,
}

impl<'a, 'm> Parser<'a, 'm> {
    fn new(tokens: &'a [Token], messages: &'m mut Messages, notes: &'m mut Messages) -> Self {
        Self {
            tokens,
            next: 0,
            messages,
            notes,
            composites: BTreeSet::new(),
            defining: None,
            broken_definition: false,
        }
    }

    fn token(&self) -> &'a Token {
        &self.tokens[self.next]
    }

    fn peek(&self) -> &'a Kind {
        &self.token().kind
    }

    fn at(&self) -> Position {
        self.token().at
    }

    /// Takes the next token; the end is never passed.
    fn advance(&mut self) -> &'a Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.next += 1;
        }
        token
    }

    fn is_sign(&self, sign: char) -> bool {
        *self.peek() == Kind::Sign(sign)
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn word(&self) -> Option<&'a str> {
        match self.peek() {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    /// Reports that something else was expected here.
    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        let token = self.token();
        // The lexer has already reported a bad token.
        if token.kind != Kind::Bad {
            self.messages.at(
                token.at,
                format!("expected {what}, found {}", token.kind.describe()),
            );
        }
        Err(Reported)
    }

    fn complain<T>(&mut self, at: Position, message: impl Into<String>) -> Parsed<T> {
        self.messages.at(at, message);
        Err(Reported)
    }

    fn sign(&mut self, sign: char, whereabouts: &str) -> Parsed<()> {
        if self.takes_sign(sign) {
            return Ok(());
        }
        self.expected(&format!("`{sign}` {whereabouts}"))
    }

    /// Skips to the next statement, or to a line that begins with one of the words.
    fn skip_to(&mut self, words: &[&str]) {
        loop {
            match self.peek() {
                Kind::End => return,
                Kind::Word(word)
                    if self.token().first_in_line
                        && (STATEMENTS.contains(&word.as_str())
                            || words.contains(&word.as_str())) =>
                {
                    return;
                }
                // This ends a block, and the caller wants to see that.
                Kind::Sign('}') if !words.is_empty() => return,
                _ => self.advance(),
            };
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let Some(word) = self.word() else {
            return self.expected("a statement");
        };
        let at = self.at();
        if !STATEMENTS.contains(&word) {
            let hint = if schema::canonical(word).is_some() {
                "; to continue a list of attributes, end the previous line with a comma"
            } else {
                ""
            };
            return self.expected(&format!("a statement{hint}"));
        }
        self.advance();
        match word {
            "set" => self.set(),
            "define" => self.define(at),
            "create" => self.create(),
            "eventgen" => {
                let attributes = if self.word().is_some() && !self.token().first_in_line {
                    self.attributes("eventgen", schema::EVENT_GENERATOR)?
                } else {
                    Vec::new()
                };
                Ok(Statement::EventGenerator(attributes))
            }
            "echo" => match self.peek() {
                Kind::Text(parts) => {
                    self.advance();
                    Ok(Statement::Echo(parts.clone()))
                }
                _ => self.expected("a quoted text after `echo`"),
            },
            "run" => Ok(Statement::Run {
                seconds: self.seconds(),
                report_every_s: None,
            }),
            "psrun" => Ok(self.periodic_run()),
            "sleep" => match self.seconds() {
                Some(seconds) => Ok(Statement::Sleep(seconds)),
                None => self.expected("a number of seconds after `sleep`"),
            },
            "quit" => Ok(Statement::Leave),
            "enable" => self.enable(at),
            "system" => match self.peek() {
                Kind::Text(parts) => {
                    self.advance();
                    Ok(Statement::System(parts.clone()))
                }
                _ => self.expected("a quoted command after `system`"),
            },
            "domultisync" => self.complain(
                at,
                "`domultisync` is refused: runs on several machines are not supported; delete the \
                 line",
            ),
            "debug" => {
                let sound = matches!(self.peek(), Kind::Number(_));
                self.ignored(sound, "a number after `debug`", "there are no debug levels")
            }
            "list" => {
                let sound = matches!(self.word(), Some("fileset" | "filesets" | "flowop"));
                let expected = "`fileset` or `flowop` after `list`";
                self.ignored(sound, expected, "a check lists filesets and flowops")
            }
            "usage" => {
                let sound = matches!(self.peek(), Kind::Text(_));
                let expected = "a quoted text after `usage`";
                self.ignored(sound, expected, "a check lists the variables")
            }
            _ => Ok(Statement::Ignored("there is no Filebench version to print")),
        }
    }

    /// Reads one more token of a statement that has no effect here.
    fn ignored(&mut self, sound: bool, expected: &str, why: &'static str) -> Parsed<Statement> {
        if !sound {
            return self.expected(expected);
        }
        self.advance();
        Ok(Statement::Ignored(why))
    }

    fn set(&mut self) -> Parsed<Statement> {
        if self.is_word("mode") {
            self.advance();
            return self.mode();
        }
        let at = self.at();
        let Kind::Variable(name) = self.peek() else {
            return self.expected("a variable such as `$nfiles`, or `mode`, after `set`");
        };
        self.advance();
        self.sign('=', "after the variable")?;
        Ok(Statement::Set {
            variable: Spanned {
                value: name.clone(),
                at,
            },
            value: self.assigned()?,
        })
    }

    /// Reads the right side of a `set`.
    fn assigned(&mut self) -> Parsed<Assigned> {
        let at = self.at();
        let is_call = matches!(
            self.tokens.get(self.next + 1).map(|token| &token.kind),
            Some(Kind::Sign('('))
        );
        match self.word() {
            Some("randvar") if is_call => {
                self.next += 2;
                let value = self.randvar(at)?;
                self.sign(')', "after the attributes of the randvar")?;
                Ok(Assigned::Randvar(Spanned { value, at }))
            }
            Some("cvar") if is_call => {
                self.next += 2;
                let value = self.attributes("cvar", schema::CVAR)?;
                self.sign(')', "after the attributes of the cvar")?;
                Ok(Assigned::Cvar(Spanned { value, at }))
            }
            _ => {
                let value = self.value(
                    "a number, true, false, a text, cvar(...), randvar(...) or a variable",
                )?;
                if let Kind::Word(sign) = self.peek()
                    && !self.token().first_in_line
                {
                    let message = format!(
                        "expected the end of the statement, found {}; there is no arithmetic",
                        quoted(sign)
                    );
                    return self.complain(self.at(), message);
                }
                Ok(Assigned::Plain(value))
            }
        }
    }

    fn mode(&mut self) -> Parsed<Statement> {
        if self.is_word("nousestats") {
            self.advance();
            return Ok(Statement::Ignored("processor usage is not reported anyway"));
        }
        if !self.is_word("quit") {
            return self.expected("`quit` after `set mode`");
        }
        self.advance();
        let quit = match self.word() {
            Some("timeout") => Quit::Timeout,
            Some("alldone") => Quit::AllDone,
            Some("firstdone") => Quit::FirstDone,
            _ => return self.expected("`timeout`, `alldone` or `firstdone`"),
        };
        self.advance();
        Ok(Statement::Quit(quit))
    }

    fn create(&mut self) -> Parsed<Statement> {
        match self.word() {
            Some("file" | "files" | "fileset" | "filesets") => {
                self.advance();
                Ok(Statement::CreateFiles)
            }
            Some("process" | "processes") => self.complain(
                self.at(),
                "processes are started by `run`; delete the statement",
            ),
            _ => self.expected("`files` after `create`"),
        }
    }

    fn enable(&mut self, at: Position) -> Parsed<Statement> {
        match self.word() {
            Some("lathist") => {
                self.advance();
                Ok(Statement::LatencyHistograms)
            }
            Some("multi") => self.complain(
                at,
                "`enable multi` is refused: runs on several machines are not supported; delete the \
                 line",
            ),
            _ => self.expected("`lathist` after `enable`"),
        }
    }

    /// Reads a number or a variable on the same line.
    fn seconds(&mut self) -> Option<Spanned<Expr>> {
        let at = self.at();
        if self.token().first_in_line {
            return None;
        }
        let value = match self.peek() {
            Kind::Number(seconds) => Expr::Int(*seconds),
            Kind::Variable(name) => Expr::Variable(name.clone()),
            _ => return None,
        };
        self.advance();
        Some(Spanned { value, at })
    }

    fn periodic_run(&mut self) -> Statement {
        /// Seconds between reports if the file gives no period, or zero.
        const PERIOD_DEFAULT_S: u64 = 10;
        let mut report_every_s = PERIOD_DEFAULT_S;
        let mut seconds = None;
        if !self.token().first_in_line {
            // After a negative period each report starts from zero.
            let period_s = match self.peek() {
                Kind::Number(period_s) | Kind::Negative(period_s) => Some(*period_s),
                _ => None,
            };
            if let Some(period_s) = period_s {
                self.advance();
                if period_s > 0 {
                    report_every_s = period_s;
                }
                seconds = self.seconds();
            }
        }
        Statement::Run {
            seconds,
            report_every_s: Some(report_every_s),
        }
    }
}

/// Reads the value of a variable that is set outside the file, like the right side of a `set`.
pub(crate) fn assignment(tokens: &[Token], messages: &mut Messages) -> Option<Assigned> {
    let mut notes = Messages::default();
    let mut parser = Parser::new(tokens, messages, &mut notes);
    let assigned = parser.assigned().ok()?;
    if *parser.peek() != Kind::End {
        let _ = parser.expected::<()>("the end of the value");
        return None;
    }
    Some(assigned)
}
