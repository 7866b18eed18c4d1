//! What can be known to go wrong before anything runs.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use crate::diagnostic::{one_of, quoted};
use crate::plan::{Flowop, Op, Slot, Target, Thread, Transfer, Value};
use crate::schema::{self, Io};

/// Alignment that direct I/O costs a buffer, bytes.
const ALIGNMENT_BYTES: u64 = 512;

/// Calls `each` for all flowops, those inside composites after the composite.
fn walk<'f>(flowops: &'f [Flowop], each: &mut impl FnMut(&'f Flowop)) {
    for flowop in flowops {
        each(flowop);
        if let Op::Composite(inner) = &flowop.op {
            walk(inner, each);
        }
    }
}

impl Resolver<'_, '_> {
    /// Checks a thread whose flowops are sound one by one, and gives targets their full names.
    pub(super) fn check_thread(&mut self, thread: &mut Thread) {
        self.check_names(&thread.flowops);
        self.check_slots(&thread.flowops);
        self.check_sizes(thread);
        let found = Found::of(&thread.flowops);
        self.find_targets(&mut thread.flowops, &found);
    }

    fn check_names(&mut self, flowops: &[Flowop]) {
        let mut kinds: HashMap<&str, &'static str> = HashMap::new();
        walk(flowops, &mut |flowop| {
            let kind = flowop.op.kind();
            let other = *kinds.entry(&flowop.name).or_insert(kind);
            if other != kind && !flowop.name.is_empty() {
                self.messages.at(
                    flowop.at,
                    format!(
                        "{} is the name of a {other} in this thread, so a {kind} needs another",
                        quoted(&flowop.name)
                    ),
                );
            }
        });
    }

    /// Every slot that is used must be one that something in the thread opens.
    fn check_slots(&mut self, flowops: &[Flowop]) {
        let mut opened: HashSet<Slot> = HashSet::new();
        let mut rotates = false;
        walk(flowops, &mut |flowop| {
            if let Some(target) = flowop.op.target()
                && target.fileset.is_some()
                && !matches!(flowop.op, Op::DeleteFile(_) | Op::StatFile(_))
            {
                rotates |= target.rotate && target.fd == 0;
                opened.insert(target.fd);
            }
        });
        if rotates {
            return;
        }
        walk(flowops, &mut |flowop| {
            let (slot, what, or) = match &flowop.op {
                Op::CloseFile { fd, rotate: false } => (*fd, "fd", ""),
                Op::WriteWholeFile {
                    source_fd: Some(source),
                    ..
                } if !opened.contains(source) => (*source, "srcfd", ""),
                op => match op.target() {
                    Some(Target {
                        fileset: None,
                        fd,
                        rotate: false,
                        ..
                    }) => (*fd, "fd", ", or `filename=` here"),
                    _ => return,
                },
            };
            if !opened.contains(&slot) {
                self.messages.at(
                    flowop.at,
                    format!(
                        "nothing in this thread opens {what}={slot}: expected an openfile or \
                         createfile with fd={slot}{or}"
                    ),
                );
            }
        });
    }

    fn check_sizes(&mut self, thread: &Thread) {
        walk(&thread.flowops, &mut |flowop| {
            let Some(transfer) = flowop.op.transfer() else {
                return;
            };
            let name = quoted(&flowop.name);
            let whole = matches!(flowop.op, Op::ReadWholeFile(_) | Op::WriteWholeFile { .. });
            let Value::Fixed(io_bytes) = transfer.io_bytes else {
                return;
            };
            if io_bytes == 0 {
                if !whole {
                    self.messages
                        .at(flowop.at, format!("{name} needs `iosize=`, above 0"));
                }
                return;
            }
            let aligned = if transfer.target.flags.direct_io {
                ALIGNMENT_BYTES
            } else {
                0
            };
            if let Value::Fixed(memory @ 1..) = thread.memory_bytes
                && io_bytes.saturating_add(aligned) > memory
            {
                let and = if aligned > 0 {
                    format!(" and {aligned} to align direct I/O")
                } else {
                    String::new()
                };
                self.messages.at(
                    flowop.at,
                    format!(
                        "{name} moves {io_bytes} bytes at a time{and}, more than the thread's \
                         memsize of {memory}"
                    ),
                );
            }
            if transfer.random
                && let Some(file) = self.room(transfer)
                && io_bytes > file
            {
                self.messages.at(
                    flowop.at,
                    format!(
                        "{name} moves {io_bytes} bytes at a time at random places in {file} bytes: \
                         expected an iosize of no more than the file or its working set"
                    ),
                );
            }
        });
    }

