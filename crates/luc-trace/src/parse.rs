//! One line of ftrace's text.

use crate::error::TraceError;
use crate::event::{Event, Record};
use luc_control::{Decision, Reason};
use std::str::FromStr;

/// Width to which ftrace pads a task's name: the dash before the task's number stands here, however
/// short the name is.
const TASK_WIDTH: usize = 16;

/// Parses a line; `Ok(None)` if it is a comment, empty, or of another tracepoint. `line_number`
/// counts from 1 and is only used in errors.
///
/// # Errors
/// [`TraceError::Syntax`]
pub fn parse_line(line: &str, line_number: u64) -> Result<Option<Record>, TraceError> {
    let mut cursor = Cursor {
        line,
        at: 0,
        line_number,
    };
    cursor.record()
}

/// A position in a line, which advances with parsing.
struct Cursor<'a> {
    line: &'a str,
    at: usize,
    line_number: u64,
}

impl<'a> Cursor<'a> {
    fn record(&mut self) -> Result<Option<Record>, TraceError> {
        if self.line.trim().is_empty() || self.line.starts_with('#') {
            return Ok(None);
        }
        if self.line.starts_with("CPU:") {
            return self.lost().map(Some);
        }
        let (task, pid) = self.task()?;
        let cpu = self.cpu()?;
        let time_ns = self.time_ns()?;
        let name = self.up_to(": ", "a tracepoint's name and ': '")?;
        let event = match name {
            "luc_commit" => self.commit()?,
            "luc_write_delay" => self.write_delay()?,
            "luc_decision" => self.decision()?,
            _ => return Ok(None),
        };
        Ok(Some(Record {
            task: task.trim_start().to_owned(),
            pid,
            cpu,
            time_ns,
            event,
        }))
    }

    /// Parses `CPU:0 [LOST 123 EVENTS]` or `CPU:0 [LOST EVENTS]`.
    fn lost(&mut self) -> Result<Record, TraceError> {
        self.at = "CPU:".len();
        let cpu = self.number_up_to(" [LOST ", "a CPU and ' [LOST '")?;
        let events = if self.rest() == "EVENTS]" {
            None
        } else {
            Some(self.number_up_to(" EVENTS]", "a number and ' EVENTS]'")?)
        };
        Ok(Record::lost(cpu, events))
    }

    /// Parses `   jbd2/sda1-8-123   `; the name may hold anything, including dashes.
    fn task(&mut self) -> Result<(&'a str, i64), TraceError> {
        let padded = self.line.get(TASK_WIDTH..).is_some_and(|rest| {
            let mut bytes = rest.bytes();
            bytes.next() == Some(b'-') && bytes.next().is_some_and(|b| b.is_ascii_digit())
        });
        let from = if padded { TASK_WIDTH } else { 0 };
        let bracket = self.line[from..]
            .find(" [")
            .map(|at| from + at)
            .ok_or_else(|| self.error("no CPU in brackets: this is not an ftrace line"))?;
        // With the option record-tgid, a second number in parentheses follows.
        let mut head = self.line[..bracket].trim_end();
        if let Some(open) = head.rfind('(').filter(|_| head.ends_with(')')) {
            head = head[..open].trim_end();
        }
        let dash = if padded {
            Some(TASK_WIDTH)
        } else {
            head.rfind('-')
        };
        let (name, number) = dash
            .and_then(|at| Some((&self.line[..at], head.get(at + 1..)?)))
            .ok_or_else(|| self.error("no task: expected NAME-NUMBER"))?;
        self.at = name.len() + 1;
        let pid = number
            .parse()
            .map_err(|_| self.error("no task: expected NAME-NUMBER"))?;
        self.at = bracket + 2;
        Ok((name, pid))
    }

    fn cpu(&mut self) -> Result<u32, TraceError> {
        self.number_up_to("] ", "a CPU and '] '")
    }

