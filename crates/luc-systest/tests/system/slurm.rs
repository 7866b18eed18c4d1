//! Campaigns on a real cluster of two nodes, and through the exports. A script stands in for most
//! cells, so that these tests need no virtual machine; one cell is a real one.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use luc_systest::cluster::{Cluster, NODES, wait};
use luc_systest::scripted::{CELLS, Scripted};
use luc_systest::{Outcome, Trouble, check, fail, failed, lab_binary, root, test};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(180);
/// Exit codes of `luc`.
const LAB: i32 = luc_cli::Code::Lab as i32;
const LAB_UNAVAILABLE: i32 = luc_cli::Code::LabUnavailable as i32;
const BACK_END: i32 = luc_cli::Code::BackEnd as i32;
const INTERRUPTED: i32 = luc_cli::Code::Interrupted as i32;

pub fn tests() -> Vec<Trial> {
    vec![
        test("a_cluster_measures_a_campaign", measured),
        test("a_cluster_measures_a_real_cell", real_cell),
        test("jobs_are_ended_and_found_again", ended_and_found_again),
        test("a_cluster_loses_a_node_and_its_controller", losses).with_ignored_flag(true),
        test("xargs_measures_an_export", || {
            let line = ["xargs", "-d", "\\n", "-n", "1", "sh", "-c"];
            exported("xargs", "lines", &line)
        }),
        test("parallel_measures_an_export", || {
            exported("parallel", "parallel", &["sh", "-s", "--", "--will-cite"])
        }),
        test("snakemake_measures_an_export", snakemake),
    ]
}

/// A run of the scripted campaign on the cluster.
fn run(cluster: &Cluster, scripted: &Scripted, more: &[&str]) -> Command {
    let mut command = cluster.command(lab_binary());
    command
        .args(["campaign", "run"])
        .arg(scripted.campaign())
        .arg("--out")
        .arg(scripted.out())
        .arg("--source")
        .arg(root())
        .args(["--on", "slurm", "--poll-s", "1", "--program"])
        .arg(scripted.program())
        .args(more);
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn output(command: &mut Command) -> Result<Output, Trouble> {
    command.output().map_err(failed)
}

fn start(command: &mut Command) -> Result<Child, Trouble> {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)
}

fn ended_with(output: &Output, code: i32) -> Outcome {
    let status = output.status;
    check(
        status.code() == Some(code),
        format!("{status} instead of {code}: {}", told(output)),
    )
}

fn measured() -> Outcome {
    let cluster = Cluster::start()?;
    let scripted = Scripted::new()?;
    let refused = output(&mut run(&cluster, &scripted, &["--partition", "nowhere"]))?;
    ended_with(&refused, BACK_END)?;
    check(
        told(&refused).contains("invalid partition specified: nowhere"),
        told(&refused),
    )?;
    let (once, always) = (&scripted.cells[0], &scripted.cells[5]);
    scripted.spoil("once", once)?;
    scripted.spoil("always", always)?;
    let first = output(&mut run(&cluster, &scripted, &[]))?;
    ended_with(&first, LAB)?;
    check(
        told(&first).contains("left no result (FAILED, NonZeroExitCode); submitting it again"),
        told(&first),
    )?;
    let begun = scripted.noted("begun");
    for cell in &scripted.cells {
        let times = begun.iter().filter(|other| *other == cell).count();
        let wanted = if cell == once || cell == always { 2 } else { 1 };
        check(
            times == wanted,
            format!("{cell} was begun {times} times, not {wanted}"),
        )?;
    }
    check(scripted.count("cells") == CELLS - 1, "a result is missing")?;
    check(scripted.count("failed") == 1, "one failure is kept")?;
    let why = failure(&scripted)?;
    check(
        why.contains("2 times (FAILED, NonZeroExitCode): out of paper"),
        why,
    )?;
    check(
        !scripted.out().join("slurm").exists(),
        "folders of arrays are left",
    )?;
    // The failure stays until `--again` asks for it, and the limit of jobs is kept.
    fs::remove_file(scripted.file(&format!("always-{always}"))).map_err(failed)?;
    let again = output(&mut run(&cluster, &scripted, &["--again", "--jobs", "1"]))?;
    ended_with(&again, 0)?;
    check(
        scripted.count("cells") == CELLS,
        "the last cell is measured",
    )
}

