//! Turns statements into a plan, with the value that every variable has when the run begins.
//!
//! Statements are resolved in order, up to the one that runs. Random variables, texts of `echo` and
//! numbers of seconds take the values that variables have at that point. Attributes of filesets and
//! processes refer to variables; they are resolved when the files are made (`create files`, or else
//! the run) and when the processes start.

mod checks;
mod files;
mod flowops;
mod randoms;
mod system;
mod values;

use std::collections::{HashMap, HashSet};

use crate::ast::{self, Assigned, Composite, Expr, Files, Process, Spanned, Statement};
use crate::diagnostic::{Diagnostic, Messages, instead_of, quoted};
use crate::lexer;
use crate::parser;
use crate::plan::{Action, FilesetId, Plan, Position};
use values::{Given, NO_LOCALS, Val};

/// Longest time that a file may ask for, seconds: some thirty years.
const SECONDS_MAX: u64 = 1_000_000_000;

/// Most statements that do something (`echo`, `sleep`, `create`, `run`).
const ACTIONS_MAX: usize = 1024;

pub(crate) fn plan<'a>(
    statements: &'a [Spanned<Statement>],
    overrides: &'a [(String, String)],
    messages: &mut Messages,
) -> Plan {
    let mut resolver = Resolver {
        messages,
        plan: Plan::default(),
        globals: HashMap::new(),
        overrides: HashMap::new(),
        composites: HashMap::new(),
        files: Vec::new(),
        fileset_ids: HashMap::new(),
        processes: Vec::new(),
        missed: HashSet::new(),
        unused: HashSet::new(),
        flowops: 0,
    };
    let set: Vec<&str> = ast::variables(statements).iter().map(|it| it.0).collect();
    resolver.overrides(&set, overrides);
    resolver.statements(statements);
    resolver.complain_of_unused(&set);
    resolver.plan
}

struct Resolver<'a, 'm> {
    messages: &'m mut Messages,
    plan: Plan,
    globals: HashMap<&'a str, Val>,
    overrides: HashMap<&'a str, Assigned>,
    composites: HashMap<&'a str, &'a Composite>,
    /// Filesets that are not yet resolved.
    files: Vec<&'a Files>,
    fileset_ids: HashMap<String, FilesetId>,
    processes: Vec<&'a Process>,
    /// Variables without a value: each gets one message.
    missed: HashSet<String>,
    /// Overrides of variables that the file neither sets nor, so far, uses.
    unused: HashSet<&'a str>,
    /// Flowops made so far, at all levels of composites.
    flowops: usize,
}

