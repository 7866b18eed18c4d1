//! Whom the processes of one journal wait for, live: the blame over the last seconds, and totals
//! of control groups.
//!
//! This needs the start and the end of each sync and commit, which costs several times as much as
//! counting: a caller watches only while somebody looks.

mod totals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use luc_bpf::{Detail, Means, Settings, Tracer, TracerError};
use luc_control::Dev;
use luc_host::{System, process, watching};
use luc_model::Observed;
use luc_model::blame::{Blame, By, blame, blame_within};
use luc_trace::{SPAN_BYTES, Sight, Span, SpanKind, Trace};

use crate::WatchError;
use crate::time::now_ns;
pub use totals::{BlameTotals, Party};

/// Time that a sample covers: long enough for rare syncs, short enough to follow a change.
pub const WINDOW: Duration = Duration::from_secs(10);
/// A sync ends shortly after the commit that served it. Commits younger than this wait for their
/// syncs, or they would seem to be nobody's.
const SETTLING_NS: u64 = 100_000_000;
/// Most spans in the window, 18 MB of them: a larger sample would take too long.
const SPANS_MAX: usize = 200_000;
/// Totals are added up this often, while the window still holds what ran before.
const ADDED_UP_EVERY_NS: u64 = 5_000_000_000;
/// With more names than this, and twice as many as are needed, those of dead threads go.
const NAMES_MIN: usize = 10_000;

/// The blame over the last seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct BlameSample {
    pub device: Dev,
    /// Time that it covers.
    pub covered: Duration,
    /// Spans that were lost since the watch began.
    pub lost: u64,
    pub processes: Blame,
    pub control_groups: Blame,
}

/// A watch of one journal.
pub struct BlameWatch {
    device: Dev,
    tracer: Tracer,
    window: Window,
    cgroups: BTreeMap<u64, String>,
    /// Control groups that were looked for: one that was not found is not looked for again.
    sought: BTreeSet<u64>,
    totals: BlameTotals,
}

impl BlameWatch {
    /// Attaches a tracer of its own.
    ///
    /// # Errors
    /// Nothing can be traced here, or not when syncs ask for commits.
    pub fn new(device: Dev, means: Option<Means>, system: &dyn System) -> Result<Self, WatchError> {
        let mut settings = Settings::new(vec![device], Detail::Spans);
        settings.means = means.map_or(settings.means, |one| vec![one]);
        let tracer = watching::attach(&settings, system)
            .map_err(|error| WatchError::untraceable(error, system))?;
        if tracer.attached().unseen().contains(&Sight::Flushes) {
            let why = "it cannot be seen here when they ask for commits; see `luc probe`";
            return Err(WatchError::trace("syncs", why));
        }
        // Not before all programs are attached.
        let begin_ns = now_ns();
        Ok(Self {
            device,
            tracer,
            window: Window {
                begin_ns,
                added_up_ns: begin_ns,
                ..Window::default()
            },
            cgroups: BTreeMap::new(),
            sought: BTreeSet::new(),
            totals: BlameTotals::default(),
        })
    }

    pub fn device(&self) -> Dev {
        self.device
    }

    /// Empties the ring of spans; to be called several times a second.
    pub fn poll(&mut self) {
        let window = &mut self.window;
        self.tracer.poll(|taken| window.take(taken));
    }

    /// Blames for the time up to now.
    pub fn sample(&mut self, system: &dyn System) -> Result<BlameSample, WatchError> {
        self.poll();
        let now_ns = now_ns();
        let lost = self.lost();
        let lost = lost.map_err(|error| WatchError::untraceable(error, system))?;
        let (trace, observed) = self.observe(now_ns, system);
        Ok(BlameSample {
            device: self.device,
            covered: Duration::from_nanos(now_ns.saturating_sub(self.window.begin_ns)),
            lost,
            processes: blame(&trace, &observed, By::Process),
            control_groups: blame(&trace, &observed, By::ControlGroup),
        })
    }

    /// Empties the ring of spans, and keeps totals of control groups; to be called several times a
    /// second.
    pub fn add_up(&mut self, system: &dyn System) {
        self.poll();
        let now_ns = now_ns();
        // A sync or a wait shortly before may belong to a commit that is too young.
        let until_ns = now_ns.saturating_sub(SETTLING_NS);
        if until_ns < self.window.added_up_ns.saturating_add(ADDED_UP_EVERY_NS) {
            return;
        }
        let (trace, observed) = self.observe(now_ns, system);
        let ended_ns = self.window.added_up_ns + 1..=until_ns;
        let blame = blame_within(&trace, &observed, By::ControlGroup, &ended_ns);
        self.totals.add(&blame);
        self.window.added_up_ns = until_ns;
        self.window.forget_dead(system);
    }

    /// The totals of [`BlameWatch::add_up`].
    pub fn totals(&self) -> &BlameTotals {
        &self.totals
    }

    /// Spans that were lost since the watch began.
    ///
    /// # Errors
    /// The tracer cannot be read.
    pub fn lost(&self) -> Result<u64, TracerError> {
        Ok(self.tracer.lost()?.saturating_add(self.window.unknown))
    }

    /// Spans that are not in the totals: lost, or too many to be kept.
    ///
    /// # Errors
    /// The tracer cannot be read.
    pub fn not_added_up(&self) -> Result<u64, TracerError> {
        Ok(self.lost()?.saturating_add(self.window.dropped))
    }

