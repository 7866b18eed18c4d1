//! Activity of a machine's parts within a measurement, from which a model computes its energy.
//!
//! A result keeps the activity, not the energy: other watts, or another machine, then need no
//! other run.

use serde::{Deserialize, Serialize};

/// Activity of a machine within a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Length of the measurement, ns.
    pub elapsed_ns: u64,
    pub processors: Vec<ProcessorActivity>,
    pub disks: DiskActivity,
}

/// Activity of one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorActivity {
    /// Busy time at each clock.
    pub busy: Vec<AtClock>,
    /// Idle periods that ended within the measurement, by clock and length.
    pub idle: Vec<IdlePeriods>,
}

/// Busy time at one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtClock {
    /// Thousand instructions per second: the speed at this clock.
    pub kips: u64,
    pub busy_ns: u64,
}

/// Idle periods of similar length at one clock: at least 2^`log2_ns` ns, less than twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdlePeriods {
    pub kips: u64,
    pub log2_ns: u32,
    pub count: u64,
    pub sum_ns: u64,
}

/// Activity of the disks, all of an array together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskActivity {
    pub disks: u64,
    /// Time with at least one request in service, of all disks together, ns.
    pub busy_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
}

impl ProcessorActivity {
    /// Adds busy time at this clock.
    pub fn was_busy(&mut self, kips: u64, busy_ns: u64) {
        match self.busy.iter_mut().find(|at| at.kips == kips) {
            Some(at) => at.busy_ns += busy_ns,
            None => self.busy.push(AtClock { kips, busy_ns }),
        }
    }

    /// Adds an idle period at this clock.
    pub fn was_idle(&mut self, kips: u64, ns: u64) {
        self.was_idle_often(kips, 1, ns);
    }

    /// Adds idle periods at this clock, all of about their mean length.
    pub fn was_idle_often(&mut self, kips: u64, count: u64, sum_ns: u64) {
        let mean_ns = sum_ns.checked_div(count).unwrap_or_default();
        let Some(log2_ns) = mean_ns.checked_ilog2() else {
            return;
        };
        let is_same = |at: &&mut IdlePeriods| at.kips == kips && at.log2_ns == log2_ns;
        match self.idle.iter_mut().find(is_same) {
            Some(at) => {
                at.count += count;
                at.sum_ns += sum_ns;
            }
            None => self.idle.push(IdlePeriods {
                kips,
                log2_ns,
                count,
                sum_ns,
            }),
        }
    }

    /// Returns the busy time at all clocks, ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy.iter().map(|at| at.busy_ns).sum()
    }

    fn since(mut self, earlier: &Self) -> Self {
        for at in &mut self.busy {
            let before = earlier.busy.iter().find(|it| it.kips == at.kips);
            at.busy_ns -= before.map_or(0, |it| it.busy_ns);
        }
        for at in &mut self.idle {
            let is_same = |it: &&IdlePeriods| it.kips == at.kips && it.log2_ns == at.log2_ns;
            if let Some(before) = earlier.idle.iter().find(is_same) {
                at.count -= before.count;
                at.sum_ns -= before.sum_ns;
            }
        }
        self.busy.retain(|at| at.busy_ns > 0);
        self.idle.retain(|at| at.count > 0);
        self
    }
}

impl DiskActivity {
    /// Adds the activity of other disks.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            disks: self.disks + other.disks,
            busy_ns: self.busy_ns + other.busy_ns,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            flushes: self.flushes + other.flushes,
        }
    }

    /// Returns the activity since an earlier state of the same disks.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            disks: self.disks,
            busy_ns: self.busy_ns - earlier.busy_ns,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            flushes: self.flushes - earlier.flushes,
        }
    }
}

impl Activity {
    /// Returns the busy time of all processors together, ns.
    pub fn busy_ns(&self) -> u64 {
        self.processors.iter().map(ProcessorActivity::busy_ns).sum()
    }

    /// Returns the activity since an earlier state of the same machine; both count from its start.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.elapsed_ns -= earlier.elapsed_ns;
        let processors = std::mem::take(&mut self.processors).into_iter();
        let before = earlier.processors.iter();
        self.processors = processors
            .zip(before)
            .map(|(now, before)| now.since(before))
            .collect();
        self.disks = self.disks.since(earlier.disks);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_the_difference_of_two_states() {
        let mut processor = ProcessorActivity::default();
        processor.was_busy(1000, 5);
        processor.was_idle(1000, 1024);
        processor.was_idle(1000, 0);
        let state = |processor: &ProcessorActivity, elapsed_ns, flushes| Activity {
            elapsed_ns,
            processors: vec![processor.clone()],
            disks: DiskActivity {
                disks: 2,
                flushes,
                ..DiskActivity::default()
            },
        };
        let before = state(&processor, 2000, 3);
        processor.was_busy(2000, 7);
        processor.was_idle(1000, 2047);
        processor.was_idle(1000, 2048);
        let found = state(&processor, 5000, 4).since(&before);
        let idle = |log2_ns, sum_ns| IdlePeriods {
            kips: 1000,
            log2_ns,
            count: 1,
            sum_ns,
        };
        assert_eq!(found.elapsed_ns, 3000);
        assert_eq!(found.disks.flushes, 1);
        assert_eq!(found.disks.disks, 2);
        let [found] = &found.processors[..] else {
            panic!("{found:?}");
        };
        assert_eq!(found.busy_ns(), 7);
        assert_eq!(found.idle, [idle(10, 2047), idle(11, 2048)]);
    }
}
