//! Bursts at fixed moments, and random moments within them: shared by `burst` and `write-burst`.

use std::time::Duration;

use crate::benchmark::Measured;
use crate::clock::{NS_PER_MS, NS_PER_US, sleep_until};
use crate::crew::{self, Shift, Window};
use crate::dir::Dir;
use crate::random::moment_ns;
use crate::{Common, Result, Stop};

/// The schedule of the bursts.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    pub threads: u32,
    pub period_ms: u32,
    pub spread_us: u32,
    pub measured: u32,
    pub warmup: u32,
    pub seed: u64,
}

impl Bursts {
    pub fn length(self) -> Duration {
        Duration::from_nanos(self.ns(u64::from(self.warmup) + u64::from(self.measured)))
    }

    /// Returns how long `bursts` bursts last: they come one period apart.
    fn ns(self, bursts: u64) -> u64 {
        bursts * u64::from(self.period_ms) * NS_PER_MS
    }

    /// Returns when the measurement begins and ends, ns from the start.
    pub fn window_ns(self) -> (u64, u64) {
        let from_ns = self.ns(u64::from(self.warmup));
        (from_ns, from_ns + self.ns(u64::from(self.measured)))
    }

    /// Returns when a thread begins its part of a burst, ns from the start.
    pub fn moment_ns(self, thread: u32, burst: u32) -> u64 {
        let spread_ns = u64::from(self.spread_us) * NS_PER_US;
        self.ns(u64::from(burst)) + moment_ns(self.seed, thread, burst, spread_ns)
    }

    /// Runs all bursts. `begin` makes the state that a thread keeps from one burst to the next;
    /// `turn` does the thread's part of one burst.
    ///
    /// Returns the measured bursts that every thread took part in: only these can be compared.
    pub(crate) fn run<S, T: Copy + Send>(
        self,
        common: &Common,
        stop: &Stop,
        begin: impl Fn(&Dir) -> Result<S> + Sync,
        turn: impl Fn(&Dir, &mut S, u32) -> Result<T> + Sync,
    ) -> Result<Measured<Vec<Vec<T>>>> {
        let window = Window {
            warmup_ns: self.ns(u64::from(self.warmup)),
            length_ns: Some(self.ns(u64::from(self.measured))),
        };
        let body = |(dir, thread): (Dir, u32), shift: Shift<'_>| {
            let bursts = self.warmup + self.measured;
            let mut turns = Vec::with_capacity(bursts as usize);
            let mut state = begin(&dir)?;
            for burst in 0..bursts {
                sleep_until(shift.start_ns + self.moment_ns(thread, burst), stop);
                if shift.is_cut_short() {
                    break;
                }
                turns.push(turn(&dir, &mut state, burst)?);
            }
            Ok(turns)
        };
        let ran = crew::run_in(
            common,
            self.threads,
            |scratch| {
                let place = |thread| Ok((scratch.subdir(&format!("t{thread:04}"))?, thread));
                (0..self.threads).map(place).collect()
            },
            window,
            stop,
            body,
        )?;
        let bursts = ran.results.iter().map(Vec::len).min().unwrap_or(0);
        let turns: Vec<Vec<T>> = (self.warmup as usize..bursts)
            .map(|burst| ran.results.iter().map(|thread| thread[burst]).collect())
            .collect();
        let elapsed_ns = self.ns(turns.len() as u64);
        Ok(Measured::by(&ran, elapsed_ns, turns))
    }
}

/// Returns how long at least one burst was under way, ns, from the start and end of each thread's
/// part. Time in which bursts overlap, because threads are late, counts once.
pub fn busy_ns<I: Iterator<Item = (u64, u64)>>(bursts: impl Iterator<Item = I>) -> u64 {
    let mut until_ns = 0;
    let mut busy_ns = 0;
    for parts in bursts {
        let bounds = parts.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some((begin_ns, end_ns)) = bounds else {
            continue;
        };
        busy_ns += end_ns.saturating_sub(begin_ns.max(until_ns));
        until_ns = until_ns.max(end_ns);
    }
    busy_ns
}

#[cfg(test)]
mod tests {
    #[test]
    fn bursts_that_overlap_count_once() {
        let of = |bursts: &[&[(u64, u64)]]| {
            let bursts = bursts.iter().map(|burst| burst.iter().copied());
            super::busy_ns(bursts)
        };
        assert_eq!(of(&[&[(0, 9)], &[(6, 8), (7, 12)]]), 12);
        assert_eq!(of(&[&[(0, 9)], &[(2, 3)], &[]]), 9);
    }
}
