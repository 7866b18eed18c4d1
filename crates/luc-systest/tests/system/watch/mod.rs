//! Everything that counts runs at once, on a load of known counts. `luc trace count`, both ways of
//! `luc exporter`, `luc top` on its screen and as JSON, and `luc status --live` must agree with
//! each other, with the load, with jbd2's own count of commits and, if LUC is on, with the module's
//! files. The screen is that of a real terminal, since `luc top` draws on no other, and is read as
//! a person reads it. `teeth.rs` checks that a wrong figure would be noticed.

pub mod screen;
mod teeth;

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Trouble, check, fail, guest, program, run_jobs, tests_on_every,
};

use screen::Screen;
use serde_json::Value;

/// Counters of the module that every verb must report alike.
const COUNTERS: [&str; 5] = [
    "commits",
    "sync_events",
    "commits_held",
    "closed_idle",
    "handles",
];
/// Syncs of the load's processes, as `watch.sh` asks for them: on the file system that is looked at
/// closely, and on another.
const PROCESSES: [(&str, u64); 2] = [("alpha", 40), ("beta", 25 + 10)];
const OTHER: (&str, u64) = ("other", 5);
const SYNCS: u64 = PROCESSES[0].1 + PROCESSES[1].1;
/// Hooks when only counts are taken, by their means: the tracepoints except those of a commit's
/// phases, the wait for space, and the calls of the two other waits.
const HOOKS: [(&str, u32); 3] = [("tracepoint", 6), ("fentry", 1), ("kprobe", 2)];

/// Interval of the screen, s: `LENGTH` of `watch.sh`.
const LENGTH_S: f64 = 25.0;

pub fn tests() -> Vec<Trial> {
    tests_on_every("watchers", watchers)
}

fn watchers(kernel: &str) -> Outcome {
    let jobs = [Job::new("watch", &["1ms:8", "1ms:8"])?];
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(program("/usr/bin/watched", "watched.c")?);
    let mut answer = run_jobs(&spec, &jobs)?;
    judge(&answer)?;
    teeth::bite(&mut answer)
}

/// Checks all figures.
fn judge(answer: &Answer) -> Outcome {
    let phase = |name| Phase { answer, name };
    phase("plain").traced()?;
    phase("held").traced()?;
    phase("held").screen()?;
    phase("held").module()?;
    told(answer)
}

/// Checks that a number is exactly this one.
pub fn same(what: &str, got: impl Into<f64>, want: impl Into<f64>) -> Outcome {
    let (got, want) = (got.into(), want.into());
    // Counts were divided by times and multiplied by them again.
    check(
        (got - want).abs() < 1e-6 * want.abs().max(1.0),
        format!("{what}: {got}, expected {want}"),
    )
}

/// One run of the load, with the figures of all verbs.
struct Phase<'a> {
    answer: &'a Answer,
    name: &'static str,
}

