//! Facts beside the trace.

use serde::Serialize;

/// LUC's modes on a file system. Later ones count more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Luc {
    /// Nothing: it is not attached.
    #[default]
    Off,
    /// It decided and recorded, and changed nothing.
    Observing,
    /// It held commits and copied buffers out.
    Steering,
}

/// Facts of a file system beside its trace; None: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The path by which the user names it.
    pub path: Option<String>,
    /// Its block device, as in `/dev/vdb`.
    pub device: Option<String>,
    pub journal_bytes: Option<u64>,
    pub block_bytes: Option<u64>,
    /// Mount options, separated by commas.
    pub mount_options: Option<String>,
    /// Begin and end of the watching, ns of the trace's clock. Without it quiet time before the first
    /// event and after the last is unknown.
    pub watched_ns: Option<(u64, u64)>,
    pub luc: Option<Luc>,
    pub fast_commit: Option<bool>,
    pub rotational: Option<bool>,
    /// Why the tracer could not see some events, a sentence each.
    pub unseen_why: Vec<String>,
    /// Why LUC cannot run on that machine, if that is known.
    pub luc_obstacle: Option<String>,
}

impl Facts {
    /// Whether a mount option is set, without its value.
    pub(super) fn option(&self, name: &str) -> bool {
        self.options().any(|option| option == name)
    }

    /// The value of a mount option.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.options()
            .filter_map(|option| option.split_once('='))
            .find_map(|(option, value)| (option == name).then_some(value))
    }

    fn options(&self) -> impl Iterator<Item = &str> {
        self.mount_options.as_deref().unwrap_or("").split(',')
    }
}
