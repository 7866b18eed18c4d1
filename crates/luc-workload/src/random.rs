//! Random moments that depend on the seed alone: the moment of burst b of thread t needs no state.

use luc_base::random::{GOLDEN, mix, scaled};

/// Returns the moment at which a thread wakes in a burst, nanoseconds within `spread_ns`.
pub fn moment_ns(seed: u64, thread: u32, burst: u32, spread_ns: u64) -> u64 {
    let draw = u64::from(thread) << 32 | u64::from(burst);
    let bits = mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(draw.wrapping_mul(GOLDEN)));
    scaled(bits, spread_ns)
}

#[cfg(test)]
mod tests {
    use super::moment_ns;

    #[test]
    fn known_values_never_change() {
        let seen: Vec<u64> = (0..4).map(|b| moment_ns(1, 0, b, 800_000)).collect();
        assert_eq!(seen, [690_284, 294_551, 754_851, 36_205]);
        assert_eq!(moment_ns(1, 0, 0, 0), 0);
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
    fn seeds_threads_and_bursts_differ() {
        let a = moment_ns(1, 0, 0, 1 << 40);
        assert_ne!(a, moment_ns(2, 0, 0, 1 << 40));
        assert_ne!(a, moment_ns(1, 1, 0, 1 << 40));
        assert_ne!(a, moment_ns(1, 0, 1, 1 << 40));
    }
}
