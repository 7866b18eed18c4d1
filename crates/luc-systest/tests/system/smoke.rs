//! LUC on every kernel of the lab: it speeds up what it should, its decisions replay, it changes
//! nothing when it only observes, and it leaves no trace.

use libtest_mimic::Trial;
use luc_systest::{Answer, Job, Outcome, Trouble, check, guest, kernels, program, run_jobs, test};

pub fn tests() -> Vec<Trial> {
    let mut tests: Vec<Trial> = Vec::new();
    // All kernels, always: LUC on, faster, off.
    for kernel in kernels("every") {
        tests.push(test(format!("everything_on_{kernel}"), move || {
            everything(&kernel)
        }));
    }
    for kernel in kernels("look") {
        tests.push(test(format!("first_steps_on_{kernel}"), move || {
            first_steps(&kernel)
        }));
    }
    tests.push(test("refused_on_6.12-rt", refused));
    tests
}

/// `PREEMPT_RT` is refused: hooks that sleep in a lock could outlive the module there.
fn refused() -> Outcome {
    let jobs = [Job::new("rt", &["1ms:8:64M"])?];
    run_jobs(&guest("6.12-rt", &jobs)?, &jobs)?;
    Ok(())
}

/// Runs the jobs, and checks the types of functions that no header declares.
fn run_all(kernel: &str, mut jobs: Vec<Job>) -> Result<Answer, Trouble> {
    // Full kernels have the same sources, but their ext4 and jbd2 have separate types.
    if !kernel.ends_with("-full") {
        jobs.push(Job::new("prototypes", &[])?);
    }
    let mut spec = guest(kernel, &jobs)?;
    spec.files.push(program("/t/prototype", "prototype.c")?);
    run_jobs(&spec, &jobs)
}

fn everything(kernel: &str) -> Outcome {
    let answer = run_all(kernel, vec![Job::new("smoke", &["4ms:1"])?])?;
    speeds_up(&answer, "smoke")?;
    observes_only(&answer)?;
    status_is_complete(&answer)?;
    replays(&answer)
}

fn first_steps(kernel: &str) -> Outcome {
    let mut jobs = vec![Job::new("first", &["4ms:1"])?];
    // Where jbd2 is a module of its own.
    if kernel.ends_with("-full") {
        jobs.push(Job::new("pinned", &["1ms:8:64M"])?.allow(&["luc: Unknown symbol jbd2_"]));
    }
    speeds_up(&run_all(kernel, jobs)?, "first")
}

/// How much one run of stock may differ from another. From 7.2 on, convoys merge and part by
/// chance: stock moves between 240 operations/s, with two convoys all the time, and 480, with a
/// single one.
const LIKE_STOCK: std::ops::RangeInclusive<f64> = 0.45..=2.2;

/// On a disk of 4 ms per request four threads split into two convoys: each fsync waits for two
/// commits. LUC merges them. How much faster that is, benchmarks tell.
fn speeds_up(answer: &Answer, cell: &str) -> Outcome {
    let rate = |file: &str| answer.number(cell, file, "/ops_per_s");
    let (stock, luc, after) = (rate("stock")?, rate("luc")?, rate("after")?);
    check(
        luc >= stock,
        format!("{luc:.0} operations/s with LUC, {stock:.0} without"),
    )?;
    let each = answer.number(cell, "luc", "/fsyncs_per_commit")?;
    check(
        (3.5..=4.1).contains(&each),
        format!("{each:.2} fsyncs per commit with LUC, expected about 4"),
    )?;
    check(
        LIKE_STOCK.contains(&(after / stock)),
        format!("{after:.0} operations/s after LUC, {stock:.0} before it"),
    )
}

/// Checks that nothing is held (the script counts that) and that nothing becomes much slower or
/// faster.
fn observes_only(answer: &Answer) -> Outcome {
    for field in ["/ops_per_s", "/fsyncs_per_commit"] {
        let stock = answer.number("smoke", "stock", field)?;
        let observe = answer.number("smoke", "observe", field)?;
        check(
            LIKE_STOCK.contains(&(observe / stock)),
            format!("{field} is {observe:.2} while LUC observes, {stock:.2} without it"),
        )?;
    }
    Ok(())
}

fn status_is_complete(answer: &Answer) -> Outcome {
    let status = answer.json("smoke", "status")?;
    let fs = &status["file_systems"][0];
    check(
        status["module_version"] == env!("CARGO_PKG_VERSION") && fs["name"] == "nullb0",
        format!("status --json: {status}"),
    )?;
    let known = |names: Vec<&str>, kind: &str| {
        let missing = names.into_iter().find(|name| fs[kind].get(name).is_none());
        check(
            missing.is_none(),
            format!("status --json has no {kind} {missing:?}"),
        )
    };
    known(
        luc_control::knobs().iter().map(|k| k.name).collect(),
        "knobs",
    )?;
    known(
        luc_control::counters().iter().map(|c| c.name).collect(),
        "counters",
    )?;
    let count = |name: &str| fs["counters"][name].as_i64().unwrap_or(-1);
    let closed: i64 = ["now", "setpoint", "idle", "limit", "urgent", "forgone"]
        .iter()
        .map(|reason| count(&format!("closed_{reason}")))
        .sum();
    check(
        count("commits") > 50 && closed == count("commits"),
        format!("{closed} of {} commits have a reason", count("commits")),
    )?;
    // The benchmark's last fsyncs may still be on their way.
    let each = count("sync_events") as f64 / count("commits") as f64;
    check(
        (3.0..=4.2).contains(&each),
        format!("{each:.2} sync events per commit by the module's counters"),
    )
}

fn replays(answer: &Answer) -> Outcome {
    let replay = answer.json("smoke", "replay")?;
    let count = |name: &str| replay[name].as_u64().unwrap_or(u64::MAX);
    check(
        replay["passed"] == true
            && count("mismatching") == 0
            && count("chain_breaks") == 0
            && count("lost_events") == 0,
        format!("{replay}"),
    )?;
    check(
        count("records") > 50 && count("matching") == count("records"),
        format!("only {} decisions replayed", count("records")),
    )
}
