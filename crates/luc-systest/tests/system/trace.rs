//! The tracer on every kernel of the lab. On a workload of known counts it records exactly those,
//! by either means; it sees nothing that it was not asked to watch; it counts what it loses; and it
//! leaves nothing behind.

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Trouble, check, guest, kernels, program, run_jobs, script, test_on,
    tests_on_every,
};

use serde_json::Value;

use crate::watch::same;
use crate::watch::screen::Screen;

pub fn tests() -> Vec<Trial> {
    let mut tests: Vec<Trial> = Vec::new();
    // Kernels with ext4 as a module, and the newest, by whatever means they offer.
    for kernel in kernels("look") {
        tests.push(test_on("both", &kernel, |kernel| traces(kernel, "")));
    }
    tests.extend(tests_on_every("fentry", |kernel| {
        traces(kernel, "--means fentry")
    }));
    tests.extend(tests_on_every("kprobes", |kernel| {
        traces(kernel, "--means kprobe")
    }));
    tests.extend(tests_on_every("bad_conditions", bad_conditions));
    tests.extend(tests_on_every("shared", shared));
    tests.extend(tests_on_every("blocks", blocks));
    tests
}

fn traces(kernel: &str, means: &str) -> Outcome {
    let jobs = [Job::new("trace", &["1ms:8", "1ms:8"])?.env("MEANS", means)];
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(script("trace_lib.sh"));
    let answer = run_jobs(&spec, &jobs)?;
    let trace = Trace(&answer);

    trace.counts(
        "counts",
        &[
            ("open", 100),
            ("write", 500),
            ("fsync", 100),
            ("close", 100),
        ],
    )?;
    let counts = trace.summary("counts")?;
    check(
        counts["file_systems"].as_array().map(Vec::len) == Some(1),
        "a file system was traced that nobody asked for",
    )?;
    let fs = &counts["file_systems"][0];
    check(
        fs["bytes_written"] == 100 * 5 * 4096,
        format!("{} bytes written", fs["bytes_written"]),
    )?;
    let journal = answer.json("trace", "journal")?;
    check(
        fs["counts"]["commit"] == journal["commits"],
        format!(
            "{} commits traced, the journal made {}",
            fs["counts"]["commit"], journal["commits"]
        ),
    )?;
    let table = &fs["table"];
    check(
        table["syncs_unserved"] == 0 && table["sync_events"] == 100,
        format!("syncs and their commits: {table}"),
    )?;

    trace.counts(
        "syncs",
        &[("write", 10), ("fdatasync", 7), ("fsync", 7), ("sync", 3)],
    )?;
    trace.counts(
        "process",
        &[("open", 1), ("write", 5), ("fsync", 1), ("close", 1)],
    )?;
    trace.counts(
        "group",
        &[("open", 6), ("write", 30), ("fsync", 6), ("close", 6)],
    )?;
    let waits = &trace.summary("waits")?["file_systems"][0]["counts"];
    let by_functions = means.contains("fentry");
    let waits = [&waits["wait-buffer"], &waits["wait-locked"]];
    trace.waits("waited", waits, by_functions)?;
    let waits = &trace.summary("counted")?["file_systems"][0]["waits"];
    let waits = ["wait-buffer", "wait-locked"].map(|kind| &waits[kind]["count"]);
    trace.waits("waited_counted", waits, by_functions)?;
    trace.counts("gone", &[("write", 15), ("fsync", 3)])?;
    let lost = trace.summary("lost")?;
    check(
        lost["spans_lost"].as_u64() > Some(0),
        "a ring of 16 KiB lost nothing",
    )?;
    let named = trace.summary("named")?;
    let slowest = &named["file_systems"][0]["slowest_syncs"];
    let paths = slowest.as_array().into_iter().flatten();
    let mut paths = paths.filter_map(|one| one["file"].as_str());
    check(
        paths.any(|path| path.starts_with("/mnt/0/")),
        format!("no file has a name: {slowest}"),
    )?;

    let both = trace.summary("both")?;
    check(
        both["spans_lost"] == 0 && both["lines_lost"] == 0,
        "lost something beside the module",
    )?;
    let replay = answer.json("trace", "replay")?;
    check(
        replay["passed"] == true && replay["records"].as_u64() > Some(50),
        format!("{replay}"),
    )
}

