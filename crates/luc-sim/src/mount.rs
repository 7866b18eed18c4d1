//! The mount options of the file system, and the kernel.

use std::str::FromStr;

use thiserror::Error;

use crate::kernel::{KERNELS, Kernel};

/// The kernel, and those mount options of ext4 that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount {
    pub kernel: &'static Kernel,
    /// Reading a file updates its access time if that is not later than its last change.
    pub relatime: bool,
    /// New blocks count as unwritten until their data is on the disk, and no commit waits for that
    /// (`dioread_nolock`, the default since 5.6, kernel commit 244adf6426ee). Otherwise a commit
    /// waits for the data of its new blocks, as in older kernels.
    pub unwritten: bool,
}

impl Default for Mount {
    fn default() -> Self {
        Self::by(&KERNELS[0])
    }
}

/// Why a text is not a list of mount options.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "mount option {option}: the simulator has relatime, noatime, dioread_nolock and dioread_lock; \
     leave it out"
)]
pub struct NoMount {
    option: String,
}

impl Mount {
    /// Returns the defaults of this kernel.
    const fn by(kernel: &'static Kernel) -> Self {
        Self {
            kernel,
            relatime: true,
            unwritten: kernel.unwritten,
        }
    }

    /// Parses options separated by commas; the others have this kernel's defaults.
    ///
    /// # Errors
    /// The simulator lacks an option.
    pub fn new(kernel: &'static Kernel, options: &str) -> Result<Self, NoMount> {
        let mut mount = Self::by(kernel);
        for option in options.split(',').filter(|option| !option.is_empty()) {
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

impl FromStr for Mount {
    type Err = NoMount;

    /// Parses options for the default kernel.
    fn from_str(options: &str) -> Result<Self, NoMount> {
        Self::new(&KERNELS[0], options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;

    #[test]
    fn options_are_read_in_their_order() {
        assert_eq!("".parse(), Ok(Mount::default()));
        let both: Mount = "noatime,dioread_lock".parse().unwrap();
        assert!(!both.relatime && !both.unwritten);
        assert_eq!("noatime,relatime".parse(), Ok(Mount::default()));
        let error = "data=journal".parse::<Mount>().unwrap_err().to_string();
        assert!(error.contains("data=journal"), "{error}");
    }

    #[test]
    fn kernels_have_defaults_of_their_own() {
        let old = kernel::named("3.4").unwrap();
        assert!(!Mount::new(old, "").unwrap().unwritten);
        assert!(Mount::new(old, "dioread_nolock").unwrap().unwritten);
        let error = kernel::named("2.6").unwrap_err().to_string();
        assert!(
            error.ends_with("no kernel 2.6; it has 6.12, 6.1, 3.4"),
            "{error}"
        );
    }
}