    /// The window up to now.
    fn observe(&mut self, now_ns: u64, system: &dyn System) -> (Trace, Observed) {
        self.window.cut(now_ns);
        let known = self.sought.len();
        self.sought.extend(self.window.groups());
        if self.sought.len() > known {
            self.cgroups = process::cgroups(system);
            let exist: BTreeSet<&str> = self.cgroups.values().map(String::as_str).collect();
            self.totals.forget(|group| exist.contains(group));
        }
        let mut trace = self.window.trace(now_ns);
        trace.cgroups.clone_from(&self.cgroups);
        trace.unseen = self.tracer.attached().unseen();
        let observed = Observed::from_trace(&trace, self.device);
        (trace, observed)
    }
}

/// The spans of the last seconds, in the order in which they were taken.
#[derive(Default)]
struct Window {
    begin_ns: u64,
    spans: VecDeque<Span>,
    /// The names of threads, which are reported once.
    names: BTreeMap<u32, Span>,
    /// The number of names that were needed when the dead were forgotten.
    needed: usize,
    /// The totals hold all spans that ended until then, ns.
    added_up_ns: u64,
    /// Spans that were dropped before they were added up.
    dropped: u64,
    /// Records of a kind that this build does not know.
    unknown: u64,
}

impl Window {
    fn take(&mut self, taken: &[[u8; SPAN_BYTES]]) {
        for bytes in taken {
            match Span::from_bytes(bytes) {
                Some(span) if span.kind == SpanKind::Task => {
                    self.names.insert(span.pid, span);
                }
                Some(span) => self.spans.push_back(span),
                None => self.unknown += 1,
            }
        }
        while self.spans.len() > SPANS_MAX {
            let end_ns = self.spans.pop_front().map_or(0, |span| span.end_ns);
            self.begin_ns = end_ns.max(self.begin_ns);
            self.dropped += u64::from(end_ns > self.added_up_ns);
        }
    }

    /// Drops what ended before the window.
    fn cut(&mut self, now_ns: u64) {
        let window_ns = u64::try_from(WINDOW.as_nanos()).unwrap_or(u64::MAX);
        self.begin_ns = now_ns.saturating_sub(window_ns).max(self.begin_ns);
        let (begin_ns, added_up_ns) = (self.begin_ns, self.added_up_ns);
        let dropped = &mut self.dropped;
        self.spans.retain(|span| {
            let old = span.end_ns < begin_ns;
            *dropped += u64::from(old && span.end_ns > added_up_ns);
            !old
        });
    }

    /// The numbers of the control groups.
    fn groups(&self) -> impl Iterator<Item = u64> {
        self.names.values().map(|name| name.object)
    }

    /// Drops the names of threads that are neither in the window nor alive: a watch may last for
    /// months.
    fn forget_dead(&mut self, system: &dyn System) {
        if self.names.len() <= NAMES_MIN.max(2 * self.needed) {
            return;
        }
        let inside: BTreeSet<u32> = self.spans.iter().map(|span| span.pid).collect();
        let alive = |pid: &u32| system.exists(&format!("/proc/{pid}"));
        self.names
            .retain(|pid, _| inside.contains(pid) || alive(pid));
        self.needed = self.names.len();
    }

    fn trace(&self, now_ns: u64) -> Trace {
        let settled_ns = now_ns.saturating_sub(SETTLING_NS);
        let settled = |span: &&Span| span.kind != SpanKind::Commit || span.end_ns <= settled_ns;
        let spans = self.spans.iter().filter(settled);
        Trace::from_spans(self.names.values().chain(spans).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_host::Machine;

    const MS: u64 = 1_000_000;

    fn commit(begin_ms: u64, end_ms: u64) -> Span {
        Span::new(SpanKind::Commit, begin_ms * MS, end_ms * MS)
    }

    fn window(spans: &[Span]) -> Window {
        let mut window = Window::default();
        let bytes: Vec<_> = spans.iter().map(Span::to_bytes).collect();
        window.take(&bytes);
        window
    }

    #[test]
    fn the_window_slides_and_keeps_names() {
        let name = Span {
            pid: 7,
            tgid: 7,
            object: 42,
            ..Span::new(SpanKind::Task, 0, 0)
        };
        let name = name.with_name("dpkg");
        let mut window = window(&[name, commit(1_000, 2_000), commit(2_000, 3_000)]);
        window.cut(12_500 * MS);
        let trace = window.trace(12_500 * MS);
        assert_eq!(trace.spans, [commit(2_000, 3_000)]);
        assert_eq!(window.dropped, 1, "the first was never added up");
        assert_eq!(trace.task_name(7), "dpkg");
        assert_eq!(window.groups().collect::<Vec<_>>(), [42]);
        assert_eq!(window.begin_ns, 2_500 * MS);
    }

    #[test]
    fn a_commit_waits_for_its_syncs() {
        let window = window(&[commit(100, 200), commit(200, 350)]);
        assert_eq!(window.trace(400 * MS).spans, [commit(100, 200)]);
        assert_eq!(window.trace(450 * MS).spans.len(), 2);
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let spans: Vec<Span> = (0..=SPANS_MAX as u64)
            .map(|at| commit(at, at + 1))
            .collect();
        let window = window(&spans);
        assert_eq!(window.spans.len(), SPANS_MAX);
        assert_eq!((window.begin_ns, window.dropped), (MS, 1));
    }

    /// The names of threads that are needed or alive stay; here, none is alive.
    #[test]
    fn the_names_of_the_dead_go() {
        let name = |pid| Span {
            pid,
            ..Span::new(SpanKind::Task, 0, 0)
        };
        let needed = Span {
            pid: 5,
            ..commit(1_000, 2_000)
        };
        let threads = 1..=u32::try_from(NAMES_MIN).expect("few") + 1;
        let spans: Vec<Span> = threads.map(name).chain([needed]).collect();
        let mut window = window(&spans);
        let root = tempfile::tempdir().expect("temporary folder");
        window.forget_dead(&Machine::new(root.path()));
        assert_eq!(window.names.keys().collect::<Vec<_>>(), [&5]);
    }
}
