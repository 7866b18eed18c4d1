//! Random moments that depend on the seed alone.
//!
//! A library's generator may change its sequence from version to version; a published figure
//! should not. `SplitMix64` is a counter put through a mixing function, so the moment of burst b
//! of thread t needs no state at all.

/// The step of the counter.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the moment at which a thread wakes in a burst, nanoseconds within `spread_ns`.
pub fn moment_ns(seed: u64, thread: u32, burst: u32, spread_ns: u64) -> u64 {
    let draw = u64::from(thread) << 32 | u64::from(burst);
    let bits = mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(draw.wrapping_mul(GOLDEN)));
    // The high half of a 128-bit product maps 64 random bits to the range without visible bias.
    u64::try_from((u128::from(bits) * u128::from(spread_ns)) >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::moment_ns;

    #[test]
    fn known_values_never_change() {
        let seen: Vec<u64> = (0..4).map(|b| moment_ns(1, 0, b, 800_000)).collect();
        assert_eq!(seen, [690_284, 294_551, 754_851, 36_205]);
    }

    #[test]
    fn moments_fill_the_spread_evenly() {
        let mut bins = [0_u32; 8];
        for thread in 0..64 {
            for burst in 0..100 {
                let at = moment_ns(7, thread, burst, 8_000);
                bins[usize::try_from(at / 1_000).expect("small")] += 1;
            }
        }
        // 6400 draws in 8 bins: 800 each, standard deviation 26.
        assert!(bins.iter().all(|&n| (670..930).contains(&n)), "{bins:?}");
    }

    #[test]
    fn seeds_threads_and_bursts_differ_and_no_spread_is_zero() {
        let a = moment_ns(1, 0, 0, 1 << 40);
        assert_ne!(a, moment_ns(2, 0, 0, 1 << 40));
        assert_ne!(a, moment_ns(1, 1, 0, 1 << 40));
        assert_ne!(a, moment_ns(1, 0, 1, 1 << 40));
        assert_eq!(moment_ns(1, 0, 0, 0), 0);
    }
}
