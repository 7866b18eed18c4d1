//! `define`: filesets, processes, random variables and composite flowops.

use super::{Parsed, Parser, Reported};
use crate::ast::{
    Assigned, Composite, Expr, Files, Flowop, Process, Randvar, Spanned, Statement, Thread,
};
use crate::diagnostic::{instead_of, quoted};
use crate::plan::Position;
use crate::schema;

impl Parser<'_, '_> {
    /// Like [`Self::composite_inner`], but remembers that a name may be missing.
    fn composite(&mut self, at: Position) -> Parsed<Statement> {
        let known = self.composites.len();
        let result = self.composite_inner(at);
        self.broken_definition |= result.is_err() && self.composites.len() == known;
        result
    }

    pub(super) fn define(&mut self, at: Position) -> Parsed<Statement> {
        let Some(word) = self.word() else {
            return self.expected(DEFINED);
        };
        match word {
            "file" | "fileset" | "filesets" => {
                self.advance();
                let single = word == "file";
                let (owner, known) = if single {
                    ("file", schema::FILE)
                } else {
                    ("fileset", schema::FILESET)
                };
                Ok(Statement::Files(Files {
                    at,
                    single,
                    attributes: self.attributes(owner, known)?,
                }))
            }
            "process" | "processes" => {
                self.advance();
                self.process(at)
            }
            "flowop" => {
                self.advance();
                self.composite(at)
            }
            "randvar" => {
                self.advance();
                self.named_randvar(at)
            }
            _ => self.expected(DEFINED),
        }
    }

    /// Reads `define randvar name=$x, ...`, the older form of `set $x = randvar(...)`.
    fn named_randvar(&mut self, at: Position) -> Parsed<Statement> {
        let Randvar {
            mut attributes,
            table,
        } = self.randvar(at)?;
        let index = attributes.iter().position(|other| other.name == "name");
        let Some(index) = index else {
            return self.complain(at, "a randvar needs `name=$variable`");
        };
        let name = attributes.remove(index);
        let Some(Spanned {
            value: Expr::Variable(variable),
            at: named_at,
        }) = name.value
        else {
            return self.complain(name.at, "the name of a randvar must be a variable: name=$x");
        };
        Ok(Statement::Set {
            variable: Spanned {
                value: variable,
                at: named_at,
            },
            value: Assigned::Randvar(Spanned {
                value: Randvar { attributes, table },
                at,
            }),
        })
    }

    fn process(&mut self, at: Position) -> Parsed<Statement> {
        let attributes = self.attributes("process", schema::PROCESS)?;
        self.sign('{', "before the threads of the process")?;
        let threads = self.items("thread", &["thread"], Self::thread)?;
        let threads = threads.ok_or(Reported)?;
        if threads.is_empty() {
            return self.complain(at, "the process has no threads: expected a `thread`");
        }
        Ok(Statement::Process(Process {
            at,
            attributes,
            threads,
        }))
    }

    /// Reads a thread; `None` if it has errors but was read to its end.
    fn thread(&mut self, at: Position) -> Parsed<Option<Thread>> {
        let attributes = self.attributes("thread", schema::THREAD)?;
        let Some(flowops) = self.block("thread")? else {
            return Ok(None);
        };
        if flowops.is_empty() {
            return self.complain(at, "the thread has no flowops: expected a `flowop`");
        }
        Ok(Some(Thread {
            at,
            attributes,
            flowops,
        }))
    }

    /// Reads `{ flowop ... }`; `None` if it has errors but was read to its end.
    fn block(&mut self, owner: &str) -> Parsed<Option<Vec<Flowop>>> {
        self.sign('{', &format!("before the flowops of the {owner}"))?;
        self.items("flowop", &["flowop", "thread"], |this, _| {
            this.flowop().map(Some)
        })
    }

