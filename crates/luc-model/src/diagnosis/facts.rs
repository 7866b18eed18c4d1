//! What is known beside the trace.

use serde::Serialize;

/// What LUC did with a file system. The later ones matter more.
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

/// What is known of a file system beside its trace. What is not known is None.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// How the user names it, in commands: a path.
    pub path: Option<String>,
    /// Its block device, as in `/dev/vdb`.
    pub device: Option<String>,
    /// Size of its journal, bytes.
    pub journal_bytes: Option<u64>,
    /// Size of its blocks, bytes.
    pub block_bytes: Option<u64>,
    /// Mount options, separated by commas.
    pub mount_options: Option<String>,
    /// Begin and end of the watching, ns of the trace's clock. Without it the
    /// trace's first and last event count, and time before and after, in which
    /// nothing happened, is unknown.
    pub watched_ns: Option<(u64, u64)>,
    /// What LUC did.
    pub luc: Option<Luc>,
    /// Whether it makes fast commits.
    pub fast_commit: Option<bool>,
    /// Whether its disk turns.
    pub rotational: Option<bool>,
    /// Why the tracer could not see all, a sentence each.
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
