//! Random numbers that depend only on a seed and on their purpose.

use luc_base::random::{GOLDEN, mix, scaled};

/// Returns a number below `bound`, or 0 if that is 0.
pub fn below(seed: u64, purpose: u64, bound: u64) -> u64 {
    let drawn = |counter: u64| mix(counter.wrapping_add(1).wrapping_mul(GOLDEN));
    scaled(
        drawn(drawn(seed.wrapping_add(1)).wrapping_add(purpose)),
        bound,
    )
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn draws_fill_the_range_and_never_change() {
        let mut bins = [0_u32; 8];
        for purpose in 0..8000 {
            bins[usize::try_from(below(7, purpose, 8)).unwrap()] += 1;
        }
        assert!(
            bins.iter().all(|count| (900..1100).contains(count)),
            "{bins:?}"
        );
        assert_eq!(below(7, 3, 1 << 40), 753_977_647_358);
        assert_ne!(below(7, 3, 1 << 40), below(8, 3, 1 << 40));
        assert_eq!(below(7, 3, 0), 0);
    }
}
