//! Every watching verb on hosts that each lack one thing: every verb answers, and none reports a
//! number that it does not know. The findings are the table of hosts in `docs/seeing.md`; with
//! `LUC_RENEW` set, the table is rewritten.

use std::fmt::Write as _;
use std::fs;

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Trouble, check, fail, guest, is_whole, program, root, run_jobs, test,
};
use luc_trace::{Sight, SpanKind, Unseen};

use serde_json::Value;

const KERNEL: &str = "6.12";

/// A host: its name in `sight.sh`, its name in words, and what cannot be seen there; `None` if
/// nothing can be traced.
struct Host {
    name: &'static str,
    words: &'static str,
    unseen: Option<&'static [Sight]>,
}

const ALL: &[Sight] = &Sight::ALL;
/// Functions that kprobes at calls do not replace.
const FUNCTIONS: &[Sight] = &[
    Sight::Opens,
    Sight::Writes,
    Sight::Closes,
    Sight::Flushes,
    Sight::SyncFs,
    Sight::WaitSpace,
];

const HOSTS: [Host; 14] = [
    host("all", "a Debian kernel, as it is", Some(&[])),
    host("no-fentry", "fentry refused (EPERM)", Some(&[])),
    host("no-kprobes", "no kprobes", Some(&[])),
    host("no-functions", "fentry refused, no kprobes", Some(ALL)),
    host("no-ftrace", "kernel.ftrace_enabled=0", Some(FUNCTIONS)),
    host("no-kallsyms", "no /proc/kallsyms", Some(&[])),
    host("no-tracefs", "no tracefs", Some(&[])),
    host("no-types", "no BTF", None),
    host("no-bpf", "no BPF", None),
    host("filtered", "a container whose filter refuses bpf()", None),
    host("no-rights", "a container: root without rights", None),
    host("two-rights", "CAP_BPF and CAP_PERFMON alone", Some(&[])),
    host("integrity", "lockdown, integrity", Some(&[])),
    host("confidentiality", "lockdown, confidentiality", None),
];

const fn host(name: &'static str, words: &'static str, unseen: Option<&'static [Sight]>) -> Host {
    Host {
        name,
        words,
        unseen,
    }
}

/// Verbs that attach as `record` does, which runs on every host. Each takes seconds of the
/// processor to start, so `make test` runs them on three hosts: one where everything is seen, one
/// where only tracepoints are, and one where nothing is.
const LIVE: [&str; 5] = ["doctor", "top", "exporter", "count", "status"];
const LIVE_ON: [&str; 3] = ["all", "no-functions", "no-types"];

/// Verbs that trace, and their exit codes if they can: the doctor may find something.
const VERBS: [(&str, &[u64]); 5] = [
    ("doctor", &[0, 26, 34, 35]),
    ("top", &[0]),
    ("exporter", &[0]),
    ("count", &[0]),
    ("record", &[0]),
];

pub fn tests() -> Vec<Trial> {
    vec![test(format!("hosts_on_{KERNEL}"), hosts)]
}

fn hosts() -> Outcome {
    // A slow disk, so that the load runs all the time and costs little.
    let live_on = if is_whole() {
        HOSTS.map(|host| host.name).join(" ")
    } else {
        LIVE_ON.join(" ")
    };
    let jobs = [Job::new("sight", &["20ms:8"])?.env("LIVE_ON", live_on)];
    let mut spec = guest(KERNEL, &jobs)?;
    // Some hundred programs one after the other.
    spec.timeout_host_s = 3600;
    spec.kernel_cmdline_extra = "lsm=lockdown,bpf".into();
    spec.files.push(program("/usr/bin/without", "without.c")?);
    let answer = run_jobs(&spec, &jobs)?;
    let mut wrong = Vec::new();
    for host in &HOSTS {
        match Said(&answer, host).judge() {
            Ok(()) => {}
            Err(Trouble::Fail(why)) => wrong.push(why),
            Err(other) => return Err(other),
        }
    }
    check(wrong.is_empty(), wrong.join("\n  "))?;
    table(&answer)
}

