//! The guest's answer: report, result files and kernel log in one archive in
//! shared memory, written after all measuring.

use std::fs::{self, File};
use std::io::{Read, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};

use super::OUT_ROOT;
use crate::image::cpio::{Archive, MODE_FILE};
use crate::machine::channel::{
    CHANNEL_BYTES, Head, OUTPUT_BYTES_MAX, OUTPUTS_AT, PAYLOAD_AT, PAYLOAD_BYTES_MAX, PCI_ID, State,
};
use crate::plan::{GuestReport, KERNEL_LOG_NAME, OUT_PREFIX, REPORT_NAME};
use crate::tools::files_below;

/// Space kept free for report and kernel log, however many result files there are.
const RESERVE_BYTES: usize = 64 << 20;

/// The shared memory as the guest sees it.
pub struct Channel {
    memory: *mut u8,
    head: Head,
}

impl Channel {
    /// Finds the PCI function and maps its memory.
    pub fn open() -> Result<Self, String> {
        let root = "/sys/bus/pci/devices";
        let path = fs::read_dir(root)
            .map_err(|e| format!("cannot list {root}: {e}"))?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| {
                let is = |name: &str, id: &str| {
                    fs::read_to_string(path.join(name)).is_ok_and(|text| text.trim() == id)
                };
                is("vendor", PCI_ID.0) && is("device", PCI_ID.1)
            })
            .ok_or("no shared memory device")?;
        // The device answers to memory accesses only once it is enabled.
        fs::write(path.join("enable"), "1")
            .map_err(|e| format!("cannot enable {}: {e}", path.display()))?;
        let path = path.join("resource2");
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel picks; nothing else
        // in this process knows it.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                CHANNEL_BYTES,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        }
        .map_err(|e| format!("cannot map {}: {e}", path.display()))?;
        // Device memory is mapped page by page, and each fork would copy and
        // drop all those entries: millions of instructions for every step.
        // SAFETY: the range is the mapping just made; no child uses it.
        unsafe { madvise(memory, CHANNEL_BYTES, Advice::LinuxDontFork) }
            .map_err(|e| format!("cannot keep {} from children: {e}", path.display()))?;
        Ok(Self {
            memory: memory.cast(),
            head: Head {
                state: State::Running,
                done: 0,
                total: 0,
                payload_len: 0,
                output_lens: [0; 2],
                text: String::new(),
            },
        })
    }

    /// Tells the host what the guest is doing.
    pub fn show(&mut self, state: State, done: usize, total: usize, text: &str) {
        let mut text = text.replace(['\n', '\0'], " ");
        text.truncate(
            text.char_indices()
                .nth(160)
                .map_or(text.len(), |(at, _)| at),
        );
        self.head.state = state;
        self.head.done = u32::try_from(done).unwrap_or(u32::MAX);
        self.head.total = u32::try_from(total).unwrap_or(u32::MAX);
        self.head.text = text;
        self.put_head();
    }

    /// Tells the host that a new step begins, which has put out nothing yet.
    pub fn begin_output(&mut self) {
        self.head.output_lens = [0; 2];
        self.put_head();
    }

    /// Tells the host what a step has put out since the last call, as far as there is room.
    pub fn tell_output(&mut self, paths: [&str; 2]) {
        for (place, path) in paths.into_iter().enumerate() {
            let told = self.head.output_lens[place];
            let room = (OUTPUT_BYTES_MAX as u64).saturating_sub(told);
            let mut bytes = Vec::new();
            let read = File::open(path).and_then(|mut file| {
                file.seek(SeekFrom::Start(told))?;
                file.take(room).read_to_end(&mut bytes)
            });
            if read.is_ok() {
                let at = usize::try_from(told).unwrap_or(0);
                self.put(OUTPUTS_AT[place] + at, &bytes);
                self.head.output_lens[place] += bytes.len() as u64;
            }
        }
        self.put_head();
    }

    fn put_head(&mut self) {
        self.put(0, &self.head.encode());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at + bytes.len() <= CHANNEL_BYTES,
            "answer is longer than the channel"
        );
        // SAFETY: the mapping is `CHANNEL_BYTES` long, the range was just checked,
        // and only this process writes it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(at), bytes.len());
        }
    }
}

/// Packs and sends everything.
pub fn send(channel: &mut Channel, mut report: GuestReport, total: usize) -> Result<(), String> {
    let done = report.cells.len();
    channel.show(State::Running, done, total, "collecting results");
    let log = kernel_log();
    let mut archive = Archive::default();
    let mut pack = |name: &str, data: &[u8]| {
        let added = archive.add(name, MODE_FILE | 0o644, data);
        added.map_err(|e| format!("cannot pack {name}: {e}"))
    };
    let mut room = PAYLOAD_BYTES_MAX - RESERVE_BYTES;
    let files = files_below(Path::new(OUT_ROOT)).unwrap_or_else(|error| {
        report.files_dropped.push(error.to_string());
        Vec::new()
    });
    for path in files {
        let name = path.strip_prefix(OUT_ROOT).unwrap_or(&path);
        let name = name.display().to_string();
        match fs::read(&path) {
            Ok(data) if data.len() + name.len() + 256 <= room => {
                room -= data.len() + name.len() + 256;
                pack(&format!("{OUT_PREFIX}{name}"), &data)?;
            }
            _ => report.files_dropped.push(name),
        }
    }
    let json = serde_json::to_vec(&report).map_err(|e| format!("cannot write the report: {e}"))?;
    pack(REPORT_NAME, &json)?;
    pack(KERNEL_LOG_NAME, log.as_bytes())?;
    let bytes = archive.finish().map_err(|e| format!("cannot pack: {e}"))?;
    if bytes.len() > PAYLOAD_BYTES_MAX {
        return Err(format!(
            "the results take {} MiB, but only {} fit; make the steps print less",
            bytes.len() >> 20,
            PAYLOAD_BYTES_MAX >> 20
        ));
    }
    channel.put(PAYLOAD_AT, &bytes);
    channel.head.payload_len = bytes.len() as u64;
    channel.show(State::Done, done, total, "done");
    Ok(())
}

/// The whole kernel log, one `[seconds] text` per line, as `dmesg` prints it.
fn kernel_log() -> String {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let mut text = String::new();
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open("/dev/kmsg");
    let Ok(mut file) = opened else {
        return text;
    };
    let mut record = vec![0; 16 << 10];
    loop {
        match file.read(&mut record) {
            Ok(0) => return text,
            Ok(len) => push_record(&mut text, &String::from_utf8_lossy(&record[..len])),
            // Records were overwritten while reading: continue with the oldest one left.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(_) => return text,
        }
    }
}

/// Adds one `level,sequence,microseconds,flags;text` record. Continuation
/// lines of its dictionary begin with a blank and are left out.
fn push_record(text: &mut String, record: &str) {
    use std::fmt::Write;
    let Some((head, body)) = record.split_once(';') else {
        return;
    };
    let time_us: u64 = head
        .split(',')
        .nth(2)
        .and_then(|t| t.parse().ok())
        .unwrap_or(0);
    for line in body.lines().filter(|line| !line.starts_with(' ')) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "[{:5}.{:06}] {line}",
            time_us / 1_000_000,
            time_us % 1_000_000
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_records_read_like_dmesg() {
        let mut text = String::new();
        push_record(
            &mut text,
            "6,339,5140900,-;NET: registered\n SUBSYSTEM=net\n",
        );
        push_record(&mut text, "damaged");
        assert_eq!(text, "[    5.140900] NET: registered\n");
    }
}
