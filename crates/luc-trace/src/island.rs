//! Islands of binary spans in the text of a recording.
//!
//! A recording consists of lines of text, so that `grep` and `head` work on it. Spans come by the
//! hundred thousand and are binary: a line `#spans COUNT CRC` announces COUNT records of
//! [`SPAN_BYTES`] bytes, which a newline follows. The checksum covers the records.

use crate::span::SPAN_BYTES;

/// Largest number of spans in an island: a quarter of a mebibyte.
pub(crate) const SPANS_MAX: usize = 3000;
/// Start of the line that announces spans.
pub(crate) const SPANS: &str = "#spans ";
/// Start of the line with the number of lost spans.
pub(crate) const LOST: &str = "#lost ";
/// Start of the line of a control group: its number, its path.
pub(crate) const CGROUP: &str = "#cgroup ";
/// Start of the line of a synced file: its file system, its inode, the start of the sync, its path.
pub(crate) const FILE: &str = "#file ";
/// Start of the line of a block of metadata: its file system, its number, its words.
pub(crate) const BLOCK: &str = "#block ";
/// The last line of a complete recording.
pub(crate) const END: &str = "#end";

/// Returns the line that announces these records, with its newline.
pub(crate) fn announce(records: &[u8]) -> String {
    let count = records.len() / SPAN_BYTES;
    format!("{SPANS}{count} {:08x}\n", crc32fast::hash(records))
}

/// Parses the line that announces records: their number and their checksum.
pub(crate) fn announced(line: &str) -> Option<(usize, u32)> {
    let (count, crc) = line.strip_prefix(SPANS)?.split_once(' ')?;
    let digits = |text: &str, base: u32| text.chars().all(|c| c.is_digit(base));
    if !digits(count, 10) || crc.len() != 8 || !digits(crc, 16) {
        return None;
    }
    let count = count.parse().ok().filter(|n| (1..=SPANS_MAX).contains(n))?;
    Some((count, u32::from_str_radix(crc, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements() {
        let line = announce(&[7; 2 * SPAN_BYTES]);
        let (count, crc) = announced(line.trim_end()).unwrap();
        assert_eq!((count, crc), (2, crc32fast::hash(&[7; 2 * SPAN_BYTES])));
        for line in [
            "#spans",
            "#spans ",
            "#spans 1",
            "#spans 0 00000000",
            "#spans 3001 00000000",
            "#spans +1 00000000",
            "#spans 1 0000000g",
            "#spans 1 000000000",
            "#spans 1 +0000000",
            "#spans 99999999999999999999 00000000",
        ] {
            assert_eq!(announced(line), None, "{line}");
        }
    }
}
