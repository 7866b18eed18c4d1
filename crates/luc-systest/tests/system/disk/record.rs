//! A record of the disk, read from its text, and what follows from it.

use std::collections::BTreeMap;

use luc_disk::{Model, Op, Params, Queue, Request};

/// Sectors of 512 bytes in a MiB.
const MIB_SECTORS: u64 = 2048;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Accepted(Kind),
    Done { accepted: usize },
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Discard,
    Flush,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    time_ns: u64,
    event: Event,
    sector: u64,
    bytes: u32,
    fua: bool,
}

/// All entries, by index.
pub struct Record {
    entries: Vec<Entry>,
}

impl Record {
    /// Lines `INDEX TIME_NS OPERATION SECTOR BYTES [fua] [of INDEX]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = parse_line(line).ok_or_else(|| format!("line {line:?}"))?;
            if line.split(' ').next() != Some(&index.to_string()) {
                return Err(format!("entry {index} is {line:?}"));
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    /// When each request was done, by the entry that accepted it.
    pub fn ends_ns(&self) -> BTreeMap<usize, u64> {
        let ends = self.entries.iter().filter_map(|entry| match entry.event {
            Event::Done { accepted } => Some((accepted, entry.time_ns)),
            _ => None,
        });
        ends.collect()
    }

    /// When the model completes each request, if it arrives as recorded, in the order of their
    /// entries. Knobs are lines `NAME VALUE`, the size in MiB among them.
    pub fn ends_of_model_ns(&self, knobs: &str) -> Result<Vec<u64>, String> {
        let (params, sectors) = parse_knobs(knobs)?;
        let mut queue = Queue::new(Model::new(params, sectors));
        let mut ends = BTreeMap::new();
        for entry in &self.entries {
            let Event::Accepted(kind) = entry.event else {
                continue;
            };
            // Requests that are done by then make room first.
            while let Some(done) = queue.clone().complete() {
                if done.done_ns > entry.time_ns {
                    break;
                }
                queue.complete();
                ends.insert(done.id, done.done_ns);
            }
            if !queue.idle_until(entry.time_ns) {
                return Err("the clock of the model ran ahead".into());
            }
            queue.submit(match kind {
                Kind::Write if entry.fua => Request::write_fua(entry.sector, entry.bytes),
                Kind::Write => Request::new(Op::Write, entry.sector, entry.bytes),
                Kind::Flush => Request::flush(),
                Kind::Discard => return Err("the model knows no discards".into()),
            });
        }
        while let Some(done) = queue.complete() {
            ends.insert(done.id, done.done_ns);
        }
        Ok(ends.into_values().collect())
    }
}

fn parse_line(line: &str) -> Option<Entry> {
    let mut words = line.split(' ').skip(1);
    let time_ns = words.next()?.parse().ok()?;
    let operation = words.next()?;
    let sector = words.next()?.parse().ok()?;
    let bytes = words.next()?.parse().ok()?;
    let rest: Vec<_> = words.collect();
    let (fua, rest) = match rest.split_first() {
        Some((&"fua", rest)) => (true, rest),
        _ => (false, &rest[..]),
    };
    let event = match (operation, rest) {
        ("write", []) => Event::Accepted(Kind::Write),
        ("discard", []) => Event::Accepted(Kind::Discard),
        ("flush", []) => Event::Accepted(Kind::Flush),
        ("mark", []) => Event::Mark,
        ("write-done" | "discard-done" | "flush-done", ["of", index]) => Event::Done {
            accepted: index.parse().ok()?,
        },
        _ => return None,
    };
    Some(Entry {
        time_ns,
        event,
        sector,
        bytes,
        fua,
    })
}

fn parse_knobs(text: &str) -> Result<(Params, u64), String> {
    let mut params = Params::default();
    let mut sectors = 0;
    for line in text.lines() {
        let (name, value) = line
            .split_once(' ')
            .ok_or_else(|| format!("knob {line:?}"))?;
        let value: i64 = value.parse().map_err(|e| format!("knob {line:?}: {e}"))?;
        if name == "size_mib" {
            sectors = value.unsigned_abs() * MIB_SECTORS;
        } else {
            params.set(name, value).map_err(|e| e.to_string())?;
        }
    }
    Ok((params, sectors))
}

/// How much there was to judge.
#[derive(Debug, Default)]
pub struct Judged {
    /// Power cuts looked at.
    pub states: usize,
    /// Cuts at which a sector could hold one of several writes.
    pub mixed: usize,
    /// Writes accepted while another to one of their sectors was not durable.
    pub overlaps: usize,
    /// Writes done when a newer one to one of their sectors was durable.
    pub superseded: usize,
}

/// Which writes each sector could hold, for each cut of a record.
pub struct Sectors<'a> {
    record: &'a Record,
    /// The content that each accepted write or discard leaves, by entry.
    ids: BTreeMap<usize, String>,
}

/// Entries whose data a sector may hold at a cut; `None` for the data from before.
struct Possible {
    durable: Option<usize>,
    /// Newer ones, oldest first, that may have reached the medium.
    pending: Vec<usize>,
}

