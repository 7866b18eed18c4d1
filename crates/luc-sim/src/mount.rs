//! How the file system is mounted.

use std::str::FromStr;

use thiserror::Error;

/// The options of ext4 that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Reading a file changes its access time, if that is not later than its last change.
    pub relatime: bool,
    /// New blocks count as unwritten until their data is on the disk, and no commit waits for that
    /// (`dioread_nolock`, the default since 5.6). Without it a commit waits for the data of its new
    /// blocks, as all did before.
    pub unwritten: bool,
}

impl Default for Mount {
    fn default() -> Self {
        Self {
            relatime: true,
            unwritten: true,
        }
    }
}

/// Why a text is no list of mount options.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "mount option {option}: the simulator has relatime, noatime, dioread_nolock and dioread_lock; \
     leave it out"
)]
pub struct NoMount {
    option: String,
}

impl FromStr for Mount {
    type Err = NoMount;

    /// Options with commas between them; none: as ext4 is mounted.
    fn from_str(text: &str) -> Result<Self, NoMount> {
        let mut mount = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            match option {
                "relatime" => mount.relatime = true,
                "noatime" => mount.relatime = false,
                "dioread_nolock" => mount.unwritten = true,
                "dioread_lock" => mount.unwritten = false,
                _ => {
                    return Err(NoMount {
                        option: option.to_owned(),
                    });
                }
            }
        }
        Ok(mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_their_order() {
        assert_eq!("".parse(), Ok(Mount::default()));
        let both: Mount = "noatime,dioread_lock".parse().unwrap();
        assert!(!both.relatime && !both.unwritten);
        assert_eq!("noatime,relatime".parse(), Ok(Mount::default()));
        let error = "data=journal".parse::<Mount>().unwrap_err().to_string();
        assert!(error.contains("data=journal"), "{error}");
    }
}
