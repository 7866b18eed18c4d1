//! Waits for a processor: how long the threads of journals waited for one, which processes kept the
//! processors busy meanwhile, and which control groups used all the time that their `cpu.max`
//! allows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use luc_control::Dev;
use luc_trace::Process;

use crate::io_limits::Group;
use crate::journal;
use crate::process;
use crate::system::System;

/// How long a journal's thread was ready to run and had no processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadWait {
    pub pid: u32,
    /// As a share of the time that was measured.
    pub waited_share: f64,
    /// The share of that time for which it ran.
    pub ran_share: f64,
}

/// The processes of one name and control group that used most processor time.
#[derive(Clone, Debug, PartialEq)]
pub struct Busiest {
    pub process: Process,
    /// Their share of the time that all processes used.
    pub used_share: f64,
}

/// A control group with a limit on its processor time.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuLimit {
    /// Path of the group in the hierarchy.
    pub cgroup: String,
    /// As `cpu.max` writes it, such as `10000 100000`.
    pub setting: String,
    /// The share of its periods in which it used all of its limit, and had to wait.
    pub throttled_share: f64,
}

/// Waits for processors since the start.
#[derive(Debug)]
pub struct ProcessorWaits {
    pub threads: BTreeMap<Dev, ThreadWait>,
    /// The share of the processors' time in which they were busy.
    pub busy_share: Option<f64>,
    pub busiest: Option<Busiest>,
    pub limits: Vec<CpuLimit>,
}

/// A measurement that has started.
#[derive(Debug)]
pub struct Measuring {
    threads: BTreeMap<Dev, Thread>,
    processors: Option<Processors>,
    since: Instant,
    used: BTreeMap<u32, Used>,
    limits: Vec<(Group, String, Periods)>,
}

/// A thread, and its times since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    pid: u32,
    ran_ns: u64,
    waited_ns: u64,
}

/// Time of all processors, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processors {
    idle: u64,
    all: u64,
}

/// Processor time of a process and of its ended children, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    parent: u32,
    ticks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Periods {
    all: u64,
    throttled: u64,
}

/// Starts to measure for the journals of these file systems.
pub fn measure(system: &dyn System, devices: &[Dev], groups: &[Group]) -> Measuring {
    let limits = groups.iter().filter_map(|group| {
        // The root group has no limit.
        let setting = group.read(system, "cpu.max")?.trim_end().to_owned();
        let limited = !setting.starts_with("max");
        limited.then(|| Some((group.clone(), setting, Periods::of(system, group)?)))?
    });
    Measuring {
        threads: threads(system, devices.iter().copied()),
        processors: Processors::now(system),
        since: Instant::now(),
        used: used(system),
        limits: limits.collect(),
    }
}

impl Measuring {
    /// Returns the waits since the start; a thread or a group that is gone is left out.
    pub fn end(self, system: &dyn System) -> ProcessorWaits {
        let time = self.since.elapsed();
        self.after(system, time)
    }

    fn after(self, system: &dyn System, time: Duration) -> ProcessorWaits {
        let now = threads(system, self.threads.keys().copied());
        let since = |(device, now): (Dev, Thread)| {
            let before = self.threads[&device];
            let share = |now_ns: u64, before_ns: u64| {
                let since_ns = now_ns.saturating_sub(before_ns) as f64;
                (since_ns / time.as_nanos().max(1) as f64).min(1.0)
            };
            let wait = ThreadWait {
                pid: now.pid,
                waited_share: share(now.waited_ns, before.waited_ns),
                ran_share: share(now.ran_ns, before.ran_ns),
            };
            (now.pid == before.pid).then_some((device, wait))
        };
        let threads = now.into_iter().filter_map(since).collect();
        let limits = self
            .limits
            .into_iter()
            .filter_map(|(group, setting, before)| {
                let throttled_share = Periods::of(system, &group)?.throttled_share_since(before)?;
                Some(CpuLimit {
                    cgroup: group.path,
                    setting,
                    throttled_share,
                })
            });
        ProcessorWaits {
            threads,
            busy_share: Processors::now(system)
                .zip(self.processors)
                .and_then(|(now, before)| now.busy_share_since(before)),
            busiest: busiest(system, self.used),
            limits: limits.collect(),
        }
    }
}

