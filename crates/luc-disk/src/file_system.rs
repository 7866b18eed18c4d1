//! Sizes that ext4 derives from a disk's size: mke2fs's rules for blocks of 4 KiB, and the lab's
//! own rule for the journal. Sizes are in MiB.

/// Size of a disk if its text gives none.
pub const SIZE_MIB_DEFAULT: u32 = 4096;
/// Journal of a file system on a disk of today's size. mke2fs would give the lab's small disks a
/// small journal, and a benchmark would time its checkpoints.
pub const JOURNAL_MIB: u32 = 256;
/// Smaller disks keep the journal that mke2fs chooses.
pub const JOURNAL_DISK_MIB_MIN: u32 = 2048;
/// On smaller disks mke2fs makes blocks of 1 KiB.
pub const SMALL_DISK_MIB: u32 = 512;
/// On smaller disks mke2fs makes a journal of 16 MiB, from this size on one of 32 MiB.
const JOURNAL_32_DISK_MIB_MIN: u32 = 1024;
/// mke2fs makes an inode for each 16 KiB.
const INODES_IN_A_MIB: u64 = 64;

/// Size of the journal of the lab's ext4 on a disk of this size; `None` if ext4 has blocks of 1 KiB
/// there.
pub fn journal_mib(disk_mib: u32) -> Option<u32> {
    match disk_mib {
        ..SMALL_DISK_MIB => None,
        SMALL_DISK_MIB..JOURNAL_32_DISK_MIB_MIN => Some(16),
        JOURNAL_32_DISK_MIB_MIN..JOURNAL_DISK_MIB_MIN => Some(32),
        _ => Some(JOURNAL_MIB),
    }
}

/// Returns how many files an ext4 on a disk of this size can hold.
pub fn inodes(disk_mib: u32) -> u64 {
    u64::from(disk_mib) * INODES_IN_A_MIB
}

/// Parses a size with its unit: `512M`, `4G`.
pub fn parse_size_mib(text: &str) -> Option<u32> {
    let (number, scale) = match text.strip_suffix('M') {
        Some(number) => (number, 1),
        None => (text.strip_suffix('G')?, 1024),
    };
    number.parse::<u32>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes as mke2fs 1.47 chooses them.
    #[test]
    fn journals_follow_from_sizes() {
        let sizes = [511, 512, 1023, 1024, 2047, 2048, SIZE_MIB_DEFAULT];
        let journals = [
            None,
            Some(16),
            Some(16),
            Some(32),
            Some(32),
            Some(256),
            Some(256),
        ];
        assert_eq!(sizes.map(journal_mib), journals);
        assert_eq!(inodes(512), 32_768);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size_mib("512M"), Some(512));
        assert_eq!(parse_size_mib("4G"), Some(4096));
        for text in ["", "M", "512", "1.5G", "-1M", "4194304G"] {
            assert_eq!(parse_size_mib(text), None, "{text}");
        }
    }
}
