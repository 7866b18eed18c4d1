//! Block device numbers, as the kernel prints them.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The number of a block device; it tells which file system a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dev {
    /// Number of the driver.
    pub major: u32,
    /// Number of the device within the driver.
    pub minor: u32,
}

/// The error for a text that is not a device number.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{0}' is not a device number; write MAJOR:MINOR, as in 259:0")]
pub struct DevError(pub String);

impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for Dev {
    type Err = DevError;

    fn from_str(text: &str) -> Result<Self, DevError> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        };
        let (major, minor) = text.split_once(':').unwrap_or_default();
        match (number(major), number(minor)) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(DevError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_the_rest_is_refused() {
        let dev: Dev = "259:17".parse().unwrap();
        assert_eq!((dev.major, dev.minor), (259, 17));
        assert_eq!(dev.to_string(), "259:17");
        for text in ": 1 1: :1 1:2:3 +1:2 -1:2 1:4294967296 a:b"
            .split(' ')
            .chain([""])
        {
            assert!(text.parse::<Dev>().is_err(), "{text}");
        }
    }
}
