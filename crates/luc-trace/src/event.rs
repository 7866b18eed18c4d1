//! The content of a line of a recording.

use luc_control::replay::Item;
use luc_control::{Decision, Dev, Reason};
use std::fmt;

/// One line of a recording. For [`Event::Lost`] only the CPU is known; the rest is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Name of the task that ran.
    pub task: String,
    pub pid: i64,
    /// The CPU on which it ran, or which lost records.
    pub cpu: u32,
    /// Time stamp of the trace clock, ns, as precise as the line (ftrace prints microseconds).
    pub time_ns: u64,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A journal commit started.
    Commit {
        dev: Dev,
        tid: u32,
        /// Sync events that the commit serves.
        events: i64,
        /// Set point for which it was held, events.
        setpoint_events: i64,
        /// How long it was held, or would have been in mode observe.
        held_ns: i64,
        /// Why it was not held longer; [`Reason::Hold`] if LUC only observes.
        reason: Reason,
        steer: bool,
    },
    /// An operation slept because a commit was writing its metadata.
    WriteDelay { dev: Dev, block: u64, delay_ns: i64 },
    /// One step of a controller.
    Decision {
        dev: Dev,
        tid: u32,
        decision: Box<Decision>,
    },
    /// The kernel dropped records here.
    Lost {
        /// Number of records, if the kernel knows it.
        events: Option<u64>,
    },
}

impl Record {
    /// Creates the record for dropped records of a CPU.
    pub fn lost(cpu: u32, events: Option<u64>) -> Self {
        Self {
            task: String::new(),
            pid: 0,
            cpu,
            time_ns: 0,
            event: Event::Lost { events },
        }
    }

    /// Returns the part of this line that replay needs, if any.
    pub fn to_replay(&self) -> Option<Item> {
        match &self.event {
            Event::Decision { dev, tid, decision } => Some(Item::Decision {
                dev: *dev,
                tid: *tid,
                decision: decision.clone(),
            }),
            Event::Lost { events } => Some(Item::Lost { events: *events }),
            Event::Commit { .. } | Event::WriteDelay { .. } => None,
        }
    }
}

/// The line as ftrace prints it, without the newline.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Event::Lost { events } = &self.event {
            write!(f, "CPU:{} [LOST ", self.cpu)?;
            if let Some(events) = events {
                write!(f, "{events} ")?;
            }
            return write!(f, "EVENTS]");
        }
        let us = self.time_ns / 1000;
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        write!(
            f,
            "{:>16}-{:<7} [{:03}] ..... {s:>5}.{us:06}: {}",
            self.task, self.pid, self.cpu, self.event
        )
    }
}

/// The tracepoint's name and text.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit {
                dev,
                tid,
                events,
                setpoint_events,
                held_ns,
                reason,
                steer,
            } => write!(
                f,
                "luc_commit: dev={dev} tid={tid} events={events} setpoint_events={setpoint_events} held_ns={held_ns} reason={reason} steer={}",
                u8::from(*steer)
            ),
            Self::WriteDelay {
                dev,
                block,
                delay_ns,
            } => write!(
                f,
                "luc_write_delay: dev={dev} block={block} delay_ns={delay_ns}"
            ),
            Self::Decision { dev, tid, decision } => {
                write!(f, "luc_decision: dev={dev} tid={tid}")?;
                for (field, value) in Decision::fields().zip(decision.values()) {
                    write!(f, " {}={value}", field.name)?;
                }
                Ok(())
            }
            Self::Lost {
                events: Some(events),
            } => write!(f, "{events} records lost"),
            Self::Lost { events: None } => f.write_str("records lost"),
        }
    }
}
