//! The kernel's log during a cut.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

/// Most lines kept: the last ones name the failure.
const LINES_MAX: usize = 4;
/// A record of the kernel's log fits in this, bytes.
const RECORD_BYTES: usize = 8192;

/// The kernel's log from some moment on; empty without the right to read it.
pub(crate) struct KernelLog(Option<File>);

impl KernelLog {
    /// Starts reading at this moment.
    pub(crate) fn from_now() -> Self {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/kmsg").ok();
        Self(file.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file).ok()))
    }

    /// The last lines since then, joined.
    pub(crate) fn said(mut self) -> Option<String> {
        let file = self.0.as_mut()?;
        let mut lines = Vec::new();
        let mut record = [0; RECORD_BYTES];
        loop {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(bytes) => lines.extend(message(&record[..bytes])),
                // The next record was overwritten: go on with the one after it.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        lines.drain(..lines.len().saturating_sub(LINES_MAX));
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// The message of a record: between the semicolon that ends its head, and the end of the line.
fn message(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    let line = text.lines().next()?;
    line.split_once(';').map(|(_, said)| said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn records_are_taken_apart() {
        let record = b"4,312,3553776,-;EXT4-fs (lucdisk1): bad; worse\n SUBSYSTEM=block\n";
        let said = message(record);
        assert_eq!(said.as_deref(), Some("EXT4-fs (lucdisk1): bad; worse"));
        assert_eq!(message(b""), None);
        assert_eq!(message(b"no head\n"), None);
    }
}
