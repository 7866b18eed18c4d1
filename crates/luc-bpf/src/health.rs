//! The state of every journal of ext4, as the kernel keeps it.

use crate::error::TracerError;
use crate::said;
use libbpf_rs::{Iter, Link, Object, ObjectBuilder};
use luc_control::Dev;
use std::io::Read as _;

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/health.bpf.o"));

/// Words of `struct luc_health` of `abi/luc_health.h`.
const WORDS: usize = 5;
/// `EXT4_FLAGS_SHUTDOWN`.
const EXT4_SHUTDOWN: u32 = 1 << 1;
/// `EXT4_FLAGS_EMERGENCY_RO`, since Linux 6.15 (commit f3054e53c2f3).
const EXT4_EMERGENCY_RO: u32 = 1 << 3;
/// `JBD2_ABORT`.
const JBD2_ABORT: u32 = 0x002;

/// The state of one journal and its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalState {
    /// Device of the file system.
    pub device: Dev,
    /// Whether the file system is frozen, or about to be.
    pub frozen: bool,
    /// Whether it was shut down by force, or by an error in Linux 6.12 (commit d3476f3dad4a) to
    /// 6.14 (until commit 8f984530c242 in 6.15).
    pub shut_down: bool,
    /// Whether it refuses writes after an error.
    pub emergency_read_only: bool,
    /// The error that aborted the journal; 0 if the kernel does not tell.
    pub aborted: Option<u32>,
}

impl JournalState {
    fn from_words(words: [u32; WORDS]) -> Self {
        let [device, frozen, ext4, journal, errno] = words;
        Self {
            device: luc_trace::decode(device),
            frozen: frozen != 0,
            shut_down: ext4 & EXT4_SHUTDOWN != 0,
            emergency_read_only: ext4 & EXT4_EMERGENCY_RO != 0,
            aborted: (journal & JBD2_ABORT != 0).then_some(errno),
        }
    }
}

/// Lists the journals of this machine, also those that are mounted only in other namespaces.
pub struct JournalLister {
    /// Owns the program.
    _object: Object,
    link: Link,
}

impl JournalLister {
    /// Loads the program that looks.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load() -> Result<Self, TracerError> {
        said::listen();
        let mut builder = ObjectBuilder::default();
        let open = builder
            .name("luc_health")
            .and_then(|builder| builder.open_memory(OBJECT));
        let object = open.and_then(libbpf_rs::OpenObject::load);
        let object = object.map_err(|error| TracerError::from_libbpf("loading", &error))?;
        let program = object.progs_mut().next();
        let link = program.map(|program| program.attach());
        let link = link.ok_or_else(|| TracerError::Unfit {
            what: "health".into(),
            why: "the object has no program".into(),
        })?;
        let link = link.map_err(|error| TracerError::from_libbpf("attaching", &error))?;
        Ok(Self {
            _object: object,
            link,
        })
    }

    /// The state of each journal at this moment.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub fn list(&self) -> Result<Vec<JournalState>, TracerError> {
        let unread = |why: String| TracerError::Read {
            what: "states of journals",
            why,
        };
        let mut list = Iter::new(&self.link).map_err(|error| unread(error.to_string()))?;
        let mut bytes = Vec::new();
        let read = list.read_to_end(&mut bytes);
        read.map_err(|error| unread(error.to_string()))?;
        Ok(parse(&bytes))
    }
}

fn parse(bytes: &[u8]) -> Vec<JournalState> {
    let words = bytes.chunks_exact(4).map(|word| {
        let word = word.try_into().unwrap_or_default();
        u32::from_ne_bytes(word)
    });
    let words: Vec<u32> = words.collect();
    let records = words.chunks_exact(WORDS);
    records
        .filter_map(|record| Some(JournalState::from_words(record.try_into().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let words = [
            254_u32 << 20 | 16,
            0,
            0,
            0x10,
            0,
            8 << 20,
            4,
            0b1010,
            0x12,
            5,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let device = |major, minor| Dev { major, minor };
        let sound = JournalState {
            device: device(254, 16),
            frozen: false,
            shut_down: false,
            emergency_read_only: false,
            aborted: None,
        };
        let unsound = JournalState {
            device: device(8, 0),
            frozen: true,
            shut_down: true,
            emergency_read_only: true,
            aborted: Some(5),
        };
        assert_eq!(parse(&bytes), [sound, unsound]);
    }

    #[test]
    fn a_record_is_as_long_as_the_program_makes_it() {
        let header = include_str!("../../../abi/luc_health.h");
        assert_eq!(header.matches("\tluc_u32 ").count(), WORDS);
    }
}