/// The answers of the verbs on a host.
struct Said<'a>(&'a Answer, &'a Host);

impl Said<'_> {
    fn text(&self, file: &str) -> Result<String, Trouble> {
        self.0.text("sight", &format!("{}.{file}", self.1.name))
    }

    fn json(&self, verb: &str) -> Result<Value, Trouble> {
        let text = self.text(&format!("{verb}.out"))?;
        serde_json::from_str(&text).or_else(|error| {
            let said = self.text(&format!("{verb}.err"))?;
            fail(format!("{}: {verb}: {error}: {said}", self.1.name))
        })
    }

    fn code(&self, verb: &str) -> Result<u64, Trouble> {
        let text = self.text(&format!("{verb}.code"))?;
        text.trim()
            .parse()
            .or_else(|_| fail(format!("{}: {verb}: no exit code", self.1.name)))
    }

    /// Tells whether the verb ran there.
    fn asked(&self, verb: &str) -> bool {
        is_whole() || LIVE_ON.contains(&self.1.name) || !LIVE.contains(&verb)
    }

    fn check(&self, holds: bool, what: &str) -> Outcome {
        check(holds, format!("{}: {what}", self.1.name))
    }

    fn judge(&self) -> Outcome {
        let probe = self.json("probe")?;
        let said = &probe["watching"]["unseen"];
        let unseen = self.1.unseen.map(|sights| sights.iter().copied().collect());
        let words = unseen.as_ref().map(|unseen: &Unseen| -> Vec<&str> {
            unseen.iter().map(|sight| sight.word()).collect()
        });
        self.check(
            *said == serde_json::json!(words),
            &format!("probe says {}, expected {words:?}", probe["watching"]),
        )?;
        if self.asked("status") {
            let status = self.code("status")?;
            self.check(status == 0, "status has no answer")?;
        }
        match unseen {
            Some(unseen) => self.sees(&unseen),
            None => self.refuses(),
        }
    }

    /// Checks that the exporter runs on, without numbers.
    fn serves_nothing(&self) -> Outcome {
        let page = self.text("exporter.out")?;
        let code = self.code("exporter")?;
        let blind = page.contains("luc_tracer_attached{means=\"tracepoint\"} 0\n")
            && !page.contains("luc_syncs_total");
        self.check(
            code == 0 && blind,
            &format!("exporter: exit {code}: {page}"),
        )?;
        let said = self.text("exporter.err")?;
        let reasons = said
            .lines()
            .filter(|line| line.contains(": nothing is traced: "));
        self.check(reasons.count() == 1, &format!("exporter: {said}"))
    }

    /// Checks that each verb refuses, in one line with a reason.
    fn refuses(&self) -> Outcome {
        if self.asked("exporter") {
            self.serves_nothing()?;
        }
        let verbs = VERBS.into_iter().filter(|(verb, _)| self.asked(verb));
        for (verb, _) in verbs.filter(|(verb, _)| *verb != "exporter") {
            let code = self.code(verb)?;
            self.check([3, 24].contains(&code), &format!("{verb}: exit {code}"))?;
            let said = self.text(&format!("{verb}.err"))?;
            let reasons = said.lines().filter(|line| !line.contains("luc: note: "));
            self.check(reasons.count() == 1, &format!("{verb}: {said}"))?;
            let empty = self.text(&format!("{verb}.out"))?.is_empty();
            self.check(empty, &format!("{verb} told numbers"))?;
        }
        Ok(())
    }

    fn sees(&self, unseen: &Unseen) -> Outcome {
        for (verb, codes) in VERBS.into_iter().filter(|(verb, _)| self.asked(verb)) {
            let code = self.code(verb)?;
            let said = self.text(&format!("{verb}.err"))?;
            self.check(
                codes.contains(&code),
                &format!("{verb}: exit {code}: {said}"),
            )?;
        }
        if self.asked("count") {
            self.counts(unseen)?;
            self.snapshot(unseen)?;
            self.page(unseen)?;
        }
        self.recording(unseen)?;
        for verb in ["doctor", "from"] {
            if self.asked(verb) {
                self.diagnosis(verb, unseen)?;
            }
        }
        self.once(unseen)
    }

    /// Checks that a value is a number if it is seen, and null if not.
    fn known(&self, what: &str, value: &Value, seen: bool) -> Outcome {
        self.check(
            value.is_number() == seen && value.is_null() != seen,
            &format!("{what} is {value}"),
        )
    }

    fn counts(&self, unseen: &Unseen) -> Outcome {
        let count = self.json("count")?;
        let fs = &count["file_systems"][0];
        self.check(fs["syncs"].as_u64() > Some(0), "count: no sync")?;
        self.check(fs["commits"].as_u64() > Some(0), "count: no commit")?;
        for kind in SpanKind::WAITS {
            let waits = &fs["waits"][kind.text()]["count"];
            self.known("count: waits", waits, Sight::sees(unseen, kind))?;
        }
        let all = !unseen.iter().any(|sight| sight.is_wait());
        let process = &count["processes"][0];
        self.known("count: wait_ns", &process["wait_ns"], all)
    }

    fn snapshot(&self, unseen: &Unseen) -> Outcome {
        let top = self.json("top")?;
        let traced = &top["journals"][0]["traced"];
        self.check(traced["syncs_per_s"].as_f64() > Some(0.0), "top: no sync")?;
        for (kind, wait) in SpanKind::WAITS
            .iter()
            .zip(traced["waits"].as_array().into_iter().flatten())
        {
            let what = format!("top: {}", kind.text());
            self.known(&what, &wait["per_s"], Sight::sees(unseen, *kind))?;
        }
        let all = !unseen.iter().any(|sight| sight.is_wait());
        let process = &top["processes"][0];
        self.known("top: lost_ns_per_s", &process["lost_ns_per_s"], all)?;
        self.check(process["name"] == "luc-lab", &format!("top: {process}"))
    }

    fn page(&self, unseen: &Unseen) -> Outcome {
        let page = self.text("exporter.out")?;
        self.check(page.contains("luc_syncs_total{"), "exporter: no syncs")?;
        for kind in SpanKind::WAITS {
            let series = page.contains(&format!("kind=\"{}\"", kind.text()));
            let seen = Sight::sees(unseen, kind);
            self.check(series == seen, &format!("exporter: {kind}: {series}"))?;
        }
        let histogram = page.contains("luc_buffer_wait_duration_seconds");
        let seen = Sight::sees(unseen, SpanKind::WaitBuffer);
        self.check(histogram == seen, "exporter: histogram of waits")
    }

    fn recording(&self, unseen: &Unseen) -> Outcome {
        let summary = self.json("summary")?;
        let fs = &summary["file_systems"][0];
        for kind in SpanKind::ALL
            .into_iter()
            .filter(|kind| *kind != SpanKind::Task)
        {
            let what = format!("summary: {kind}");
            let seen = Sight::sees(unseen, kind);
            self.known(&what, &fs["counts"][kind.text()], seen)?;
            self.known(&what, &fs["time_ns"][kind.text()], seen)?;
        }
        let writes = Sight::sees(unseen, SpanKind::Write);
        self.known("summary: bytes", &fs["bytes_written"], writes)?;
        self.known("summary: writes", &fs["table"]["writes"], writes)?;
        let flushes = !unseen.contains(&Sight::Flushes);
        self.known("summary: flush", &fs["table"]["flush_mean_ns"], flushes)
    }

    /// Checks that no verdict is sure if unseen events undermine it, live or from a recording.
    fn diagnosis(&self, verb: &str, unseen: &Unseen) -> Outcome {
        let report = self.json(verb)?;
        let fs = &report["file_systems"][0];
        for (sight, fields) in [
            (Sight::Flushes, &["flush_ns", "behind_ns", "own_ns"][..]),
            (Sight::Writes, &["write_ns"]),
            (Sight::WaitBuffer, &["buffer_ns"]),
            (Sight::WaitLocked, &["locked_ns"]),
            (Sight::WaitSpace, &["space_ns"]),
        ] {
            for field in fields {
                let what = format!("{verb}: {field}");
                self.known(&what, &fs["account"][field], !unseen.contains(&sight))?;
            }
        }
        let level = fs["confidence"]["level"].as_str().unwrap_or("none");
        let blind = unseen.contains(&Sight::Flushes);
        self.check(!blind || level != "high", &format!("{verb}: sure"))?;
        let sufferers = &fs["processes"]["sufferers"];
        self.check(
            sufferers.is_null() == blind,
            &format!("{verb}: {sufferers}"),
        )?;
        let trusted = fs["gain"]["trusted"] == true;
        self.check(!(blind && trusted), &format!("{verb}: a gain is trusted"))
    }

    /// Checks that each verb names the events that it misses, once.
    fn once(&self, unseen: &Unseen) -> Outcome {
        for verb in ["count", "record", "exporter"]
            .into_iter()
            .filter(|verb| self.asked(verb))
        {
            let said = self.text(&format!("{verb}.err"))?;
            let lines = said.lines().filter(|line| line.contains("not seen here"));
            let lines = lines.count();
            // The exporter and `count` look at waits alone.
            let any = unseen
                .iter()
                .any(|sight| verb == "record" || sight.is_wait());
            self.check(lines == usize::from(any), &format!("{verb}: {said}"))?;
        }
        Ok(())
    }
}

