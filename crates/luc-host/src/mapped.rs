//! Targets of device mapper that delay I/O on purpose (dm-delay).

use std::time::Duration;

use luc_control::Dev;

use crate::io_limits::disks_of;
use crate::system::System;

/// A device that delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delaying {
    /// Its node.
    pub node: String,
    /// Longest delay of a write or a flush.
    pub by: Duration,
}

/// The devices that delay, among a file system's device and those below it.
pub fn delaying(system: &dyn System, device: Dev) -> Vec<Delaying> {
    let delaying = disks_of(system, device).into_iter().filter_map(|disk| {
        let name = system.read(&format!("/sys/dev/block/{disk}/dm/name"));
        let name = name.ok()?.trim().to_owned();
        let table = system.device_table(&name)?;
        let by_ms = table.lines().filter_map(delay_ms).max()?;
        (by_ms > 0).then(|| Delaying {
            node: format!("/dev/mapper/{name}"),
            by: Duration::from_millis(by_ms),
        })
    });
    delaying.collect()
}

/// The longest delay of writes and flushes in a line of a table, `START LENGTH delay` and, for all
/// requests or for reads, writes and flushes, `DEVICE OFFSET MS`.
fn delay_ms(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace().skip(2);
    if words.next() != Some("delay") {
        return None;
    }
    let delays: Option<Vec<u64>> = words.skip(2).step_by(3).map(|ms| ms.parse().ok()).collect();
    let delays = delays?;
    match &delays[..] {
        [all] => Some(*all),
        [_, others @ ..] => others.iter().max().copied(),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(table: &str) -> Vec<Delaying> {
        // A logical volume on the device that delays.
        let (_tree, machine) = tree(&[
            ("sys/dev/block/253:1/dev", "253:1\n"),
            ("sys/dev/block/253:1/dm/name", "vg-data\n"),
            ("sys/dev/block/253:1/slaves/dm-0", ""),
            ("sys/class/block/dm-0/dev", "253:0\n"),
            ("sys/dev/block/253:0/dm/name", "slow\n"),
            ("dev/mapper/vg-data.table", "0 2048 linear 253:0 0\n"),
            ("dev/mapper/slow.table", table),
        ]);
        delaying(&machine, "253:1".parse().expect("a number"))
    }

    #[test]
    fn delays_of_writes_and_flushes_are_read() {
        let of = |ms| {
            vec![Delaying {
                node: "/dev/mapper/slow".into(),
                by: Duration::from_millis(ms),
            }]
        };
        assert_eq!(found("0 2048 delay 254:16 0 500\n"), of(500));
        let reads_and_writes = "0 2048 delay 254:16 0 900 254:16 0 20\n";
        assert_eq!(found(reads_and_writes), of(20));
        let flushes = "0 9 linear 254:16 0\n9 9 delay 254:16 0 0 254:16 0 20 254:16 0 70\n";
        assert_eq!(found(flushes), of(70));
        for none in [
            "",
            "0 2048 delay",
            "0 2048 delay 254:16 0 many",
            "0 2048 delay 254:16 0 500 254:16 0 0",
            "0 2048 linear 254:16 0",
        ] {
            assert_eq!(found(none), [], "{none}");
        }
    }
}
