//! A meter at work: a thread that keeps looking at its source, and samples in between.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use luc_base::Asleep;

use super::error::MeterError;
use super::external::External;
use super::find::find;
use super::reading::{Boundary, Energy, NO_TIME, Reading};
use super::source::{Counted, Found, Lost, Source};

/// A meter of this machine's energy.
pub struct Meter {
    facts: Arc<Facts>,
    state: Arc<Mutex<State>>,
    looks: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The facts that all readings of a meter share.
#[derive(Clone, Copy, Debug)]
struct Facts {
    boundary: Boundary,
    idle_watts: Option<f64>,
    steps_min: u64,
}

struct State {
    source: Box<dyn Source>,
    lost: Option<Lost>,
}

impl State {
    fn count(&mut self) -> (Instant, Result<Counted, Lost>) {
        let now = Instant::now();
        if let Some(why) = &self.lost {
            return (now, Err(why.clone()));
        }
        let counted = self.source.count(now);
        self.lost = counted.as_ref().err().cloned();
        (now, counted)
    }
}

fn count(state: &Mutex<State>) -> (Instant, Result<Counted, Lost>) {
    state.lock().unwrap_or_else(PoisonError::into_inner).count()
}

impl Meter {
    /// Finds the energy counters of the machine whose files are below `root`, or starts an external
    /// meter.
    ///
    /// # Errors
    /// The machine has no counters, they cannot be read, or the external meter gives no samples.
    pub fn find(root: &Path, external: Option<&External>) -> Result<Self, MeterError> {
        find(root, external).map(Self::watch)
    }

    fn watch(found: Found) -> Self {
        let Found { boundary, source } = found;
        let facts = Facts {
            boundary,
            idle_watts: None,
            steps_min: source.steps_min(),
        };
        let period = source.period();
        let state = Arc::new(Mutex::new(State { source, lost: None }));
        let watched = Arc::clone(&state);
        let (end, ended) = mpsc::channel();
        let look = move || {
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                // A loss is kept in the state, for the next sample.
                let _ = count(&watched);
            }
        };
        // Without the thread a long reading is unknown, not wrong.
        let thread = thread::Builder::new().name("meter".into()).spawn(look).ok();
        Self {
            facts: Arc::new(facts),
            state,
            looks: thread.map(|thread| (end, thread)),
        }
    }

    pub fn boundary(&self) -> Boundary {
        self.facts.boundary
    }

    /// Looks at the meter now.
    pub fn sample(&self) -> Sample {
        let (at, counted) = count(&self.state);
        Sample {
            facts: Arc::clone(&self.facts),
            at,
            asleep: Asleep::now(),
            counted,
        }
    }

    /// Takes the power since `before`, in which the machine was at rest, as idle power of the
    /// readings that follow.
    ///
    /// # Errors
    /// It is unknown.
    pub fn rested_since(&mut self, before: &Sample) -> Result<(), MeterError> {
        match before.until(&self.sample()).energy() {
            Energy::Read(reading) => {
                self.facts = Arc::new(Facts {
                    idle_watts: Some(reading.watts),
                    ..*self.facts
                });
                Ok(())
            }
            Energy::Unknown { unknown: why } => Err(MeterError::Idle { why }),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.looks.take() {
            drop(end);
            // A panic of the thread has been printed, and nothing is left to do for it.
            let _ = thread.join();
        }
    }
}

/// One look at a meter.
#[derive(Clone, Debug)]
pub struct Sample {
    facts: Arc<Facts>,
    at: Instant,
    asleep: Asleep,
    counted: Result<Counted, Lost>,
}

impl Sample {
    /// Returns the energy since the meter was found, joules; `None` if it lost count.
    pub fn joules(&self) -> Option<f64> {
        self.counted.as_ref().ok().map(|counted| counted.joules)
    }

    pub fn boundary(&self) -> Boundary {
        self.facts.boundary
    }

    /// Returns the energy from this sample to a later one of the same meter.
    pub fn until(&self, later: &Self) -> Spent {
        let counted = |before: &Counted| {
            let after = later.counted.clone()?;
            // The energy of the sleep may count, but its time does not.
            if later.asleep.grew_since(self.asleep) {
                return Err("the machine slept".into());
            }
            Ok(after.since(*before))
        };
        Spent {
            facts: Arc::clone(&later.facts),
            elapsed: later.at.saturating_duration_since(self.at),
            counted: self
                .counted
                .as_ref()
                .map_err(Clone::clone)
                .and_then(counted),
        }
    }
}

/// Energy between two samples, or the sum of several such times.
#[derive(Clone, Debug)]
pub struct Spent {
    facts: Arc<Facts>,
    elapsed: Duration,
    counted: Result<Counted, Lost>,
}

impl Spent {
    /// Adds two times of the same meter, of which any may be missing.
    pub fn sum(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        }
    }

