//! Rates and shares from counts and times.

use crate::clock::NS_PER_S;

/// Returns a count per second; 0 if no time has elapsed.
pub fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        return 0.0;
    }
    count as f64 * NS_PER_S as f64 / elapsed_ns as f64
}

/// Returns the part as a share of the whole; 0 if the whole is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns the file creation rate of equation 3, files per second: N threads make a file each in
/// the mean of their times, hence N * N / sum of T. Takes each thread's mean time of a file, ns; 0
/// without threads.
pub fn file_creation_rate_per_s(times_ns: impl Iterator<Item = f64>) -> f64 {
    let (threads, sum_ns) = times_ns.fold((0.0, 0.0), |(n, sum), ns| (n + 1.0, sum + ns));
    if sum_ns > 0.0 {
        threads * threads * 1e9 / sum_ns
    } else {
        0.0
    }
}
