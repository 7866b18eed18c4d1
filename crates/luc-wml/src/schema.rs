//! All attributes, and which statements and flowops take them.

use crate::plan::Io;

/// Other spellings of attributes, with the canonical name.
const ALIASES: [(&str, &str); 3] = [
    ("filesetname", "filename"),
    ("filesize", "size"),
    ("rotatefd", "opennext"),
];

/// Attributes of older versions of Filebench, and their replacements.
const REMOVED: [(&str, &str); 2] = [
    (
        "cached",
        "Filebench 1.5 removed it; delete it (drop the page cache before the run instead)",
    ),
    (
        "filesizegamma",
        "Filebench 1.5 removed it; write `size=$s` and `set $s=cvar(type=cvar-gamma,...)`",
    ),
];

// Lists of attributes, in the order in which messages show them.
pub(crate) const FILESET: &str = "name path entries size prealloc paralloc reuse trusttree \
    readonly writeonly dirwidth dirdepthrv dirgamma leafdirs";
pub(crate) const FILE: &str = "name path size prealloc paralloc reuse trusttree readonly writeonly";
pub(crate) const PROCESS: &str = "name instances nice";
pub(crate) const THREAD: &str = "name instances memsize useism ioprio";
pub(crate) const EVENT_GENERATOR: &str = "rate";
pub(crate) const RANDVAR: &str = "name type randsrc seed gamma mean min round randtable";
pub(crate) const CVAR: &str = "type parameters min max round";

const DATA: &str =
    "filename indexed fd opennext iosize random workingset dsync directio noreadahead";
const WHOLE: &str = "filename indexed fd opennext iosize workingset dsync directio noreadahead";
const WRITE_WHOLE: &str =
    "filename indexed fd srcfd opennext iosize workingset dsync directio noreadahead";
const OPEN: &str = "filename indexed fd opennext dsync directio noreadahead";
const PICK: &str = "filename indexed fd";

#[derive(Debug)]
pub(crate) struct Flowop {
    pub name: &'static str,
    /// The flowop's attributes besides `name` and `iters`.
    pub attributes: &'static str,
    pub io: Io,
}

const fn flowop(name: &'static str, io: Io, attributes: &'static str) -> Flowop {
    Flowop {
        name,
        attributes,
        io,
    }
}

/// Every supported flowop.
pub(crate) const FLOWOPS: &[Flowop] = &[
    flowop("read", Io::Read, DATA),
    flowop("write", Io::Write, DATA),
    flowop("aiowrite", Io::Write, DATA),
    flowop("aiowait", Io::Other, ""),
    flowop("readwholefile", Io::Read, WHOLE),
    flowop("writewholefile", Io::Write, WRITE_WHOLE),
    flowop("appendfile", Io::Write, WHOLE),
    flowop("appendfilerand", Io::Write, WHOLE),
    flowop("openfile", Io::Other, OPEN),
    flowop("createfile", Io::Other, OPEN),
    flowop("closefile", Io::Other, "fd opennext"),
    flowop("deletefile", Io::Other, PICK),
    flowop("statfile", Io::Other, PICK),
    flowop("fsync", Io::Other, OPEN),
    flowop("fsyncset", Io::Other, "filename"),
    flowop("makedir", Io::Other, "filename"),
    flowop("removedir", Io::Other, "filename"),
    flowop("listdir", Io::Other, "filename"),
    flowop("semblock", Io::None, "value highwater"),
    flowop("sempost", Io::None, "value target blocking"),
    flowop("block", Io::None, ""),
    flowop("wakeup", Io::None, "target"),
    flowop("hog", Io::None, "value"),
    flowop("delay", Io::None, "value"),
    flowop("eventlimit", Io::None, ""),
    flowop("bwlimit", Io::None, "target"),
    flowop("iopslimit", Io::None, "target"),
    flowop("opslimit", Io::None, "target"),
    flowop("finishoncount", Io::None, "value target"),
    flowop("finishonbytes", Io::None, "value target"),
];

/// Flowops of Filebench that are refused, with the reason.
const REFUSED: [(&str, &str); 2] = [
    ("print", "it only prints the thread's name; delete it"),
    ("testrandvar", "it only tests Filebench itself; delete it"),
];

pub(crate) fn find_flowop(name: &str) -> Option<&'static Flowop> {
    FLOWOPS.iter().find(|flowop| flowop.name == name)
}

/// Returns why a flowop that exists in Filebench is refused here.
pub(crate) fn why_refused(name: &str) -> Option<&'static str> {
    find(&REFUSED, name)
}

/// Tells whether any flowop uses this attribute. Filebench's grammar accepts it on all flowops.
pub(crate) fn is_of_a_flowop(name: &str) -> bool {
    let mut all = FLOWOPS.iter().map(|flowop| flowop.attributes);
    all.any(|attributes| attributes.split_whitespace().any(|known| known == name))
}

/// Returns the canonical name of an attribute, if anything has such an attribute.
pub(crate) fn canonical(word: &str) -> Option<&'static str> {
    let word = find(&ALIASES, word).unwrap_or(word);
    [
        FILESET,
        PROCESS,
        THREAD,
        EVENT_GENERATOR,
        "iters",
        RANDVAR,
        CVAR,
    ]
    .into_iter()
    .chain(FLOWOPS.iter().map(|flowop| flowop.attributes))
    .flat_map(str::split_whitespace)
    .find(|name| *name == word)
}

/// Returns the replacement of a removed attribute.
pub(crate) fn what_replaced(word: &str) -> Option<&'static str> {
    find(&REMOVED, word)
}

fn find(rows: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    rows.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}
