//! The state of the view, and its changes: [`State::step`] takes an event
//! and returns the action to take. It reads no clock and touches no file.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use luc_control::{Dev, POLICY, knob, policy_words};

use luc_model::blame::{Blame, WaitedFor, Waiter};
use luc_watch::blame::BlameSample;
use luc_watch::sample::{JournalSample, ProcessSample, Snapshot};

/// Intervals that can be chosen with + and -, s.
const INTERVALS: [f64; 9] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0];

/// Number of samples kept per journal: as many as the widest terminal shows.
const HISTORY: usize = 512;

const SHOWN: Duration = Duration::from_secs(5);

/// A key, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Quit,
    Up,
    Down,
    Sort,
    Policy,
    /// Observe or steer.
    Mode,
    /// Pause or resume.
    Pause,
    Slower,
    Faster,
    Help,
    /// Whom the processes wait for, the same by control group, or the processes again.
    Blame,
    /// Type a filter of processes.
    Filter,
    /// While a filter is typed: one more character, one less, keep it, drop it.
    Type(char),
    Erase,
    Keep,
    Drop,
}

#[derive(Clone, Debug)]
pub enum Event {
    Key(Key),
    Sample(Snapshot),
    Blamed(BlameSample),
    /// Nobody can be blamed here, and why.
    Unblamed(String),
    Done(String),
    Failed(String),
    Tick,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// Set a knob of a journal that LUC is on for.
    Set {
        device: Dev,
        /// The path that users see.
        shown: String,
        /// Name of the knob, or [`POLICY`] with the number of a policy.
        knob: &'static str,
        value: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Syncs,
    Lost,
    Name,
    Cgroup,
}

/// The table below the journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Processes,
    BlameOfProcesses,
    BlameOfGroups,
}

/// A line that is shown for `SHOWN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub bad: bool,
    until: Duration,
}

/// A sample of a journal for the sparklines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    pub syncs_per_s: u64,
    /// 99th percentile of the syncs' durations, us.
    pub p99_us: u64,
}

#[derive(Clone, Debug)]
pub struct State {
    /// The latest sample; `None` before the first interval is over.
    pub snapshot: Option<Snapshot>,
    pub interval: Duration,
    /// Whether samples are ignored.
    pub paused: bool,
    pub help: bool,
    pub view: View,
    /// The latest blame, of the journal that was chosen then.
    blame: Option<BlameSample>,
    pub sort: Sort,
    /// Only processes with this text in their name or control group are shown.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// The line shown at present.
    pub message: Option<Message>,
    /// The chosen journal: it stays chosen when others come and go.
    chosen: Option<Dev>,
    history: HashMap<Dev, VecDeque<Point>>,
}

impl State {
    pub fn new(interval: Duration) -> Self {
        State {
            snapshot: None,
            interval,
            paused: false,
            help: false,
            view: View::Processes,
            blame: None,
            sort: Sort::Syncs,
            filter: String::new(),
            typing: false,
            message: None,
            chosen: None,
            history: HashMap::new(),
        }
    }

    pub fn journals(&self) -> &[JournalSample] {
        self.snapshot
            .as_ref()
            .map_or(&[], |snapshot| &snapshot.journals)
    }

    /// The index of the chosen journal; that of the first one if none was chosen.
    pub fn chosen_at(&self) -> usize {
        let found = self
            .journals()
            .iter()
            .position(|one| Some(one.device) == self.chosen);
        found.unwrap_or(0)
    }

    pub fn chosen(&self) -> Option<&JournalSample> {
        self.journals().get(self.chosen_at())
    }

