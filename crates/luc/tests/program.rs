//! The program as a shell sees it: help, exit codes, pages, completions, and
//! the verbs that need no kernel.

mod common;

use std::fs;
use std::path::Path;

use common::{Pretended, luc};
use insta::assert_snapshot;
use luc_cli::Code;
use luc_test::command::{assert_begins, assert_ends, assert_holds, run};
use luc_test::{completions, pages};

#[test]
fn help_is_short_and_long() {
    let [short, long] = ["-h", "--help"].map(|option| run(luc().arg(option)));
    let verbs = |help: &str| {
        let (_, from) = help.split_once("\nWatch:\n").expect("verbs");
        from.split_once("\nOptions:").expect("options").0.to_owned()
    };
    assert_eq!(verbs(&short), verbs(&long));
    let (_, end) = short.split_once("\nOptions:").expect("options");
    assert_snapshot!(format!("{long}-h ends with:{end}"));
    let on = run(luc().args(["on", "--help"]));
    let (options, knobs) = on.split_once("Knobs:").expect("a table of knobs");
    assert_snapshot!(options);
    for knob in luc_control::knobs() {
        assert!(knobs.contains(knob.name), "{}", knob.name);
    }
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let lines: [&[&str]; 7] = [
        &[],
        &["fly"],
        &["on"],
        &["off"],
        &["off", "/", "--all"],
        &["try", "--seconds", "none", "/tmp"],
        &["bench", "create-fsync", "/tmp"],
    ];
    for line in lines {
        luc().args(line).assert().code(2);
    }
}

/// The line names the options that could have been meant.
#[test]
fn a_missing_path_names_what_stands_in_for_it() {
    for (verb, options) in [
        ("off", "--all or --unload"),
        ("doctor", "--all or --from FILE"),
    ] {
        let said = run(luc().arg(verb));
        let line = format!(
            "luc: name a path or a device, or use {options}; see `luc {verb} --help`\n[exit 2]\n"
        );
        assert_eq!(said, line);
    }
}

#[test]
fn a_tree_without_mounts_is_named() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let said = run(luc().args(["probe", "--sysroot"]).arg(dir.path()));
    assert_holds(&said, "cannot read /proc/self/mountinfo: No such file");
}

