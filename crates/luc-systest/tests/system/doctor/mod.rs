//! `luc doctor` on file systems with a known trouble, which its first verdict must name. Where it
//! predicts LUC's gain, LUC is switched on and both numbers are printed.

mod cases;
mod loads;

use cases::{CASES, Case};
use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Trouble, check, dmsetup, fail, guest, is_whole, program, run_jobs, test,
    tests_on_every,
};
use luc_vm::RunSpec;
use serde_json::Value;

pub fn tests() -> Vec<Trial> {
    // The cases of each kernel have every answer; they differ in disks and loads.
    let mut tests = tests_on_every("doctor", on);
    tests.push(test("module_on_6.12", || without_tracing("6.12")));
    tests
}

/// One guest with its cases on fresh disks; in `make test` one of several
/// neighbours with the same answer.
fn on(kernel: &str) -> Outcome {
    let mut cases: Vec<&Case> = CASES.iter().filter(|case| case.kernel == kernel).collect();
    if !is_whole() {
        cases.dedup_by_key(|case| (case.expected, case.remedy, case.sure));
    }
    let jobs = cases
        .iter()
        .map(|case| job(case))
        .collect::<Result<Vec<_>, _>>()?;
    let mut spec: RunSpec = guest(kernel, &jobs)?;
    spec.files.push(program("/t/writer", "writer.c")?);
    spec.files.push(dmsetup());
    let modules = [
        "loop",
        "dm-delay",
        "dm-round-robin",
        "dm-thin-pool",
        "raid1",
        "nfsd",
        "nfsv4",
    ];
    spec.modules.extend(modules.map(str::to_owned));
    // Room for a disk in memory and for its page cache.
    spec.memory_mib = 3072;
    // Where a case keeps the processor busy, virtual time passes slowly.
    spec.timeout_host_s *= 2;
    let answer = run_jobs(&spec, &jobs)?;
    let mut wrong = Vec::new();
    for case in &cases {
        if !is_right(case, &answer)? {
            wrong.push(format!("{}: {}", case.name, case.why));
        }
    }
    println!(
        "{kernel:5} {} of {} cases right",
        cases.len() - wrong.len(),
        cases.len()
    );
    check(wrong.is_empty(), wrong.join("\n"))
}

fn job(case: &Case) -> Result<Job, Trouble> {
    Ok(Job::new(case.name, &[case.disk])?
        .script("doctor")
        .mkfs(case.mkfs)
        .allow(case.allow)
        .env("LOAD", case.load)
        .env("MEASURE", case.measure)
        .env("UNDO", case.undo)
        .env("SETTLE_S", case.settle_s)
        .env("SECONDS_S", SECONDS_S))
}

/// Virtual time of watching: with less than 5 s the doctor is never sure.
const SECONDS_S: &str = "5";

/// Prints a case's line and tells whether the doctor's answer is right.
fn is_right(case: &Case, answer: &Answer) -> Result<bool, Trouble> {
    let report = answer.json(case.name, "doctor")?;
    let found = &report["file_systems"][0];
    let said = found["verdicts"][0]["kind"].as_str().unwrap_or("nothing");
    let sure = found["confidence"]["level"].as_str().unwrap_or("none");
    let advice = found["advice"].as_array().cloned().unwrap_or_default();
    let mut advice = advice.iter().filter_map(Value::as_str);
    let remedied = case.remedy.is_empty() || advice.any(|it| it.contains(case.remedy));
    let syncer = found["processes"]["causes"][0]["name"].as_str();
    let named = case.syncer.is_empty() || syncer == Some(case.syncer);
    let trusted = case.sure.is_empty() || sure == case.sure;
    let right = said == case.expected && remedied && named && trusted;
    println!(
        "{:5} {:24} expected {:18} said {said:18} confidence {sure:7} {}",
        case.kernel,
        case.name,
        case.expected,
        if right { "right" } else { "WRONG" },
    );
    if !case.measure.is_empty() {
        gain(case, found, answer)?;
    }
    Ok(right)
}

/// Prints the predicted gain next to the measured one. Both are of a closed loop, so more
/// operations per second are shorter operations.
fn gain(case: &Case, found: &Value, answer: &Answer) -> Outcome {
    let predicted = &found["gain"];
    let Some(ratio) = predicted["ratio"].as_f64() else {
        return fail(format!("{}: no gain was predicted", case.name));
    };
    let rate = |file: &str| -> Result<f64, Trouble> {
        let result = answer.json(case.name, file)?;
        let of = |name: &str| result[name].as_f64().unwrap_or(0.0);
        // create-fsync reports ops, write-delay reports writes and fsyncs.
        Ok(of("ops_per_s") + of("writes_per_s") + of("fsyncs_per_s"))
    };
    let (stock, with_luc) = (rate("stock")?, rate("luc")?);
    check(
        stock > 0.0,
        format!("{}: nothing ran without LUC", case.name),
    )?;
    let end = |name: &str| predicted[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "{:5} {:24} gain of LUC: predicted {ratio:.2} times ({:.2} to {:.2}), measured {:.2}: {stock:.0} to {with_luc:.0} per s",
        case.kernel,
        case.name,
        end("low"),
        end("high"),
        with_luc / stock,
    );
    Ok(())
}

/// Without tracing, the module's tracepoints and counters must give the same verdicts as far as
/// they can, and the report must list what is unknown.
fn without_tracing(kernel: &str) -> Outcome {
    let jobs = [Job::new("doctor_module", &["4ms:1"])?];
    let answer = run_jobs(&guest(kernel, &jobs)?, &jobs)?;
    for line in answer.told() {
        println!("  {kernel} {line}");
    }
    for (file, kind, next) in [
        ("convoys", "sync_delays", Some("luc set /mnt/0 mode steer")),
        ("alone", "device", None),
        ("writers", "write_delays", Some("luc set /mnt/0 mode steer")),
        ("idle", "no_pressure", None),
        ("recorded", "sync_delays", Some("luc set PATH mode steer")),
        ("counters", "unclear", None),
    ] {
        let report = answer.json("doctor_module", file)?;
        let found = &report["file_systems"][0];
        check(report["source"] == "module", format!("{file}: {report}"))?;
        check(found["kinds"][0] == kind, format!("{file}: {found}"))?;
        check(
            found["next_command"].as_str() == next,
            format!("{file}: {found}"),
        )?;
        let unknown = found["unknown"].as_array().map_or(0, Vec::len);
        check(unknown >= 3, format!("{file}: {found}"))?;
    }
    Ok(())
}
