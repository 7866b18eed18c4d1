//! The "newc" cpio format: the kernel's initramfs, and the guest's answer.

use std::io::{self, Write};

const MAGIC: &[u8; 6] = b"070701";
const HEADER_LEN: usize = 110;
const TRAILER: &str = "TRAILER!!!";

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Path without a leading slash.
    pub path: String,
    /// File type and permission bits as in `st_mode`.
    pub mode: u32,
    /// Content, or the target of a symbolic link.
    pub data: Vec<u8>,
}

/// File type bits of a regular file.
pub const MODE_FILE: u32 = 0o100_000;
/// File type bits of a directory.
pub const MODE_DIR: u32 = 0o040_000;
/// File type bits of a symbolic link.
pub const MODE_LINK: u32 = 0o120_000;

/// Writes an archive. Owners and times are zero, so equal content gives equal bytes.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    inode: u32,
}

impl<W: Write> Writer<W> {
    /// Starts an archive on `out`.
    pub fn new(out: W) -> Self {
        Self { out, inode: 0 }
    }

    /// Adds one member.
    ///
    /// # Errors
    /// Fails when the output does, or when the data is 4 GiB or longer.
    pub fn add(&mut self, path: &str, mode: u32, data: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let size = u32::try_from(data.len())
            .map_err(|_| io::Error::other(format!("{path} is 4 GiB or longer")))?;
        let links = if mode & 0o170_000 == MODE_DIR { 2 } else { 1 };
        self.header(self.inode, mode, links, size, path)?;
        self.out.write_all(data)?;
        self.pad(data.len())
    }

    /// Ends the archive and gives the output back.
    ///
    /// # Errors
    /// Fails when the output does.
    pub fn finish(mut self) -> io::Result<W> {
        self.header(0, 0, 1, 0, TRAILER)?;
        Ok(self.out)
    }

    fn header(
        &mut self,
        inode: u32,
        mode: u32,
        links: u32,
        size: u32,
        path: &str,
    ) -> io::Result<()> {
        let name_len = u32::try_from(path.len() + 1).map_err(io::Error::other)?;
        let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_len, 0];
        self.out.write_all(MAGIC)?;
        for field in fields {
            write!(self.out, "{field:08x}")?;
        }
        self.out.write_all(path.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(HEADER_LEN + path.len() + 1)
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        let padding = written.next_multiple_of(4) - written;
        self.out.write_all(&[0; 3][..padding])
    }
}

/// Reads a whole archive.
///
/// # Errors
/// Says in words where the bytes stop being an archive.
pub fn read(bytes: &[u8]) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut at = 0;
    loop {
        let header = slice(bytes, at, HEADER_LEN)?;
        if &header[..6] != MAGIC {
            return Err(format!("no cpio header at byte {at}"));
        }
        let field = |index: usize| -> Result<usize, String> {
            let text = &header[6 + index * 8..14 + index * 8];
            std::str::from_utf8(text)
                .ok()
                .and_then(|text| usize::from_str_radix(text, 16).ok())
                .ok_or_else(|| format!("bad cpio field at byte {at}"))
        };
        let (mode, size, name_len) = (field(1)?, field(6)?, field(11)?);
        let name = slice(bytes, at + HEADER_LEN, name_len)?;
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        let path = String::from_utf8(name.to_vec())
            .map_err(|_| format!("file name at byte {at} is not UTF-8"))?;
        if path == TRAILER {
            return Ok(members);
        }
        at += (HEADER_LEN + name_len).next_multiple_of(4);
        let data = slice(bytes, at, size)?.to_vec();
        at += size.next_multiple_of(4);
        members.push(Member {
            path,
            mode: u32::try_from(mode).unwrap_or(0),
            data,
        });
    }
}

fn slice(bytes: &[u8], at: usize, len: usize) -> Result<&[u8], String> {
    at.checked_add(len)
        .and_then(|end| bytes.get(at..end))
        .ok_or_else(|| format!("archive ends inside the member at byte {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_newc() {
        let mut writer = Writer::new(Vec::new());
        writer.add("ab", MODE_FILE | 0o755, b"hello").unwrap();
        let bytes = writer.finish().unwrap();
        assert_eq!(&bytes[..6], MAGIC);
        // Name of 2 and its NUL end at 113, padded to 116; data of 5 padded to 8.
        assert_eq!(&bytes[110..113], b"ab\0");
        assert_eq!(&bytes[116..121], b"hello");
        assert_eq!(&bytes[124..130], MAGIC);
        assert_eq!(&bytes[54..62], b"00000005");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let mut writer = Writer::new(Vec::new());
        writer.add("d", MODE_DIR | 0o755, b"").unwrap();
        writer.add("d/empty", MODE_FILE | 0o644, b"").unwrap();
        writer.add("d/four", MODE_FILE | 0o644, b"4444").unwrap();
        writer.add("link", MODE_LINK | 0o777, b"d/four").unwrap();
        let members = read(&writer.finish().unwrap()).unwrap();
        let paths: Vec<_> = members.iter().map(|m| m.path.as_str()).collect();
        assert_eq!(paths, ["d", "d/empty", "d/four", "link"]);
        assert_eq!(members[2].data, b"4444");
        assert_eq!(members[3].mode, MODE_LINK | 0o777);
    }

    #[test]
    fn damaged_archives_are_errors() {
        let mut writer = Writer::new(Vec::new());
        writer.add("file", MODE_FILE, &[7; 100]).unwrap();
        let bytes = writer.finish().unwrap();
        for len in 0..bytes.len() - 4 {
            assert!(read(&bytes[..len]).is_err(), "length {len}");
        }
        let mut broken = bytes.clone();
        broken[60] = b'x';
        assert!(read(&broken).is_err());
        broken.copy_from_slice(&bytes);
        broken[54..62].copy_from_slice(b"ffffffff");
        assert!(read(&broken).is_err());
    }
}
