//! Resolves processes, threads and flowops; composite flowops are expanded.

use std::collections::HashSet;

use super::values::{Given, Locals, NO_LOCALS};
use super::{Resolver, instead_of_variable};
use crate::ast;
use crate::diagnostic::{instead_of, quoted};
use crate::plan::{
    FD_MAX, FilesetId, Flowop, Io, Op, OpenFlags, Process, Slot, Target, Thread, Transfer, Value,
};
use crate::schema;

/// Most threads of a workload, all processes together.
pub(super) const THREADS_MAX: u64 = 32_768;

/// Most flowops of a workload once composites are expanded.
const FLOWOPS_MAX: usize = 16_384;

/// Deepest nesting of composites.
const DEPTH_MAX: usize = 16;

/// Most events, posts or iterations that one value may ask for.
const COUNT_MAX: u64 = i64::MAX.unsigned_abs();

/// The class best effort in the kernel's encoding of I/O priorities.
const BEST_EFFORT: u64 = 2 << 13;

impl<'a> Resolver<'a, '_> {
    pub(super) fn make_processes(&mut self, processes: &[&'a ast::Process]) {
        let mut names = HashSet::new();
        let mut threads_sum: u64 = 0;
        for process in processes {
            let given = Given::new("process", process.at, &process.attributes);
            let name = self.name(&given);
            if !name.is_empty() && !names.insert(name.clone()) {
                let message = format!("process {} is defined twice", quoted(&name));
                self.messages.at(given.place("name"), message);
            }
            let instances = self.fixed(&given, "instances", &(1..=THREADS_MAX), 1);
            let nice = self.fixed(&given, "nice", &(0..=19), 0);
            let threads = self.make_threads(&process.threads);
            for thread in &threads {
                threads_sum = threads_sum.saturating_add(instances * thread.instances);
            }
            if threads_sum > THREADS_MAX {
                let message =
                    format!("expected at most {THREADS_MAX} threads in total, found {threads_sum}");
                return self.messages.at(given.place("instances"), message);
            }
            self.plan.processes.push(Process {
                name,
                instances,
                nice: i32::try_from(nice).unwrap_or_default(),
                threads,
            });
        }
        self.check_wakers();
    }

    fn make_threads(&mut self, threads: &'a [ast::Thread]) -> Vec<Thread> {
        let mut names = HashSet::new();
        let mut made = Vec::new();
        for thread in threads {
            let given = Given::new("thread", thread.at, &thread.attributes);
            let name = self.name(&given);
            if !name.is_empty() && !names.insert(name.clone()) {
                let message = format!("the process has two threads named {}", quoted(&name));
                self.messages.at(given.place("name"), message);
            }
            let io_priority = given
                .has("ioprio")
                .then(|| BEST_EFFORT | self.fixed(&given, "ioprio", &(0..=7), 0));
            let instances = self.fixed(&given, "instances", &(1..=THREADS_MAX), 1);
            let memory_bytes = self.value(&given, "memsize", 0);
            let complaints = self.messages.len();
            let mut thread = Thread {
                name,
                instances,
                memory_bytes,
                io_priority,
                flowops: self.make_flowops(&thread.flowops, "", &NO_LOCALS, 0),
            };
            if self.messages.len() == complaints {
                // Errors that result from broken flowops would only confuse.
                self.check_thread(&mut thread);
            }
            made.push(thread);
        }
        made
    }

    fn make_flowops(
        &mut self,
        flowops: &'a [ast::Flowop],
        prefix: &str,
        locals: &Locals,
        depth: usize,
    ) -> Vec<Flowop> {
        let mut made = Vec::new();
        for flowop in flowops {
            if self.messages.is_full() {
                break;
            }
            made.extend(self.make_flowop(flowop, prefix, locals, depth));
        }
        made
    }

    fn make_flowop(
        &mut self,
        flowop: &'a ast::Flowop,
        prefix: &str,
        locals: &Locals,
        depth: usize,
    ) -> Option<Flowop> {
        let at = flowop.kind.at;
        let kind = flowop.kind.value.as_str();
        self.flowops += 1;
        if self.flowops > FLOWOPS_MAX {
            // One message is enough; no more flowops are made.
            if self.flowops == FLOWOPS_MAX + 1 {
                let message =
                    format!("composite flowops expand to more than {FLOWOPS_MAX} flowops");
                self.messages.at(at, message);
            }
            return None;
        }
        let given = Given {
            attributes: &flowop.attributes,
            locals,
            owner: kind,
            at,
        };
        let own_name = self.name(&Given {
            owner: &format!("flowop {}", quoted(kind)),
            ..given
        });
        let name = format!("{prefix}{own_name}");
        let iters = self.value_in(&given, "iters", &(0..=COUNT_MAX), 1);
        let (kind, io, op) = if let Some(composite) = self.composites.get(kind).copied() {
            let op = self.composite(flowop, composite, &name, locals, depth)?;
            ("composite", Io::None, op)
        } else {
            // A broken composite flowop has already been reported.
            let known = schema::find_flowop(kind)?;
            (known.name, known.io, self.op(known.name, &given)?)
        };
        Some(Flowop {
            name,
            kind,
            io,
            op,
            iters,
            at,
        })
    }

    fn composite(
        &mut self,
        flowop: &'a ast::Flowop,
        composite: &'a ast::Composite,
        name: &str,
        outer: &Locals,
        depth: usize,
    ) -> Option<Op> {
        let kind = &composite.name.value;
        if depth == DEPTH_MAX {
            let message = format!("composite flowops may nest at most {DEPTH_MAX} deep");
            return self.complain(flowop.kind.at, message);
        }
        let mut locals = Locals::default();
        for given in &flowop.locals {
            let variable = &given.name.value;
            let shown = quoted(&format!("${variable}"));
            let declared = composite.locals.iter().map(|local| &*local.name.value);
            let declared: Vec<&str> = declared.collect();
            let value = if let Some(value) = &given.value {
                self.evaluate(value, outer)
            } else {
                self.complain(given.name.at, format!("expected a value for {shown}"))
            };
            if !declared.contains(&variable.as_str()) {
                let has = instead_of_variable(variable, &declared, "it has none");
                let message = format!("flowop {} has no variable {shown}: {has}", quoted(kind));
                self.messages.at(given.name.at, message);
            }
            locals.insert(variable.clone(), value?);
        }
        for local in &composite.locals {
            let variable = &local.name.value;
            if locals.contains_key(variable) {
                continue;
            }
            let Some(value) = &local.value else {
                let message = format!("flowop {} needs `${variable}=`", quoted(kind));
                return self.complain(flowop.kind.at, message);
            };
            let value = self.evaluate(value, &NO_LOCALS)?;
            locals.insert(variable.clone(), value);
        }
        let prefix = format!("{name}.");
        let inner = self.make_flowops(&composite.flowops, &prefix, &locals, depth + 1);
        Some(Op::Composite(inner))
    }

    fn op(&mut self, kind: &str, given: &Given<'_>) -> Option<Op> {
        let value = |this: &mut Self| this.value_in(given, "value", &(0..=COUNT_MAX), 0);
        let target = |this: &mut Self| this.text(given, "target");
        if kind.starts_with("finishon") && !given.has("value") {
            self.messages.at(given.at, format!("{kind} needs `value=`"));
        }
        Some(match kind {
            "read" => Op::Read(self.transfer(given)),
            "write" => Op::Write(self.transfer(given)),
            "aiowrite" => Op::AioWrite(self.transfer(given)),
            "aiowait" => Op::AioWait,
            "readwholefile" => Op::ReadWholeFile(self.transfer(given)),
            "writewholefile" => Op::WriteWholeFile {
                transfer: self.transfer(given),
                source_fd: Some(self.slot(given, "srcfd")).filter(|slot| *slot > 0),
            },
            "appendfile" => Op::AppendFile(self.transfer(given)),
            "appendfilerand" => Op::AppendFileRand(self.transfer(given)),
            "openfile" => Op::OpenFile(self.new_target(given)?),
            "createfile" => Op::CreateFile(self.new_target(given)?),
            "closefile" => Op::CloseFile {
                fd: self.slot(given, "fd"),
                rotate: self.flag(given, "opennext"),
            },
            "deletefile" => Op::DeleteFile(self.named_target(given)?),
            "statfile" => Op::StatFile(self.named_target(given)?),
            "fsync" => Op::Fsync(self.target(given)),
            "fsyncset" => Op::FsyncSet(self.fileset_needed(given)?),
            "makedir" => Op::MakeDir(self.fileset_needed(given)?),
            "removedir" => Op::RemoveDir(self.fileset_needed(given)?),
            "listdir" => Op::ListDir(self.fileset_needed(given)?),
            "semblock" => Op::SemBlock {
                value: value(self),
                high_water: Value::Fixed(self.fixed(given, "highwater", &(0..=COUNT_MAX), 1)),
            },
            "sempost" => Op::SemPost {
                value: value(self),
                target: self.needed(given, "target"),
                blocking: self.flag(given, "blocking"),
            },
            "block" => Op::Block,
            "wakeup" => Op::Wakeup {
                target: self.needed(given, "target"),
            },
            "hog" => Op::Hog { value: value(self) },
            "delay" => Op::Delay {
                seconds: self.value_in(given, "value", &(0..=super::SECONDS_MAX), 0),
            },
            "eventlimit" => Op::EventLimit,
            "bwlimit" => Op::BwLimit {
                target: target(self),
            },
            "iopslimit" => Op::IopsLimit {
                target: target(self),
            },
            "opslimit" => Op::OpsLimit {
                target: target(self),
            },
            "finishoncount" => Op::FinishOnCount {
                count: value(self),
                target: target(self),
            },
            "finishonbytes" => Op::FinishOnBytes {
                bytes: value(self),
                target: target(self),
            },
            other => unreachable!("{other} is in the table of flowops"),
        })
    }

    /// Returns the target of a flowop that always takes an entry of a fileset.
    fn new_target(&mut self, given: &Given<'_>) -> Option<Target> {
        self.fileset_needed(given)?;
        Some(self.target(given))
    }

    /// Returns the target of a flowop that takes an entry of a fileset if it names no slot.
    fn named_target(&mut self, given: &Given<'_>) -> Option<Target> {
        let target = self.target(given);
        if target.fd == 0 {
            self.fileset_needed(given)?;
        }
        Some(target)
    }

    fn transfer(&mut self, given: &Given<'_>) -> Transfer {
        Transfer {
            target: self.target(given),
            io_bytes: self.value(given, "iosize", 0),
            random: self.flag(given, "random"),
            working_set_bytes: self.value(given, "workingset", 0),
        }
    }

    fn target(&mut self, given: &Given<'_>) -> Target {
        Target {
            fileset: self.fileset(given),
            index: given
                .has("indexed")
                .then(|| self.value(given, "indexed", 0)),
            fd: self.slot(given, "fd"),
            rotate: self.flag(given, "opennext"),
            flags: OpenFlags {
                dsync: self.flag(given, "dsync"),
                direct_io: self.flag(given, "directio"),
                no_read_ahead: self.flag(given, "noreadahead"),
            },
        }
    }

    fn slot(&mut self, given: &Given<'_>, name: &str) -> Slot {
        let slot = self.fixed(given, name, &(0..=u64::from(FD_MAX)), 0);
        Slot::try_from(slot).unwrap_or_default()
    }

    fn fileset(&mut self, given: &Given<'_>) -> Option<FilesetId> {
        let name = self.text(given, "filename")?;
        let id = self.fileset_ids.get(&name).copied();
        if id.is_none() {
            let mut known: Vec<&String> = self.fileset_ids.keys().collect();
            known.sort();
            let expected = if known.is_empty() {
                "expected a `define fileset` or `define file` of that name".into()
            } else {
                instead_of(&name, &known)
            };
            let message = format!("there is no fileset {}: {expected}", quoted(&name));
            self.messages.at(given.place("filename"), message);
        }
        id
    }

    fn fileset_needed(&mut self, given: &Given<'_>) -> Option<FilesetId> {
        if !given.has("filename") {
            let message = format!("{} needs `filename=` or `filesetname=`", given.owner);
            return self.complain(given.at, message);
        }
        self.fileset(given)
    }
}
