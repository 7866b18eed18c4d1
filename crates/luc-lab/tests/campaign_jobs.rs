//! Back-ends and exports of campaigns if something is wrong: no Slurm, a Slurm that refuses,
//! invalid keys, folders that cannot be written. Small scripts stand in for Slurm's commands; the
//! suite `slurm` of the system tests has the real ones.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{SMALL, luc_lab};
use luc_test::command::{assert_begins, assert_holds, outputs, script};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const USAGE: i32 = luc_cli::Code::Usage as i32;
const CAMPAIGN: i32 = luc_cli::Code::Campaign as i32;
const BACK_END: i32 = luc_cli::Code::BackEnd as i32;
const UNEXPECTED: i32 = luc_cli::Code::Unexpected as i32;

/// Writes a campaign's file into this folder: four points, twice each at first.
fn small(dir: &Path) -> PathBuf {
    let file = dir.join("small.toml");
    fs::write(&file, SMALL).expect("a campaign");
    file
}

/// Scripts that stand in for Slurm's commands.
struct Pretended(TempDir);

impl Pretended {
    fn new() -> Self {
        let pretended = Self(tempfile::tempdir().expect("temporary directory"));
        fs::create_dir(pretended.path("bin")).expect("a folder");
        pretended.command("scontrol", "echo 'MaxArraySize            = 1001'");
        pretended.command("squeue", "");
        pretended.command("scancel", "");
        pretended
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        let here = self.0.path().display();
        script(&path, &format!("#!/bin/sh\nhere={here}\n{body}\n"));
    }

    /// Runs a campaign; returns the exit code and standard error.
    fn run(&self, out: &Path, more: &[&str]) -> (i32, String) {
        let mut command = luc_lab();
        command
            .env("PATH", self.path("bin"))
            .args(["campaign", "run"])
            .arg(small(self.0.path()))
            .args(["--source", ROOT, "--out"])
            .arg(out)
            .args(["--on", "slurm", "--poll-s", "1"])
            .args(more);
        said(&mut command)
    }
}

fn said(command: &mut assert_cmd::Command) -> (i32, String) {
    let (code, _, said) = outputs(command);
    (code, said)
}

#[test]
fn no_slurm() {
    let slurm = Pretended::new();
    fs::remove_file(slurm.path("bin/scontrol")).expect("removed");
    let (code, line) = slurm.run(&slurm.path("out"), &[]);
    assert_eq!(code, BACK_END, "{line}");
    assert_begins(&line, "luc-lab: slurm: no scontrol in PATH; run this where");
}

#[test]
fn a_slurm_that_refuses() {
    let slurm = Pretended::new();
    slurm.command(
        "sbatch",
        "echo 'sbatch: error: invalid account' >&2; exit 1",
    );
    let (code, line) = slurm.run(&slurm.path("out"), &["--partition", "p"]);
    assert_eq!(code, BACK_END, "{line}");
    assert_eq!(line, "luc-lab: slurm: sbatch: error: invalid account\n");
    assert!(!slurm.path("out/slurm").exists(), "keys that no job needs");
    slurm.command("scontrol", "echo 'MaxArraySize            = 0'");
    let (code, line) = slurm.run(&slurm.path("out"), &[]);
    assert_eq!(code, BACK_END, "{line}");
    assert_holds(&line, "does not run job arrays: MaxArraySize is 0");
}

/// Jobs leave no result, because the nodes do not see the folder.
#[test]
fn jobs_that_leave_nothing() {
    let slurm = Pretended::new();
    slurm.command("sbatch", "echo \"$*\" >> $here/submitted; echo 1");
    let one = ["--repeats=1", "--set=disk=1ms:64", "--set=threads=1"];
    let how = [
        "--sbatch-arg=--time=90",
        "--jobs=3",
        "--program=/opt/it's/luc",
    ];
    let more = [one, how].concat();
    let (code, line) = slurm.run(&slurm.path("out"), &more);
    assert_eq!(code, luc_cli::Code::Lab as i32, "{line}");
    assert_holds(
        &line,
        "left no result (no longer in the queue); submitting it again",
    );
    let submitted = fs::read_to_string(slurm.path("submitted")).expect("submitted");
    assert_eq!(submitted.lines().count(), 2, "{submitted}");
    for words in [
        "--array=1-1%3 --requeue ",
        "--cpus-per-task=1 --mem=1152M --wrap=exec \"/opt/it's/luc\" campaign cell --from ",
        " --time=90\n",
    ] {
        assert!(submitted.contains(words), "{words}: {submitted}");
    }
    let failed = fs::read_dir(slurm.path("out/failed")).expect("failures");
    let failed: Vec<String> = failed
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a text"))
        .collect();
    let why = "2 times (no longer in the queue): it printed nothing; do the nodes see the folder";
    assert!(failed.iter().any(|text| text.contains(why)), "{failed:?}");
}

