//! Cache lines: nothing that every hook reads shares a line with something that is written, and an
//! fsync without a commit moves no line that it does not move without LUC.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Replacement, Trouble, broken_sources, check, fail, failed, guest, module,
    root, run_jobs, test, test_alone,
};
use luc_vm::{LineGroup, RunSpec};

const KERNEL: &str = "6.12";
/// Bytes of a cache line.
const LINE: u64 = 64;

/// Members of struct `luc_fs` that every hook reads.
const READ_MEMBERS: [&str; 4] = ["node", "dev", "gone", "copy_now"];
/// Variables that every hook reads.
const READ_VARIABLES: [&str; 3] = ["luc_entry", "luc_table", "luc_ops"];
/// The section whose other variables change as rarely.
const READ_SECTION: &str = ".data..read_mostly";

pub fn tests() -> Vec<Trial> {
    vec![
        test("read_lines_are_not_written", layout),
        test("a_written_neighbour_is_found", neighbours),
        test_alone("an_fsync_without_a_commit_moves_no_more", moves),
    ]
}

fn layout() -> Outcome {
    let found = shared(&module(KERNEL, root())?)?;
    check(found.is_empty(), found.join("; "))
}

/// Modules in which the test above must find a written neighbour.
fn neighbours() -> Outcome {
    let changes: [(Replacement, &str); 2] = [
        (
            (
                "kmod/luc.h",
                "	spinlock_t lock ____cacheline_aligned_in_smp;",
                "	spinlock_t lock;",
            ),
            "luc_fs.lock",
        ),
        (
            (
                "kmod/entry.h",
                "	unsigned long wait_locked;\n} ____cacheline_aligned_in_smp;",
                "	unsigned long wait_locked;\n};",
            ),
            "luc_entry",
        ),
    ];
    for (change, name) in changes {
        let dir = tempfile::tempdir().map_err(failed)?;
        // The module's own assertion would refuse the first one.
        let assertion = (
            "kmod/layout.c",
            "static_assert(!IS_ENABLED(CONFIG_SMP) ||",
            "static_assert(1 ||",
        );
        broken_sources(dir.path(), &[change, assertion]).map_err(Trouble::Fail)?;
        let found = shared(&module(KERNEL, dir.path())?)?;
        let named = found.iter().any(|line| line.contains(name));
        check(named, format!("{name} has a neighbour: {found:?}"))?;
    }
    Ok(())
}

/// Fields that share a line with a field that every hook reads.
fn shared(module: &Path) -> Result<Vec<String>, Trouble> {
    let mut found = Vec::new();
    let members = members(&output("pahole", "dwarves", &["-C", "luc_fs"], module)?);
    let is_read = |item: &Item| READ_MEMBERS.contains(&item.name.as_str());
    check_known(&members, &READ_MEMBERS)?;
    found.extend(neighbours_of(&members, is_read, is_read));

    let table = output("readelf", "binutils", &["-SsW"], module)?;
    let variables = variables(&table);
    check_known(&variables, &READ_VARIABLES)?;
    let is_read = |item: &Item| READ_VARIABLES.contains(&item.name.as_str());
    let may_be_there = |item: &Item| is_read(item) || item.place == READ_SECTION;
    found.extend(neighbours_of(&variables, is_read, may_be_there));
    Ok(found)
}

/// A member or a variable.
struct Item {
    name: String,
    /// Struct or section.
    place: String,
    bytes: Range<u64>,
}

impl Item {
    fn lines(&self) -> Range<u64> {
        self.bytes.start / LINE..self.bytes.end.div_ceil(LINE)
    }

    fn shares_with(&self, other: &Self) -> bool {
        let (a, b) = (self.lines(), other.lines());
        self.place == other.place && a.start < b.end && b.start < a.end
    }
}

fn neighbours_of(
    items: &[Item],
    is_read: impl Fn(&Item) -> bool,
    may_be_there: impl Fn(&Item) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for read in items.iter().filter(|item| is_read(item)) {
        let others = items.iter().filter(|item| !may_be_there(item));
        found.extend(others.filter(|other| read.shares_with(other)).map(|other| {
            format!(
                "{place}.{} is on a line with {place}.{}",
                other.name,
                read.name,
                place = read.place
            )
        }));
    }
    found
}

/// A missing name would never have a neighbour.
fn check_known(items: &[Item], names: &[&str]) -> Outcome {
    let missing = names
        .iter()
        .find(|&&name| !items.iter().any(|item| item.name == name));
    check(
        missing.is_none(),
        format!("{missing:?} is not in the module"),
    )
}

