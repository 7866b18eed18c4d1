//! Processes, threads and flowops; composite flowops are spelled out.

use std::collections::HashSet;

use super::Resolver;
use super::values::{Given, Locals};
use crate::ast;
use crate::diagnostic::{instead_of, quoted};
use crate::plan::{
    FD_MAX, FilesetId, Flowop, Op, OpenFlags, Process, Slot, Target, Thread, Transfer, Value,
};

/// Most threads of a workload, all processes together.
pub(super) const THREADS_MAX: u64 = 32_768;

/// Most flowops of a workload once composites are spelled out.
const FLOWOPS_MAX: usize = 16_384;

/// How deep composites may lie in each other.
const DEPTH_MAX: usize = 16;

/// Most events, posts or iterations that one value can ask for.
const COUNT_MAX: u64 = i64::MAX.unsigned_abs();

/// I/O priorities: best effort in the class bits, as the kernel counts.
const BEST_EFFORT: u64 = 2 << 13;

impl<'a> Resolver<'a, '_> {
    pub(super) fn make_processes(&mut self, processes: &[&'a ast::Process]) {
        let mut names = HashSet::new();
        let mut threads_sum: u64 = 0;
        for process in processes {
            let locals = Locals::default();
            let given = Given {
                attributes: &process.attributes,
                locals: &locals,
            };
            let name = self.name(&given, "process", process.at);
            if !name.is_empty() && !names.insert(name.clone()) {
                let place = given.place("name").unwrap_or(process.at);
                self.messages
                    .at(place, format!("process {} is defined twice", quoted(&name)));
            }
            let instances = self.fixed(&given, "instances", &(1..=THREADS_MAX), 1);
            let nice = self.fixed(&given, "nice", &(0..=19), 0);
            let threads = self.make_threads(&process.threads);
            for thread in &threads {
                threads_sum = threads_sum.saturating_add(instances * thread.instances);
            }
            if threads_sum > THREADS_MAX {
                let place = given.place("instances").unwrap_or(process.at);
                self.messages.at(
                    place,
                    format!("expected at most {THREADS_MAX} threads in all, found {threads_sum}"),
                );
                return;
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
            let locals = Locals::default();
            let given = Given {
                attributes: &thread.attributes,
                locals: &locals,
            };
            let name = self.name(&given, "thread", thread.at);
            if !name.is_empty() && !names.insert(name.clone()) {
                let place = given.place("name").unwrap_or(thread.at);
                self.messages.at(
                    place,
                    format!("the process has two threads named {}", quoted(&name)),
                );
            }
            let io_priority = given
                .find("ioprio")
                .map(|_| BEST_EFFORT | self.fixed(&given, "ioprio", &(0..=7), 0));
            let instances = self.fixed(&given, "instances", &(1..=THREADS_MAX), 1);
            let memory_bytes = self.value(&given, "memsize", 0);
            let complaints = self.messages.len();
            let mut thread = Thread {
                name,
                instances,
                memory_bytes,
                io_priority,
                flowops: self.make_flowops(&thread.flowops, "", &locals, 0),
            };
            if self.messages.len() == complaints {
                // What follows from broken flowops would only confuse.
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
            // Said once, and then nothing is made any more.
            if self.flowops == FLOWOPS_MAX + 1 {
                self.messages.at(
                    at,
                    format!("composite flowops spell out to more than {FLOWOPS_MAX} flowops"),
                );
            }
            return None;
        }
        let given = Given {
            attributes: &flowop.attributes,
            locals,
        };
        let own_name = self.name(&given, &format!("flowop {}", quoted(kind)), at);
        let name = format!("{prefix}{own_name}");
        let iters = self.value_in(&given, "iters", &(0..=COUNT_MAX), 1);
        let op = if let Some(composite) = self.composites.get(kind).copied() {
            self.composite(flowop, composite, &name, locals, depth)?
        } else {
            self.op(kind, &given, at)?
        };
        Some(Flowop {
            name,
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
            self.messages.at(
                flowop.kind.at,
                format!("flowops may lie in each other {DEPTH_MAX} deep, no deeper"),
            );
            return None;
        }
        let mut locals = Locals::default();
        for given in &flowop.locals {
            let variable = &given.name.value;
            let declared = composite
                .locals
                .iter()
                .any(|local| local.name.value == *variable);
            let value = if let Some(value) = &given.value {
                self.evaluate(value, outer)
            } else {
                self.messages.at(
                    given.name.at,
                    format!("expected a value for {}", quoted(&format!("${variable}"))),
                );
                None
            };
            if !declared {
                let names: Vec<String> = composite
                    .locals
                    .iter()
                    .map(|local| format!("${}", local.name.value))
                    .collect();
                let has = if names.is_empty() {
                    "it has none".into()
                } else {
                    instead_of(&format!("${variable}"), &names)
                };
                self.messages.at(
                    given.name.at,
                    format!(
                        "flowop {} has no variable {}: {has}",
                        quoted(kind),
                        quoted(&format!("${variable}"))
                    ),
                );
            }
            locals.insert(variable.clone(), value?);
        }
        for local in &composite.locals {
            let variable = &local.name.value;
            if locals.contains_key(variable) {
                continue;
            }
            let Some(value) = &local.value else {
                self.messages.at(
                    flowop.kind.at,
                    format!("flowop {} needs `${variable}=`", quoted(kind)),
                );
                return None;
            };
            let value = self.evaluate(value, &Locals::default())?;
            locals.insert(variable.clone(), value);
        }
        let prefix = format!("{name}.");
        let inner = self.make_flowops(&composite.flowops, &prefix, &locals, depth + 1);
        Some(Op::Composite(inner))
    }

    fn op(&mut self, kind: &str, given: &Given<'_>, at: crate::plan::Position) -> Option<Op> {
        let value = |this: &mut Self| this.value_in(given, "value", &(0..=COUNT_MAX), 0);
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
            "openfile" | "createfile" => {
                self.fileset_needed(kind, given, at)?;
                let target = self.target(given);
                if kind == "openfile" {
                    Op::OpenFile(target)
                } else {
                    Op::CreateFile(target)
                }
            }
            "closefile" => Op::CloseFile {
                fd: self.slot(given, "fd"),
                rotate: self.flag(given, "opennext"),
            },
            "deletefile" | "statfile" => {
                let target = self.target(given);
                if target.fd == 0 {
                    self.fileset_needed(kind, given, at)?;
                }
                if kind == "deletefile" {
                    Op::DeleteFile(target)
                } else {
                    Op::StatFile(target)
                }
            }
            "fsync" => Op::Fsync(self.target(given)),
            "fsyncset" => Op::FsyncSet(self.fileset_needed(kind, given, at)?),
            "makedir" => Op::MakeDir(self.fileset_needed(kind, given, at)?),
            "removedir" => Op::RemoveDir(self.fileset_needed(kind, given, at)?),
            "listdir" => Op::ListDir(self.fileset_needed(kind, given, at)?),
            "semblock" => Op::SemBlock {
                value: value(self),
                high_water: Value::Fixed(self.fixed(given, "highwater", &(0..=COUNT_MAX), 1)),
            },
            "sempost" => Op::SemPost {
                value: value(self),
                target: self.needed(given, "target", "sempost", at),
                blocking: self.flag(given, "blocking"),
            },
            "block" => Op::Block,
            "wakeup" => Op::Wakeup {
                target: self.needed(given, "target", "wakeup", at),
            },
            "hog" => Op::Hog { value: value(self) },
            "delay" => Op::Delay {
                seconds: self.value_in(given, "value", &(0..=super::SECONDS_MAX), 0),
            },
            "eventlimit" => Op::EventLimit,
            "bwlimit" => Op::BwLimit {
                target: self.text(given, "target"),
            },
            "iopslimit" => Op::IopsLimit {
                target: self.text(given, "target"),
            },
            "opslimit" => Op::OpsLimit {
                target: self.text(given, "target"),
            },
            "finishoncount" | "finishonbytes" => {
                if given.find("value").is_none() {
                    self.messages.at(at, format!("{kind} needs `value=`"));
                }
                let target = self.text(given, "target");
                if kind == "finishoncount" {
                    Op::FinishOnCount {
                        count: value(self),
                        target,
                    }
                } else {
                    Op::FinishOnBytes {
                        bytes: value(self),
                        target,
                    }
                }
            }
            _ => {
                // The parser lets only these and composites through; one of those that was
                // broken has been complained about.
                return None;
            }
        })
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
                .find("indexed")
                .map(|_| self.value(given, "indexed", 0)),
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
            let place = given.place("filename")?;
            let mut known: Vec<&String> = self.fileset_ids.keys().collect();
            known.sort();
            let expected = if known.is_empty() {
                "expected a `define fileset` or `define file` of that name".into()
            } else {
                instead_of(&name, &known)
            };
            self.messages.at(
                place,
                format!("there is no fileset {}: {expected}", quoted(&name)),
            );
        }
        id
    }

    fn fileset_needed(
        &mut self,
        kind: &str,
        given: &Given<'_>,
        at: crate::plan::Position,
    ) -> Option<FilesetId> {
        if given.find("filename").is_none() {
            self.messages
                .at(at, format!("{kind} needs `filename=` or `filesetname=`"));
            return None;
        }
        self.fileset(given)
    }
}
