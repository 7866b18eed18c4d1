//! As much of HTTP/1.1 as a scrape needs: one request per connection, one
//! connection at a time. A client may be slow, rude or gone; it costs the
//! others twice [`PATIENCE`] at most.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use luc_host::{HostError, plain};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::text::MEDIA_TYPE;
use luc_cli::Failure;

/// Longest request; a scraper's has a few hundred bytes.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Time for a request to arrive, and then for an answer to leave.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

impl Server {
    pub fn new(address: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            // The client may have gone before accept().
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => HostError::NotPermitted {
                what: format!("listen on {address}"),
                fix: "use a port above 1023".into(),
            }
            .into(),
            ErrorKind::AddrInUse => HostError::Busy {
                what: address.to_string(),
                why: "another process listens there".into(),
                fix: "name another port with --listen".into(),
            }
            .into(),
            _ => Failure::usage(
                "exporter",
                format!("cannot listen on {address}: {}", plain(&error)),
            ),
        })?;
        Ok(Server { listener })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers one request, if one comes in time.
    pub fn serve(
        &self,
        limit: Duration,
        page: impl FnOnce() -> Result<String, String>,
    ) -> io::Result<()> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut waiting = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut waiting, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match self.listener.accept() {
            Ok((client, _)) => {
                // The client may be gone.
                let _ = answer(client, page);
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {
                    Ok(())
                }
                _ => {
                    // For example out of descriptors: this passes, but must not spin.
                    std::thread::sleep(Duration::from_millis(100));
                    Ok(())
                }
            },
        }
    }
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Page,
    /// The page of links.
    Index,
    Unknown,
    BadMethod,
    /// Not an HTTP request.
    Nonsense,
}

/// Parses the head of a request.
pub fn asked(head: &[u8]) -> Asked {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    let Ok(line) = std::str::from_utf8(line) else {
        return Asked::Nonsense;
    };
    let mut words = line.trim_end_matches('\r').split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Asked::Nonsense;
    };
    let is_token = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    if !is_token || !target.starts_with('/') || !version.starts_with("HTTP/1.") {
        return Asked::Nonsense;
    }
    let path = target.split('?').next();
    match (method, path) {
        ("GET" | "HEAD", Some("/metrics")) => Asked::Page,
        ("GET" | "HEAD", Some("/")) => Asked::Index,
        ("GET" | "HEAD", _) => Asked::Unknown,
        _ => Asked::BadMethod,
    }
}

fn answer(mut client: TcpStream, page: impl FnOnce() -> Result<String, String>) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let head = request(&mut client)?;
    let of_head = |head: &Vec<u8>| head.starts_with(b"HEAD ");
    let asked = head.as_deref().map_or(Asked::Nonsense, asked);
    // An error has a body even for HEAD.
    let found = matches!(asked, Asked::Page | Asked::Index);
    let head_only = found && head.as_ref().is_some_and(of_head);
    let (status, kind, text) = match asked {
        Asked::Page => match page() {
            Ok(page) => ("200 OK", MEDIA_TYPE, page),
            Err(why) => ("500 Internal Server Error", PLAIN, why + "\n"),
        },
        Asked::Index => ("200 OK", HTML, INDEX.into()),
        Asked::Unknown => ("404 Not Found", PLAIN, "the page is /metrics\n".into()),
        Asked::BadMethod => ("405 Method Not Allowed", PLAIN, "GET only\n".into()),
        Asked::Nonsense => ("400 Bad Request", PLAIN, "not an HTTP request\n".into()),
    };
    let allow = if asked == Asked::BadMethod {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let mut whole = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        text.len()
    );
    if !head_only {
        whole += &text;
    }
    send(&mut client, whole.as_bytes())
}

const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
/// For people who open the address in a browser.
const INDEX: &str = concat!(
    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>luc exporter</title>\n",
    "<h1>luc exporter ",
    env!("CARGO_PKG_VERSION"),
    "</h1>\n<p>Journal commits of ext4 and ext3 file systems, and what LUC does about them: \
     <a href=\"/metrics\">/metrics</a>, for Prometheus.</p>\n</html>\n"
);

/// Returns what is left of `PATIENCE`, which covers all pieces together.
fn left(begin: Instant) -> io::Result<Duration> {
    PATIENCE
        .checked_sub(begin.elapsed())
        .filter(|left| !left.is_zero())
        .ok_or_else(|| ErrorKind::TimedOut.into())
}

/// Reads the head of a request; `None` if it is too long or ends early.
fn request(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let begin = Instant::now();
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        client.set_read_timeout(Some(left(begin)?))?;
        match client.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(length) => head.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
    }
}

fn send(client: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let begin = Instant::now();
    while !bytes.is_empty() {
        client.set_write_timeout(Some(left(begin)?))?;
        match client.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    client.shutdown(std::net::Shutdown::Write)
}
