//! The head of a recording: the machine, and what cannot be seen on it.

use luc_host::{System, journal, kernel, sysfs};
use luc_trace::{Header, Sight};

use super::Sources;

pub fn header(sources: &Sources, system: &dyn System) -> Header {
    // Both kinds of time stamps are of the monotonic clock, which starts anew at each boot.
    let mut header = Header::default()
        .with("luc", env!("CARGO_PKG_VERSION"))
        .with("clock", "monotonic");
    if let Ok(boot) = system.read("/proc/sys/kernel/random/boot_id") {
        header = header.with("boot", boot.trim());
    }
    if let Ok(release) = kernel::release(system) {
        header = header.with("kernel", &release);
    }
    if let Ok(stat) = system.read("/proc/stat") {
        header = header.with("cpus", &cpus(&stat).to_string());
    }
    if let Some(version) = sysfs::version(system) {
        header = header.with("module", &version);
    }
    let journals = journal::journals(system).unwrap_or_default();
    for journal in &journals {
        if let Some(point) = journal.mount_points.first() {
            header = header.with_mount_point(journal.device, &point.to_string_lossy());
        }
    }
    if let Some(spans) = &sources.spans {
        let unseen = Sight::words(&spans.unseen());
        header = header
            .with("tracer", &spans.means())
            .with(Header::UNSEEN, &unseen);
        if let Some(why) = spans.unseen_why() {
            header = header.with(Header::UNSEEN_WHY, &why);
        }
    }
    header
}

/// Counts the online processors: each has a line of its own, after that of all together.
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
