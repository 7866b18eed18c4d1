//! Finds errors before anything runs.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Resolver;
use crate::diagnostic::{one_of, quoted};
use crate::plan::{Flowop, Io, Op, Slot, Target, Thread, Transfer, Value};

/// Bytes of a buffer that the alignment of direct I/O may cost.
const ALIGNMENT_BYTES: u64 = 512;

impl Resolver<'_, '_> {
    /// Checks a thread whose flowops are individually sound, and gives targets their full names.
    pub(super) fn check_thread(&mut self, thread: &mut Thread) {
        let all = thread.all_flowops();
        self.check_names(&all);
        self.check_slots(&all);
        self.check_sizes(&all, thread.memory_bytes);
        let found = Found::from_flowops(&all);
        self.find_targets(&mut thread.flowops, &found);
    }

    fn check_names(&mut self, flowops: &[&Flowop]) {
        let mut kinds: HashMap<&str, &'static str> = HashMap::new();
        for Flowop { name, kind, at, .. } in flowops.iter().copied() {
            let other = *kinds.entry(name).or_insert(kind);
            if other != *kind && !name.is_empty() {
                let name = quoted(name);
                let message = format!(
                    "{name} is the name of a {other} in this thread, so a {kind} needs a different \
                     name"
                );
                self.messages.at(*at, message);
            }
        }
    }

    /// Checks that a flowop of the thread opens every slot that is used.
    fn check_slots(&mut self, flowops: &[&Flowop]) {
        let mut opened: HashSet<Slot> = HashSet::new();
        for flowop in flowops {
            if let Some(target) = flowop.op.target()
                && target.fileset.is_some()
                && !matches!(flowop.op, Op::DeleteFile(_) | Op::StatFile(_))
            {
                if target.rotate && target.fd == 0 {
                    return;
                }
                opened.insert(target.fd);
            }
        }
        for flowop in flowops {
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
                    _ => continue,
                },
            };
            if !opened.contains(&slot) {
                let message = format!(
                    "nothing in this thread opens {what}={slot}: expected an openfile or \
                     createfile with fd={slot}{or}"
                );
                self.messages.at(flowop.at, message);
            }
        }
    }

    fn check_sizes(&mut self, flowops: &[&Flowop], memory_bytes: Value) {
        for flowop in flowops {
            let Some(transfer) = flowop.op.transfer() else {
                continue;
            };
            let Value::Fixed(io_bytes) = transfer.io_bytes else {
                continue;
            };
            let name = quoted(&flowop.name);
            if io_bytes == 0 {
                if !matches!(flowop.op, Op::ReadWholeFile(_) | Op::WriteWholeFile { .. }) {
                    let message = format!("{name} needs an `iosize=` above 0");
                    self.messages.at(flowop.at, message);
                }
                continue;
            }
            let (aligned, and) = if transfer.target.flags.direct_io {
                let and = format!(" and {ALIGNMENT_BYTES} to align direct I/O");
                (ALIGNMENT_BYTES, and)
            } else {
                (0, String::new())
            };
            if let Value::Fixed(memory @ 1..) = memory_bytes
                && io_bytes.saturating_add(aligned) > memory
            {
                let message = format!(
                    "{name} moves {io_bytes} bytes at a time{and}, more than the thread's \
                     memsize of {memory}"
                );
                self.messages.at(flowop.at, message);
            }
            if transfer.random
                && let Some(file) = self.room(transfer)
                && io_bytes > file
            {
                let message = format!(
                    "{name} moves {io_bytes} bytes at a time at random offsets in {file} bytes: \
                     expected an iosize of no more than the file or its working set"
                );
                self.messages.at(flowop.at, message);
            }
        }
    }

    /// Returns the number of bytes from which offsets are drawn, if known.
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
            let shown = quoted(name);
            let message = match found.look_up(name) {
                None => format!(
                    "this thread has no flowop {shown} as a target; expected {}",
                    one_of(&found.names())
                ),
                Some((_, kind, io)) if needs_data && !matches!(io, Io::Read | Io::Write) => {
                    format!(
                        "the target {shown} is a {kind}, which moves no data: expected one that \
                         reads or writes"
                    )
                }
                Some((full, ..)) => {
                    full.clone_into(name);
                    continue;
                }
            };
            self.messages.at(flowop.at, message);
        }
    }

    /// Checks the targets of posts and wake-ups, which reach across processes.
    pub(super) fn check_wakers(&mut self) {
        let threads = self.plan.processes.iter().flat_map(|p| &p.threads);
        let all: Vec<&Flowop> = threads.flat_map(Thread::all_flowops).collect();
        let mut waiting: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for flowop in &all {
            let names = waiting.entry(flowop.kind).or_default();
            names.insert(&flowop.name);
        }
        for flowop in &all {
            let (target, kind) = match &flowop.op {
                Op::SemPost { target, .. } => (target, "semblock"),
                Op::Wakeup { target } => (target, "block"),
                _ => continue,
            };
            let names = waiting.get(kind);
            if target.is_empty() || names.is_some_and(|it| it.contains(target.as_str())) {
                continue;
            }
            let expected = names.map_or("there is none in the file".into(), |names| {
                let names: Vec<_> = names.iter().collect();
                format!("expected {}", one_of(&names))
            });
            let (target, name) = (quoted(target), quoted(&flowop.name));
            let message = format!("the target {target} of {name} is not a {kind}; {expected}");
            self.messages.at(flowop.at, message);
        }
    }
}

/// A thread's flowops by name: by their full names, and inside composites also by the last part
/// alone.
struct Found {
    /// Full name, kind and I/O class, in the order of the thread's flowops.
    rows: Vec<(String, &'static str, Io)>,
    /// First row of each name, last part or full.
    first: HashMap<String, usize>,
}

impl Found {
    fn from_flowops(flowops: &[&Flowop]) -> Self {
        let mut rows = Vec::new();
        let mut first = HashMap::new();
        for flowop in flowops {
            let own = flowop.name.rsplit('.').next().unwrap_or_default();
            for name in [own, &flowop.name] {
                first.entry(name.to_owned()).or_insert(rows.len());
            }
            rows.push((flowop.name.clone(), flowop.kind, flowop.io));
        }
        Self { rows, first }
    }

    fn look_up(&self, name: &str) -> Option<&(String, &'static str, Io)> {
        self.first.get(name).map(|&row| &self.rows[row])
    }

    fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|(full, ..)| full.as_str()).collect()
    }
}