/// The script checks its own output; the host checks the recordings.
fn bad_conditions(kernel: &str) -> Outcome {
    let jobs = [Job::new("trace_bad", &["1ms:8", "1ms:8"])?];
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(script("trace_lib.sh"));
    let answer = run_jobs(&spec, &jobs)?;
    let many = answer.json("trace_bad", "many")?;
    let fs = &many["file_systems"][0];
    // While a thread is preempted inside a program, the kernel does not run that program for other
    // threads, which is rare, and counted.
    let lost = many["spans_lost"].as_u64().unwrap_or(u64::MAX);
    let syncs = fs["counts"]["fsync"].as_u64().unwrap_or(0);
    check(
        syncs >= 1000 && lost <= syncs / 20,
        format!("of a thousand threads: {many}"),
    )?;
    let plain = answer.json("trace_bad", "plain")?;
    check(
        plain["file_systems"][0]["counts"]["fsync"] == 3,
        format!("without a journal: {plain}"),
    )
}

/// The commits that a control group, or its process of this name, asked for, and the other that it
/// waited for most.
fn blamed(fs: &Value, group: &str, process: Option<&str>) -> (u64, String) {
    let list = process.map_or("control_groups", |_| "waiters");
    let waiters = fs[list].as_array().into_iter().flatten();
    let mut of_name = waiters.filter(|waiter| match process {
        Some(process) => waiter["name"] == process && waiter["cgroup"] == group,
        None => waiter["name"] == group,
    });
    let waiter = of_name.next().cloned().unwrap_or_default();
    let asked = waiter["commits_asked"].as_u64().unwrap_or(0);
    let most = waiter["waited_for"][0]["name"].as_str();
    (asked, most.unwrap_or_default().to_owned())
}

/// Processes and control groups with known commits: those are theirs, and the one that waits is
/// told for whom.
fn shared(kernel: &str) -> Outcome {
    const DB: &str = "/the \"db\"";
    let jobs = [Job::new("shared", &["1ms:8:64M"])?];
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(program("/usr/bin/watched", "watched.c")?);
    let answer = run_jobs(&spec, &jobs)?;
    for line in answer.told() {
        println!("  {kernel} {line}");
    }
    for name in ["turns", "together"] {
        let fs = &answer.json("shared", name)?["file_systems"][0];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let commits = &fs["commits_by"];
        for list in ["waiters", "control_groups"] {
            let waiters = fs[list].as_array().into_iter().flatten();
            let asked: u64 = waiters.map(|it| number(&it["commits_asked"])).sum();
            let others = number(&commits["unasked"]) + number(&commits["unknown"]);
            check(
                asked + others == number(&commits["all"])
                    && commits["all"] == fs["counts"]["commit"],
                format!("{name}: {list} and {commits} do not add up: {fs}"),
            )?;
        }
    }
    let turns = &answer.json("shared", "turns")?["file_systems"][0];
    for (group, process, commits) in [
        ("/unpack", Some("watched"), 40),
        (DB, Some("watched"), 25),
        // Its change with the option sync, too.
        ("/unpack", None, 41),
        (DB, None, 25),
    ] {
        let (asked, _) = blamed(turns, group, process);
        check(
            asked == commits,
            format!("{group} asked for {asked} commits, expected {commits}: {turns}"),
        )?;
    }
    let together = &answer.json("shared", "together")?["file_systems"][0];
    for (process, other) in [(Some("watched"), "luc-lab"), (None, "/unpack")] {
        let (_, most) = blamed(together, DB, process);
        check(
            most == other,
            format!("the database waited most for {most}, expected {other}: {together}"),
        )?;
    }
    exported(&answer)?;
    for (name, caused, waits) in [
        ("processes", "luc-lab", "luc-lab 100%"),
        ("groups", "/unpack", "/unpack 100%"),
    ] {
        let screen = Screen::last(&answer.text("shared", name)?);
        let row = screen.row(0, caused);
        let share = row.get(2).and_then(|share| share.strip_suffix('%'));
        let share: Option<u32> = share.and_then(|share| share.parse().ok());
        check(
            share >= Some(80) && screen.has(waits),
            format!("{name}: no blame of {caused} in\n{screen}"),
        )?;
    }
    Ok(())
}

