//! LUC is loaded, switched on and off, and removed many times while threads wait in its hooks.

use libtest_mimic::Trial;
use luc_systest::{Job, Outcome, check, guest, is_whole, run_jobs, tests_on_every};

pub fn tests() -> Vec<Trial> {
    let mut tests = tests_on_every("virtual_time", |kernel| cycles(kernel, true));
    tests.extend(tests_on_every("two_processors", |kernel| {
        cycles(kernel, false)
    }));
    tests
}

/// Without virtual time RCU's waits are real, so there are fewer cycles.
fn cycles(kernel: &str, virtual_time: bool) -> Outcome {
    let cycles: u32 = match (virtual_time, is_whole()) {
        (true, true) => 200,
        (true, false) => 60,
        (false, true) => 40,
        (false, false) => 20,
    };
    let jobs = [Job::new("unload", &["20ms:2:512M"])?.env("CYCLES", cycles.to_string())];
    let mut spec = guest(kernel, &jobs)?;
    spec.virtual_time = virtual_time;
    // A slow processor spends the fewest host seconds on a load that never ends.
    spec.cpu_mips = 62.5;
    spec.vcpus = if virtual_time { 1 } else { 2 };
    let answer = run_jobs(&spec, &jobs)?;
    // Held commits show that the module worked while it was there.
    let sum = |name: &str| answer.number("unload", "sums", &format!("/{name}"));
    check(
        sum("cycles")? >= f64::from(cycles),
        format!("only {} cycles", sum("cycles")?),
    )?;
    check(
        sum("commits")? > sum("cycles")? / 2.0 && sum("held")? > 0.0,
        format!(
            "{} commits seen, {} held in {} cycles: LUC was hardly at work",
            sum("commits")?,
            sum("held")?,
            sum("cycles")?
        ),
    )
}
