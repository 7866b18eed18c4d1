//! Random numbers that depend only on a seed and on their purpose.

/// Returns a number below `bound`, or 0 if that is 0, by the generator `SplitMix64`.
pub fn below(seed: u64, purpose: u64, bound: u64) -> u64 {
    let bits = mixed(mixed(seed.wrapping_add(1)).wrapping_add(purpose));
    // The high half of the product maps 64 random bits to the range evenly.
    u64::try_from((u128::from(bits) * u128::from(bound)) >> 64).unwrap_or(0)
}

fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
        assert_eq!(below(7, 3, 1 << 40), below(7, 3, 1 << 40));
        assert_ne!(below(7, 3, 1 << 40), below(8, 3, 1 << 40));
        assert_eq!(below(7, 3, 0), 0);
    }
}
