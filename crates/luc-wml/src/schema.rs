//! Which attributes there are, and what takes which.

/// Attributes whose spellings differ from their name here.
const ALIASES: [(&str, &str); 3] = [
    ("filesetname", "filename"),
    ("filesize", "size"),
    ("rotatefd", "opennext"),
];

/// Attributes of old Filebenches, and what became of them.
const REMOVED: [(&str, &str); 2] = [
    (
        "cached",
        "it is gone since Filebench 1.5: delete it (drop the page cache before the run instead)",
    ),
    (
        "filesizegamma",
        "it is gone since Filebench 1.5: write `size=$s` and `set $s=cvar(type=cvar-gamma,...)`",
    ),
];

pub(crate) const FILESET: &[&str] = &[
    "name",
    "path",
    "entries",
    "size",
    "prealloc",
    "paralloc",
    "reuse",
    "trusttree",
    "readonly",
    "writeonly",
    "dirwidth",
    "dirdepthrv",
    "dirgamma",
    "leafdirs",
];
pub(crate) const FILE: &[&str] = &[
    "name",
    "path",
    "size",
    "prealloc",
    "paralloc",
    "reuse",
    "trusttree",
    "readonly",
    "writeonly",
];
pub(crate) const PROCESS: &[&str] = &["name", "instances", "nice"];
pub(crate) const THREAD: &[&str] = &["name", "instances", "memsize", "useism", "ioprio"];
pub(crate) const EVENT_GENERATOR: &[&str] = &["rate"];
pub(crate) const COMPOSITE: &[&str] = &["name", "iters"];
pub(crate) const RANDVAR: &[&str] = &[
    "name",
    "type",
    "randsrc",
    "seed",
    "gamma",
    "mean",
    "min",
    "round",
    "randtable",
];
pub(crate) const CVAR: &[&str] = &["type", "parameters", "min", "max", "round"];

/// What a flowop does to the files it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Io {
    /// Reads or writes: bandwidth can be limited by it.
    Data,
    /// Works on files, but moves no data.
    Files,
    /// Does no I/O.
    None,
}

/// A flowop of the language.
#[derive(Debug)]
pub(crate) struct Flowop {
    pub name: &'static str,
    /// Its attributes besides `name` and `iters`.
    pub attributes: &'static [&'static str],
    pub io: Io,
}

const DATA: &[&str] = &[
    "filename",
    "indexed",
    "fd",
    "opennext",
    "iosize",
    "random",
    "workingset",
    "dsync",
    "directio",
    "noreadahead",
];
const WHOLE: &[&str] = &[
    "filename",
    "indexed",
    "fd",
    "opennext",
    "iosize",
    "workingset",
    "dsync",
    "directio",
    "noreadahead",
];
const WRITE_WHOLE: &[&str] = &[
    "filename",
    "indexed",
    "fd",
    "srcfd",
    "opennext",
    "iosize",
    "workingset",
    "dsync",
    "directio",
    "noreadahead",
];
const OPEN: &[&str] = &[
    "filename",
    "indexed",
    "fd",
    "opennext",
    "dsync",
    "directio",
    "noreadahead",
];
const PICK: &[&str] = &["filename", "indexed", "fd"];
const TARGET: &[&str] = &["target"];
const FINISH: &[&str] = &["value", "target"];

const fn flowop(name: &'static str, io: Io, attributes: &'static [&'static str]) -> Flowop {
    Flowop {
        name,
        attributes,
        io,
    }
}

/// Every flowop that can be run.
pub(crate) const FLOWOPS: &[Flowop] = &[
    flowop("read", Io::Data, DATA),
    flowop("write", Io::Data, DATA),
    flowop("aiowrite", Io::Data, DATA),
    flowop("aiowait", Io::None, &[]),
    flowop("readwholefile", Io::Data, WHOLE),
    flowop("writewholefile", Io::Data, WRITE_WHOLE),
    flowop("appendfile", Io::Data, WHOLE),
    flowop("appendfilerand", Io::Data, WHOLE),
    flowop("openfile", Io::Files, OPEN),
    flowop("createfile", Io::Files, OPEN),
    flowop("closefile", Io::Files, &["fd", "opennext"]),
    flowop("deletefile", Io::Files, PICK),
    flowop("statfile", Io::Files, PICK),
    flowop("fsync", Io::Files, OPEN),
    flowop("fsyncset", Io::Files, &["filename"]),
    flowop("makedir", Io::Files, &["filename"]),
    flowop("removedir", Io::Files, &["filename"]),
    flowop("listdir", Io::Files, &["filename"]),
    flowop("semblock", Io::None, &["value", "highwater"]),
    flowop("sempost", Io::None, &["value", "target", "blocking"]),
    flowop("block", Io::None, &[]),
    flowop("wakeup", Io::None, TARGET),
    flowop("hog", Io::None, &["value"]),
    flowop("delay", Io::None, &["value"]),
    flowop("eventlimit", Io::None, &[]),
    flowop("bwlimit", Io::None, TARGET),
    flowop("iopslimit", Io::None, TARGET),
    flowop("opslimit", Io::None, TARGET),
    flowop("finishoncount", Io::None, FINISH),
    flowop("finishonbytes", Io::None, FINISH),
];

/// Flowops of Filebench that are refused, and why.
const REFUSED: [(&str, &str); 2] = [
    ("print", "it only prints the thread's name; delete it"),
    ("testrandvar", "it only tests Filebench itself; delete it"),
];

/// The flowop of that name.
pub(crate) fn find_flowop(name: &str) -> Option<&'static Flowop> {
    FLOWOPS.iter().find(|flowop| flowop.name == name)
}

/// Why a flowop that exists in Filebench is not to be had here.
pub(crate) fn why_refused(name: &str) -> Option<&'static str> {
    find(&REFUSED, name)
}

/// The one name of an attribute, if there is such an attribute anywhere.
pub(crate) fn canonical(word: &str) -> Option<&'static str> {
    let word = find(&ALIASES, word).unwrap_or(word);
    let all = [
        FILESET,
        PROCESS,
        THREAD,
        EVENT_GENERATOR,
        COMPOSITE,
        RANDVAR,
        CVAR,
    ];
    let of_flowops = FLOWOPS.iter().map(|flowop| flowop.attributes);
    all.into_iter()
        .chain(of_flowops)
        .flatten()
        .find(|name| **name == word)
        .copied()
}

/// What to write instead of an attribute that is gone.
pub(crate) fn what_replaced(word: &str) -> Option<&'static str> {
    find(&REMOVED, word)
}

fn find(rows: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    rows.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}
