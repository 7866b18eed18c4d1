//! Archives in the "newc" format of cpio: the kernel's initramfs, and the guest's answer.

use std::io::{self, Read, Write};

use cpio::newc;

/// File type bits of a regular file.
pub const MODE_FILE: u32 = 0o100_000;
/// File type bits of a directory.
pub const MODE_DIR: u32 = 0o040_000;
/// File type bits of a symbolic link.
pub const MODE_LINK: u32 = 0o120_000;

/// An archive being written. Owners and times are zero, so equal content gives equal bytes.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    members: u32,
}

impl Archive {
    /// Adds a member: a path without a leading slash, type and permission bits as in `st_mode`,
    /// and the content, or the target of a symbolic link.
    ///
    /// # Errors
    /// The data is 4 GiB or longer.
    pub fn add(&mut self, path: &str, mode: u32, data: &[u8]) -> io::Result<()> {
        let size = u32::try_from(data.len())
            .map_err(|_| io::Error::other(format!("{path} is 4 GiB or longer")))?;
        self.members += 1;
        let links = if mode & 0o170_000 == MODE_DIR { 2 } else { 1 };
        let header = newc::Builder::new(path).ino(self.members).mode(mode);
        let mut member = header.nlink(links).write(&mut self.bytes, size);
        member.write_all(data)?;
        member.finish().map(drop)
    }

    /// Ends the archive and returns its bytes.
    ///
    /// # Errors
    /// Never: the bytes are in memory.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        newc::trailer(self.bytes)
    }
}

/// Path and content.
pub type Member = (String, Vec<u8>);

/// Reads a whole archive.
///
/// # Errors
/// The bytes are not an archive; the message says from where on.
pub fn read(bytes: &[u8]) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut rest = bytes;
    loop {
        let at = bytes.len() - rest.len();
        match next(rest).map_err(|error| format!("cpio member at byte {at}: {error}"))? {
            Some((member, after)) => {
                members.push(member);
                rest = after;
            }
            None => return Ok(members),
        }
    }
}

/// The first member and the bytes after it; `None` at the trailer.
fn next(bytes: &[u8]) -> io::Result<Option<(Member, &[u8])>> {
    let mut member = newc::Reader::new(bytes)?;
    if member.entry().is_trailer() {
        return Ok(None);
    }
    let path = member.entry().name().to_owned();
    let size = member.entry().file_size();
    let mut data = Vec::new();
    member.read_to_end(&mut data)?;
    if u32::try_from(data.len()) != Ok(size) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(((path, data), member.finish()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of this archive must never change: equal images must stay equal.
    #[test]
    fn equal_content_gives_equal_bytes() {
        let mut archive = Archive::default();
        archive.add("d", MODE_DIR | 0o755, b"").unwrap();
        archive.add("ab", MODE_FILE | 0o755, b"hello").unwrap();
        let header = |ino, mode, links, size, name: &str| {
            let fields = [ino, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name.len(), 0];
            let fields = fields.map(|field| format!("{field:08x}"));
            format!("070701{}{name}", fields.concat())
        };
        let expected = [
            header(1, 0o40755, 2, 0, "d\0"),
            header(2, 0o100_755, 1, 5, "ab\0"),
            "\0\0\0hello\0\0\0".to_owned(),
            header(0, 0, 1, 0, "TRAILER!!!\0"),
            "\0\0\0".to_owned(),
        ];
        let bytes = archive.finish().unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected.concat());
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let mut archive = Archive::default();
        let members: [(&str, u32, &[u8]); 4] = [
            ("d", MODE_DIR | 0o755, b""),
            ("d/empty", MODE_FILE | 0o644, b""),
            ("d/four", MODE_FILE | 0o644, b"4444"),
            ("link", MODE_LINK | 0o777, b"d/four"),
        ];
        for (path, mode, data) in members {
            archive.add(path, mode, data).unwrap();
        }
        let expected = members.map(|(path, _, data)| (path.to_owned(), data.to_vec()));
        assert_eq!(read(&archive.finish().unwrap()), Ok(expected.into()));
    }

    #[test]
    fn damaged_archives_are_errors() {
        let mut archive = Archive::default();
        archive.add("file", MODE_FILE, &[7; 100]).unwrap();
        let bytes = archive.finish().unwrap();
        for len in 0..bytes.len() - 4 {
            assert!(read(&bytes[..len]).is_err(), "length {len}");
        }
        for damage in [&b"x"[..], b"ffffffff"] {
            let mut broken = bytes.clone();
            broken[54..54 + damage.len()].copy_from_slice(damage);
            let error = read(&broken).unwrap_err();
            assert!(error.starts_with("cpio member at byte 0: "), "{error}");
        }
    }
}