/// Why the one cell failed.
fn failure(scripted: &Scripted) -> Result<String, Trouble> {
    for entry in fs::read_dir(scripted.out().join("failed"))
        .map_err(failed)?
        .flatten()
    {
        if entry.path().extension().is_some_and(|kind| kind == "json") {
            return fs::read_to_string(entry.path()).map_err(failed);
        }
    }
    fail("no failure is kept")
}

fn real_cell() -> Outcome {
    let cluster = Cluster::start()?;
    let dir = tempfile::tempdir().map_err(failed)?;
    let file = dir.path().join("real.toml");
    let text = "title = \"Real\"\nstop = { repeats_min = 1, repeats_max = 1 }\n[[block]]\n\
        name = \"loops\"\nbench = \"create-fsync --threads 1 --seconds 0.2 --warmup-s 0.1 {dir}\"\n\
        arms = [\"stock\"]\nfactors = { kernel = \"6.12\", disk = \"1ms:64\" }\n";
    fs::write(&file, text).map_err(failed)?;
    let mut command = cluster.command(lab_binary());
    command
        .args(["campaign", "run"])
        .arg(&file)
        .arg("--out")
        .arg(dir.path().join("out"))
        .arg("--source")
        .arg(root())
        .args(["--on", "slurm", "--poll-s", "1"]);
    let run = output(&mut command)?;
    if run.status.code() == Some(LAB_UNAVAILABLE) {
        return Err(Trouble::Skip(told(&run)));
    }
    if run.status.code() == Some(LAB) {
        // Skip if the node lacks QEMU; any other reason is a failure.
        let status = output(
            cluster
                .command(lab_binary())
                .args(["campaign", "status"])
                .arg(&file)
                .arg("--out")
                .arg(dir.path().join("out"))
                .arg("--source")
                .arg(root()),
        )?;
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        if said.contains("qemu") && said.contains("not found") {
            return Err(Trouble::Skip(said));
        }
        return fail(said);
    }
    ended_with(&run, 0)?;
    let cells = fs::read_dir(dir.path().join("out/cells")).map_err(failed)?;
    check(cells.count() == 1, "one result")
}

fn signal(child: &Child, signal: Signal) -> Outcome {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else {
        return fail("no process");
    };
    kill_process(pid, signal).map_err(failed)
}

fn ended_and_found_again() -> Outcome {
    let cluster = Cluster::start()?;
    let scripted = Scripted::new()?;
    let begun = |count: usize| {
        let text = format!("{count} cells begun");
        wait(&text, LIMIT, || scripted.noted("begun").len() >= count)
    };
    // A signal: the jobs are ended, the results kept.
    scripted.take("60")?;
    let child = start(&mut run(&cluster, &scripted, &[]))?;
    begun(2)?;
    signal(&child, Signal::INT)?;
    let output = child.wait_with_output().map_err(failed)?;
    ended_with(&output, INTERRUPTED)?;
    wait("an empty queue", LIMIT, || {
        cluster.queue().is_ok_and(|queue| queue.is_empty())
    })?;
    check(scripted.noted("ended").is_empty(), "jobs went on")?;
    // A kill: the jobs go on, and the next run waits for them instead of measuring twice.
    scripted.take("4")?;
    fs::remove_file(scripted.file("begun")).map_err(failed)?;
    let mut child = start(&mut run(&cluster, &scripted, &[]))?;
    begun(1)?;
    child.kill().map_err(failed)?;
    child.wait().map_err(failed)?;
    scripted.take("0.2")?;
    let output = self::output(&mut run(&cluster, &scripted, &[]))?;
    ended_with(&output, 0)?;
    check(
        told(&output).contains("of an earlier run; waiting for them"),
        told(&output),
    )?;
    let ended = scripted.noted("ended");
    let different: BTreeSet<&String> = ended.iter().collect();
    check(
        ended.len() == CELLS && different.len() == CELLS,
        format!(
            "{} cells were measured {} times",
            different.len(),
            ended.len()
        ),
    )?;
    check(
        !scripted.out().join("slurm").exists(),
        "folders of arrays are left",
    )
}

