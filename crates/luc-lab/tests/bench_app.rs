//! `luc-lab bench app`: real programs, and programs that misbehave.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::luc_lab;
use luc_test::command::{assert_holds, outputs};
use serde_json::Value;

const TABLE: &str = r#"
[app.toy]
about = "a toy"
programs = { sh = "dash" }
measures = [
	{ name = "done_per_s", better = "higher", about = "what it did" },
	{ name = "done_p99_ms", better = "lower", about = "99th percentile" },
]

[app.absent]
about = "a program that nobody has"
programs = { luc-no-such-program = "luc-no-such-package" }
measures = [{ name = "done_per_s", better = "higher", about = "what it did" }]
"#;

/// A folder of programs, one to test in, and one for what is not measured.
struct Place(tempfile::TempDir);

impl Place {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        for name in ["apps", "disk", "tmp"] {
            fs::create_dir(dir.path().join(name)).expect("makes it");
        }
        fs::write(dir.path().join("apps/apps.toml"), TABLE).expect("writes");
        fs::write(dir.path().join("apps/toy.sh"), script).expect("writes");
        fs::write(dir.path().join("apps/absent.sh"), "echo begin").expect("writes");
        Self(dir)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &str) -> (i32, String, String) {
        let mut command = luc_lab();
        command
            .args(["bench", "app"])
            .args(words.split_whitespace());
        command.arg("--apps").arg(self.path("apps"));
        command
            .env("TMPDIR", self.path("tmp"))
            .arg(self.path("disk"));
        let ran = outputs(&mut command);
        self.assert_empty();
        ran
    }

    /// Runs the toy, which must fail, and returns its line.
    fn refused(script: &str) -> String {
        let (code, shown, line) = Self::new(script).run("toy");
        assert_eq!((code, shown.as_str()), (14, ""), "{line}");
        line
    }

    fn assert_empty(&self) {
        for name in ["disk", "tmp"] {
            let left: Vec<_> = fs::read_dir(self.path(name)).expect("there").collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// Whether a process is there; a zombie counts as gone.
fn exists(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

fn wait_for(file: &Path) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(Instant::now() < until, "no {}", file.display()),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

const GOOD: &str = r#"
[ "$CLIENTS/$TIME_S/$SEED/$WITH" = 3/7/9/nice ] || failed "$CLIENTS/$TIME_S/$SEED/$WITH"
echo begin
echo data >"$DIR/file"
echo more >"$TMP/file"
echo end
echo done_p99_ms 1.5
echo done_per_s 250
"#;

#[test]
fn a_program_reports_its_measures() {
    let words = "toy --clients 3 --seconds 7 --seed 9 --with nice";
    let (code, shown, said) = Place::new(GOOD).run(words);
    assert_eq!(code, 0, "{said}");
    assert_holds(&shown, "app toy: a toy, 3 clients");
    assert_holds(
        &shown,
        "done_per_s           250.000: what it did; more is better",
    );
    assert_holds(
        &shown,
        "done_p99_ms          1.500: 99th percentile; less is better",
    );
    let (_, json, _) = Place::new(GOOD).run(&format!("{words} --json"));
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
    assert_eq!(
        (&value["schema"], &value["workload"]),
        (&"luc-bench/1".into(), &"app".into())
    );
    assert_eq!(value["measures"]["done_per_s"], 250.0);
    assert_eq!(value["table"][0]["name"], "done_per_s");
}

#[test]
fn what_is_missing_is_named() {
    let (code, _, line) = Place::new(GOOD).run("absent");
    assert_eq!(code, 19);
    assert_holds(
        &line,
        "absent: no program luc-no-such-program; install the package luc-no-such-package",
    );
    let (code, _, line) = Place::new(GOOD).run("tooy");
    assert_eq!(code, 14);
    assert_holds(&line, "tooy: no such program; there are absent, toy");
}

#[test]
fn a_script_that_does_not_keep_to_the_table_is_refused() {
    let around = |lines: &str| format!("echo begin; echo end\n{lines}");
    for (script, why) in [
        (
            around("echo done_per_s 1; echo hello world"),
            "printed nonsense: \"hello world\"",
        ),
        (around("echo done_per_s 1"), "printed no done_p99_ms"),
        (
            around("echo done_per_s 1; echo done_per_s 1"),
            "printed done_per_s twice",
        ),
        (
            around("echo done_per_s 1; echo done_p99_ms 1; echo other_s 1"),
            "other_s, which is not in the table",
        ),
        (
            "echo done_per_s 1; echo done_p99_ms 1".into(),
            "printed no `begin` and `end`",
        ),
        ("echo end".into(), "`end` without `begin`"),
        (
            "echo first >&2; echo last words >&2; exit 3".into(),
            "exit status: 3: last words",
        ),
        ("exit 3".into(), "exit status: 3: it said nothing"),
        ("failed the disk is full".into(), "toy: the disk is full"),
        (
            "serve db sh -c 'echo port taken; exit 1'; await db false".into(),
            "db ended: port taken",
        ),
        (
            "room 99999999".into(),
            "the disk has less than 99999999 MiB of room",
        ),
        (
            "run db sh -c 'echo write: No space left on device; echo bye; exit 1'".into(),
            "sh: write: No space left on device",
        ),
        (
            "serve db sh -c 'echo begun; echo FATAL: no memory; echo bye; exit 1'; await db false"
                .into(),
            "db ended: FATAL: no memory",
        ),
    ] {
        assert_holds(&Place::refused(&script), why);
    }
}

/// Another server would answer in place of the one that is measured.
#[test]
fn a_port_that_is_taken_is_named() {
    for address in ["127.0.0.1:0", "[::]:0"] {
        let server = std::net::TcpListener::bind(address).expect("a free port");
        let port = server.local_addr().expect("an address").port();
        let script = format!("free {port}; serve db sleep 1000; await db true");
        let why = format!("port {port} is taken: another server listens on it");
        assert_holds(&Place::refused(&script), &why);
        drop(server);
        let line = Place::refused(&format!("free {port}; failed 'it is free'"));
        assert_holds(&line, "toy: it is free");
    }
}

#[test]
fn nothing_that_it_started_survives() {
    let script = r#"
serve daemon sleep 1000
setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$PLACE/pid" &
until [ -s "$PLACE/pid" ]; do sleep 0.01; done
echo begin; echo end; echo done_per_s 1; echo done_p99_ms 1
"#;
    let place = Place::new("");
    let here = place.0.path().display().to_string();
    fs::write(place.path("apps/toy.sh"), script.replace("$PLACE", &here)).expect("writes");
    let (code, _, line) = place.run("toy");
    assert_eq!(code, 0, "{line}");
    assert!(!exists(&wait_for(&place.path("pid"))));
}

#[test]
fn an_interrupt_ends_it_and_keeps_what_was_measured() {
    let script = r#"
serve daemon sh -c 'echo $$ >"$0"; exec sleep 1000' "$PLACE/pid"
echo begin
echo done_per_s 5
await daemon test -s "$PLACE/pid"
echo >"$PLACE/ready"
sleep 1000
"#;
    let place = Place::new("");
    let here = place.0.path().display().to_string();
    fs::write(place.path("apps/toy.sh"), script.replace("$PLACE", &here)).expect("writes");
    let program = luc_lab().get_program().to_owned();
    let child = Command::new(program)
        .args(["bench", "app", "toy", "--apps"])
        .arg(place.path("apps"))
        .arg(place.path("disk"))
        .env("TMPDIR", place.path("tmp"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    wait_for(&place.path("ready"));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_holds(&shown, "done_per_s           5.000");
    assert_holds(&shown, "done_p99_ms          not measured");
    assert!(!exists(&wait_for(&place.path("pid"))));
    place.assert_empty();
}