const BEGIN: &str = "<!-- hosts: written by the suite sight -->\n";
const END: &str = "<!-- end of hosts -->\n";

/// Compares the findings with the table in the documentation, or renews the table.
fn table(answer: &Answer) -> Outcome {
    let found = render(answer)?;
    let path = root().join("docs/seeing.md");
    let page = fs::read_to_string(&path).or_else(|error| fail(error.to_string()))?;
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| {
        let (table, tail) = rest.split_once(END)?;
        Some((head, table, tail))
    });
    let Some((head, table, tail)) = parts else {
        return fail("docs/seeing.md has no place for the table of hosts");
    };
    if std::env::var_os("LUC_RENEW").is_some() {
        let page = format!("{head}{BEGIN}{found}{END}{tail}");
        return fs::write(&path, page).or_else(|error| fail(error.to_string()));
    }
    check(
        table == found,
        format!(
            "the table of hosts in docs/seeing.md is another (LUC_RENEW=1 renews it):\n{found}"
        ),
    )
}

fn render(answer: &Answer) -> Result<String, Trouble> {
    let mut table =
        String::from("| host | the watching verbs | not known there |\n|---|---|---|\n");
    let mut says = String::new();
    for host in &HOSTS {
        let said = Said(answer, host);
        let (works, unknown) = match host.unseen {
            None => (
                format!("say why not, exit {}", said.code("record")?),
                "all but LUC's own counters".to_owned(),
            ),
            Some([]) => ("work".to_owned(), "-".to_owned()),
            Some(sights) => {
                let unseen: Unseen = sights.iter().copied().collect();
                ("work".to_owned(), Sight::words(&unseen).replace(',', ", "))
            }
        };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {} | {works} | {unknown} |", host.words);
        let text = said.text("record.err")?;
        let line = text.lines().find(telling);
        if let Some(line) = line {
            says.push_str(&wrapped(&format!("- {}: ``{line}``", host.words)));
        }
    }
    Ok(format!("{table}\nThere `luc trace record` says:\n\n{says}"))
}

/// Tells whether a line is about what is missing, not about what was recorded.
fn telling(line: &&str) -> bool {
    line.contains("not seen here") || !(line.contains("note: ") || line.contains("host.luc"))
}

/// Text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > 100 {
            lines.push(format!("  {word}"));
        } else if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