/// The totals of `luc exporter --blame`, as `shared.sh` saved its pages.
fn exported(answer: &Answer) -> Outcome {
    const AT: &str = "{device=\"nullb0\",mountpoint=\"/mnt/0\",cgroup=";
    const DB: &str = "\"/the \\\"db\\\"\"";
    let value = |page: &str, series: &str| -> Option<f64> {
        let line = page.lines().find_map(|line| line.strip_prefix(series))?;
        line.trim().parse().ok()
    };
    let asked = |page: &str, group: &str| {
        let series = format!("luc_cgroup_commits_asked_total{AT}{group}}}");
        value(page, &series).unwrap_or(0.0)
    };
    let turns = answer.text("shared", "turns.prom")?;
    let together = answer.text("shared", "together.prom")?;
    let gone = answer.text("shared", "gone.prom")?;
    let before = asked(&together, "\"/unpack\"");
    for (page, group, commits) in [
        (&turns, "\"/unpack\"", 41.0),
        (&turns, DB, 25.0),
        (&gone, "\"/later\"", 1.0),
        // The group is gone.
        (&gone, "\"/unpack\"", 0.0),
        (&gone, "\"others\"", before),
    ] {
        same(group, asked(page, group), commits)?;
    }
    let of_db = format!("luc_cgroup_blamed_seconds_total{AT}{DB},blamed=\"/unpack\",kind=");
    let blamed = |kind| value(&together, &format!("{of_db}\"{kind}\"}}")).unwrap_or(0.0);
    // The recording has a tracer of its own, whose hooks take their turns.
    let groups = &answer.json("shared", "together")?["file_systems"][0]["control_groups"];
    let mut groups = groups.as_array().into_iter().flatten();
    let recorded = groups.find(|it| it["name"] == "/the \"db\"");
    let recorded = recorded.map(|it| it["waited_for"][0].clone());
    let recorded = recorded.unwrap_or_default();
    for (kind, field) in [("commits", "commits_ns"), ("writes", "write_delay_ns")] {
        let ns = recorded[field].as_f64().unwrap_or(0.0);
        let ratio = blamed(kind) * 1e9 / ns;
        check(
            (0.95..1.05).contains(&ratio),
            format!("{kind}: exported {} s, recorded {ns} ns", blamed(kind)),
        )?;
    }
    let lost = "luc_blame_lost_total{device=\"nullb0\",mountpoint=\"/mnt/0\"}";
    same("events lost", value(&gone, lost).unwrap_or(-1.0), 0.0)
}

/// Tasks that wait for a block of metadata: it is known what it holds, and whether the commit had
/// changed the inode of the waiter's own file or only others.
fn blocks(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("blocks", &["1ms:8:64M"])?,
        Job::new("iowait", &["4ms:1:64M"])?,
    ];
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(program("/usr/bin/watched", "watched.c")?);
    let answer = run_jobs(&spec, &jobs)?;
    for line in answer.told() {
        println!("  {kernel} {line}");
    }
    for (name, only_others) in [("others", true), ("own", false)] {
        let sharing = &answer.json("blocks", name)?["file_systems"][0]["sharing"];
        let number = |field: &str| sharing[field].as_u64().unwrap_or(0);
        let (told, found) = (number("told"), number("only_others"));
        let agree = if only_others { found } else { told - found };
        check(
            told >= 5 && agree * 10 >= told * 9,
            format!("{name}: {found} of {told} waits only for others' inodes: {sharing}"),
        )?;
    }
    Ok(())
}

struct Trace<'a>(&'a Answer);

impl Trace<'_> {
    fn summary(&self, name: &str) -> Result<Value, Trouble> {
        self.0.json("trace", name)
    }

    /// Checks that waits for buffers and for locked transactions are many, and as many as the
    /// kernel's own probes counted meanwhile. If calls are not hooked, the few tasks that prepare
    /// to wait and then need not sleep are not seen.
    fn waits(&self, probed: &str, seen: [&Value; 2], sleepless: bool) -> Outcome {
        let probed = self.0.json("trace", probed)?;
        for (seen, what, least) in [(seen[0], "buffer", 50), (seen[1], "locked", 1)] {
            let number = |value: &Value| value.as_u64().unwrap_or(0);
            let (seen, probed) = (number(seen), number(&probed[what]));
            let fewest = if sleepless {
                probed - probed / 50
            } else {
                probed
            };
            check(
                (fewest..=probed).contains(&seen) && probed >= least,
                format!("{what}: {seen} waits seen, {probed} probed"),
            )?;
        }
        Ok(())
    }

    /// Checks that the recording holds exactly these numbers of spans, and lost none.
    fn counts(&self, name: &str, expected: &[(&str, u64)]) -> Outcome {
        let summary = self.summary(name)?;
        check(summary["spans_lost"] == 0, format!("{name}: spans lost"))?;
        check(
            summary["damage"].is_null(),
            format!("{name}: {}", summary["damage"]),
        )?;
        let counts = &summary["file_systems"][0]["counts"];
        for (kind, count) in expected {
            check(
                counts[kind] == *count,
                format!("{name}: {} spans of {kind}, expected {count}", counts[kind]),
            )?;
        }
        Ok(())
    }
}
