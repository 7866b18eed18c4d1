//! Facts that are not in the trace.

use serde::Serialize;
use std::collections::BTreeMap;

/// LUC's modes on a file system. Later ones take precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Luc {
    /// LUC is not attached.
    #[default]
    Off,
    /// LUC decided and recorded, and changed nothing.
    Observing,
    /// LUC held commits and copied buffers out.
    Steering,
}

/// The kind of a limit on I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// `io.max` of the group.
    Max,
    /// `io.latency` of this other group, for which the group is delayed.
    Latency { favoured: String },
    /// `io.weight` of the group, which is less than another's, with io.cost.
    Weight,
    /// dm-delay.
    Delay,
    /// dm-multipath without a path.
    NoPath,
    /// A pool of dm-thin without space.
    NoSpace,
}

/// A limit on I/O, and its effect during the watch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoLimit {
    pub by: Limiter,
    /// Path of the control group that it limits, or the node of a device.
    pub of: String,
    /// As its file writes it, such as `wbps=2097152`; empty if there is none.
    pub setting: String,
    /// For `io.max` the share of it that was used, for other files of the group the share of the
    /// time in which the group stalled, for dm-delay the delay's share of a sync's mean time, for a
    /// device that keeps all requests 1.
    pub used_share: f64,
}

/// A device of device mapper that hinders requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HinderingDevice {
    pub node: String,
    /// A limiter that is a device.
    pub by: Limiter,
    /// `None` unless it delays requests.
    pub delay_ns: Option<u64>,
}

/// An array of disks (md) that is being checked, rebuilt or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BusyArray {
    pub node: String,
    /// The kernel's word for what is done to it.
    pub action: String,
}

impl BusyArray {
    pub(super) fn advice(&self) -> String {
        let Self { node, action } = self;
        let name = node.trim_start_matches("/dev/");
        let done = match action.as_str() {
            "check" => "checked",
            "repair" => "repaired",
            "resync" => "synchronised",
            "recover" => "rebuilt",
            _ => "changed",
        };
        format!(
            "Array {node} is being {done}, which keeps its disks busy: wait until that ends, or \
             lower /sys/block/{name}/md/sync_speed_max."
        )
    }
}

/// The kind of requests that compete with syncs for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Reads of the file system's device.
    Reads,
    /// Discards on the file system's device.
    Discards,
    /// Everything on the disk that does not go through the file system's device.
    Others,
}

/// Requests of one kind that competed with syncs during the watch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskWork {
    pub work: Work,
    /// Node of the device where they were counted.
    pub node: String,
    /// How many were in progress on average.
    pub in_progress_mean: f64,
    pub requests_per_s: f64,
    pub bytes_per_s: f64,
    /// The process that reads most, or the device through which most of the others' requests go;
    /// `None` if there is none, or it is unknown.
    pub by: Option<String>,
}

/// How long the journal's thread waited for a processor during the watch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadWait {
    pub pid: u32,
    /// As a share of the watched time.
    pub waited_share: f64,
    /// The share of that time for which it ran.
    pub ran_share: f64,
}

/// The processes of one name and control group that used most processor time during the watch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Busiest {
    pub name: String,
    /// `None` if unknown.
    pub cgroup: Option<String>,
    /// Their share of the time that all processes used.
    pub used_share: f64,
}

/// A limit on the processor time of a control group, `cpu.max`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuLimit {
    /// Path of the group.
    pub of: String,
    /// As its file writes it, such as `10000 100000`.
    pub setting: String,
    /// The share of its periods in which the group used all of it, and had to wait.
    pub throttled_share: f64,
}

/// Facts about a file system that are not in its trace; `None` if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The path by which the user names it.
    pub path: Option<String>,
    /// Its block device, as in `/dev/vdb`.
    pub device: Option<String>,
    pub device_bytes: Option<u64>,
    pub journal_bytes: Option<u64>,
    /// The journal's block device, if it has one of its own.
    pub journal_device: Option<String>,
    /// True if a sync is known to leave data in the volatile cache of the file system's device.
    pub leaves_data_cached: bool,
    pub block_bytes: Option<u64>,
    /// Mount options, separated by commas.
    pub mount_options: Option<String>,
    /// Start and end of the watched time, ns of the trace's clock. Without it the quiet time before
    /// the first event and after the last is unknown.
    pub watched_ns: Option<(u64, u64)>,
    pub luc: Option<Luc>,
    /// Whether the file system may make fast commits.
    pub fast_commit: Option<bool>,
    /// Fast commits during the watch, which no trace shows.
    pub fast_commits: Option<u64>,
    pub rotational: Option<bool>,
    /// Causes of the waits of syncs that were going on when the watch ended, by thread.
    pub sync_waits: BTreeMap<u32, String>,
    /// The cause of the running commit's wait then.
    pub commit_waits_for: Option<String>,
    /// Limits of control groups on the disks of the file system.
    pub io_limits: Vec<IoLimit>,
    /// Devices of the file system that hinder requests.
    pub hindering_devices: Vec<HinderingDevice>,
    /// Arrays of the file system that something else keeps busy.
    pub busy_arrays: Vec<BusyArray>,
    /// Requests that competed with its syncs for its disk.
    pub disk_work: Vec<DiskWork>,
    pub journal_thread: Option<ThreadWait>,
    /// The share of the processors' time in which they were busy.
    pub processors_busy_share: Option<f64>,
    pub busiest: Option<Busiest>,
    pub cpu_limits: Vec<CpuLimit>,
    /// The reasons why the tracer could not see some events, one sentence each.
    pub unseen_why: Vec<String>,
    /// The reason why LUC cannot run on that machine, if known.
    pub luc_obstacle: Option<String>,
    /// `sound`, or the word for the fault that keeps it from taking writes, if known.
    pub health: Option<&'static str>,
}

impl Facts {
    /// Tells whether a mount option without a value is set.
    pub(super) fn option(&self, name: &str) -> bool {
        self.options().any(|option| option == name)
    }

    /// Returns the value of a mount option.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.options()
            .filter_map(|option| option.split_once('='))
            .find_map(|(option, value)| (option == name).then_some(value))
    }

    fn options(&self) -> impl Iterator<Item = &str> {
        self.mount_options.as_deref().unwrap_or("").split(',')
    }
}