    /// Reads the items after each `keyword`, up to the closing brace; an error skips to one of the
    /// words in `next`. `None` if it has errors but was read to its end.
    fn items<T>(
        &mut self,
        keyword: &str,
        next: &[&str],
        read: impl Fn(&mut Self, Position) -> Parsed<Option<T>>,
    ) -> Parsed<Option<Vec<T>>> {
        let mut items = Vec::new();
        let mut broken = false;
        while !self.takes_sign('}') {
            let at = self.at();
            let item = if self.is_word(keyword) {
                self.advance();
                read(self, at)
            } else {
                self.expected(&format!("`{keyword}` or `}}`"))
            };
            match item {
                Ok(Some(item)) => items.push(item),
                Ok(None) => broken = true,
                Err(Reported) => {
                    broken = true;
                    self.skip_to(next);
                    if !self.is_word(keyword) && !self.is_sign('}') {
                        return Err(Reported);
                    }
                }
            }
        }
        Ok((!broken).then_some(items))
    }

    fn flowop(&mut self) -> Parsed<Flowop> {
        let at = self.at();
        let Some(kind) = self.word() else {
            return self.expected("the kind of the flowop");
        };
        let known = schema::find_flowop(kind);
        if known.is_none() && !self.composites.contains(kind) {
            return self.unknown_flowop(kind, at);
        }
        self.advance();
        let own = known.map_or("", |known| known.attributes);
        let (attributes, locals) =
            self.attributes_and_locals(kind, &format!("name iters {own}"), schema::is_of_a_flowop)?;
        if let (Some(_), Some(local)) = (known, locals.first()) {
            let message = format!(
                "{kind} has no variables of its own, found {}",
                quoted(&format!("${}", local.name.value))
            );
            return self.complain(local.name.at, message);
        }
        Ok(Flowop {
            kind: Spanned {
                value: kind.into(),
                at,
            },
            attributes,
            locals,
        })
    }

    fn unknown_flowop(&mut self, kind: &str, at: Position) -> Parsed<Flowop> {
        if let Some(why) = schema::why_refused(kind) {
            let message = format!("flowop {} is refused: {why}", quoted(kind));
            return self.complain(at, message);
        }
        if self.broken_definition {
            // Its definition may be the one that could not be read.
            return Err(Reported);
        }
        if self.defining.as_deref() == Some(kind) {
            let message = format!("flowop {} cannot be part of itself", quoted(kind));
            return self.complain(at, message);
        }
        let mut names: Vec<&str> = schema::FLOWOPS.iter().map(|known| known.name).collect();
        names.extend(self.composites.iter().map(String::as_str));
        let message = format!(
            "there is no flowop {}: {} (a `define flowop` must come before its use)",
            quoted(kind),
            instead_of(kind, &names)
        );
        self.complain(at, message)
    }

    fn composite_inner(&mut self, at: Position) -> Parsed<Statement> {
        // The number of times belongs where the flowop is used.
        let (attributes, locals) =
            self.attributes_and_locals("define flowop", "name", |name| name == "iters")?;
        let name = self.plain_name("the flowop", at, &attributes)?;
        if schema::find_flowop(&name.value).is_some() || schema::why_refused(&name.value).is_some()
        {
            let message = format!("{} is already a flowop", quoted(&name.value));
            return self.complain(name.at, message);
        }
        if self.composites.contains(&name.value) {
            let message = format!("flowop {} is defined twice", quoted(&name.value));
            return self.complain(name.at, message);
        }
        self.defining = Some(name.value.clone());
        let flowops = self.block("flowop");
        self.defining = None;
        // It is known from here on even if broken: its uses need no message.
        self.composites.insert(name.value.clone());
        let flowops = flowops?.ok_or(Reported)?;
        if flowops.is_empty() {
            return self.complain(at, "the flowop is empty: expected a `flowop`");
        }
        Ok(Statement::Composite(Composite {
            name,
            locals,
            flowops,
        }))
    }
}

/// The kinds of definitions.
const DEFINED: &str = "`fileset`, `file`, `process`, `flowop` or `randvar` after `define`";
