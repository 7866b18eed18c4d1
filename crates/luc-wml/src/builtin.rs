//! Workloads that come with the program.

/// Name and text of each.
pub const BUILTINS: [(&str, &str); 5] = [
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
];

/// Names that [`builtin_presets`] knows.
pub const PRESETS: [&str; 1] = ["paper"];

type Settings = &'static [(&'static str, &'static str)];

/// The preset `paper`: the settings of the published measurements.
///
/// Of oltp they say 48 threads and 48 files. One thread writes the log, as in every oltp; the
/// other 47 are shared out as 40 readers and 7 database writers, which keeps several readers to
/// each writer while every writer has an own thread. The log is a file besides the 48.
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

/// The settings of a preset in a workload, for [`crate::Script::plan`]; `None` if there is no such
/// preset of that workload.
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