    /// The latest samples of the chosen journal, oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Point> + ExactSizeIterator {
        static NOTHING: VecDeque<Point> = VecDeque::new();
        let device = self.chosen().map(|one| one.device);
        device
            .and_then(|device| self.history.get(&device))
            .unwrap_or(&NOTHING)
            .iter()
    }

    pub fn processes(&self) -> Vec<&ProcessSample> {
        let all = self
            .snapshot
            .as_ref()
            .map(|snapshot| snapshot.processes.iter());
        let mut all: Vec<_> = all.into_iter().flatten().collect();
        all.retain(|process| {
            let cgroup = process.cgroup.as_deref().unwrap_or_default();
            process.name.contains(&self.filter) || cgroup.contains(&self.filter)
        });
        // Processes with an unknown value come last.
        let lost = |process: &ProcessSample| process.lost_ns_per_s.unwrap_or(-1.0);
        let lost_most = |a: &ProcessSample, b: &ProcessSample| lost(b).total_cmp(&lost(a));
        all.sort_by(|one, other| {
            let syncs = other.syncs_per_s.total_cmp(&one.syncs_per_s);
            let by = match self.sort {
                Sort::Syncs => syncs.then_with(|| lost_most(one, other)),
                Sort::Lost => lost_most(one, other).then(syncs),
                Sort::Name => one.name.cmp(&other.name).then(syncs),
                Sort::Cgroup => {
                    let unknown = one.cgroup.is_none().cmp(&other.cgroup.is_none());
                    unknown
                        .then_with(|| one.cgroup.cmp(&other.cgroup))
                        .then(syncs)
                }
            };
            by.then(one.pid.cmp(&other.pid))
        });
        all
    }

    /// The journal whose blame is shown.
    pub fn blamed(&self) -> Option<Dev> {
        let shown = self.view != View::Processes;
        self.chosen().map(|one| one.device).filter(|_| shown)
    }

    /// The blame that is shown; `None` until it is known.
    pub fn blame(&self) -> Option<(&BlameSample, &Blame)> {
        let sample = self.blame.as_ref()?;
        let blame = match self.view {
            View::Processes => return None,
            View::BlameOfProcesses => &sample.processes,
            View::BlameOfGroups => &sample.control_groups,
        };
        (Some(sample.device) == self.blamed()).then_some((sample, blame))
    }

    /// The parties of the blame that is shown, as they are filtered and sorted.
    pub fn waiters(&self) -> Vec<&Waiter> {
        let Some((_, blame)) = self.blame() else {
            return Vec::new();
        };
        let holds = |text: Option<&str>| text.unwrap_or_default().contains(&self.filter);
        let mut all: Vec<&Waiter> = blame.waiters.iter().collect();
        all.retain(|it| {
            let most = it.waited_for.first();
            holds(Some(&it.name))
                || holds(it.cgroup.as_deref())
                || holds(most.and_then(|most| most.name.as_deref()))
        });
        let lost_ns = |it: &Waiter| -> f64 { it.waited_for.iter().map(WaitedFor::total_ns).sum() };
        all.sort_by(|one, other| {
            let caused = other.commits_asked.cmp(&one.commits_asked);
            let lost = lost_ns(other).total_cmp(&lost_ns(one));
            let by = match self.sort {
                Sort::Syncs => caused.then(lost),
                Sort::Lost => lost.then(caused),
                Sort::Name => one.name.cmp(&other.name).then(caused),
                Sort::Cgroup => {
                    let unknown = one.cgroup.is_none().cmp(&other.cgroup.is_none());
                    unknown
                        .then_with(|| one.cgroup.cmp(&other.cgroup))
                        .then_with(|| match self.view {
                            View::BlameOfGroups => one.name.cmp(&other.name),
                            _ => caused,
                        })
                }
            };
            by.then_with(|| (&one.name, &one.cgroup).cmp(&(&other.name, &other.cgroup)))
        });
        all
    }

    /// The state after an event at the time `now`, and the action to take.
    #[must_use]
    pub fn step(mut self, event: Event, now: Duration) -> (Self, Option<Action>) {
        if self
            .message
            .as_ref()
            .is_some_and(|message| message.until <= now)
        {
            self.message = None;
        }
        let action = match event {
            Event::Key(key) => self.press(key, now),
            Event::Sample(snapshot) if !self.paused => {
                self.take(snapshot);
                None
            }
            Event::Blamed(sample) if !self.paused => {
                self.blame = Some(sample);
                None
            }
            Event::Sample(_) | Event::Blamed(_) | Event::Tick => None,
            Event::Unblamed(text) => {
                self.view = View::Processes;
                self.say(text, true, now)
            }
            Event::Done(text) => self.say(text, false, now),
            Event::Failed(text) => self.say(text, true, now),
        };
        (self, action)
    }

    fn say(&mut self, text: String, bad: bool, now: Duration) -> Option<Action> {
        self.message = Some(Message {
            text,
            bad,
            until: now + SHOWN,
        });
        None
    }

    fn press(&mut self, key: Key, now: Duration) -> Option<Action> {
        match key {
            Key::Quit => return Some(Action::Quit),
            Key::Up => self.choose(self.chosen_at().saturating_sub(1)),
            Key::Down => self.choose(self.chosen_at() + 1),
            Key::Sort => {
                self.sort = match self.sort {
                    Sort::Syncs => Sort::Lost,
                    Sort::Lost => Sort::Name,
                    Sort::Name => Sort::Cgroup,
                    Sort::Cgroup => Sort::Syncs,
                }
            }
            Key::Policy => return self.cycle(POLICY, now),
            Key::Mode => return self.cycle("mode", now),
            Key::Pause => self.paused = !self.paused,
            Key::Slower => {
                let longer = |s: &&f64| **s > self.interval.as_secs_f64() + 1e-6;
                self.pace(INTERVALS.iter().find(longer));
            }
            Key::Faster => {
                let shorter = |s: &&f64| **s < self.interval.as_secs_f64() - 1e-6;
                self.pace(INTERVALS.iter().rev().find(shorter));
            }
            Key::Help => self.help = !self.help,
            Key::Blame => {
                self.view = match self.view {
                    View::Processes => View::BlameOfProcesses,
                    View::BlameOfProcesses => View::BlameOfGroups,
                    View::BlameOfGroups => View::Processes,
                }
            }
            Key::Filter => self.typing = true,
            Key::Type(letter) => self.filter.push(letter),
            Key::Erase => drop(self.filter.pop()),
            Key::Keep => self.typing = false,
            Key::Drop => {
                self.typing = false;
                self.filter.clear();
            }
        }
        None
    }

    fn pace(&mut self, interval_s: Option<&f64>) {
        if let Some(interval_s) = interval_s {
            self.interval = Duration::from_secs_f64(*interval_s);
        }
    }

    fn choose(&mut self, at: usize) {
        let last = self.journals().len().saturating_sub(1);
        let device = self.journals().get(at.min(last)).map(|one| one.device);
        self.chosen = device.or(self.chosen);
    }

    /// Asks to set a knob of the chosen journal to its next word.
    fn cycle(&mut self, name: &'static str, now: Duration) -> Option<Action> {
        let Some(journal) = self.chosen() else {
            return self.say("there is no journal to set it for".into(), true, now);
        };
        let shown = super::text::place(journal);
        let device = journal.device;
        let Some(luc) = &journal.luc else {
            let text = format!("LUC is not on for {shown}; switch it on with `luc on {shown}`");
            return self.say(text, true, now);
        };
        let (word, words) = if name == POLICY {
            (&luc.policy, policy_words().collect())
        } else {
            (&luc.mode, knob(name).ok()?.words())
        };
        // A policy without a name, or a word of a newer module: start with the first word.
        let next = words.iter().position(|one| one == word);
        let next = next.map_or(0, |at| (at + 1) % words.len().max(1));
        Some(Action::Set {
            device,
            shown,
            knob: name,
            value: i64::try_from(next).ok()?,
        })
    }

    fn take(&mut self, snapshot: Snapshot) {
        let here = |device: &Dev| snapshot.journals.iter().any(|one| one.device == *device);
        self.history.retain(|device, _| here(device));
        for journal in &snapshot.journals {
            let points = self.history.entry(journal.device).or_default();
            if points.len() >= HISTORY {
                points.pop_front();
            }
            points.push_back(point(journal));
        }
        self.snapshot = Some(snapshot);
        self.choose(self.chosen_at());
    }
}

/// Takes the tracer's figures, or else the module's, which have no durations of syncs.
fn point(journal: &JournalSample) -> Point {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of events, never below nothing"
    )]
    let whole = |rate: f64| rate.round() as u64;
    match (&journal.traced, &journal.luc) {
        (Some(traced), _) => Point {
            syncs_per_s: whole(traced.syncs_per_s),
            p99_us: traced.sync_p99_ns.unwrap_or(0) / 1000,
        },
        (None, Some(luc)) => Point {
            syncs_per_s: luc
                .rates
                .as_ref()
                .and_then(|rates| rates.sync_events_per_s)
                .map_or(0, whole),
            p99_us: 0,
        },
        (None, None) => Point::default(),
    }
}
