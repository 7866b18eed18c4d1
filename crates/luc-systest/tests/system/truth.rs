//! Compares LUC's counts of fio, `SQLite` and `PostgreSQL` with those of other tools: strace counts
//! each sync call of each process, jbd2 each commit, fio its own syncs. `luc trace count`,
//! `luc trace record` with `summary`, `luc doctor` and `luc exporter` watch the same run; all
//! numbers must be equal. One difference is expected: the script ends each run with one `syncfs()`,
//! which is neither a call of the program nor an fsync, but waits for a commit; the doctor counts
//! it, too.

use std::collections::BTreeMap;

use libtest_mimic::Trial;
use luc_systest::{Answer, Job, Outcome, Trouble, check, fail, guest, run_jobs, test};
use luc_vm::cache::Cache;
use luc_vm::{Content, GuestFile, KernelList, Silent, tree};
use serde_json::Value;

const PACKAGES: [&str; 4] = ["fio", "postgresql-15", "sqlite3", "strace"];
/// A compiler for queries, a third of the total size, which `PostgreSQL` does without.
const UNWANTED: [&str; 2] = ["/usr/lib/*/libLLVM*", "/usr/lib/*/libz3*"];
/// The programs, and the fewest syncs of each: with fewer, the test has seen nothing.
const PROGRAMS: [(&str, u64); 3] = [("fio", 200), ("sqlite", 50), ("postgres", 1000)];
/// Syncs of the script itself: one `syncfs()` at the end of each run.
const SCRIPT_SYNCS: u64 = 1;

pub fn tests() -> Vec<Trial> {
    vec![test("programs_on_6.12", || programs("6.12"))]
}

fn programs(kernel: &str) -> Outcome {
    let jobs = [Job::new("truth", &["1ms:8:2G"])?];
    let mut spec = guest(kernel, &jobs)?;
    let root = tree::programs(
        &Cache::open()?,
        &KernelList::builtin()?.guest,
        &PACKAGES,
        &UNWANTED,
        &mut Silent,
    )?;
    spec.files
        .push(GuestFile::new("/debian", Content::Folder(root)));
    // The programs lie in memory twice while the guest unpacks them.
    spec.memory_mib = 3072;
    let answer = run_jobs(&spec, &jobs)?;
    for (name, least) in PROGRAMS {
        Program {
            answer: &answer,
            name,
        }
        .judge(least)?;
    }
    fio_itself(&answer)
}

/// fio's own count, of all its jobs.
fn fio_itself(answer: &Answer) -> Outcome {
    let own = answer.json("truth", "fio-own")?;
    let jobs = own["jobs"].as_array().into_iter().flatten();
    let counted: u64 = jobs
        .filter_map(|job| job["sync"]["lat_ns"]["N"].as_u64())
        .sum();
    let fio = Program {
        answer,
        name: "fio",
    };
    let called = fio.called()?.values().sum();
    fio.same("fio itself", counted, called)
}

/// One program's run, with the counts of all tools.
struct Program<'a> {
    answer: &'a Answer,
    name: &'static str,
}

impl Program<'_> {
    fn judge(&self, least: u64) -> Outcome {
        let by_process = self.called()?;
        let called: u64 = by_process.values().sum();
        check(
            called >= least,
            format!(
                "{}: {called} sync calls, expected {least} or more",
                self.name
            ),
        )?;
        let commits = whole(self.text("commits")?.trim())?;

        let count = self.json("count")?;
        let counted = &count["file_systems"][0];
        self.same("trace count: lost", number(&count["events_lost"])?, 0)?;
        self.same("trace count: syncs", number(&counted["syncs"])?, called)?;
        self.same(
            "trace count: commits",
            number(&counted["commits"])?,
            commits,
        )?;
        let processes = count["processes"].as_array().into_iter().flatten();
        let processes: BTreeMap<u64, u64> = processes
            .map(|process| Ok((number(&process["pid"])?, number(&process["syncs"])?)))
            .filter(|found| !matches!(found, Ok((_, 0))))
            .collect::<Result<_, Trouble>>()?;
        check(
            processes == by_process,
            format!(
                "{}: trace count: syncs by process: {processes:?}, strace: {by_process:?}",
                self.name
            ),
        )?;

        let summary = self.json("summary")?;
        let counts = &summary["file_systems"][0]["counts"];
        let recorded = number(&counts["fsync"])? + number(&counts["fdatasync"])?;
        self.same("trace record: lost", number(&summary["spans_lost"])?, 0)?;
        self.same("trace record: syncs", recorded, called)?;
        self.same(
            "trace record: others",
            number(&counts["sync"])?,
            SCRIPT_SYNCS,
        )?;
        self.same("trace record: commits", number(&counts["commit"])?, commits)?;

        let doctor = self.json("doctor")?;
        let table = &doctor["file_systems"][0]["table"];
        let examined = number(&table["sync"]["count"])?;
        self.same("doctor: syncs", examined, called + SCRIPT_SYNCS)?;
        self.same("doctor: commits", number(&table["commits"])?, commits)?;

        let gained = |metric| Ok(self.page("after", metric)? - self.page("before", metric)?);
        for (metric, want) in [
            ("luc_syncs_total", called),
            ("luc_sync_duration_seconds_count", called),
            ("luc_journal_commits_total", commits),
        ] {
            let gained: Result<u64, Trouble> = gained(metric);
            self.same(metric, gained?, want)?;
        }
        Ok(())
    }

    fn same(&self, what: &str, got: u64, want: u64) -> Outcome {
        check(
            got == want,
            format!("{}: {what}: {got}, expected {want}", self.name),
        )
    }

    /// Sync calls of each process on the disk, by strace.
    fn called(&self) -> Result<BTreeMap<u64, u64>, Trouble> {
        let text = self.text("called")?;
        let pairs = text.lines().map(|line| {
            let (pid, calls) = line.split_once(' ').unwrap_or((line, ""));
            Ok((whole(pid)?, whole(calls)?))
        });
        pairs.collect()
    }

    /// A counter of the disk as the exporter served it; one that is not there yet is 0.
    fn page(&self, when: &str, metric: &str) -> Result<u64, Trouble> {
        let page = self.text(when)?;
        let start = format!("{metric}{{device=\"nullb0\"");
        let line = page.lines().find(|line| line.starts_with(&start));
        let value = line.and_then(|line| line.rsplit_once(' '));
        value.map_or(Ok(0), |(_, value)| whole(value))
    }

    fn text(&self, file: &str) -> Result<String, Trouble> {
        self.answer.text("truth", &format!("{}-{file}", self.name))
    }

    fn json(&self, file: &str) -> Result<Value, Trouble> {
        self.answer.json("truth", &format!("{}-{file}", self.name))
    }
}

fn number(value: &Value) -> Result<u64, Trouble> {
    match value.as_u64() {
        Some(number) => Ok(number),
        None => fail(format!("no whole number: {value}")),
    }
}

fn whole(text: &str) -> Result<u64, Trouble> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => fail(format!("no whole number: {text:?}")),
    }
}