/// A node dies with its job, then the controller dies; both come back.
fn losses() -> Outcome {
    let mut cluster = Cluster::start()?;
    let scripted = Scripted::new()?;
    scripted.take("3")?;
    let child = start(&mut run(&cluster, &scripted, &[]))?;
    wait("jobs on both nodes", LIMIT, || {
        cluster.queue().is_ok_and(|queue| {
            let running = |node: &&str| {
                queue
                    .iter()
                    .any(|line| line.ends_with(&format!("RUNNING {node}")))
            };
            NODES.iter().all(running)
        })
    })?;
    cluster.kill_node(NODES[0]);
    let done = scripted.noted("ended").len();
    wait("cells after the node's death", LIMIT, || {
        scripted.noted("ended").len() >= done + 2
    })?;
    cluster.kill_controller();
    thread::sleep(Duration::from_secs(20));
    cluster.start_controller()?;
    cluster.start_node(NODES[0])?;
    let output = child.wait_with_output().map_err(failed)?;
    ended_with(&output, 0)?;
    let said = told(&output);
    check(said.contains("slurm does not answer"), &said)?;
    check(said.contains("slurm answers again"), &said)?;
    check(scripted.count("cells") == CELLS, "every cell has a result")?;
    check(scripted.count("failed") == 0, "none failed")
}

fn export(scripted: &Scripted, format: &str) -> Result<String, Trouble> {
    let mut command = Command::new(lab_binary());
    command
        .args(["campaign", "export"])
        .arg(scripted.campaign())
        .arg("--out")
        .arg(scripted.out())
        .arg("--source")
        .arg(root())
        .args(["--format", format, "--program"])
        .arg(scripted.program());
    let output = output(&mut command)?;
    ended_with(&output, 0)?;
    String::from_utf8(output.stdout).map_err(failed)
}

fn is_there(program: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Checks that the campaign is done after two waves.
fn done_in_two_waves(scripted: &Scripted, wave: impl Fn() -> Outcome) -> Outcome {
    scripted.take("0")?;
    wave()?;
    check(
        scripted.count("cells") == 10,
        "the first wave: two repeats of five points",
    )?;
    wave()?;
    check(
        scripted.count("cells") == CELLS,
        "the second wave: a third of each",
    )?;
    check(export(scripted, "lines")?.is_empty(), "nothing is left")
}

/// Runs a campaign by exports in a format, each piped into the command `line`.
fn exported(program: &str, format: &str, line: &[&str]) -> Outcome {
    if !is_there(program) {
        return Err(Trouble::Optional(format!("no {program} in PATH")));
    }
    let scripted = Scripted::new()?;
    done_in_two_waves(&scripted, || {
        let wave = scripted.file("wave");
        fs::write(&wave, export(&scripted, format)?).map_err(failed)?;
        let wave = fs::File::open(wave).map_err(failed)?;
        let mut command = Command::new(line[0]);
        ended_with(&output(command.args(&line[1..]).stdin(wave))?, 0)
    })
}

fn snakemake() -> Outcome {
    if !is_there("snakemake") {
        return Err(Trouble::Optional("no snakemake in PATH".into()));
    }
    let scripted = Scripted::new()?;
    done_in_two_waves(&scripted, || {
        let file = scripted.file("Snakefile");
        fs::write(&file, export(&scripted, "snakemake")?).map_err(failed)?;
        let mut command = Command::new("snakemake");
        command
            .arg("-s")
            .arg(&file)
            .args(["--cores", "2", "--directory"]);
        ended_with(&output(command.arg(scripted.file("")))?, 0)
    })
}