#[test]
fn sysroot_is_an_option_and_a_variable() {
    let machine = Pretended::new();
    luc()
        .arg("probe")
        .arg("--sysroot")
        .arg(machine.dir.path())
        .assert()
        .success();
    let said = run(luc()
        .args(["on", "/srv/xfs"])
        .env("LUC_SYSROOT", machine.dir.path()));
    assert_ends(&said, "[exit 6]\n");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let machine = Pretended::new();
    let program = assert_cmd::cargo::cargo_bin("luc");
    let mut child = std::process::Command::new(program)
        .args(["completions", "zsh", "--sysroot"])
        .arg(machine.dir.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Every page exists, and `man` renders it without a warning.
#[test]
fn man_pages_render() {
    let dir = pages::written("luc");
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).expect(name);
    let on = page("luc-on.1");
    for knob in luc_control::knobs() {
        assert!(on.contains(knob.name), "{} is in luc-on(1)", knob.name);
    }
    let status = page("luc-status.1");
    for counter in luc_control::counters() {
        assert!(status.contains(counter.name), "{}", counter.name);
    }
    assert!(page("luc.1").contains("luc\\-doctor"));
    assert!(
        !page("luc-probe.1").contains("sysroot"),
        "hidden options stay hidden"
    );
    // The tables are the same as in the help.
    let (before, tables) = on.split_once(".SH POLICIES").expect("tables");
    let (tables, examples) = tables.split_once(".SH EXAMPLES").expect("examples");
    let (examples, codes) = examples.split_once(".SH \"EXIT STATUS\"").expect("codes");
    let (codes, also) = codes.split_once(".SH").expect("other pages");
    assert_snapshot!("man_on", format!("{before}{examples}{also}"));
    let plain = |text: &str| text.replace("\\-", "-").replace("\\*(Aq", "'");
    let (tables, codes) = (plain(tables), plain(codes));
    for policy in luc_control::policies() {
        assert!(tables.contains(&format!("fB{}\\fR\n{}\n", policy.text, policy.help)));
    }
    for (code, meaning) in Code::for_verbs(&["on"]) {
        assert!(codes.contains(&format!("fB{}\\fR\n{meaning}\n", code.number())));
    }
    assert!(
        !codes.contains(&format!("fB{}\\fR", Code::LucHelps.number())),
        "codes of others"
    );
    for (title, word) in [("BATCHING", "age"), ("COPYOUT", "contended")] {
        let section = format!("VALUES OF {}", title.to_lowercase());
        assert!(tables.contains(&section) && tables.contains(&format!("fB{word}\\fR\n")));
    }
    // roff writes a literal hyphen as \-.
    assert_holds(&on, ".SH EXAMPLES\n.nf\nluc on /srv/data\n");
    let see = |name: &str| {
        let page = page(name);
        page.split_once(".SH \"SEE ALSO\"\n")
            .expect("a section")
            .1
            .replace("\\-", "-")
    };
    let (summary, trace) = (see("luc-trace-summary.1"), see("luc-trace.1"));
    assert_holds(&summary, "luc-trace-record");
    assert_holds(&summary, "fBluc-trace\\");
    assert_holds(&trace, "luc-trace-summary");
    assert_holds(&trace, "luc-doctor");
    pages::assert_they_render(dir.path());
}

#[test]
fn completions_know_verbs_policies_and_knobs() {
    for shell in ["bash", "zsh", "fish"] {
        let script = completions::script("luc", shell);
        for word in ["probe", "exporter", "published", "delay_limit_us"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    completions::assert_shells_read_them("luc");
    for (words, expected) in [
        (&["luc", "on", "--policy", "p"][..], "published"),
        (&["luc", "on", "--set", "delay_l"], "delay_limit_us="),
        (&["luc", "set", "delay_l"], "delay_limit_us"),
    ] {
        completions::assert_bash_offers(words, &[expected]);
    }
    let of_set = "__fish_luc_behind 1 1 set\" -f -a \"policy\\t";
    let fish = completions::script("luc", "fish");
    assert!(fish.contains(of_set), "knobs stand behind a path");
    for (line, expected) in [
        ("luc on --policy p", &["published"][..]),
        ("luc set /srv/data delay_limit_u", &["delay_limit_us"]),
        ("luc set --sysroot /x /srv/data mod", &["mode"]),
        (
            "luc set /srv/data mode st",
            &["static", "static-16ms", "static-1ms", "steer", "stock"],
        ),
        ("luc completions z", &["zsh"]),
    ] {
        completions::assert_fish_offers(line, expected);
    }
}

#[test]
fn recordings_that_are_none() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let put = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).expect("temporary file");
    };
    put("empty", "");
    put("header", "# luc-trace 1 kernel=6.12\n");
    put("future", "# luc-trace 9\n");
    put("garbage", "some text\n");
    let mut said = String::new();
    for name in ["absent", "empty", "header", "future", "garbage"] {
        said += &run(luc().args(["replay", name]).current_dir(dir.path()));
    }
    assert_snapshot!(said);
}

/// A decision made by the controller itself replays; with one term changed it
/// does not.
#[test]
fn replay_believes_only_the_controller() {
    use luc_control::{Decision, Input, Params, State, Step, control_step};
    use luc_trace::{Event, Header, Record, Writer};
    let dir = tempfile::tempdir().expect("temporary folder");
    let record = |name: &str, bend: i64| {
        let file = fs::File::create(dir.path().join(name)).expect("temporary file");
        let header = Header::default().with("kernel", "6.12");
        let mut writer = Writer::new(file, &header).expect("temporary file");
        let (params, mut state) = (Params::default(), State::default());
        for commit in 1..=3_u32 {
            let before = state;
            let input = Input {
                now_ns: i64::from(commit) * 8_000_000,
                events: 2,
                expected_events: 2,
                last_event_ns: i64::from(commit) * 8_000_000 - 1000,
                commit_avg_ns: 8_000_000,
                ..Input::default()
            };
            let mut out = control_step(Step::Open, &params, &mut state, &input);
            out.wake_ns += bend;
            let decision = Box::new(Decision {
                step: Step::Open.value(),
                params,
                input,
                state: before,
                out,
            });
            let event = Event::Decision {
                dev: "254:0".parse().expect("a device"),
                tid: commit,
                decision,
            };
            let record = Record {
                task: "jbd2/vda1-8".into(),
                pid: 77,
                cpu: 0,
                time_ns: u64::from(commit) * 8_000_000,
                event,
            };
            writer.record(&record).expect("temporary file");
        }
        writer.finish().expect("temporary file");
    };
    record("good", 0);
    record("bent", 1);
    let replay = |words: &[&str]| run(luc().arg("replay").args(words).current_dir(dir.path()));
    assert_snapshot!(replay(&["good"]) + &replay(&["bent"]));
    let json = replay(&["--json", "good"]);
    assert_holds(&json, "\"passed\": true");
}