impl Phase<'_> {
    fn json(&self, file: &str) -> Result<Value, Trouble> {
        self.answer.json("watch", &format!("{}-{file}", self.name))
    }

    fn text(&self, file: &str) -> Result<String, Trouble> {
        self.answer.text("watch", &format!("{}-{file}", self.name))
    }

    fn fact(&self, name: &str) -> Result<f64, Trouble> {
        number(&self.json("facts")?, name)
    }

    /// Checks the tracer's counts in each verb that shows them.
    fn traced(&self) -> Outcome {
        let commits = self.fact("commits")?;
        check(commits >= 10.0, format!("{}: {commits} commits", self.name))?;
        let count = self.json("count")?;
        let systems = count["file_systems"].as_array().map_or(0, Vec::len);
        check(systems == 1, "trace count: more than was asked for")?;
        let counted = &count["file_systems"][0];
        same(
            "trace count: syncs",
            number(counted, "syncs")?,
            SYNCS as f64,
        )?;
        same("trace count: commits", number(counted, "commits")?, commits)?;
        same("trace count: lost", number(&count, "events_lost")?, 0)?;
        syncing("trace count", &count["processes"], "syncs", 2)?;
        for (name, syncs) in PROCESSES {
            let pid = self.fact(name)?;
            let all = count["processes"].as_array().into_iter().flatten();
            let found = all.filter(|one| one["pid"].as_f64() == Some(pid)).count();
            check(found == 1, format!("trace count: {found} of {name}"))?;
            let all = count["processes"].as_array().into_iter().flatten();
            for one in all.filter(|one| one["pid"].as_f64() == Some(pid)) {
                same(name, number(one, "syncs")?, syncs as f64)?;
            }
        }
        let by_commits: Vec<f64> = counted["syncs_by_commits"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect();
        check(by_commits.len() == 4, counted)?;
        for file in self.pages() {
            let page = Page(self.text(file)?);
            let what = |metric| format!("{} {file}: {metric}", self.name);
            let of = |metric| page.value(metric, "nullb0");
            for (metric, want) in [
                ("luc_syncs_total", SYNCS as f64),
                ("luc_sync_duration_seconds_count", SYNCS as f64),
                ("luc_syncs_served_total", by_commits[1..].iter().sum()),
                ("luc_syncs_late_total", by_commits[2..].iter().sum()),
                ("luc_journal_commits_total", commits),
            ] {
                same(&what(metric), of(metric)?, want)?;
            }
            let syncs = page.value("luc_syncs_total", "nullb1")?;
            same(&what("the other's syncs"), syncs, OTHER.1 as f64)?;
            let other = page.value("luc_journal_commits_total", "nullb1")?;
            same(
                &what("the other's commits"),
                other,
                self.fact("commits_other")?,
            )?;
            let all = SYNCS + OTHER.1;
            groups(&page, "/alpha", [PROCESSES[0].1, all - PROCESSES[0].1, 0])?;
            same(&what("lost"), page.value("luc_tracer_lost_total", "")?, 0)?;
            for (means, hooks) in HOOKS {
                let told = page.value("luc_tracer_attached", means)?;
                same(&what(means), told, hooks)?;
            }
        }
        let gone = Page(self.text("gone")?);
        groups(
            &gone,
            "others",
            [
                PROCESSES[0].1,
                SYNCS + OTHER.1 - PROCESSES[0].1,
                PROCESSES[0].1,
            ],
        )?;
        match self.name {
            "held" => self.snapshot("live", &self.json("live")?["live"]),
            _ => self.snapshot("once", &self.json("once")?),
        }
    }

    /// The pages of the exporters.
    fn pages(&self) -> &'static [&'static str] {
        match self.name {
            "held" => &["http", "file"],
            _ => &["http"],
        }
    }

    /// Checks the sampler's rates in an interval of known length.
    fn snapshot(&self, file: &str, snapshot: &Value) -> Outcome {
        let interval_s = number(snapshot, "interval_s")?;
        let what = |name: &str| format!("{} {file}: {name}", self.name);
        same(&what("lost"), number(snapshot, "events_lost")?, 0)?;
        for (disk, syncs, commits) in [
            ("nullb0", SYNCS, self.fact("commits")?),
            ("nullb1", OTHER.1, self.fact("commits_other")?),
        ] {
            let journal = named(&snapshot["journals"], disk)?;
            let traced = &journal["traced"];
            let of = |name| Ok::<f64, Trouble>(number(traced, name)? * interval_s);
            same(&what("syncs"), of("syncs_per_s")?, syncs as f64)?;
            same(&what("commits"), of("commits_per_s")?, commits)?;
        }
        syncing(&what("processes"), &snapshot["processes"], "syncs_per_s", 3)?;
        for (name, syncs) in PROCESSES.into_iter().chain([OTHER]) {
            let process = named(&snapshot["processes"], name)?;
            same(&what(name), number(process, "pid")?, self.fact(name)?)?;
            let rate_per_s = number(process, "syncs_per_s")?;
            same(&what(name), rate_per_s * interval_s, syncs as f64)?;
        }
        Ok(())
    }

    /// Checks the last screen of the view, which people see.
    fn screen(&self) -> Outcome {
        let screen = Screen::last(&self.text("screen")?);
        let what = format!("{} screen", self.name);
        // Two digits after the point: at most an eighth of an event in the interval.
        let events = |text: &str| -> Option<f64> { Some(text.parse::<f64>().ok()? * LENGTH_S) };
        let near = |got: Option<f64>, want: f64| got.is_some_and(|got| (got - want).abs() < 0.3);
        for (point, commits) in [("/mnt/0", "commits"), ("/mnt/1", "commits_other")] {
            let row = screen.row(0, point);
            let got = row.get(1).and_then(|text| events(text));
            check(
                near(got, self.fact(commits)?),
                format!("{what}: {point}: {got:?} commits in\n{screen}"),
            )?;
        }
        let mut places = Vec::new();
        for (name, syncs) in PROCESSES.into_iter().chain([OTHER]) {
            let row = screen.row(1, name);
            let got = row.get(2).and_then(|text| events(text));
            check(
                near(got, syncs as f64),
                format!("{what}: {name}: {got:?} fsyncs in\n{screen}"),
            )?;
            let pid = row.first().and_then(|text| text.parse::<f64>().ok());
            check(
                pid == Some(self.fact(name)?),
                format!("{what}: {name}: number {pid:?} in\n{screen}"),
            )?;
            places.push(screen.line(1, name));
        }
        check(
            places.is_sorted(),
            format!("{what}: most fsyncs are not first in\n{screen}"),
        )?;
        let state = "policy static, steering";
        check(
            screen.has(state),
            format!("{what}: no {state:?} in\n{screen}"),
        )
    }

    /// Checks the module's counts in each verb that reads them.
    fn module(&self) -> Outcome {
        let (before, after) = (self.json("before")?, self.json("after")?);
        let gained = |name| Ok::<f64, Trouble>(number(&after, name)? - number(&before, name)?);
        let commits = self.fact("commits")?;
        same("module: commits", gained("commits")?, commits)?;
        same("module: sync events", gained("sync_events")?, SYNCS as f64)?;
        let held = gained("commits_held")?;
        check(
            (10.0..=commits).contains(&held),
            format!("module: {held} commits held of {commits}"),
        )?;
        let live = self.json("live")?;
        let status = named(&live["file_systems"], "nullb0")?;
        for page in self.pages() {
            let page = Page(self.text(page)?);
            // A counter's unit is part of its name; these have none.
            for name in COUNTERS {
                let want = number(&after, name)?;
                same(
                    name,
                    page.value(&format!("luc_{name}_total"), "nullb0")?,
                    want,
                )?;
                same(name, number(&status["counters"], name)?, want)?;
            }
            let held_s = page.value("luc_held_seconds_total", "nullb0")?;
            same("held, s", held_s, number(&after, "held_ns")? / 1e9)?;
            let told = page.value("luc_policy_info", "policy=\"static\",mode=\"steer\"")?;
            same("policy and mode", told, 1)?;
        }
        let interval_s = number(&live["live"], "interval_s")?;
        let luc = &named(&live["live"]["journals"], "nullb0")?["luc"];
        check(luc["policy"] == "static" && luc["mode"] == "steer", luc)?;
        for (rate, want) in [
            ("commits_per_s", commits),
            ("sync_events_per_s", SYNCS as f64),
            ("held_per_s", held),
        ] {
            same(rate, number(&luc["rates"], rate)? * interval_s, want)?;
        }
        check(
            status["knobs"]["policy"] == "static" && status["knobs"]["mode"] == "steer",
            &status["knobs"],
        )
    }
}

