//! Stretches of time, in lists that are sorted and disjoint.

/// Start and end, ns.
pub(crate) type Stretch = (u64, u64);

/// Sorts the stretches, and joins those that overlap or lie at most `apart_ns` apart.
pub(crate) fn joined(mut stretches: Vec<Stretch>, apart_ns: u64) -> Vec<Stretch> {
    stretches.sort_unstable();
    let mut all: Vec<Stretch> = Vec::with_capacity(stretches.len());
    for (begin_ns, end_ns) in stretches {
        match all.last_mut() {
            Some((_, last_ns)) if begin_ns <= last_ns.saturating_add(apart_ns) => {
                *last_ns = end_ns.max(*last_ns);
            }
            _ => all.push((begin_ns, end_ns)),
        }
    }
    all
}

/// Stretches, each with the total length of those before it.
pub(crate) struct Covered<'a> {
    stretches: &'a [Stretch],
    before_ns: Vec<u64>,
}

impl<'a> Covered<'a> {
    pub(crate) fn by(stretches: &'a [Stretch]) -> Self {
        let sum = |sum_ns: &mut u64, (begin_ns, end_ns): &Stretch| {
            let before_ns = *sum_ns;
            *sum_ns += end_ns - begin_ns;
            Some(before_ns)
        };
        let before_ns = stretches.iter().scan(0, sum).collect();
        Self {
            stretches,
            before_ns,
        }
    }

    /// Returns how much of a stretch lies in these, ns. O(log n).
    pub(crate) fn within_ns(&self, (from_ns, to_ns): Stretch) -> u64 {
        self.until_ns(to_ns).saturating_sub(self.until_ns(from_ns))
    }

    fn until_ns(&self, ns: u64) -> u64 {
        let begun = self
            .stretches
            .partition_point(|(begin_ns, _)| *begin_ns <= ns);
        let Some(last) = begun.checked_sub(1) else {
            return 0;
        };
        let (begin_ns, end_ns) = self.stretches[last];
        self.before_ns[last] + ns.min(end_ns).saturating_sub(begin_ns)
    }
}

pub(crate) fn total_ns(stretches: &[Stretch]) -> u64 {
    stretches
        .iter()
        .map(|(begin_ns, end_ns)| end_ns - begin_ns)
        .sum()
}

/// Removes the holes from the stretches.
pub(crate) fn without(stretches: Vec<Stretch>, holes: &[Stretch]) -> Vec<Stretch> {
    let mut left = Vec::with_capacity(stretches.len() + holes.len());
    for (mut begin_ns, end_ns) in stretches {
        let first = holes.partition_point(|(_, hole_end_ns)| *hole_end_ns <= begin_ns);
        for &(hole_ns, hole_end_ns) in &holes[first..] {
            if hole_ns >= end_ns {
                break;
            }
            if hole_ns > begin_ns {
                left.push((begin_ns, hole_ns));
            }
            begin_ns = begin_ns.max(hole_end_ns);
        }
        if begin_ns < end_ns {
            left.push((begin_ns, end_ns));
        }
    }
    left
}

/// Cuts the stretches into pieces that end at the cuts, which are sorted.
pub(crate) fn cut(stretches: Vec<Stretch>, cuts_ns: &[u64]) -> Vec<Stretch> {
    let mut pieces = Vec::with_capacity(stretches.len() + cuts_ns.len());
    for (mut begin_ns, end_ns) in stretches {
        let first = cuts_ns.partition_point(|at_ns| *at_ns <= begin_ns);
        for &at_ns in cuts_ns[first..].iter().take_while(|at_ns| **at_ns < end_ns) {
            if at_ns > begin_ns {
                pieces.push((begin_ns, at_ns));
            }
            begin_ns = at_ns;
        }
        pieces.push((begin_ns, end_ns));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_joined() {
        let all = || vec![(5, 9), (1, 3), (3, 4), (6, 7)];
        assert_eq!(joined(all(), 0), [(1, 4), (5, 9)]);
        assert_eq!(joined(all(), 1), [(1, 9)]);
        assert_eq!(total_ns(&joined(all(), 0)), 7);
        assert_eq!(total_ns(&[(0, u64::MAX)]), u64::MAX);
    }

    #[test]
    fn parts_of_stretches() {
        for (stretch, ns) in [
            ((0, 50), 20),
            ((15, 35), 10),
            ((20, 30), 0),
            ((12, 14), 2),
            ((40, 50), 0),
            ((9, 9), 0),
            ((30, 20), 0),
        ] {
            let covered = Covered::by(&[(10, 20), (30, 40)]).within_ns(stretch);
            assert_eq!(covered, ns, "{stretch:?}");
        }
    }

    #[test]
    fn holes_and_cuts() {
        let all = || vec![(10, 20), (30, 40)];
        for (holes, left) in [
            (vec![], all()),
            (vec![(0, 10), (20, 30)], all()),
            (
                vec![(5, 12), (14, 15), (18, 35)],
                vec![(12, 14), (15, 18), (35, 40)],
            ),
            (vec![(0, 99)], vec![]),
        ] {
            assert_eq!(without(all(), &holes), left, "{holes:?}");
        }
        assert_eq!(cut(all(), &[10, 20, 25, 40]), all());
        let pieces = [(10, 12), (12, 20), (30, 35), (35, 40)];
        assert_eq!(cut(all(), &[12, 12, 35]), pieces);
    }
}