impl<'a> Sectors<'a> {
    pub fn new(record: &'a Record) -> Self {
        Self {
            record,
            ids: BTreeMap::new(),
        }
    }

    /// Judges lines `CUT MODE ID...`, an id for each sector, `z` for zeros.
    pub fn judge(mut self, states: &str) -> Result<Judged, String> {
        let mut judged = Judged::default();
        let lines: Vec<Vec<&str>> = states.lines().map(|l| l.split(' ').collect()).collect();
        self.learn_ids(&lines)?;
        for words in &lines {
            let [cut, mode, found @ ..] = &words[..] else {
                return Err(format!("state {words:?}"));
            };
            let cut = cut.parse().map_err(|e| format!("cut {cut:?}: {e}"))?;
            judged.states += 1;
            judged.mixed += usize::from(self.judge_cut(cut, mode, found)?);
        }
        for (index, entry) in self.record.entries.iter().enumerate() {
            let mut sectors = entry.sector..entry.sector + u64::from(entry.bytes) / 512;
            match entry.event {
                Event::Accepted(Kind::Write | Kind::Discard) => {
                    let over = |sector| !self.possible(index, sector).pending.is_empty();
                    judged.overlaps += usize::from(sectors.any(over));
                }
                Event::Done { accepted } => {
                    let under = |sector| self.possible(index, sector).durable > Some(accepted);
                    judged.superseded += usize::from(sectors.any(under));
                }
                _ => {}
            }
        }
        Ok(judged)
    }

    /// Learns a write's id from the cut right after it, if all writes survive.
    fn learn_ids(&mut self, lines: &[Vec<&str>]) -> Result<(), String> {
        for (index, entry) in self.record.entries.iter().enumerate() {
            let id = match entry.event {
                Event::Accepted(Kind::Discard) => "z".to_owned(),
                Event::Accepted(Kind::Write) => {
                    let cut = (index + 1).to_string();
                    let line = lines.iter().find(|w| w[0] == cut && w[1] == "all");
                    let at = 2 + usize::try_from(entry.sector).unwrap_or(usize::MAX - 2);
                    let id = line.and_then(|words| words.get(at));
                    (*id.ok_or_else(|| format!("no state after entry {index}"))?).to_owned()
                }
                _ => continue,
            };
            let used = id != "z" && (id == "0" || self.ids.values().any(|other| *other == id));
            if used {
                return Err(format!(
                    "entry {index} does not show: {id} was there before"
                ));
            }
            self.ids.insert(index, id);
        }
        Ok(())
    }

    fn possible(&self, cut: usize, sector: u64) -> Possible {
        let mut durable = None;
        let mut pending: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for (index, entry) in self.record.entries[..cut].iter().enumerate() {
            let end = entry.sector + u64::from(entry.bytes) / 512;
            match entry.event {
                Event::Accepted(Kind::Write | Kind::Discard)
                    if (entry.sector..end).contains(&sector) =>
                {
                    pending.insert(index, None);
                }
                Event::Done { accepted } => {
                    let flush = self.record.entries[accepted].event == Event::Accepted(Kind::Flush);
                    if let Some(done) = pending.get_mut(&accepted) {
                        *done = Some(index);
                        if entry.fua {
                            durable = durable.max(Some(accepted));
                        }
                    }
                    let covered = pending
                        .iter()
                        .filter(|(_, done)| flush && done.is_some_and(|done| done < accepted));
                    durable = durable.max(covered.map(|(write, _)| *write).max());
                }
                _ => {}
            }
            // Older data never replaces newer data on the medium.
            pending.retain(|write, _| Some(*write) > durable);
        }
        Possible {
            durable,
            pending: pending.into_keys().collect(),
        }
    }

    fn id(&self, write: Option<usize>) -> &str {
        write.map_or("0", |write| &self.ids[&write])
    }

    /// Returns whether anything was undecided; fails on data that must not be there.
    fn judge_cut(&self, cut: usize, mode: &str, found: &[&str]) -> Result<bool, String> {
        if cut > self.record.entries.len() {
            return Err(format!("cut {cut} lies beyond the record"));
        }
        let mut undecided = false;
        for (sector, found) in found.iter().enumerate() {
            let possible = self.possible(cut, sector as u64);
            let newest = possible.pending.last().copied().or(possible.durable);
            undecided |= !possible.pending.is_empty();
            let good = match mode {
                "none" => *found == self.id(possible.durable),
                "all" => *found == self.id(newest),
                _ => {
                    let mut may = possible.pending.iter().map(|write| self.id(Some(*write)));
                    *found == self.id(possible.durable) || may.any(|id| id == *found)
                }
            };
            if !good {
                return Err(format!(
                    "cut {cut} {mode}, sector {sector}: {found}, durable is {} ({:?}), pending {:?}",
                    self.id(possible.durable),
                    possible.durable,
                    possible.pending
                ));
            }
        }
        Ok(undecided)
    }
}
