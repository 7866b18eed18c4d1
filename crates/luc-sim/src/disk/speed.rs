//! The speed of a disk, as a multiple of its model's.

/// How fast a disk's clock runs. Everything in the model takes that much less time: seeks and
/// turns, transfers, draining the cache, waiting for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    permille: u32,
}

impl Default for Speed {
    /// The model's own.
    fn default() -> Self {
        Self { permille: ONE }
    }
}

const ONE: u32 = 1000;

impl Speed {
    /// 100: the disk takes ten times longer. 0 counts as 1.
    pub fn permille(permille: u32) -> Self {
        Self {
            permille: permille.max(1),
        }
    }

    /// Converts a time of the simulator to the disk's.
    pub(super) fn inside_ns(self, ns: u64) -> u64 {
        scaled(ns, self.permille, ONE)
    }

    /// Converts a time of the disk to the simulator's.
    pub(super) fn outside_ns(self, ns: u64) -> u64 {
        scaled(ns, ONE, self.permille)
    }
}

fn scaled(ns: u64, times: u32, by: u32) -> u64 {
    if times == by {
        return ns;
    }
    let scaled = u128::from(ns) * u128::from(times) / u128::from(by);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