    /// Bytes that offsets are drawn from, where that is known.
    fn room(&self, transfer: &Transfer) -> Option<u64> {
        match transfer.working_set_bytes {
            Value::Fixed(0) => {}
            Value::Fixed(bytes) => return Some(bytes),
            Value::Random(_) => return None,
        }
        let fileset = &self.plan.filesets.get(transfer.target.fileset?.0)?;
        match fileset.size {
            Value::Fixed(bytes) => Some(bytes),
            Value::Random(_) => None,
        }
    }

    fn find_targets(&mut self, flowops: &mut [Flowop], found: &Found) {
        for flowop in flowops {
            let (target, needs_data) = match &mut flowop.op {
                Op::BwLimit { target }
                | Op::IopsLimit { target }
                | Op::FinishOnBytes { target, .. } => (target, true),
                Op::OpsLimit { target } | Op::FinishOnCount { target, .. } => (target, false),
                Op::Composite(inner) => {
                    self.find_targets(inner, found);
                    continue;
                }
                _ => continue,
            };
            let Some(name) = target else {
                continue;
            };
            match found.look_up(name) {
                None => self.messages.at(
                    flowop.at,
                    format!(
                        "this thread has no flowop {} to be the target; expected {}",
                        quoted(name),
                        one_of(&found.names())
                    ),
                ),
                Some((_, kind)) if needs_data && !moves_data(kind) => self.messages.at(
                    flowop.at,
                    format!(
                        "the target {} is a {kind}, which moves no data: expected one that reads \
                         or writes",
                        quoted(name)
                    ),
                ),
                Some((full, _)) => *name = full.to_owned(),
            }
        }
    }

    /// Semaphores and wake-ups reach across processes.
    pub(super) fn check_wakers(&mut self) {
        let mut waiting: HashMap<&'static str, HashSet<&str>> = HashMap::new();
        let all: Vec<&Flowop> = {
            let mut all = Vec::new();
            for thread in self.plan.processes.iter().flat_map(|p| &p.threads) {
                walk(&thread.flowops, &mut |flowop| all.push(flowop));
            }
            all
        };
        for flowop in &all {
            waiting
                .entry(flowop.op.kind())
                .or_default()
                .insert(&flowop.name);
        }
        let none = HashSet::new();
        for flowop in &all {
            let (target, kind) = match &flowop.op {
                Op::SemPost { target, .. } => (target, "semblock"),
                Op::Wakeup { target } => (target, "block"),
                _ => continue,
            };
            let names = waiting.get(kind).unwrap_or(&none);
            if target.is_empty() || names.contains(target.as_str()) {
                continue;
            }
            let mut known: Vec<&str> = names.iter().copied().collect();
            known.sort_unstable();
            let expected = if known.is_empty() {
                "there is none in the file".into()
            } else {
                format!("expected {}", one_of(&known))
            };
            self.messages.at(
                flowop.at,
                format!(
                    "the target {} of {} is no {kind}; {expected}",
                    quoted(target),
                    quoted(&flowop.name)
                ),
            );
        }
    }
}

fn moves_data(kind: &str) -> bool {
    schema::find_flowop(kind).is_some_and(|flowop| flowop.io == Io::Data)
}

/// Where a thread's flowops are found by name: by their full names at the top, and inside
/// composites by the last part alone.
struct Found {
    /// Full name and kind, in the order in which they are looked at.
    rows: Vec<(String, &'static str)>,
    /// First row of each name, own or full.
    first: HashMap<String, usize>,
}

impl Found {
    fn of(flowops: &[Flowop]) -> Self {
        let mut rows = Vec::new();
        let mut first = HashMap::new();
        walk(flowops, &mut |flowop| {
            let own = flowop.name.rsplit('.').next().unwrap_or_default();
            for name in [own, &flowop.name] {
                if !first.contains_key(name) {
                    first.insert(name.to_owned(), rows.len());
                }
            }
            rows.push((flowop.name.clone(), flowop.op.kind()));
        });
        Self { rows, first }
    }

    fn look_up(&self, name: &str) -> Option<(&str, &'static str)> {
        let (full, kind) = &self.rows[*self.first.get(name)?];
        Some((full, kind))
    }

    fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|(full, _)| full.as_str()).collect()
    }
}