    /// Parses flags (which some options omit) and `12.345678: `. Clocks other than the default
    /// print a number without a dot.
    fn time_ns(&mut self) -> Result<u64, TraceError> {
        const WHAT: &str = "a time stamp and ': '";
        let words = self.up_to(": ", WHAT)?;
        let end = self.at;
        let word = words.split_ascii_whitespace().next_back().unwrap_or("");
        self.at = end - 2 - word.len();
        let (whole, part) = word.split_once('.').unwrap_or((word, ""));
        if part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.error(&format!("expected {WHAT}")));
        }
        let whole = self.digits(whole, WHAT)?;
        let time_ns = if word.contains('.') {
            let part_ns = format!("{part:0<9}").parse::<u64>().ok();
            whole
                .checked_mul(1_000_000_000)
                .zip(part_ns)
                .and_then(|(a, b)| a.checked_add(b))
        } else {
            Some(whole)
        };
        let time_ns = time_ns.ok_or_else(|| self.error("the time stamp is too large"))?;
        self.at = end;
        Ok(time_ns)
    }

    fn commit(&mut self) -> Result<Event, TraceError> {
        let (dev, tid) = (self.value("dev")?, self.value("tid")?);
        let (events, setpoint_events) = (self.value("events")?, self.value("setpoint_events")?);
        let held_ns = self.value("held_ns")?;
        let (reason, column) = self.reason()?;
        let steer = self.value::<u8>("steer")? != 0;
        // A commit can start in spite of a hold only if LUC merely observes.
        if reason == Reason::Hold && steer {
            return Err(self.error_at(column, "'hold' is not a reason to start a commit"));
        }
        let event = Event::Commit {
            dev,
            tid,
            events,
            setpoint_events,
            held_ns,
            reason,
            steer,
        };
        self.end().map(|()| event)
    }

    fn write_delay(&mut self) -> Result<Event, TraceError> {
        let event = Event::WriteDelay {
            dev: self.value("dev")?,
            block: self.value("block")?,
            delay_ns: self.value("delay_ns")?,
        };
        self.end().map(|()| event)
    }

    /// Parses fields by their names, in any order, each once.
    fn decision(&mut self) -> Result<Event, TraceError> {
        let dev = self.value("dev")?;
        let tid = self.value("tid")?;
        let mut decision = Box::<Decision>::default();
        let mut seen = Vec::with_capacity(Decision::LEN);
        while !self.rest().trim_end().is_empty() {
            let start = self.at;
            let (name, text) = self.pair()?;
            let value = text.parse().map_err(|_| {
                self.error_at(start, &format!("{name}={text} is not a 64-bit number"))
            })?;
            if seen.contains(&name) {
                return Err(self.error_at(start, &format!("{name} appears twice")));
            }
            if !decision.set(name, value) {
                let what = format!(
                    "luc_decision has no field {name}; was it recorded by another version of luc?"
                );
                return Err(self.error_at(start, &what));
            }
            seen.push(name);
        }
        match Decision::fields().find(|field| !seen.contains(&field.name)) {
            None => Ok(Event::Decision { dev, tid, decision }),
            Some(field) => Err(self.error(&format!(
                "luc_decision lacks the field {}; was the line cut off, or recorded by another \
                 version of luc?",
                field.name
            ))),
        }
    }

    /// Parses the reason; returns its place, too.
    fn reason(&mut self) -> Result<(Reason, usize), TraceError> {
        let start = self.at;
        let text: String = self.value("reason")?;
        let reason = Reason::from_text(&text).map(|reason| (reason, start));
        reason.ok_or_else(|| {
            self.error_at(
                start,
                &format!("'{text}' is not a reason to start a commit"),
            )
        })
    }

    /// Parses the next `name=value`, which must have this name.
    fn value<T: FromStr>(&mut self, name: &str) -> Result<T, TraceError> {
        let start = self.at;
        let (found, text) = self.pair()?;
        if found != name {
            return Err(self.error_at(start, &format!("expected {name}=, found {found}=")));
        }
        text.parse()
            .map_err(|_| self.error_at(start, &format!("'{text}' is not a value of {name}")))
    }

    fn pair(&mut self) -> Result<(&'a str, &'a str), TraceError> {
        let rest = self.rest();
        let word = rest.split(' ').next().unwrap_or("");
        let pair = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| self.error("expected name=value"))?;
        // Skip the word and one space, if there is more.
        self.at = (self.at + word.len() + 1).min(self.line.len());
        Ok(pair)
    }

    fn end(&self) -> Result<(), TraceError> {
        if self.rest().trim_end().is_empty() {
            return Ok(());
        }
        Err(self.error("expected the end of the line"))
    }

    fn number_up_to<T: TryFrom<u64>>(&mut self, mark: &str, what: &str) -> Result<T, TraceError> {
        let start = self.at;
        let text = self.up_to(mark, what)?;
        let end = self.at;
        self.at = start;
        let number = self.digits(text, what)?;
        let number = T::try_from(number).map_err(|_| self.error(&format!("expected {what}")))?;
        self.at = end;
        Ok(number)
    }

    fn digits(&self, text: &str, what: &str) -> Result<u64, TraceError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.error(&format!("expected {what}")));
        }
        text.parse()
            .map_err(|_| self.error(&format!("{text} is too large")))
    }

    /// Returns the text before `mark` and moves past it.
    fn up_to(&mut self, mark: &str, what: &str) -> Result<&'a str, TraceError> {
        let rest = self.rest();
        let end = rest
            .find(mark)
            .ok_or_else(|| self.error(&format!("expected {what}")))?;
        self.at += end + mark.len();
        Ok(&rest[..end])
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn error(&self, what: &str) -> TraceError {
        self.error_at(self.at, what)
    }

    fn error_at(&self, at: usize, what: &str) -> TraceError {
        TraceError::Syntax {
            line: self.line_number,
            column: at + 1,
            what: what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Record {
        parse_line(line, 1).unwrap().unwrap()
    }

    fn error(line: &str) -> String {
        parse_line(line, 7).unwrap_err().to_string()
    }

    #[test]
    fn a_commit() {
        let record = parsed(
            "     jbd2/sda1-8-214     [003] ..... 12.345678: luc_commit: dev=259:0 tid=5 events=4 setpoint_events=4 held_ns=81000 reason=setpoint steer=1",
        );
        assert_eq!((record.task.as_str(), record.pid), ("jbd2/sda1-8", 214));
        assert_eq!((record.cpu, record.time_ns), (3, 12_345_678_000));
        let Event::Commit {
            dev, reason, steer, ..
        } = record.event
        else {
            panic!("{record:?}");
        };
        assert_eq!(
            (dev.to_string().as_str(), reason, steer),
            ("259:0", Reason::Setpoint, true)
        );
    }

    #[test]
    fn odd_tasks_and_options() {
        for (head, task, pid) in [
            ("           <...>-9       [000] d..2.", "<...>", 9),
            ("  kjournald-12 [000] .....", "kjournald", 12),
            (
                "a b: luc_commit:-77      [000] .....",
                "a b: luc_commit:",
                77,
            ),
            (
                " x [000] ..... 3-77      [000] .....",
                "x [000] ..... 3",
                77,
            ),
            ("            bash-7       (      7) [000] .....", "bash", 7),
            ("            bash-7       (-------) [000] .....", "bash", 7),
            ("          a-b-c-7       [000]", "a-b-c", 7),
        ] {
            for time in ["1.000000", "1000000000"] {
                let record = parsed(&format!(
                    "{head} {time}: luc_write_delay: dev=8:1 block=18446744073709551615 delay_ns=7"
                ));
                assert_eq!((record.task.as_str(), record.pid), (task, pid), "{head}");
                assert_eq!(record.time_ns, 1_000_000_000);
            }
        }
    }

    #[test]
    fn losses_and_lines_of_others() {
        assert_eq!(
            parsed("CPU:2 [LOST 123 EVENTS]"),
            Record::lost(2, Some(123))
        );
        assert_eq!(parsed("CPU:0 [LOST EVENTS]"), Record::lost(0, None));
        for line in [
            "",
            "  ",
            "# tracer: nop",
            "##### CPU 1 buffer started ####",
            "            bash-7       [000] ..... 1.000000: sched_switch: prev_comm=a",
        ] {
            assert_eq!(parse_line(line, 1).unwrap(), None, "{line}");
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(
            error("garbage"),
            "line 7, column 1: no CPU in brackets: this is not an ftrace line"
        );
        let head = "            bash-7       [000] ..... 1.000000: ";
        let commit = "luc_commit: dev=8:1 tid=1 events=1 setpoint_events=1 held_ns=0 reason=hold";
        let decision = "luc_decision: dev=8:1 tid=1";
        for (line, part) in [
            (
                "luc_write_delay: dev=8:1 block=x delay_ns=1".to_owned(),
                "line 7, column 73: 'x' is not a value of block",
            ),
            (
                format!("{commit} steer=1"),
                "line 7, column 111: 'hold' is not a reason to start a commit",
            ),
            (format!("{decision} step=0"), "lacks the field batching"),
            (format!("{decision} step=0 step=0"), "step appears twice"),
            (format!("{decision} colour=0"), "no field colour"),
        ] {
            let error = error(&format!("{head}{line}"));
            assert!(error.contains(part), "{error}");
        }
        // In mode observe, a commit may start with 'hold'.
        let observed = parsed(&format!("{head}{commit} steer=0"));
        let hold = Reason::Hold;
        assert!(
            matches!(observed.event, Event::Commit { reason, steer: false, .. } if reason == hold)
        );
        for line in [
            "CPU:x [LOST 1 EVENTS]",
            "CPU:1 [LOST x EVENTS]",
            "CPU:1",
            "CPU:99999999999 [LOST 1 EVENTS]",
            "a-1 [x] ..... 1.0: luc_commit: ",
            "a-1 [0] ..... 1.x: luc_commit: ",
            "a-1 [0] ..... 99999999999999999.0: luc_commit: ",
            "a-x [0] ..... 1.0: luc_commit: ",
            "a-1 [0] ..... : luc_commit: ",
        ] {
            assert!(parse_line(line, 1).is_err(), "{line}");
        }
    }
}
