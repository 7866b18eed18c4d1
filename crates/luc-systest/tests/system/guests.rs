//! Tests what the lab itself promises, on real guests with this program as process 1.

use std::fmt::Write;
use std::path::Path;

use libtest_mimic::Trial;
use luc_systest::{Outcome, Trouble, check, failed, lab_binary, test};
use luc_vm::{AllowList, Cell, DiskSpec, LabError, RunResult, RunSpec, Silent, Status, Step, run};

const KERNEL: &str = "6.12";
/// The guest's work in the test of repetition: random numbers, process
/// numbers, times, interrupts and disk traffic all show in its output.
const NOISY: &str = "head -c 64 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid; \
    sh -c 'echo $$'; date +%s; for i in 1 2 3; do echo $i > file$i; sync; done; \
    cat /proc/uptime /proc/interrupts /proc/stat > $LUC_OUT/state; ls -lR . > $LUC_OUT/deep-list; \
    dd if=$LUC_DISK0 bs=1M count=8 2>/dev/null | md5sum";

pub fn tests() -> Vec<Trial> {
    vec![
        test("two_runs_are_equal_byte_for_byte", two_runs_are_equal),
        test(
            "cells_are_independent_and_fully_reported",
            cells_are_reported,
        ),
        test("models_of_real_disks_are_as_asked_for", devices_are_made),
        test(
            "each_file_system_is_made_and_mounted",
            file_systems_are_made,
        ),
        test("a_journal_is_on_another_disk", journal_is_apart),
        test("a_panic_is_an_error_with_evidence", panic_is_an_error),
        test("a_hang_is_ended_and_its_output_kept", hang_is_ended),
        test("what_steps_leave_is_cleared", leftovers_are_cleared),
    ]
}

/// A slow processor boots in the least host time.
fn spec(cells: Vec<Cell>) -> Result<RunSpec, Trouble> {
    let mut spec = RunSpec::new(KERNEL, cells)?;
    spec.luc_lab = Some(lab_binary());
    spec.cpu_mips = 125.0;
    spec.timeout_host_s = 300;
    Ok(spec)
}

fn shell(name: &str, disks: &[&str], scripts: &[&str]) -> Result<Cell, LabError> {
    Ok(Cell {
        name: name.into(),
        disks: disks
            .iter()
            .map(|d| d.parse::<DiskSpec>())
            .collect::<Result<_, _>>()?,
        steps: scripts
            .iter()
            .map(|script| Step::new(["sh", "-c", script]))
            .collect(),
        ..Cell::default()
    })
}

fn two_runs_are_equal() -> Outcome {
    let dir = tempfile::tempdir().map_err(failed)?;
    let mut results = Vec::new();
    for (name, seed) in [("a", 7), ("b", 7), ("other-seed", 8)] {
        let mut spec = spec(vec![shell("noisy", &["4ms:1", "100us:64:64M"], &[NOISY])?])?;
        spec.seed = seed;
        spec.out_dir = Some(dir.path().join(name));
        let result = run(&spec, &mut Silent)?;
        check(result.success(), result.failures().join("; "))?;
        results.push(result);
    }
    let files = |name: &str| listing(&dir.path().join(name));
    let (first, second) = (files("a"), files("b"));
    check(
        first.contains("result.json") && first.contains("files/deep-list"),
        "results are not on disk",
    )?;
    check(first == second, "saved results differ")?;
    let whole = |r: &RunResult| {
        (
            r.report.clone(),
            r.files.clone(),
            r.kernel_log.clone(),
            r.console.clone(),
        )
    };
    check(
        whole(&results[0]) == whole(&results[1]),
        "results in memory differ",
    )?;
    let output = |r: &RunResult| r.report.cells[0].steps[0].stdout.clone();
    check(
        output(&results[0]) != output(&results[2]),
        "another seed gave the same random numbers",
    )
}

fn file_systems_are_made() -> Outcome {
    // busybox's stat does not know the name of btrfs.
    const LOOK: &str = "awk '$2 == \"/mnt/0\" { print $3 }' /proc/mounts; \
                        echo kept > f && sync f && cat f";
    let named = ["ext4", "ext3", "ext2", "xfs", "btrfs"];
    let cells: Result<Vec<_>, _> = named
        .iter()
        .map(|kind| shell(kind, &[&format!("nvme:300M:{kind}:mount=noatime")], &[LOOK]))
        .collect();
    let result = run(&spec(cells?)?, &mut Silent)?;
    check(result.success(), result.failures().join("; "))?;
    for (cell, kind) in result.report.cells.iter().zip(named) {
        let said = &cell.steps[0].stdout;
        check(
            *said == format!("{kind}\nkept\n"),
            format!("{kind}: {said}"),
        )?;
    }
    Ok(())
}

