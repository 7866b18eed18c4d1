//! The lab's disk: its driver against its model and against what a disk may do
//! when the power fails. The guest scripts check what can be seen inside; the
//! records that they bring back are judged here, by programs that share no code
//! with the driver.

mod record;

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, LUCDISK_FAILS, Outcome, Trouble, check, disk_module, fail, guest, program,
    run_jobs, script, test, tests_on_every,
};
use luc_vm::{Content, GuestFile};
use record::{Record, Sectors};

pub fn tests() -> Vec<Trial> {
    let mut tests: Vec<Trial> = vec![test("judge_has_teeth", judge_has_teeth)];
    tests.extend(tests_on_every("disk", on));
    tests.push(test("disk_repeats_on_6.12", || repeats("6.12")));
    tests
}

fn jobs() -> Result<Vec<Job>, Trouble> {
    Ok(vec![
        Job::new("disk_timing", &[])?,
        Job::new("disk_data", &[])?,
        Job::new("disk_input", &[])?,
        Job::new("disk_faults", &[])?.allow(LUCDISK_FAILS),
        Job::new("disk_life", &[])?.allow(LUCDISK_FAILS),
        Job::new("disk_cuts", &[])?,
        Job::new("disk_osync", &[])?,
        Job::new("disk_journal", &[])?,
    ])
}

fn run(kernel: &str, jobs: &[Job]) -> Result<Answer, Trouble> {
    let mut spec = guest(kernel, jobs)?;
    let driver = Content::Host(disk_module(kernel)?);
    spec.files.extend([
        GuestFile::new("/t/lucdisk.ko", driver),
        script("disk_lib.sh"),
        program("/t/synced_write", "synced_write.c")?,
    ]);
    run_jobs(&spec, jobs)
}

fn on(kernel: &str) -> Outcome {
    let answer = run(kernel, &jobs()?)?;
    for name in ["serial", "queued", "channels", "arm1", "arm32", "mixed"] {
        times_are_the_models(&answer, name)?;
    }
    power_cuts_leave_what_they_may(&answer)
}

fn times_are_the_models(answer: &Answer, name: &str) -> Outcome {
    let log = answer.text("disk_timing", &format!("{name}.log"))?;
    let knobs = answer.text("disk_timing", &format!("{name}.knobs"))?;
    let record = Record::parse(&log).or_else(|why| fail(format!("{name}: {why}")))?;
    let ends = record.ends_ns();
    let model = record
        .ends_of_model_ns(&knobs)
        .or_else(|why| fail(format!("{name}: {why}")))?;
    check(
        ends.len() >= 16,
        format!("{name}: only {} requests", ends.len()),
    )?;
    for ((entry, end), expected) in ends.iter().zip(&model) {
        check(
            expected == end,
            format!("{name}: request of entry {entry} was done at {end}, not {expected}"),
        )?;
    }
    check(ends.len() == model.len(), format!("{name}: not all done"))
}

fn power_cuts_leave_what_they_may(answer: &Answer) -> Outcome {
    let log = answer.text("disk_cuts", "overlap.log")?;
    let states = answer.text("disk_cuts", "states")?;
    let record = Record::parse(&log).or_else(|why| fail(format!("overlap: {why}")))?;
    let judged = Sectors::new(&record)
        .judge(&states)
        .or_else(|why| fail(format!("power cut: {why}")))?;
    // The load is of a kind that tells a good replay from a bad one.
    check(
        judged.states > 500 && judged.mixed > 100 && judged.overlaps > 20 && judged.superseded > 2,
        format!("nothing much was judged: {judged:?}"),
    )
}

/// Two writes to one sector, the first flushed; then one to the next sector.
const SMALL_RECORD: &str = "0 10 write 0 512\n1 20 write-done 0 512 of 0\n2 30 flush 0 0\n\
    3 40 write 0 1024\n4 50 write-done 0 1024 of 3\n5 60 flush-done 0 0 of 2\n";

/// Checks which states the judge of power cuts accepts, and which it rejects.
fn judge_has_teeth() -> Outcome {
    let record = Record::parse(SMALL_RECORD).or_else(fail)?;
    let judge = |states: &[&str]| {
        let mut lines = vec!["1 all 1 0", "4 all 2 2"];
        lines.extend_from_slice(states);
        Sectors::new(&record).judge(&lines.join("\n"))
    };
    for good in [
        "0 none 0 0",
        "2 none 0 0",
        "5 none 0 0",
        "6 none 1 0",
        "6 all 2 2",
        "6 random 1 2",
        "6 random 2 0",
        "5 random 0 2",
    ] {
        let judged = judge(&[good]);
        check(judged.is_ok(), format!("{good}: {:?}", judged.err()))?;
    }
    for bad in [
        "2 none 1 0",   // done, but not flushed
        "5 none 1 0",   // the flush is not done
        "6 none 0 0",   // flushed, but lost
        "6 none 2 2",   // accepted after the flush
        "6 none 1 2",   // half of it
        "6 all 1 2",    // something was lost
        "6 random 0 0", // older than what is durable
        "3 all 2 2",    // not written yet
        "6 none 1 9",   // written by nobody
    ] {
        check(
            judge(&[bad]).is_err(),
            format!("passes, but must not: {bad}"),
        )?;
    }
    Ok(())
}

/// Times, records and faults are the same in another run.
fn repeats(kernel: &str) -> Outcome {
    let jobs: Vec<_> = jobs()?
        .into_iter()
        .filter(|job| ["disk_timing", "disk_faults"].contains(&job.name))
        .collect();
    let first = run(kernel, &jobs)?.result;
    let second = run(kernel, &jobs)?.result;
    check(first.files.len() >= 10, "no records came back")?;
    check(first.files == second.files, "records differ")?;
    check(first.report == second.report, "reports differ")?;
    check(first.kernel_log == second.kernel_log, "kernel logs differ")
}