fn output(
    program: &str,
    package: &str,
    options: &[&str],
    module: &Path,
) -> Result<String, Trouble> {
    let output = Command::new(program).args(options).arg(module).output();
    let output = output.map_err(|e| Trouble::Skip(format!("{program} ({package}): {e}")))?;
    if !output.status.success() {
        return fail(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses lines like ` s64 name[3] __attribute__((...)); /* 64 24 */`.
fn members(text: &str) -> Vec<Item> {
    let member = |line: &str| {
        let (declaration, comment) = line.split_once("; ")?;
        let name = declaration.split("__attribute__").next()?;
        let name = name.split_whitespace().last()?;
        let name = name.split('[').next()?.trim_start_matches('*');
        let mut numbers = comment.split_whitespace().map(str::parse::<u64>);
        let (_, at, size) = (
            numbers.next()?,
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
        );
        Some(Item {
            name: name.to_owned(),
            place: "luc_fs".to_owned(),
            bytes: at..at + size,
        })
    };
    text.lines().filter_map(member).collect()
}

/// Variables of the sections that begin on a line of their own, and of [`READ_SECTION`].
fn variables(text: &str) -> Vec<Item> {
    let mut sections = Vec::new();
    let mut items = Vec::new();
    for line in text.lines() {
        // `  [68] .bss NOBITS ADDRESS OFFSET SIZE ENTRIES FLAGS LINK INFO ALIGN`; some have no
        // flags.
        if let Some((number, rest)) = line
            .trim_start()
            .strip_prefix('[')
            .and_then(|s| s.split_once(']'))
        {
            let words: Vec<_> = rest.split_whitespace().collect();
            let align = words.last().and_then(|word| word.parse::<u64>().ok());
            if let (Ok(number), Some(align)) = (number.trim().parse::<usize>(), align) {
                let whole = align.is_multiple_of(LINE) && align > 0 || words[0] == READ_SECTION;
                sections.push((number, words[0].to_owned(), whole));
            }
            continue;
        }
        // `   207: 0000000000000140    88 OBJECT  GLOBAL DEFAULT   68 luc_entry`
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, at, size, "OBJECT", _, _, section, name] = words[..] else {
            continue;
        };
        let (Ok(at), Ok(size)) = (u64::from_str_radix(at, 16), size.parse::<u64>()) else {
            continue;
        };
        let section = section.parse::<usize>().ok();
        if let Some((_, place, true)) = sections.iter().find(|s| Some(s.0) == section) {
            items.push(Item {
                name: name.to_owned(),
                place: place.clone(),
                bytes: at..at + size,
            });
        }
    }
    items
}

/// Host time, seconds: four times what a run takes on two cores.
const LIMIT_S: u64 = 60;
const TRIES: u32 = 3;

/// On a busy host QEMU now and then loses the timer of a sleeping processor, and the guest stands
/// still (`rcu_preempt kthread timer wakeup` did not happen). Such a run proves nothing: it is
/// reported, and repeated.
fn run_that_ends(spec: &RunSpec, jobs: &[Job]) -> Result<Answer, Trouble> {
    let mut tries = 1;
    loop {
        match run_jobs(spec, jobs) {
            Err(Trouble::Fail(why)) if why.contains("did not finish within") && tries < TRIES => {
                println!("  lines: try {tries} of {TRIES}: the guest hung");
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Counts moved lines on four processors: stock, LUC on another file system, LUC.
fn moves() -> Outcome {
    let jobs = [Job::new("lines", &["0ns:1:512M", "0ns:1:64M"])?];
    let mut spec = guest(KERNEL, &jobs)?;
    spec.virtual_time = false;
    spec.vcpus = 4;
    spec.count_lines = true;
    spec.timeout_host_s = LIMIT_S;
    let answer = run_that_ends(&spec, &jobs)?;
    let groups = &answer.result.lines;
    let [stock, elsewhere, luc] = &groups[..] else {
        return fail(format!("three groups of calls, not {groups:?}"));
    };
    let whole = |group: &&LineGroup| (group.processors, group.lost) != (4, 0);
    if let Some(bad) = groups.iter().find(whole) {
        return fail(format!("calls of four processors, whole: {bad:?}"));
    }
    let tell = |group: &LineGroup| (group.moved, group.moving.clone());
    check(
        stock.moved > 0,
        format!("jbd2's own lock moves, or nothing is counted: {stock:?}"),
    )?;
    check(
        elsewhere.moved == stock.moved && luc.moved == stock.moved,
        format!(
            "lines moved, of four calls: stock {:?}, elsewhere {:?}, LUC {:?}",
            tell(stock),
            tell(elsewhere),
            tell(luc)
        ),
    )
}