    /// Adds another time of the same meter.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let counted = self.counted.and_then(|one| Ok(one.and(other.counted?)));
        Self {
            facts: other.facts,
            elapsed: self.elapsed + other.elapsed,
            counted,
        }
    }

    /// Returns the reading, unless the meter lost count or moved too few times.
    pub fn energy(self) -> Energy {
        let Counted {
            joules,
            parts,
            steps,
        } = match self.counted {
            Ok(counted) => counted,
            Err(why) => return Energy::unknown(why),
        };
        let Facts {
            boundary,
            idle_watts,
            steps_min,
        } = *self.facts;
        if steps < steps_min {
            return Energy::unknown(match steps {
                0 => "the meter did not move; measure longer".to_owned(),
                _ => format!(
                    "the meter moved only {steps} times; measure until it moves {steps_min} times"
                ),
            });
        }
        match Reading::new(boundary, joules, self.elapsed, idle_watts) {
            Some(reading) => Energy::Read(Reading { parts, ..reading }),
            None => Energy::unknown(NO_TIME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steps {
        counts: Vec<Result<Counted, Lost>>,
        steps_min: u64,
    }

    impl Source for Steps {
        fn count(&mut self, _now: Instant) -> Result<Counted, Lost> {
            self.counts.remove(0)
        }

        fn steps_min(&self) -> u64 {
            self.steps_min
        }

        fn period(&self) -> Duration {
            Duration::from_secs(3600)
        }
    }

    fn meter(steps_min: u64, counts: &[Result<(f64, u64), &str>]) -> Meter {
        let counts = counts.iter().map(|count| match *count {
            Ok((joules, steps)) => Ok(Counted {
                joules,
                steps,
                ..Counted::default()
            }),
            Err(why) => Err(why.to_owned()),
        });
        Meter::watch(Found {
            boundary: Boundary::Battery,
            source: Box::new(Steps {
                counts: counts.collect(),
                steps_min,
            }),
        })
    }

    #[test]
    fn too_few_steps_are_unknown() {
        let meter = meter(
            3,
            &[Ok((1.0, 1)), Ok((1.0, 1)), Ok((9.0, 3)), Ok((13.0, 4))],
        );
        let samples = [(); 4].map(|()| meter.sample());
        let told = |later: usize| samples[0].until(&samples[later]).energy().to_string();
        assert_eq!(told(1), "unknown: the meter did not move; measure longer");
        assert_eq!(
            told(2),
            "unknown: the meter moved only 2 times; measure until it moves 3 times"
        );
        let energy = samples[0].until(&samples[3]).energy();
        assert!((energy.reading().unwrap().joules - 12.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_lost_stays_lost() {
        let counts = [Ok((1.0, 1)), Err("the meter ended"), Ok((9.0, 3))];
        let meter = meter(1, &counts);
        let samples = [(); 3].map(|()| meter.sample());
        for later in [1, 2] {
            assert_eq!(
                samples[0].until(&samples[later]).energy(),
                Energy::unknown("the meter ended")
            );
        }
        assert_eq!(
            samples[1].until(&samples[2]).energy(),
            Energy::unknown("the meter ended")
        );
    }

    #[test]
    fn the_time_in_which_the_machine_slept_is_unknown_and_no_other() {
        let meter = meter(1, &[Ok((1.0, 1)), Ok((3.0, 3)), Ok((7.0, 4))]);
        let mut samples = [(); 3].map(|()| meter.sample());
        for woken in &mut samples[1..] {
            woken.asleep.0 += Duration::from_secs(60);
        }
        let energy = |at: usize| samples[at].until(&samples[at + 1]).energy();
        assert_eq!(energy(0), Energy::unknown("the machine slept"));
        assert!(energy(1).reading().is_some());
        assert_eq!(samples[2].joules(), Some(7.0), "a total of both");
    }

    #[test]
    fn a_sum_needs_the_steps_of_all_and_no_lost_part() {
        let counts = [Ok((1.0, 1)), Ok((3.0, 3)), Ok((7.0, 4)), Err("it ended")];
        let meter = meter(3, &counts);
        let samples = [(); 4].map(|()| meter.sample());
        let part = |at: usize| samples[at].until(&samples[at + 1]);
        assert_eq!(part(0).energy().reading(), None);
        let sum = part(0).and(part(1)).energy();
        let whole = samples[0].until(&samples[2]).energy();
        assert_eq!(sum, whole);
        assert!(
            sum.reading()
                .is_some_and(|sum| (sum.joules - 6.0).abs() < 1e-9)
        );
        let lost = Energy::unknown("it ended");
        assert_eq!(part(0).and(part(2)).energy(), lost);
        assert_eq!(part(2).and(part(0)).energy(), lost);
    }

    #[test]
    fn idle_power_stands_beside() {
        let counts = [Ok((0.0, 0)), Ok((8.0, 2)), Ok((9.0, 3)), Ok((29.0, 4))];
        let mut meter = meter(1, &counts);
        let before = meter.sample();
        meter.rested_since(&before).unwrap();
        let load = meter.sample();
        let energy = load.until(&meter.sample()).energy();
        let reading = energy.reading().unwrap();
        assert!(
            (reading.joules - 20.0).abs() < 1e-9,
            "nothing is subtracted"
        );
        assert!(reading.idle_watts.is_some_and(|watts| watts > 0.0));
    }

    #[test]
    fn rest_that_cannot_be_measured_is_an_error() {
        let mut meter = meter(1, &[Ok((0.0, 0)), Ok((0.0, 0))]);
        let before = meter.sample();
        let error = meter.rested_since(&before).unwrap_err().to_string();
        assert!(
            error.contains("did not move") && error.contains("--idle-s"),
            "{error}"
        );
    }
}
