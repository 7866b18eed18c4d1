//! Content of a sector: a label that names its owner, and 472 bytes that follow from the label.
//!
//! The judge recreates the whole sector from its label: it needs no copy of the data, and checks
//! every single bit.

use luc_base::random::{mix, next};

/// Bytes of a sector, the unit in which disks keep or lose data.
pub const SECTOR_BYTES: usize = 512;
/// The same, for offsets in files.
pub const SECTOR: u64 = SECTOR_BYTES as u64;
/// Bytes of the label at the beginning of a sector.
pub const LABEL_BYTES: usize = 40;

const MAGIC: u64 = u64::from_le_bytes(*b"LUCsectr");

/// Owner and version of a sector's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The run that wrote it.
    pub session: u64,
    pub file: u32,
    /// The sector's place in the file.
    pub sector: u32,
    /// Grows with every write of a thread.
    pub version: u64,
}

impl Label {
    fn words(&self) -> [u64; 4] {
        let place = u64::from(self.file) | u64::from(self.sector) << 32;
        [MAGIC, self.session, place, self.version]
    }

    fn hash(words: &[u64; 4]) -> u64 {
        words.iter().fold(0, |hash, word| mix(hash ^ word))
    }

    /// Makes the sector.
    pub fn fill(&self, sector: &mut [u8; SECTOR_BYTES]) {
        let words = self.words();
        let hash = Self::hash(&words);
        let mut state = hash;
        let body = std::iter::from_fn(|| Some(next(&mut state)));
        let all = words.into_iter().chain([hash]).chain(body);
        for (bytes, word) in sector.chunks_exact_mut(8).zip(all) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The label of a sector, if it has one.
    pub fn read(bytes: &[u8]) -> Option<Label> {
        let mut words = [0; 5];
        let label = bytes.get(..LABEL_BYTES)?;
        for (word, bytes) in words.iter_mut().zip(label.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [magic, session, place, version, hash] = words;
        let known = magic == MAGIC && hash == Self::hash(&[magic, session, place, version]);
        known.then_some(Label {
            session,
            file: u32::try_from(place & 0xffff_ffff).ok()?,
            sector: u32::try_from(place >> 32).ok()?,
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label {
        session: 1,
        file: 2,
        sector: 3,
        version: 4,
    };

    #[test]
    fn a_sector_tells_its_label_and_a_changed_one_does_not() {
        let mut sector = [0; SECTOR_BYTES];
        LABEL.fill(&mut sector);
        assert_eq!(Label::read(&sector), Some(LABEL));
        for bit in 0..LABEL_BYTES * 8 {
            let mut changed = sector;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Label::read(&changed), None, "bit {bit}");
        }
        assert_eq!(Label::read(&sector[..LABEL_BYTES - 1]), None);
        assert_eq!(Label::read(&[0; SECTOR_BYTES]), None);
    }

    #[test]
    fn sectors_of_different_labels_differ_everywhere() {
        let fill = |label: Label| {
            let mut sector = [0; SECTOR_BYTES];
            label.fill(&mut sector);
            sector
        };
        let one = fill(LABEL);
        let others = [
            Label {
                session: 9,
                ..LABEL
            },
            Label { file: 9, ..LABEL },
            Label { sector: 9, ..LABEL },
            Label {
                version: 9,
                ..LABEL
            },
        ];
        for other in others.map(fill) {
            let same = one
                .iter()
                .zip(&other)
                .skip(LABEL_BYTES)
                .filter(|(a, b)| a == b);
            assert!(same.count() < 20, "the bodies are alike");
        }
    }
}
