//! Turns text into words, numbers and signs, each with its position.

use crate::ast::Part;
use crate::diagnostic::{Messages, quoted};
use crate::plan::Position;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Word(String),
    Number(u64),
    /// A number below zero, without its sign.
    Negative(u64),
    /// A variable's name, without the dollar sign.
    Variable(String),
    Text(Vec<Part>),
    Sign(char),
    /// Unreadable, and already reported.
    Bad,
    End,
}

/// A token, its position, and whether it is the first on its line.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub at: Position,
    pub first_in_line: bool,
}

impl Kind {
    /// Describes the token for a message, after "found".
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(word) => quoted(word),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Negative(number) => format!("the number -{number}"),
            Kind::Variable(name) => quoted(&format!("${name}")),
            Kind::Text(_) => "a quoted text".into(),
            Kind::Sign(sign) => format!("`{sign}`"),
            Kind::Bad => "something unreadable".into(),
            Kind::End => "the end of the file".into(),
        }
    }
}

/// Cuts the text into tokens; the last one is [`Kind::End`].
pub(crate) fn tokens(text: &str, messages: &mut Messages) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: text,
        at: Position { line: 1, column: 1 },
        messages,
    };
    let mut tokens: Vec<Token> = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let first_in_line = tokens.last().is_none_or(|last| last.at.line < at.line);
        // After too many messages, stop producing tokens.
        let full = lexer.messages.is_full();
        let kind = if full { Kind::End } else { lexer.token() };
        let last = kind == Kind::End;
        tokens.push(Token {
            kind,
            at,
            first_in_line,
        });
        if last {
            return tokens;
        }
    }
}

struct Lexer<'a, 'm> {
    rest: &'a str,
    at: Position,
    messages: &'m mut Messages,
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '/' | '-' | '.' | '_')
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | ':' | ';' | '-' | '+' | '@' | '%')
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a, '_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    /// Takes characters as long as `fits` accepts them.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let start = self.rest;
        while self.peek().is_some_and(&fits) {
            self.next();
        }
        &start[..start.len() - self.rest.len()]
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Kind {
        let at = self.at;
        let Some(c) = self.peek() else {
            return Kind::End;
        };
        if c.is_ascii_digit() {
            let digits = self.take_while(in_word);
            let number = self.number(at, digits, digits);
            return number.map_or(Kind::Bad, Kind::Number);
        }
        if starts_word(c) {
            let word = self.take_while(in_word);
            let digits = word.strip_prefix('-').unwrap_or_default();
            if digits.starts_with(|c: char| c.is_ascii_digit()) {
                let number = self.number(at, word, digits);
                return number.map_or(Kind::Bad, Kind::Negative);
            }
            return Kind::Word(word.into());
        }
        match c {
            '$' => self.variable().map_or(Kind::Bad, Kind::Variable),
            '"' => self.text(),
            '{' | '}' | '(' | ')' | '=' | ',' => {
                self.next();
                Kind::Sign(c)
            }
            _ => {
                self.next();
                // A run of them, as in a file in another encoding, gets one message.
                self.take_while(|c| !c.is_whitespace() && !in_word(c) && !"${}()=,\"#".contains(c));
                let why = if matches!(c, '*' | '+' | '|') {
                    "there is no arithmetic"
                } else {
                    "a text with such characters must be quoted"
                };
                let c = quoted(&c.to_string());
                let message = format!("{c} is not part of the language; {why}");
                self.messages.at(at, message);
                Kind::Bad
            }
        }
    }

    fn number(&mut self, at: Position, shown: &str, digits: &str) -> Option<u64> {
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let (value, suffix) = digits.split_at(end);
        let shift = match suffix {
            "" => Some(0),
            "k" => Some(10),
            "m" => Some(20),
            "g" => Some(30),
            _ => None,
        };
        let Some(shift) = shift else {
            let why = if matches!(suffix, "K" | "M" | "G") {
                format!("the suffix is written {}", quoted(&suffix.to_lowercase()))
            } else if suffix.starts_with('.') {
                "a number must be whole; only the parameters of a cvar may be fractions".into()
            } else {
                "expected digits, and at most one of the suffixes k, m and g; a text that \
                 begins with a digit must be quoted"
                    .into()
            };
            self.messages.at(at, format!("{}: {why}", quoted(shown)));
            return None;
        };
        let value = value
            .parse::<u64>()
            .ok()
            .and_then(|value| value.checked_mul(1 << shift))
            .filter(|value| *value <= i64::MAX.unsigned_abs());
        if value.is_none() {
            let most = format!("expected a number of at most {}", i64::MAX);
            self.messages.at(at, format!("{}: {most}", quoted(shown)));
        }
        value
    }

    /// Reads `$name`, `${name}` or `$(name)`.
    fn variable(&mut self) -> Option<String> {
        let at = self.at;
        self.next();
        let closing = match self.peek() {
            Some('{') => Some('}'),
            Some('(') => Some(')'),
            _ => None,
        };
        if closing.is_some() {
            self.next();
        }
        let name = self.take_while(in_name);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let message = "expected the name of a variable after `$`, beginning with a letter";
            self.messages.at(at, message);
            return None;
        }
        if let Some(closing) = closing {
            if self.peek() != Some(closing) {
                let message = format!("expected `{closing}` after the name of the variable");
                self.messages.at(self.at, message);
                return None;
            }
            self.next();
        }
        Some(name.into())
    }

    /// Tells whether the dollar sign ahead begins a variable.
    fn names_a_variable(&self) -> bool {
        let next = self.rest.chars().nth(1);
        next.is_some_and(|c| c.is_ascii_alphabetic() || c == '{' || c == '(')
    }

    /// Reads a quoted text, which must end on its line.
    fn text(&mut self) -> Kind {
        let at = self.at;
        self.next();
        let mut parts = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    self.messages
                        .at(at, "the text that begins here is not closed on its line");
                    return Kind::Bad;
                }
                Some('"') => {
                    self.next();
                    break;
                }
                Some('\\') => {
                    self.next();
                    let escaped = match self.peek() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(c @ ('"' | '\\' | '$')) => c,
                        // Any other backslash stands for itself.
                        _ => {
                            text.push('\\');
                            continue;
                        }
                    };
                    self.next();
                    text.push(escaped);
                }
                Some('$') if self.names_a_variable() => {
                    let Some(name) = self.variable() else {
                        self.take_while(|c| c != '\n' && c != '"');
                        if self.peek() == Some('"') {
                            self.next();
                        }
                        return Kind::Bad;
                    };
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    parts.push(Part::Variable(name));
                }
                Some(c) => {
                    self.next();
                    text.push(c);
                }
            }
        }
        if !text.is_empty() || parts.is_empty() {
            parts.push(Part::Text(text));
        }
        Kind::Text(parts)
    }
}

/// Tells whether a text needs no quotes.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(starts_word)
        && text.chars().all(in_word)
        && !matches!(text, "true" | "false")
        && !text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