fn journal_is_apart() -> Outcome {
    // jbd2 names a journal by its own disk, which comes after the cell's.
    const LOOK: &str = "ls /proc/fs/jbd2; echo kept > f && sync f && cat f; \
                        luc-lab bench create-fsync --threads 2 --seconds 0.2 --warmup-s 0 . | \
                        grep -q 'journal commits  *[1-9]' && echo counted";
    const NAMED: [(&[&str], &str); 3] = [
        (&["-J", "device=nvme-plp:64M:none"], "lucdisk1"),
        (&["-b", "1024", "-Jdevice=100us:64:64M:none"], "nullb1"),
        (&[], "lucdisk0-8"),
    ];
    let mut cells = Vec::new();
    for (arguments, name) in NAMED {
        let mut cell = shell(name, &["nvme:300M"], &[LOOK])?;
        cell.disks[0].mkfs_args = arguments.iter().map(ToString::to_string).collect();
        cells.push(cell);
    }
    let result = run(&spec(cells)?, &mut Silent)?;
    check(result.success(), result.failures().join("; "))?;
    for (cell, (_, name)) in result.report.cells.iter().zip(NAMED) {
        let said = &cell.steps[0].stdout;
        check(
            *said == format!("{name}\nkept\ncounted\n"),
            format!("{name}: {said}"),
        )?;
    }
    Ok(())
}

fn devices_are_made() -> Outcome {
    const LOOK: &str = "cd /sys/kernel/config/lucdisk; echo *; cat lucdisk0/flush_ns lucdisk0/power; \
        cat /sys/block/lucdisk0/queue/write_cache /sys/block/lucdisk0/queue/rotational; \
        blockdev --getsize64 $LUC_DISK0; grep -c /dev/lucdisk /proc/mounts";
    const SYNC: &str = "for i in 1 2 3; do dd if=/dev/zero of=f bs=4k count=1 conv=fsync; done";
    let cells = vec![
        shell(
            "two",
            &["nvme:flush_ns=500000:64M", "hdd-7200:128M:none"],
            &[LOOK, SYNC],
        )?,
        shell("slow", &["hdd-7200:64M"], &[LOOK, SYNC])?,
        shell("fast", &["nvme-plp:64M:ext3"], &[LOOK, SYNC])?,
    ];
    let result = run(&spec(cells)?, &mut Silent)?;
    check(result.success(), result.failures().join("; "))?;
    let looks: Vec<_> = result
        .report
        .cells
        .iter()
        .map(|cell| cell.steps[0].stdout.as_str())
        .collect();
    let want = [
        "lucdisk0 lucdisk1\n500000\n1\nwrite back\n0\n67108864\n1\n",
        "lucdisk0\n100000\n1\nwrite back\n1\n67108864\n1\n",
        "lucdisk0\n0\n1\nwrite through\n0\n67108864\n1\n",
    ];
    check(looks == want, format!("{looks:?}"))?;
    let times_ns: Vec<_> = result
        .report
        .cells
        .iter()
        .map(|cell| cell.steps[1].end_ns - cell.steps[1].begin_ns)
        .collect();
    let ordered = times_ns[2] < times_ns[0] && times_ns[0] < times_ns[1];
    check(ordered, format!("syncs took {times_ns:?} ns"))?;
    // Each sync of an overwritten or new file takes at least a turn of the disk.
    check(times_ns[1] > 3 * 8_333_333, format!("{times_ns:?} ns"))
}

/// Every file below `dir` with its content.
fn listing(dir: &Path) -> String {
    let mut text = String::new();
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            let inner = listing(&path);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            for line in inner.lines() {
                let _ = writeln!(text, "{name}/{line}");
            }
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(
                text,
                "{name}\n{:?}",
                std::fs::read(&path).unwrap_or_default()
            );
        }
    }
    text
}

