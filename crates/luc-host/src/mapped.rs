//! Devices of device mapper that delay requests (dm-delay), or keep them waiting for a path
//! (dm-multipath) or for space (dm-thin).

use std::time::Duration;

use luc_control::Dev;

use crate::disks;
use crate::system::System;

/// The way in which a device hinders requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Delays writes or flushes, at most so long.
    Delay(Duration),
    /// Has no path to its disk.
    NoPath,
    /// Is a pool without space for data.
    NoSpace,
}

/// A device that hinders requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindering {
    /// Its node.
    pub node: String,
    pub by: Hindrance,
}

/// The devices that hinder requests, among a file system's device and those below it.
pub fn hindering(system: &dyn System, device: Dev) -> Vec<Hindering> {
    let hindering = disks::under(system, device).into_iter().filter_map(|disk| {
        let name = system.read(&format!("/sys/dev/block/{disk}/dm/name"));
        let name = name.ok()?.trim().to_owned();
        let lines = ["table", "status"].map(|verb| system.device_mapper(verb, &name));
        let lines = lines.into_iter().flatten().collect::<String>();
        Some(Hindering {
            by: lines.lines().filter_map(hindrance).max_by_key(rank)?,
            node: format!("/dev/mapper/{name}"),
        })
    });
    hindering.collect()
}

/// A device that keeps requests waiting matters more than any delay.
fn rank(by: &Hindrance) -> Duration {
    match by {
        Hindrance::Delay(longest) => *longest,
        Hindrance::NoPath | Hindrance::NoSpace => Duration::MAX,
    }
}

/// Reads a line of a table or status, `START LENGTH TARGET ...`.
fn hindrance(line: &str) -> Option<Hindrance> {
    let mut words = line.split_whitespace().skip(2);
    let target = words.next()?;
    let words: Vec<&str> = words.collect();
    match target {
        "delay" => delay(&words).map(Hindrance::Delay),
        "multipath" => has_no_path(&words).then_some(Hindrance::NoPath),
        // It may refuse writes instead.
        "thin-pool" => ["out_of_data_space", "queue_if_no_space"]
            .iter()
            .all(|word| words.contains(word))
            .then_some(Hindrance::NoSpace),
        _ => None,
    }
}

/// The longest delay of writes and flushes in a table: `DEVICE OFFSET MS` for all requests, or for
/// reads, writes and flushes.
fn delay(words: &[&str]) -> Option<Duration> {
    let delays = words.iter().skip(2).step_by(3).map(|ms| ms.parse().ok());
    let delays: Option<Vec<u64>> = delays.collect();
    let delays = delays?;
    let longest_ms = match &delays[..] {
        [all] => *all,
        [_, others @ ..] => others.iter().max().copied()?,
        [] => return None,
    };
    (longest_ms > 0).then(|| Duration::from_millis(longest_ms))
}

/// Whether all paths in a status have failed. It marks each, `MAJOR:MINOR A` or `MAJOR:MINOR F`; a
/// table does not.
fn has_no_path(words: &[&str]) -> bool {
    let marks = words.windows(2).filter_map(|pair| {
        let is_path = pair[0].parse::<Dev>().is_ok();
        (is_path && matches!(pair[1], "A" | "F")).then_some(pair[1])
    });
    let marks: Vec<&str> = marks.collect();
    !marks.is_empty() && marks.iter().all(|mark| *mark == "F")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(file: &str, text: &str) -> Vec<Hindrance> {
        // A logical volume on the device that delays.
        let (_tree, machine) = tree(&[
            ("sys/dev/block/253:1/dev", "253:1\n"),
            ("sys/dev/block/253:1/dm/name", "vg-data\n"),
            ("sys/dev/block/253:1/slaves/dm-0", ""),
            ("sys/class/block/dm-0/dev", "253:0\n"),
            ("sys/dev/block/253:0/dm/name", "slow\n"),
            ("dev/mapper/vg-data.table", "0 2048 linear 253:0 0\n"),
            (file, text),
        ]);
        let found = hindering(&machine, "253:1".parse().expect("a number"));
        assert!(found.iter().all(|it| it.node == "/dev/mapper/slow"));
        found.into_iter().map(|it| it.by).collect()
    }

    #[test]
    fn delays_of_writes_and_flushes_are_read() {
        let found = |table: &str| found("dev/mapper/slow.table", table);
        let of = |ms| [Hindrance::Delay(Duration::from_millis(ms))];
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

    #[test]
    fn devices_that_keep_requests_are_found() {
        let found = |status: &str| found("dev/mapper/slow.status", status);
        let paths = |first, second| {
            format!(
                "0 2048 multipath 2 0 0 0 2 1 A 0 1 1 8:16 {first} 3 0 E 0 1 1 8:32 {second} 1 0\n"
            )
        };
        assert_eq!(found(&paths("F", "F")), [Hindrance::NoPath]);
        assert_eq!(found(&paths("F", "A")), []);
        let pool = |mode| {
            format!(
                "0 2048 thin-pool 1 12/1024 16/16 - {mode} discard_passdown queue_if_no_space - 1\n"
            )
        };
        assert_eq!(found(&pool("out_of_data_space")), [Hindrance::NoSpace]);
        assert_eq!(found(&pool("rw")), []);
        for odd in [
            "0 2048 thin-pool Fail\n",
            "0 2048 multipath\n",
            "multipath 8:16 F\n",
        ] {
            assert_eq!(found(odd), [], "{odd}");
        }
    }
}
