//! Totals of processes, with their names.

use std::collections::BTreeMap;

use luc_bpf::{TaskCounts, Tracer, TracerError};
use luc_host::{System, process};
use luc_trace::Process;

use super::ProcessReading;

/// With more processes, those that have ended are forgotten. The tracer counts twice this many.
const KEPT_MAX: usize = 4096;

/// Follows the tracer's totals of processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    before: BTreeMap<u32, ProcessReading>,
}

impl Processes {
    /// Reads the totals of a tracer, which forgets processes that have ended when there are many.
    pub fn read(
        &mut self,
        tracer: &Tracer,
        system: &dyn System,
    ) -> Result<BTreeMap<u32, ProcessReading>, TracerError> {
        let counted = tracer.processes()?;
        let ended = self.add(counted, KEPT_MAX, |pid| process::running(system, pid));
        for pid in ended {
            tracer.forget_process(pid)?;
        }
        Ok(self.before.clone())
    }

    /// Names the processes that were counted. If there are more than `kept_max`, returns those
    /// that have ended and have counted nothing since the last call: nothing of them is unread.
    fn add(
        &mut self,
        counted: Vec<(u32, TaskCounts)>,
        kept_max: usize,
        running: impl Fn(u32) -> Option<Process>,
    ) -> Vec<u32> {
        let is_crowded = counted.len() > kept_max;
        let mut before = std::mem::take(&mut self.before);
        let mut ended = Vec::new();
        for (pid, counts) in counted {
            let known = before.remove(&pid);
            let is_idle = known.as_ref().is_some_and(|known| known.counts == counts);
            // The kernel may have reused the process ID: ask again for each process that did
            // something.
            let asks = !is_idle || is_crowded;
            let asked = if asks { running(pid) } else { None };
            if is_idle && is_crowded && asked.is_none() {
                ended.push(pid);
                continue;
            }
            let process = asked.or(known.map(|known| known.process));
            let process = process.unwrap_or_else(|| Process {
                name: "(ended)".into(),
                cgroup: None,
            });
            self.before.insert(pid, ProcessReading { process, counts });
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes by their numbers, with their syncs.
    fn counted(processes: &[(u32, u64)]) -> Vec<(u32, TaskCounts)> {
        let one = |(pid, syncs): &(u32, u64)| {
            let counts = TaskCounts {
                syncs: *syncs,
                ..TaskCounts::default()
            };
            (*pid, counts)
        };
        processes.iter().map(one).collect()
    }

    /// Processes below 10 run.
    fn running(pid: u32) -> Option<Process> {
        (pid < 10).then(|| Process {
            name: format!("process-{pid}"),
            cgroup: None,
        })
    }

    #[test]
    fn a_crowd_forgets_those_that_have_ended_once_they_were_read() {
        let mut processes = Processes::default();
        let first = counted(&[(1, 5), (2, 5), (10, 5), (11, 5)]);
        assert!(processes.add(first, 3, running).is_empty());
        // Its last counts came late.
        let second = counted(&[(1, 5), (2, 6), (10, 6), (11, 5)]);
        assert_eq!(processes.add(second, 3, running), vec![11]);
        assert_eq!(processes.before[&10].counts.syncs, 6);
        let third = counted(&[(1, 5), (2, 6), (10, 6)]);
        assert!(processes.add(third, 3, running).is_empty(), "no crowd");
    }

    #[test]
    fn a_process_that_has_ended_keeps_its_name() {
        let mut processes = Processes::default();
        processes.add(counted(&[(1, 5), (10, 5)]), 3, running);
        assert_eq!(processes.before[&10].process.name, "(ended)");
        processes.add(counted(&[(1, 6)]), 3, running);
        processes.add(counted(&[(1, 7)]), 3, |_| None);
        assert_eq!(processes.before[&1].process.name, "process-1");
    }
}
