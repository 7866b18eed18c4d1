//! Random numbers by `SplitMix64`: a counter put through a mixing function.
//!
//! A library's generator may change its sequence from version to version; a published figure, or
//! the content of a file that is judged later, should not.

/// The step of the counter.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit over all.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws the next 64 random bits of a sequence.
pub fn next(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(GOLDEN);
    mix(*counter)
}

/// Maps 64 random bits to a number below `bound`, or to 0 if that is 0.
pub fn scaled(bits: u64, bound: u64) -> u64 {
    // The high half of a 128-bit product maps the bits to the range without visible bias.
    u64::try_from((u128::from(bits) * u128::from(bound)) >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{next, scaled};

    #[test]
    fn the_sequence_is_the_published_one_and_fills_a_range_evenly() {
        let mut counter = 0;
        assert_eq!(next(&mut counter), 0xe220_a839_7b1d_cdaf);
        assert_eq!(next(&mut counter), 0x6e78_9e6a_a1b9_65f4);
        let mut bins = [0_u32; 8];
        for _ in 0..6400 {
            bins[usize::try_from(scaled(next(&mut counter), 8)).expect("small")] += 1;
        }
        // 800 each, standard deviation 26.
        assert!(bins.iter().all(|&n| (670..930).contains(&n)), "{bins:?}");
        assert_eq!(scaled(u64::MAX, 0), 0);
    }
}
