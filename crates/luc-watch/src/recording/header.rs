//! The head of a recording: the machine, and what cannot be seen on it.

use luc_bpf::{Attached, Means, Tracer};
use luc_host::{System, journal, kernel, stack, sysfs};
use luc_trace::{Header, Sight};

use super::Sources;

pub fn header(sources: &Sources, system: &dyn System) -> Header {
    // Both kinds of time stamps are of the monotonic clock, which starts anew at each boot.
    let mut header = Header::default()
        .with("luc", env!("CARGO_PKG_VERSION"))
        .with("clock", "monotonic");
    let stat = system.read("/proc/stat");
    let pairs = [
        ("boot", kernel::boot_id(system)),
        ("kernel", kernel::release(system).ok()),
        ("cpus", stat.ok().map(|stat| cpus(&stat).to_string())),
        ("module", sysfs::version(system)),
    ];
    for (key, value) in pairs {
        if let Some(value) = value {
            header = header.with(key, &value);
        }
    }
    let journals = journal::journals(system).unwrap_or_default();
    for journal in &journals {
        if let Some(point) = journal.mount_points.first() {
            header = header.with_mount_point(journal.device, &point.to_string_lossy());
        }
    }
    let mut header = with_loops(header, system);
    if let Some(attached) = sources.tracer.as_ref().map(Tracer::attached) {
        header = header
            .with("tracer", &means(attached))
            .with(Header::UNSEEN, &Sight::words(&attached.unseen()));
        let notes = attached.notes();
        if !notes.is_empty() {
            header = header.with(Header::UNSEEN_WHY, &notes.join("; "));
        }
    }
    header
}

/// Adds the loop devices on each file system.
pub fn with_loops(mut header: Header, system: &dyn System) -> Header {
    for (device, names) in stack::loops(system) {
        header = header.with_loops(device, &names);
    }
    header
}

/// The means that the tracer uses.
fn means(attached: &Attached) -> String {
    let mut means: Vec<_> = attached.hooks.iter().map(|(_, means)| *means).collect();
    means.extend(attached.sites.iter().map(|_| Means::Kprobe));
    means.sort_unstable();
    means.dedup();
    let names: Vec<_> = means.iter().map(ToString::to_string).collect();
    names.join(",")
}

/// Counts the online processors: each has a line of its own, after the line for all together.
fn cpus(stat: &str) -> usize {
    let of_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    stat.lines().filter(of_one).count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn processors_are_counted() {
        let stat = "cpu  3 0 4\ncpu0 1 0 2\ncpu11 2 0 2\nintr 9\nctxt 5\n";
        assert_eq!(super::cpus(stat), 2);
        assert_eq!(super::cpus(""), 0);
    }
}