/// How long the threads of journals have waited since they began.
fn threads(system: &dyn System, devices: impl Iterator<Item = Dev>) -> BTreeMap<Dev, Thread> {
    let wait = |device| {
        let pid = journal::thread_of(system, device)?;
        // In a container this number may be another task's.
        let name = system.read(&format!("/proc/{pid}/comm")).ok()?;
        name.starts_with("jbd2/").then_some(())?;
        // Time on a processor, time spent waiting for one, number of turns.
        let text = system.read(&format!("/proc/{pid}/schedstat")).ok()?;
        let mut fields = text.split_whitespace().map(|field| field.parse().ok());
        let (ran_ns, waited_ns) = (fields.next()??, fields.next()??);
        let thread = Thread {
            pid,
            ran_ns,
            waited_ns,
        };
        Some((device, thread))
    };
    devices.filter_map(wait).collect()
}

fn used(system: &dyn System) -> BTreeMap<u32, Used> {
    let pids = system.list("/proc").unwrap_or_default();
    let used = pids.iter().filter_map(|name| {
        let pid: u32 = name.parse().ok()?;
        let text = system.read(&format!("/proc/{pid}/stat")).ok()?;
        Some((pid, Used::parse(&text)?))
    });
    used.collect()
}

impl Used {
    /// Reads the parent, and four times in ticks, which follow the name in brackets; the name may
    /// have brackets, too.
    fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let parent = u32::try_from(number(1)?).ok()?;
        let ticks = (11..15).map(number).sum::<Option<u64>>()?;
        Some(Self { parent, ticks })
    }
}

/// The processes that used most since `before`. The kernel adds the whole time of an ended child to
/// its parent's, so what the child had used before does not count for the parent.
fn busiest(system: &dyn System, before: BTreeMap<u32, Used>) -> Option<Busiest> {
    let now = used(system);
    let mut earlier: BTreeMap<u32, u64> = BTreeMap::new();
    for (pid, used) in before {
        let counts_for = if now.contains_key(&pid) {
            pid
        } else {
            used.parent
        };
        *earlier.entry(counts_for).or_default() += used.ticks;
    }
    let mut since: BTreeMap<Process, u64> = BTreeMap::new();
    for (pid, used) in now {
        let ticks = used
            .ticks
            .saturating_sub(earlier.get(&pid).copied().unwrap_or(0));
        if let Some(process) = (ticks > 0).then(|| process::running(system, pid)).flatten() {
            *since.entry(process).or_default() += ticks;
        }
    }
    let all: u64 = since.values().sum();
    let (process, most) = since.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    Some(Busiest {
        process,
        used_share: most as f64 / all as f64,
    })
}

impl Processors {
    /// Reads times in ticks: of programs, nice ones, the kernel, idle time, idle time in which I/O
    /// was in progress, and more.
    fn now(system: &dyn System) -> Option<Self> {
        let text = system.read("/proc/stat").ok()?;
        let times = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Option<Vec<u64>> = times.split_whitespace().map(|it| it.parse().ok()).collect();
        let times = times?;
        Some(Self {
            idle: times.get(3)? + times.get(4)?,
            // The rest are parts of the first two.
            all: times.iter().take(8).sum(),
        })
    }

    /// `None` if no time has passed.
    fn busy_share_since(self, before: Self) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle).min(all);
        (all > 0).then(|| (all - idle) as f64 / all as f64)
    }
}

