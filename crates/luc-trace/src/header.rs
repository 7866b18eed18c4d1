//! The first line of a recording.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use luc_control::Dev;

/// Version of the format that this crate writes; it reads the earlier ones too.
///
/// Version 1: lines of the module's tracepoints. Version 2 adds spans of the tracer and an end
/// line.
pub const VERSION: u32 = 2;

const MAGIC: &str = "# luc-trace ";

/// The origin of a recording: `# luc-trace 2` and
/// `key=value` pairs, such as kernel and module version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The pairs. Keys are words of ASCII letters, digits and `_-.`; other
    /// characters of a key are written as `_`. Values may be anything.
    pub pairs: BTreeMap<String, String>,
}

impl Header {
    /// Key of the events that the tracer could not see, in the form of
    /// [`Sight::words`](crate::Sight::words).
    pub const UNSEEN: &str = "unseen";
    /// Key of the reasons why it could not see them, a note for people.
    pub const UNSEEN_WHY: &str = "unseen-why";

    /// Returns the header with one more pair.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.pairs.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Returns the header with the mount point of a file system.
    #[must_use]
    pub fn with_mount_point(self, dev: Dev, point: &str) -> Self {
        self.with(&key_of("mount", dev), point)
    }

    /// Returns the mount point of a file system, if the header has it.
    pub fn mount_point(&self, dev: Dev) -> Option<&str> {
        self.pairs.get(&key_of("mount", dev)).map(String::as_str)
    }

    /// Returns the header with the names of the loop devices whose files lie on a file system.
    #[must_use]
    pub fn with_loops(self, dev: Dev, names: &[String]) -> Self {
        self.with(&key_of("loops", dev), &names.join(" "))
    }

    /// Returns the names of the loop devices whose files lie on a file system, as far as known.
    pub fn loops(&self, dev: Dev) -> impl Iterator<Item = &str> {
        let names = self.pairs.get(&key_of("loops", dev));
        names.into_iter().flat_map(|names| names.split_whitespace())
    }

    /// Tells whether a line is a header of any version.
    pub(crate) fn starts(line: &str) -> bool {
        line.starts_with(MAGIC)
    }

    /// Parses a header line; `Err` holds the version if it is unknown.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut words = line[MAGIC.len().min(line.len())..].split_ascii_whitespace();
        let version = words.next().unwrap_or("");
        if !(1..=VERSION).any(|known| version == known.to_string()) {
            return Err(version.to_owned());
        }
        let pairs = words
            .map(|word| {
                // A word without '=' is a key without a value.
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                (key.to_owned(), unescape(value))
            })
            .collect();
        Ok(Self { pairs })
    }
}

/// The key of something about a file system.
fn key_of(what: &str, dev: Dev) -> String {
    format!("{what}.{}", dev.to_string().replace(':', "."))
}

/// The line, without the newline.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC}{VERSION}")?;
        for (key, value) in &self.pairs {
            f.write_char(' ')?;
            for c in key.chars() {
                let plain = c.is_ascii_alphanumeric() || "_-.".contains(c);
                f.write_char(if plain { c } else { '_' })?;
            }
            f.write_char('=')?;
            f.write_str(&escaped(value))?;
        }
        Ok(())
    }
}

/// Writes white space, control characters and '%' as %XX, so that a value is one word of one line.
pub(crate) fn escaped(value: &str) -> String {
    let mut word = String::with_capacity(value.len());
    for c in value.chars() {
        if c == '%' || c.is_whitespace() || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(word, "%{byte:02X}");
            }
        } else {
            word.push(c);
        }
    }
    word
}

/// Reverses [`escaped`]; other uses of '%' stay as they are.
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let header = Header::default()
            .with("kernel", "6.12.95+deb12-cloud-amd64")
            .with("command", "luc-lab bench\tcreate-fsync 100%\n=\u{2003}é");
        let line = header.to_string();
        assert!(line.starts_with("# luc-trace 2 command=luc-lab%20bench%09"));
        assert_eq!(line.lines().count(), 1);
        assert_eq!(Header::parse(&line), Ok(header));
        let dev = "7:0".parse().expect("a device");
        let mounted = Header::default().with_mount_point(dev, "/srv/my data");
        let read = Header::parse(&mounted.to_string()).expect("a header");
        assert_eq!(read.mount_point(dev), Some("/srv/my data"));
        assert_eq!(read.mount_point("7:1".parse().expect("a device")), None);
        assert_eq!(Header::parse("# luc-trace 1"), Ok(Header::default()));
    }

    #[test]
    fn other_versions_are_told_apart() {
        assert_eq!(Header::parse("# luc-trace 3 a=b"), Err("3".to_owned()));
        assert_eq!(Header::parse("# luc-trace "), Err(String::new()));
        assert_eq!(unescape("%zz%4%+1%41"), "%zz%4%+1A");
    }
}