/// Checks that policy and mode are those that were set last.
fn told(answer: &Answer) -> Outcome {
    let page = Page(answer.text("watch", "told-http")?);
    let info = page.value("luc_policy_info", "policy=\"batching\",mode=\"observe\"")?;
    same("told: exporter", info, 1)?;
    let live = answer.json("watch", "told-live")?;
    let knobs = &named(&live["file_systems"], "nullb0")?["knobs"];
    for said in [knobs, &named(&live["live"]["journals"], "nullb0")?["luc"]] {
        check(
            said["policy"] == "batching" && said["mode"] == "observe",
            format!("told: {said}"),
        )?;
    }
    Ok(())
}

/// Checks the syncs of alpha's control group, under this name, of the root, and of all groups that
/// have no total of their own.
fn groups(page: &Page, alpha: &str, [of_alpha, of_root, of_others]: [u64; 3]) -> Outcome {
    for (group, want) in [(alpha, of_alpha), ("/", of_root), ("others", of_others)] {
        let label = format!("cgroup=\"{group}\"");
        let syncs = page.value("luc_cgroup_syncs_total", &label)?;
        same(&label, syncs, want as f64)?;
    }
    Ok(())
}

fn number(value: &Value, name: &str) -> Result<f64, Trouble> {
    match value[name].as_f64() {
        Some(number) => Ok(number),
        None => fail(format!("no number {name} in {value}")),
    }
}

/// Checks that this many processes synced; others may have waited for a commit.
fn syncing(what: &str, processes: &Value, syncs: &str, want: usize) -> Outcome {
    let all = processes.as_array().into_iter().flatten();
    let found = all.filter(|one| one[syncs].as_f64() != Some(0.0)).count();
    check(
        found == want,
        format!("{what}: not {want} that sync: {processes}"),
    )
}

/// The item of that name.
fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value, Trouble> {
    let mut found = list.as_array().into_iter().flatten();
    match found.find(|one| one["name"] == name) {
        Some(one) => Ok(one),
        None => fail(format!("no {name} in {list}")),
    }
}

/// The page of an exporter.
struct Page(String);

impl Page {
    /// The value of the one series of a metric whose labels hold this.
    fn value(&self, metric: &str, label: &str) -> Result<f64, Trouble> {
        let series = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(metric)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            let whole = labels.is_empty() || labels.starts_with('{');
            (whole && labels.contains(label)).then(|| value.parse::<f64>())
        });
        match series.collect::<Vec<_>>().as_slice() {
            [Ok(value)] => Ok(*value),
            found => fail(format!("{metric} of {label}: {found:?} in\n{}", self.0)),
        }
    }
}