impl Periods {
    fn of(system: &dyn System, group: &Group) -> Option<Self> {
        let text = group.read(system, "cpu.stat")?;
        let number = |key: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
            pairs.find_map(|(name, value)| (name == key).then(|| value.parse().ok())?)
        };
        Some(Self {
            all: number("nr_periods")?,
            throttled: number("nr_throttled")?,
        })
    }

    /// `None` if there was no period since: nothing in the group ran.
    fn throttled_share_since(self, before: Self) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let throttled = self.throttled.saturating_sub(before.throttled);
        (all > 0).then(|| (throttled as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{io_limits, tree};

    const DEVICE: Dev = Dev { major: 8, minor: 1 };

    /// A process with these times of its own and of its children.
    fn stat(name: &str, parent: u32, own: u64, children: u64) -> String {
        format!("9 ({name}) S {parent} 1 1 0 -1 64 2 3 4 5 {own} 0 0 {children} 20 0 1 0 77\n")
    }

    #[test]
    fn fields_follow_the_last_bracket() {
        let used = Used::parse(&stat("a) S 1 (b", 4, 250, 30));
        let want = Used {
            parent: 4,
            ticks: 280,
        };
        assert_eq!(used, Some(want));
        assert_eq!(Used::parse("9 (a) S"), None);
        assert_eq!(Used::parse(""), None);
    }

    #[test]
    fn waits_are_those_since_the_start() {
        let (folder, machine) = tree(&[
            ("sys/block/sda/sda1/dev", "8:1\n"),
            ("sys/fs/ext4/sda1/journal_task", "20\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:27 / /cg rw - cgroup2 none rw\n",
            ),
            ("cg/low/cpu.max", "10000 100000\n"),
            (
                "cg/low/cpu.stat",
                "usage_usec 5\nnr_periods 10\nnr_throttled 1\n",
            ),
            ("cg/free/cpu.max", "max 100000\n"),
            ("cg/free/cpu.stat", "nr_periods 0\nnr_throttled 0\n"),
            ("proc/stat", "cpu  10 0 10 100 20 0 0 0 5 0\ncpu0 1 2\n"),
            ("proc/20/comm", "jbd2/sda1-8\n"),
            ("proc/20/schedstat", "500 7000 3\n"),
            ("proc/20/stat", &stat("jbd2/sda1-8", 2, 0, 0)),
            ("proc/30/comm", "make\n"),
            ("proc/30/stat", &stat("make", 1, 10, 0)),
            ("proc/31/comm", "cc1\n"),
            ("proc/31/stat", &stat("cc1", 30, 1000, 0)),
            ("proc/40/comm", "postgres\n"),
            ("proc/40/stat", &stat("postgres", 1, 5, 0)),
            ("proc/41/comm", "postgres\n"),
            ("proc/41/stat", &stat("postgres", 40, 5, 0)),
        ]);
        let links = folder.path().join("sys/dev/block");
        fs::create_dir_all(&links).expect("made");
        fs::create_dir_all(folder.path().join("sys/class/block")).expect("made");
        std::os::unix::fs::symlink("../../block/sda/sda1", links.join("8:1")).expect("linked");
        let class = folder.path().join("sys/class/block/sda1");
        std::os::unix::fs::symlink("../../block/sda/sda1", class).expect("linked");

        let measuring = measure(&machine, &[DEVICE], &io_limits::groups(&machine));
        let put = |path: &str, text: &str| fs::write(folder.path().join(path), text).expect("put");
        put("proc/20/schedstat", "600 9500 8\n");
        put("proc/stat", "cpu  100 0 40 150 30 0 0 0 5 0\n");
        put("cg/low/cpu.stat", "nr_periods 20\nnr_throttled 9\n");
        // The compiler has ended; of its time 100 ticks are new.
        fs::remove_dir_all(folder.path().join("proc/31")).expect("removed");
        put("proc/30/stat", &stat("make", 1, 10, 1100));
        put("proc/40/stat", &stat("postgres", 1, 105, 0));
        put("proc/41/stat", &stat("postgres", 40, 105, 0));
        let waits = measuring.after(&machine, Duration::from_micros(10));
        let wait = ThreadWait {
            pid: 20,
            waited_share: 0.25,
            ran_share: 0.01,
        };
        assert_eq!(waits.threads, BTreeMap::from([(DEVICE, wait)]));
        assert_eq!(waits.busy_share, Some(120.0 / 180.0));
        let busiest = waits.busiest.expect("known");
        assert_eq!(busiest.process.name, "postgres");
        assert!((busiest.used_share - 2.0 / 3.0).abs() < 1e-9, "{busiest:?}");
        let limit = CpuLimit {
            cgroup: "/low".into(),
            setting: "10000 100000".into(),
            throttled_share: 0.8,
        };
        assert_eq!(waits.limits, [limit]);

        put("proc/20/comm", "bash\n");
        let measuring = measure(&machine, &[DEVICE], &[]);
        assert_eq!(measuring.end(&machine).threads, BTreeMap::new());
    }
}