#[test]
fn recording_needs_tracefs_and_the_module() {
    let machine = Pretended::new();
    let file = machine.dir.path().join("recording");
    let record = |from: &str| {
        let mut command = luc();
        command.args(["trace", "record", "--from", from, "-o"]);
        command.arg(&file).arg("--sysroot").arg(machine.dir.path());
        run(&mut command)
    };
    let mut said = record("module");
    machine.put("/sys/kernel/tracing/instances/README", "");
    said += &record("module");
    // BPF programs would watch the real machine.
    said += &record("both");
    said += &record("tracer");
    assert!(!file.exists(), "no file without a recording");
    assert_snapshot!(said);
}

/// Records `threads` threads that fsync again and again, over 20 commits of 4 ms. Late threads find
/// a commit running and wait for the next one.
fn fsyncs(file: &Path, threads: u32, late: bool) {
    use luc_trace::{Header, Span, SpanKind};
    const MS: u64 = 1_000_000;
    let dev = "254:16".parse().expect("a device");
    let mut spans = Vec::new();
    for tid in 1..=20_u32 {
        let begin_ns = u64::from(tid) * 5 * MS;
        let commit = Span {
            kind: SpanKind::Commit,
            begin_ns,
            end_ns: begin_ns + 4 * MS,
            tid,
            dev,
            ..Span::default()
        };
        spans.push(commit);
        // A thread that waits for two commits asks only for every second one.
        if late && tid % 2 == 1 {
            continue;
        }
        let (asked_ns, done_tid) = if late {
            (begin_ns - 4 * MS, tid - 2)
        } else {
            (begin_ns - MS / 2, tid - 1)
        };
        spans.extend((0..threads).map(|thread| Span {
            kind: SpanKind::Fsync,
            begin_ns: asked_ns,
            end_ns: commit.end_ns + u64::from(thread) * 10_000,
            pid: 100 + thread,
            tgid: 100,
            object: 12,
            done_tid,
            ..commit
        }));
    }
    luc_test::command::record(file, &Header::default().with("kernel", "6.12"), spans);
}

#[test]
fn recordings_become_tables() {
    let dir = tempfile::tempdir().expect("temporary folder");
    fsyncs(&dir.path().join("run"), 2, false);
    let export = |format: &str| {
        let mut command = luc();
        command.args(["trace", "export", "--format", format, "run"]);
        command.current_dir(dir.path());
        command
    };
    let text = run(&mut export("csv"));
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("fsync,"))
            .count(),
        40
    );
    assert_eq!(run(export("csv").args(["-o", "spans"])), "[exit 0]\n");
    let file = fs::read_to_string(dir.path().join("spans")).expect("the file is there");
    assert_eq!(text, format!("{file}[exit 0]\n"));
    let nowhere = run(export("csv").args(["-o", "no/such/folder"]));
    assert_begins(&nowhere, "luc: trace no/such/folder: ");
}

#[test]
fn recordings_are_ranked() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let runs = [
        (1, false),
        (2, true),
        (2, false),
        (4, true),
        (4, false),
        (8, false),
    ];
    for (number, (threads, late)) in runs.into_iter().enumerate() {
        fsyncs(&dir.path().join(format!("run{number}")), threads, late);
    }
    let rank = |words: &[&str]| {
        let mut command = luc();
        command
            .args(["trace", "rank"])
            .args(words)
            .current_dir(dir.path());
        command
    };
    let all = ["run0", "run1", "run2", "run3", "run4", "run5"];
    let ranked = run(&mut rank(&all));
    let few = run(&mut rank(&all[..2]));
    let same = run(&mut rank(&["run0", "run0", "run0"]));
    let other = run(rank(&all).args(["--device", "8:1"]));
    let unknown = run(rank(&all).args(["--device", "sda1"]));
    assert_snapshot!(ranked + &few + &same + &other + &unknown);
    let output = rank(&all).arg("--json").output().expect("the program runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["throughput"], "syncs/s");
    assert_eq!(json["recordings"][5]["values"]["threads"], 8.0);
    let first = &json["ranking"]["causes"][0];
    assert_eq!(first["name"], "sync_events_per_commit");
    assert_eq!(first["sign"], "helps");
}