fn cells_are_reported() -> Outcome {
    let mut limited = shell("limited", &[], &["echo before; sleep 1000", "echo after"])?;
    limited.steps[0].timeout_s = Some(2);
    limited.steps[0].allow_failure = true;
    let cells = vec![
        shell(
            "writes",
            &["4ms:1"],
            &["echo out; echo err >&2; echo data > kept; sleep 500 & echo y > $LUC_OUT/f"],
        )?,
        shell(
            "fresh",
            &["1ms:8:64M:ext3"],
            &[
                "test ! -e kept; mount | grep $LUC_MNT0",
                "sync",
                "exit 3",
                "echo never",
            ],
        )?,
        limited,
        shell(
            "sync",
            &["4ms:1"],
            &["dd if=/dev/zero of=f bs=4k count=1 conv=fsync"],
        )?,
        shell(
            "raw",
            &["4ms:1:32M:none"],
            &["test -b $LUC_DISK0 && test -z \"$LUC_MNT0\" && blockdev --getsize64 $LUC_DISK0"],
        )?,
        shell(
            "absent",
            &[],
            &["echo '<4>BUG: made up for a test' > /dev/kmsg; /no/such/program"],
        )?,
    ];
    let mut spec = spec(cells)?;
    let result = run(&spec, &mut Silent)?;
    let cell = |index: usize| &result.report.cells[index];
    let step = |c: usize, s: usize| &cell(c).steps[s];
    check(result.report.cells.len() == 6, "six cells")?;
    check(
        cell(0).success() && cell(0).error.is_none(),
        format!("{:?}", cell(0)),
    )?;
    check(
        step(0, 0).stdout == "out\n" && step(0, 0).stderr == "err\n",
        "outputs are kept apart",
    )?;
    check(
        result.files == [("writes/f".to_owned(), b"y\n".to_vec())],
        format!("{:?}", result.files),
    )?;
    check(
        step(1, 0).stdout.contains("type ext3"),
        format!("{:?}", step(1, 0)),
    )?;
    check(
        step(1, 2).status == Status::Exited(3) && cell(1).steps.len() == 3,
        "a failed step ends its cell",
    )?;
    check(
        step(2, 0).status == Status::TimedOut && step(2, 0).stdout == "before\n",
        "limit of a step",
    )?;
    let took_ns = step(2, 0).end_ns - step(2, 0).begin_ns;
    check(
        (2_000_000_000..2_100_000_000).contains(&took_ns),
        format!("limit of 2 s took {took_ns} ns"),
    )?;
    check(
        step(2, 1).stdout == "after\n",
        "an allowed failure does not end the cell",
    )?;
    // Data, journal and commit record follow one another on a 4 ms disk.
    let took_ns = step(3, 0).end_ns - step(3, 0).begin_ns;
    check(
        (12_000_000..60_000_000).contains(&took_ns),
        format!("fsync on a 4 ms disk took {took_ns} ns"),
    )?;
    check(
        step(4, 0).stdout == "33554432\n",
        format!("{:?}", step(4, 0)),
    )?;
    check(
        step(5, 0).status == Status::Exited(127),
        format!("{:?}", step(5, 0)),
    )?;
    check(
        result.log_problems.len() == 1 && !result.success(),
        format!("{:?}", result.log_problems),
    )?;
    spec.allow = AllowList::new(["made up for a test"]);
    let problems = luc_vm::log::problems(&result.kernel_log, &spec.allow);
    check(problems.is_empty(), format!("{problems:?}"))
}

fn panic_is_an_error() -> Outcome {
    let spec = spec(vec![shell(
        "crash",
        &["4ms:1"],
        &["echo c > /proc/sysrq-trigger"],
    )?])?;
    match run(&spec, &mut Silent) {
        Err(LabError::GuestPanic { progress, oops }) => check(
            progress.contains("crash") && oops.contains("sysrq"),
            format!("{progress}: {oops}"),
        ),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Trouble::Fail("the guest survived".into())),
    }
}

fn hang_is_ended() -> Outcome {
    let dir = tempfile::tempdir().map_err(failed)?;
    let script = "echo hello; while :; do :; done";
    let mut spec = spec(vec![shell("hang", &[], &[script])?])?;
    spec.timeout_host_s = 20;
    spec.tells_output = true;
    spec.out_dir = Some(dir.path().into());
    let mut heard = Heard::default();
    match run(&spec, &mut heard) {
        Err(LabError::HostTimeout { limit_s: 20, .. }) => {
            let kept = dir.path().join("console.log").exists();
            check(kept, "no console was kept")?;
            check(heard.0 == "hello\n", format!("heard {:?}", heard.0))
        }
        Err(error) => Err(error.into()),
        Ok(_) => Err(Trouble::Fail("an endless loop ended".into())),
    }
}

/// The standard output of a run, as it comes.
#[derive(Default)]
struct Heard(String);

impl luc_vm::Progress for Heard {
    fn output(&mut self, stdout: &[u8], _stderr: &[u8]) {
        self.0 += &String::from_utf8_lossy(stdout);
    }
}

/// A loop device in a file of the disk, mounted elsewhere, and a loop device that is not mounted.
fn leftovers_are_cleared() -> Outcome {
    const LEAVE: &str = "for i in 1 2; do truncate -s 16M image$i; mke2fs -q -F image$i; done; \
        mkdir /inner; mount -o loop image1 /inner; touch /inner/file; losetup -f image2; \
        ping -c 1 127.0.0.1 > /dev/null";
    let names = ["first", "second"];
    let cells = names.map(|name| shell(name, &["4ms:1"], &[LEAVE]));
    let cells = cells.into_iter().collect::<Result<_, _>>()?;
    let mut spec = spec(cells)?;
    spec.modules = vec!["loop".into()];
    let result = run(&spec, &mut Silent)?;
    check(result.success(), result.failures().join("; "))
}
