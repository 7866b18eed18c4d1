//! The content of a line of a recording.

use luc_control::replay::Item;
use luc_control::{Decision, Dev, Reason};
use std::fmt;

/// One line of a recording. Of [`Event::Lost`] only the CPU is known; the rest is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Name of the task that ran.
    pub task: String,
    pub pid: i64,
    /// The CPU that it ran on, or that lost records.
    pub cpu: u32,
    /// Time stamp in ns by the trace clock, as exact as the line was (ftrace
    /// prints microseconds).
    pub time_ns: u64,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A journal commit started.
    Commit {
        dev: Dev,
        tid: u32,
        /// Sync events that it serves.
        events: i64,
        /// Set point it was held for, events.
        setpoint_events: i64,
        /// How long it was held, or would have been in mode observe.
        held_ns: i64,
        /// Why it was not held longer; [`Reason::Hold`]: because LUC only observes.
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
        /// How many, if it knows.
        events: Option<u64>,
    },
}

impl Record {
    /// The dropped records of a CPU.
    pub fn lost(cpu: u32, events: Option<u64>) -> Self {
        Self {
            task: String::new(),
            pid: 0,
            cpu,
            time_ns: 0,
            event: Event::Lost { events },
        }
    }

    /// The part of this line that replay needs.
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
