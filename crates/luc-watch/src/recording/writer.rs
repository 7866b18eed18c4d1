//! The file of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter};

use luc_control::Dev;
use luc_host::layout::Layouts;
use luc_host::{System, process};
use luc_model::Totals;
use luc_trace::{Event, Header, SPAN_BYTES, Span, SpanKind, Writer, parse_line};

use super::slowest::Slowest;
use crate::LossCauses;

/// Largest buffer, KiB.
pub const BUFFER_KIB_MAX: u32 = 1 << 20;

/// Most blocks of metadata whose content is recorded.
const BLOCKS_MAX: usize = 1 << 16;

/// A recording and what it holds so far.
pub struct RecordingWriter {
    writer: Writer<BufWriter<File>>,
    recorded: Recorded,
    slowest: Slowest,
    /// Numbers of the control groups that tasks were in.
    groups: BTreeSet<u64>,
    /// Blocks of metadata on which tasks waited, and those of them that are not written yet.
    blocks: BTreeSet<(Dev, u64)>,
    new_blocks: BTreeSet<(Dev, u64)>,
    layouts: Layouts,
}

impl RecordingWriter {
    pub fn new(file: File, header: &Header) -> io::Result<Self> {
        Ok(RecordingWriter {
            writer: Writer::new(BufWriter::new(file), header)?,
            recorded: Recorded::default(),
            slowest: Slowest::default(),
            groups: BTreeSet::new(),
            blocks: BTreeSet::new(),
            new_blocks: BTreeSet::new(),
            layouts: Layouts::default(),
        })
    }

    /// Takes a line of ftrace. Keeps a line that cannot be parsed as it is; the recording's reader
    /// reports it.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        if let Ok(Some(record)) = parse_line(text.trim_end(), 0) {
            self.recorded.totals.event(&record.event);
            if let Event::Lost { events } = record.event {
                self.recorded.lines_lost += events.unwrap_or(1);
            }
        }
        self.writer.raw_line(line)
    }

    pub fn spans(&mut self, spans: &[[u8; SPAN_BYTES]]) -> io::Result<()> {
        for span in spans {
            let known = Span::from_bytes(span);
            if known.is_none_or(|span| span.is_whole()) {
                let kind = u16::from_le_bytes([span[80], span[81]]);
                self.recorded.totals.span(kind);
            }
            match known {
                Some(task) if task.kind == SpanKind::Task => _ = self.groups.insert(task.object),
                Some(sync) if sync.kind.is_file_sync() => self.slowest.meet(&sync),
                Some(wait) if self.blocks.len() < BLOCKS_MAX => {
                    let block = wait.waited_block();
                    let new = block.filter(|block| self.blocks.insert(*block));
                    self.new_blocks.extend(new);
                }
                _ => {}
            }
        }
        self.writer.raw_spans(spans)
    }

    /// Records how many spans were lost, and the possible causes.
    pub fn spans_lost(&mut self, spans: u64, causes: LossCauses) -> io::Result<()> {
        if spans == 0 {
            return Ok(());
        }
        self.recorded.spans_lost += spans;
        self.recorded.causes = causes;
        self.writer.spans_lost(spans)
    }

    /// Records what ftrace lost, by processor, beyond the losses that its lines reported.
    pub fn lines_lost(&mut self, losses: &[(u32, u64)]) -> io::Result<()> {
        let all: u64 = losses.iter().map(|(_, lost)| lost).sum();
        let told = self.recorded.lines_lost;
        if let Some(silent) = all.checked_sub(told).filter(|lost| *lost > 0) {
            let cpu = losses.iter().max_by_key(|(_, lost)| *lost);
            self.writer
                .lost(cpu.map_or(0, |(cpu, _)| *cpu), Some(silent))?;
            self.recorded.lines_lost = all;
        }
        Ok(())
    }

    /// Records the paths of the control groups that tasks were in.
    pub fn cgroups(&mut self, known: &BTreeMap<u64, String>) -> io::Result<()> {
        for id in &self.groups {
            if let Some(path) = known.get(id) {
                self.writer.cgroup(*id, path)?;
            }
        }
        Ok(())
    }

    /// Records what the blocks hold on which tasks have waited since the last call, because a
    /// directory may be removed.
    pub fn blocks(&mut self, system: &dyn System) -> io::Result<()> {
        let new = std::mem::take(&mut self.new_blocks);
        for ((dev, number), block) in self.layouts.blocks(system, &new) {
            self.writer.block(dev, number, &block)?;
        }
        Ok(())
    }

    /// Records the names of the files of the slowest syncs since the last call, because their
    /// processes are likely to still have them open.
    pub fn files(&mut self, system: &dyn System) -> io::Result<()> {
        let mut by_process: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
        for sync in self.slowest.take() {
            by_process.entry(sync.tgid).or_default().push(sync);
        }
        for (pid, syncs) in by_process {
            let wanted = syncs.iter().map(|sync| (sync.dev, sync.object)).collect();
            let open = process::open_files(system, pid, &wanted);
            for sync in &syncs {
                if let Some(path) = open.get(&(sync.dev, sync.object)) {
                    self.writer.file(sync, path)?;
                }
            }
        }
        Ok(())
    }

    /// Writes buffered entries to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    pub fn finish(self) -> io::Result<Recorded> {
        self.writer.finish()?;
        Ok(self.recorded)
    }
}

/// The contents of a recording.
#[derive(Default)]
pub struct Recorded {
    pub totals: Totals,
    lines_lost: u64,
    spans_lost: u64,
    /// Why spans were lost.
    causes: LossCauses,
}

impl Recorded {
    /// Number of events that are missing.
    pub fn lost(&self) -> u64 {
        self.lines_lost.saturating_add(self.spans_lost)
    }

    /// Says what to do if something was lost, with buffers of this size.
    pub fn advice(&self, buffer_kib: u32) -> String {
        let mut causes = self.causes;
        // Lines are lost only for lack of room.
        causes.ring |= self.lines_lost > 0;
        let larger_kib = buffer_kib.saturating_mul(4).min(BUFFER_KIB_MAX);
        causes.advice(&format!("--buffer-kib {larger_kib}"))
    }
}
