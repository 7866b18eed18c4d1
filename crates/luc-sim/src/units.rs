//! Units of disks, and times with units.

pub(crate) const SECTOR_BYTES: u32 = 512;
/// A block of the file system, as mkfs chooses it.
pub(crate) const BLOCK_BYTES: u32 = 4096;
pub(crate) const BLOCK_SECTORS: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;

/// Parses a time in ns, us, ms or s, as in `4ms` or `0.5s`; rounds it to whole ns.
pub(crate) fn time_ns(text: &str) -> Result<i64, String> {
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or("the time has no unit")?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("{unit} is not a unit of time; use ns, us, ms or s")),
    };
    let parts: f64 = number
        .parse()
        .map_err(|_| format!("{number} is not a number"))?;
    let ns = (parts * f64::from(unit_ns)).round();
    // Whole ns are exact up to here, which is three months.
    if !(-1e16..=1e16).contains(&ns) {
        return Err("the time is too long".into());
    }
    #[expect(clippy::cast_possible_truncation, reason = "its range was checked")]
    let ns = ns as i64;
    Ok(ns)
}