impl<'a> Resolver<'a, '_> {
    /// Reads the values that replace those in the file, and those of variables that it does not
    /// set.
    fn overrides(&mut self, set: &[&'a str], overrides: &'a [(String, String)]) {
        for (name, text) in overrides {
            let name = name.strip_prefix('$').unwrap_or(name);
            match assigned(text) {
                Ok(instead) if set.contains(&name) => {
                    self.overrides.insert(name, instead);
                }
                Ok(value) => {
                    self.unused.insert(name);
                    if let Some(value) = self.given(name, &value) {
                        self.globals.insert(name, value);
                    }
                }
                Err(list) => {
                    for diagnostic in list {
                        self.messages
                            .anywhere(format!("value of ${name}: {}", diagnostic.message));
                    }
                }
            }
        }
    }

    /// Complains of values for variables that the file does not have.
    fn complain_of_unused(&mut self, set: &[&str]) {
        let mut unused: Vec<&str> = self.unused.drain().collect();
        unused.sort_unstable();
        for name in unused {
            let expected = instead_of_variable(name, set, "it sets none");
            self.messages.anywhere(format!(
                "the file has no variable {}: {expected}",
                quoted(&format!("${name}"))
            ));
        }
    }

    fn statements(&mut self, statements: &'a [Spanned<Statement>]) {
        let mut runs = false;
        let mut leaves = None;
        for statement in statements {
            let at = statement.at;
            match &statement.value {
                Statement::Run { seconds, .. } => {
                    let seconds = seconds
                        .as_ref()
                        .map_or(0, |seconds| self.seconds(seconds, "run"));
                    self.plan.actions.push(Action::Run {
                        seconds: (seconds > 0).then_some(seconds),
                    });
                    runs = true;
                    leaves = Some(at);
                }
                Statement::Leave => leaves = Some(at),
                Statement::System(parts) => {
                    let command = self.shown(parts);
                    self.plan.actions.extend(system::actions(&command, at));
                }
                other => self.statement(other),
            }
            if self.plan.actions.len() > ACTIONS_MAX {
                let most = format!("expected at most {ACTIONS_MAX} statements that do something");
                self.messages.at(at, most);
                return;
            }
            if leaves.is_some() {
                break;
            }
        }
        self.make_filesets();
        let processes = std::mem::take(&mut self.processes);
        self.make_processes(&processes);
        if leaves.is_none() && !processes.is_empty() {
            // The file defines processes but forgets to run them.
            self.plan.actions.push(Action::Run { seconds: None });
            runs = true;
        }
        if runs && processes.is_empty() {
            let at = leaves.unwrap_or(Position { line: 1, column: 1 });
            self.messages
                .at(at, "nothing to run: expected a `define process` before it");
        }
        if self.plan.actions.is_empty() && self.messages.list.is_empty() {
            self.messages
                .anywhere("the file does nothing: expected `run` or `create files`");
        }
    }

    fn statement(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Set { variable, value } => self.set(variable, value),
            Statement::Quit(quit) => self.plan.quit = *quit,
            Statement::Files(files) => self.files.push(files),
            Statement::Process(process) => self.processes.push(process),
            Statement::Composite(composite) => {
                self.composites.insert(&composite.name.value, composite);
            }
            Statement::EventGenerator(attributes) => {
                let nowhere = Position { line: 1, column: 1 };
                let given = Given::new("eventgen", nowhere, attributes);
                if given.has("rate") {
                    self.plan.event_rate_per_s = Some(self.value(&given, "rate", 0));
                }
            }
            Statement::CreateFiles => {
                self.make_filesets();
                self.plan.actions.push(Action::CreateFiles);
            }
            Statement::Echo(parts) => {
                let text = self.shown(parts);
                self.plan.actions.push(Action::Echo(text));
            }
            Statement::Sleep(seconds) => {
                let seconds = self.seconds(seconds, "sleep");
                self.plan.actions.push(Action::Sleep(seconds));
            }
            Statement::LatencyHistograms => self.plan.latency_histograms = true,
            Statement::System(_)
            | Statement::Run { .. }
            | Statement::Leave
            | Statement::Ignored(_) => {}
        }
    }

    fn set(&mut self, variable: &'a Spanned<String>, value_in_file: &'a Assigned) {
        let name = variable.value.as_str();
        let value = match self.overrides.get(name).cloned() {
            Some(instead) => self.given(name, &instead),
            None => self.assigned(name, value_in_file),
        };
        match value {
            Some(value) => {
                self.globals.insert(name, value);
            }
            // Its uses need no message.
            None => {
                self.missed.insert(name.into());
            }
        }
    }

    /// Evaluates a value that is given from outside the file.
    fn given(&mut self, name: &str, value: &Assigned) -> Option<Val> {
        // Positions in an override are not positions in the file.
        let mut inner = Messages::default();
        std::mem::swap(self.messages, &mut inner);
        let value = self.assigned(name, value);
        std::mem::swap(self.messages, &mut inner);
        for diagnostic in inner.list {
            self.messages
                .anywhere(format!("value of ${name}: {}", diagnostic.message));
        }
        value
    }

    fn assigned(&mut self, name: &str, value: &Assigned) -> Option<Val> {
        match value {
            Assigned::Plain(value) => self.evaluate(value, &NO_LOCALS),
            Assigned::Randvar(randvar) => self.randvar(name, randvar),
            Assigned::Cvar(cvar) => self.cvar(name, cvar),
        }
    }

    fn seconds(&mut self, seconds: &Spanned<Expr>, what: &str) -> u64 {
        match self.evaluate(seconds, &NO_LOCALS) {
            Some(Val::Int(value)) if value <= SECONDS_MAX => value,
            Some(other) => {
                let found = Self::describe(&other);
                let expected = format!("a number of seconds from 0 to {SECONDS_MAX}");
                let message = format!("{what} takes {expected}, found {found}");
                self.messages.at(seconds.at, message);
                0
            }
            None => 0,
        }
    }
}

/// Suggests variables for an error.
fn instead_of_variable(found: &str, names: &[&str], none: &str) -> String {
    if names.is_empty() {
        return none.into();
    }
    let names: Vec<String> = names.iter().map(|name| format!("${name}")).collect();
    instead_of(&format!("${found}"), &names)
}

/// Reads the value of an override. A value that is not written as in a file is plain text, so that
/// paths need no quotes.
fn assigned(text: &str) -> Result<Assigned, Vec<Diagnostic>> {
    let mut messages = Messages::default();
    let tokens = lexer::tokens(text, &mut messages);
    let parsed = parser::assignment(&tokens, &mut messages);
    match parsed {
        Some(parsed) if messages.list.is_empty() => Ok(parsed),
        _ if text.starts_with("cvar(") || text.starts_with("randvar(") => Err(messages.list),
        _ => Ok(Assigned::Plain(Spanned {
            value: Expr::text(text),
            at: Position { line: 1, column: 1 },
        })),
    }
}
