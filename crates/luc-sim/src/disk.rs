//! A disk: the lab's own model, `lab/disk`, driven by the simulator's calendar.

use std::collections::BTreeMap;
use std::str::FromStr;

use luc_disk::{Model, Params, Request, Spec};
use thiserror::Error;

/// Sectors of 512 bytes: 1 GiB, as the lab's disks have.
const SECTORS: u64 = 1 << 21;

/// A kind of disk: `4ms:1`, time per request and requests at once, or a preset of `luc lab disks`
/// with changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskKind {
    params: Params,
    /// Has a cache that loses data: flushes are sent to it.
    pub is_volatile: bool,
}

/// Why a text is no disk.
#[derive(Debug, Error)]
#[error(
    "disk {text}: {why}; give TIME:DEPTH, as 4ms:1, or a preset of `luc lab disks`, as hdd-7200"
)]
pub struct NoDisk {
    text: String,
    why: String,
}

impl FromStr for DiskKind {
    type Err = NoDisk;

    fn from_str(text: &str) -> Result<Self, NoDisk> {
        let bad = |why: String| NoDisk {
            text: text.to_owned(),
            why,
        };
        let params = if text.starts_with(|first: char| first.is_ascii_digit()) {
            fixed(text).map_err(bad)?
        } else {
            let mut parts = text.split(':');
            let spec = Spec::new(parts.next().unwrap_or_default());
            let mut spec = spec.map_err(|error| bad(error.to_string()))?;
            for part in parts {
                spec.change(part).map_err(|error| bad(error.to_string()))?;
            }
            spec.params().map_err(|error| bad(error.to_string()))?
        };
        let knob = |name| params.get(name).unwrap_or(0);
        Ok(Self {
            is_volatile: knob("cache_bytes") > 0 && knob("cache_volatile") > 0,
            params,
        })
    }
}

/// So long for each request, and so many at once.
fn fixed(text: &str) -> Result<Params, String> {
    let (time, depth) = text.split_once(':').ok_or("a depth is missing")?;
    let unit_at = time
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or("the time has no unit")?;
    let (number, unit) = time.split_at(unit_at);
    let unit_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("{unit} is no unit of time: ns, us, ms or s")),
    };
    let number: i64 = number
        .parse()
        .map_err(|_| format!("{number} is no number"))?;
    let time_ns = number.checked_mul(unit_ns).ok_or("the time is too long")?;
    let depth: i64 = depth.parse().map_err(|_| format!("{depth} is no depth"))?;
    let mut params = Params::default();
    for (knob, value) in [
        ("read_latency_ns", time_ns),
        ("write_latency_ns", time_ns),
        ("channels", depth),
        ("queue_requests", depth),
    ] {
        params.set(knob, value).map_err(|error| error.to_string())?;
    }
    Ok(params)
}

/// That a request in service ends at this time; its number tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceEnd {
    pub number: u64,
    pub at_ns: u64,
}

/// A disk with its requests; `W` says who waits for each.
#[derive(Debug)]
pub struct Disk<W> {
    pub kind: DiskKind,
    model: Model,
    waiting: Vec<Request>,
    /// Of the waiting, in the same order.
    owners: Vec<W>,
    running: BTreeMap<u64, (Request, W)>,
    started: u64,
}

impl<W> Disk<W> {
    pub fn new(kind: DiskKind) -> Self {
        Self {
            model: Model::new(kind.params.clone(), SECTORS),
            kind,
            waiting: Vec::new(),
            owners: Vec::new(),
            running: BTreeMap::new(),
            started: 0,
        }
    }

    /// A request arrives. Calls `begun` for each that is started by it.
    pub fn submit(
        &mut self,
        mut request: Request,
        owner: W,
        now_ns: u64,
        begun: impl FnMut(ServiceEnd),
    ) {
        request.arrived_ns = now_ns;
        self.waiting.push(request);
        self.owners.push(owner);
        self.dispatch(now_ns, begun);
    }

    /// A request has ended; gives who waited for it. Calls `begun` for each that is started by it.
    pub fn ended(&mut self, number: u64, now_ns: u64, begun: impl FnMut(ServiceEnd)) -> Option<W> {
        let (request, owner) = self.running.remove(&number)?;
        self.model.end(&request, now_ns);
        self.dispatch(now_ns, begun);
        Some(owner)
    }

    fn dispatch(&mut self, now_ns: u64, mut begun: impl FnMut(ServiceEnd)) {
        while !self.waiting.is_empty() && self.model.free_channels() > 0 {
            let Some(at) = self.model.choose(&self.waiting, now_ns) else {
                return;
            };
            let request = self.waiting.remove(at);
            let owner = self.owners.remove(at);
            let at_ns = self.model.start(&request, now_ns);
            let number = self.started;
            self.started += 1;
            self.running.insert(number, (request, owner));
            begun(ServiceEnd { number, at_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_of_one_request_at_a_time() {
        let kind: DiskKind = "4ms:1".parse().unwrap();
        assert!(!kind.is_volatile);
        let mut disk = Disk::new(kind);
        let mut ends = Vec::new();
        disk.submit(Request::write(0, 4096), 'a', 0, |end| ends.push(end));
        disk.submit(Request::write(8, 4096), 'b', 0, |end| ends.push(end));
        assert_eq!(
            ends,
            [ServiceEnd {
                number: 0,
                at_ns: 4_000_000
            }]
        );
        assert_eq!(disk.ended(0, 4_000_000, |end| ends.push(end)), Some('a'));
        assert_eq!(ends[1].at_ns, 8_000_000);
        assert_eq!(disk.ended(0, 4_000_000, |_| ()), None);
    }

    #[test]
    fn disks_that_are_none() {
        for (text, why) in [
            ("4ms", "depth"),
            ("4:1", "unit"),
            ("4hours:1", "no unit of time"),
            ("4ms:x", "no depth"),
            ("4ms:0", "channels"),
            ("99999999999999s:1", "too long"),
            ("hdd-7300", "hdd-7200"),
            ("nvme:flush_ns", "KNOB=VALUE"),
            ("", ""),
        ] {
            let error = text.parse::<DiskKind>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("luc lab disks"), "{error}");
        }
        assert!("hdd-7200".parse::<DiskKind>().unwrap().is_volatile);
        assert!(!"nvme-plp".parse::<DiskKind>().unwrap().is_volatile);
    }
}
