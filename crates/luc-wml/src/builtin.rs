//! Workloads that come with the program.

/// The name and text of each built-in workload.
pub const BUILTINS: [(&str, &str); 8] = [
    ("varmail", include_str!("../../../workloads/varmail.f")),
    ("oltp", include_str!("../../../workloads/oltp.f")),
    ("webserver", include_str!("../../../workloads/webserver.f")),
    (
        "fileserver",
        include_str!("../../../workloads/fileserver.f"),
    ),
    (
        "shared-files",
        include_str!("../../../workloads/shared-files.f"),
    ),
    ("open-loop", include_str!("../../../workloads/open-loop.f")),
    ("queue", include_str!("../../../workloads/queue.f")),
    (
        "neighbours",
        include_str!("../../../workloads/neighbours.f"),
    ),
];

/// Names that [`builtin_presets`] knows.
pub const PRESETS: [&str; 1] = ["paper"];

type Settings = &'static [(&'static str, &'static str)];

/// The preset `paper`: the settings of the published measurements.
///
/// For oltp they give 48 threads and 48 files. One thread writes the log, as in every oltp; the
/// other 47 are divided into 40 readers and 7 database writers, which leaves several readers per
/// writer while every writer has its own thread. The log is a separate file besides the 48.
const PAPER: [(&str, Settings); 2] = [
    (
        "varmail",
        &[
            ("nthreads", "64"),
            ("nfiles", "256"),
            ("filesize", "1k"),
            ("iosize", "1k"),
            ("meanappendsize", "1k"),
        ],
    ),
    (
        "oltp",
        &[("nshadows", "40"), ("ndbwriters", "7"), ("nfiles", "48")],
    ),
];

pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTINS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Returns a preset's settings for a workload, for [`crate::Script::plan`]; `None` if the workload
/// has no such preset.
pub fn builtin_presets(name: &str, preset: &str) -> Option<Vec<(String, String)>> {
    if preset != PRESETS[0] {
        return None;
    }
    let (_, settings) = PAPER.iter().find(|(known, _)| *known == name)?;
    let owned = settings
        .iter()
        .map(|(variable, value)| ((*variable).to_owned(), (*value).to_owned()));
    Some(owned.collect())
}