#[test]
fn folders_that_cannot_be_written() {
    let slurm = Pretended::new();
    slurm.command("sbatch", "touch $here/submitted");
    fs::write(slurm.path("file"), "").expect("a file");
    let (code, line) = slurm.run(&slurm.path("file"), &[]);
    assert_eq!(code, UNEXPECTED, "{line}");
    assert_holds(&line, "Not a directory");
    // A file instead of the keys' folder.
    fs::create_dir_all(slurm.path("out/cells")).expect("a folder");
    fs::write(slurm.path("out/slurm"), "").expect("a file");
    let (code, line) = slurm.run(&slurm.path("out"), &[]);
    assert_eq!(code, UNEXPECTED, "{line}");
    assert_holds(&line, "out/slurm");
    assert!(!slurm.path("submitted").exists(), "no job without keys");
}

#[test]
fn keys_that_are_none() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let keys = dir.path().join("keys");
    let cell = |number: &str| {
        let mut command = luc_lab();
        command.current_dir(dir.path()).args([
            "campaign", "cell", "--out", "out", "--from", "keys", "--nth", number,
        ]);
        said(&mut command)
    };
    let (code, line) = cell("1");
    assert_eq!(code, UNEXPECTED, "{line}");
    assert_holds(&line, "cannot read keys: No such file");
    fs::write(&keys, "").expect("a file");
    assert_eq!(
        cell("1"),
        (CAMPAIGN, "luc-lab: cell: keys: it is empty\n".into())
    );
    // The end of the first key is lost.
    fs::write(&keys, "{\"place\":\"lab\",\"mach\n").expect("a file");
    let (code, line) = cell("1");
    assert_eq!(code, CAMPAIGN, "{line}");
    assert_begins(&line, "luc-lab: cell: keys:1: EOF while parsing");
    fs::write(&keys, b"\xff\xfe\n").expect("a file");
    assert_eq!(cell("1").0, UNEXPECTED);
    fs::write(&keys, "a\nb\n").expect("a file");
    let line = "luc-lab: cell: keys: its last line is number 2; there is no line 7\n";
    assert_eq!(cell("7"), (CAMPAIGN, line.into()));
    assert_eq!(cell("0").0, USAGE);
    assert!(
        !dir.path().join("out").exists(),
        "nothing is made before a key is read"
    );
}

/// Exports the small campaign; returns the exit code and both outputs.
fn export(dir: &Path, program: &str, out: &str, format: &str) -> (i32, String, String) {
    let mut command = luc_lab();
    command
        .current_dir(dir)
        .args(["campaign", "export"])
        .arg(small(dir))
        .args(["--source", ROOT, "--program", program])
        .args(["--format", format, "--out", out]);
    outputs(&mut command)
}

/// moreutils has a program of the same name, which ignores its input and succeeds.
#[test]
fn a_script_for_gnu_parallel_refuses_any_other() {
    let pretended = Pretended::new();
    let program = pretended.path("bin/measure");
    pretended.command("measure", "echo \"$2\" >> $here/measured");
    let program = program.to_str().expect("UTF-8");
    let (code, script, _) = export(pretended.0.path(), program, "out", "parallel");
    assert_eq!(code, 0);
    fs::write(pretended.path("wave.sh"), script).expect("a script");
    let run = || {
        let mut command = assert_cmd::Command::new("/bin/sh");
        command
            .env("PATH", pretended.path("bin"))
            .arg(pretended.path("wave.sh"))
            .args(["--jobs", "2"]);
        said(&mut command)
    };
    let refused = |(code, line): (i32, String)| {
        assert_eq!((code, line.lines().count()), (1, 1), "{line}");
        assert_holds(&line, "no GNU parallel in PATH; install it");
        assert!(!pretended.path("measured").exists());
    };
    refused(run());
    pretended.command("parallel", "exit 0");
    refused(run());
    pretended.command(
        "parallel",
        "if [ \"$1\" = --version ]; then echo 'GNU parallel 20240222'; exit; fi\n\
         [ \"$*\" = '--jobs 2' ] && while read -r line; do /bin/sh -c \"$line\"; done",
    );
    assert_eq!(run(), (0, String::new()));
    let measured = fs::read_to_string(pretended.path("measured")).expect("cells");
    assert_eq!(measured, "cell\n".repeat(8), "four points, twice each");
}

#[test]
fn exports_are_what_the_shell_and_python_take() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let export = |out: &str, format: &str| export(dir.path(), "/opt/luc-lab", out, format);
    let (code, text, _) = export("it's out", "lines");
    assert_eq!(code, 0);
    assert_eq!(text.lines().count(), 8, "four points, twice each");
    for line in text.lines() {
        let begin = "/opt/luc-lab campaign cell '{\"place\":\"lab\",";
        assert_begins(line, begin);
        assert_holds(line, "/it's out\" --source ");
    }
    let (code, text, _) = export("it's out", "snakemake");
    assert_eq!(code, 0);
    assert_eq!(text.matches("rule cell:").count(), 1);
    assert_eq!(text.matches(", 1, 1152),").count(), 8, "{text}");
    assert_holds(&text, "/it's out\"\n");
    assert!(
        !dir.path().join("it's out").exists(),
        "an export writes nothing"
    );
    // A folder that no Snakefile can name.
    let (code, _, line) = export("{out}", "snakemake");
    assert_eq!(code, CAMPAIGN, "{line}");
    assert_holds(&line, "or contains a brace");
    // A folder with other things in it.
    fs::create_dir(dir.path().join("other")).expect("a folder");
    let (code, _, line) = export("other", "lines");
    assert_eq!(code, CAMPAIGN, "{line}");
}
