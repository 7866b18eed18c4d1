//! The way back from the guest: a piece of memory that host and guest share
//! (QEMU's `ivshmem-plain`). The guest writes it with plain stores, which cost
//! no interrupt and no host-timed event, so virtual time does not depend on
//! when the host looks. Needs no driver: the guest maps the PCI resource.
//!
//! Layout, little endian: magic, state, cells done, cells in all (u32 each),
//! lengths of the payload, of standard output and of standard error (u64 each),
//! then a NUL-ended line of text. The payload (a cpio archive) begins at
//! [`PAYLOAD_AT`]; the outputs of the step under way begin at [`OUTPUTS_AT`].

/// First word of a channel the guest has opened.
pub const MAGIC: u32 = 0x4c55_4331;
/// Where the payload begins, in bytes.
pub const PAYLOAD_AT: usize = 4096;
/// Size of the shared memory in bytes; PCI wants a power of two. Pages never
/// written cost nothing.
pub const CHANNEL_BYTES: usize = 256 << 20;
/// Largest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = OUTPUTS_AT[0] - PAYLOAD_AT;
/// Where standard output and standard error begin, in bytes.
pub const OUTPUTS_AT: [usize; 2] = [
    CHANNEL_BYTES - 2 * OUTPUT_BYTES_MAX,
    CHANNEL_BYTES - OUTPUT_BYTES_MAX,
];
/// The most of each output that the channel takes, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// PCI vendor and device of the shared memory as sysfs prints them.
pub const PCI_ID: (&str, &str) = ("0x1af4", "0x1110");

const TEXT_AT: usize = 40;

/// State of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The guest has not opened the channel.
    Booting = 0,
    /// Process 1 runs.
    Running = 1,
    /// The payload is complete.
    Done = 2,
}

/// The head of the channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub state: State,
    /// Cells finished.
    pub done: u32,
    /// Cells in all.
    pub total: u32,
    /// Length of the payload in bytes.
    pub payload_len: u64,
    /// Lengths of standard output and standard error of the step under way, in bytes.
    pub output_lens: [u64; 2],
    /// One short line: the cell and step at work.
    pub text: String,
}

impl Head {
    /// Reads a head; unwritten memory reads as [`State::Booting`].
    pub fn decode(bytes: &[u8; PAYLOAD_AT]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let state = match (word(0), word(4)) {
            (MAGIC, 1) => State::Running,
            (MAGIC, 2) => State::Done,
            _ => State::Booting,
        };
        let text = &bytes[TEXT_AT..];
        let text_len = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Self {
            state,
            done: word(8),
            total: word(12),
            payload_len: long(16),
            output_lens: [long(24), long(32)],
            text: String::from_utf8_lossy(&text[..text_len]).into_owned(),
        }
    }

    /// Bytes to store at the start of the channel; the text is cut to fit.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TEXT_AT + self.text.len() + 1);
        for word in [MAGIC, self.state as u32, self.done, self.total] {
            bytes.extend(word.to_le_bytes());
        }
        for long in [self.payload_len, self.output_lens[0], self.output_lens[1]] {
            bytes.extend(long.to_le_bytes());
        }
        let mut text_len = self.text.len().min(PAYLOAD_AT - TEXT_AT - 1);
        while !self.text.is_char_boundary(text_len) {
            text_len -= 1;
        }
        bytes.extend(&self.text.as_bytes()[..text_len]);
        bytes.push(0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_survives_the_way() {
        let head = Head {
            state: State::Running,
            done: 3,
            total: 7,
            payload_len: 0x1_0000_0002,
            output_lens: [3, 0x4_0000_0000],
            text: "cell x".into(),
        };
        let mut page = [0; PAYLOAD_AT];
        assert_eq!(Head::decode(&page).state, State::Booting);
        let bytes = head.encode();
        page[..bytes.len()].copy_from_slice(&bytes);
        assert_eq!(Head::decode(&page), head);
    }

    #[test]
    fn long_text_is_cut() {
        let head = Head {
            state: State::Done,
            done: 0,
            total: 0,
            payload_len: 0,
            output_lens: [0; 2],
            text: "\u{e9}".repeat(PAYLOAD_AT),
        };
        assert!(head.encode().len() <= PAYLOAD_AT);
    }
}
