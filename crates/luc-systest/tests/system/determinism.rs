//! A run repeats: the same arguments give the same bytes, with LUC at work as
//! without it. Every decision, its moment and its outcome are in the recording.

use libtest_mimic::Trial;
use luc_systest::{Job, Outcome, check, fail, guest, run_jobs, test};

pub fn tests() -> Vec<Trial> {
    vec![test("recordings_repeat_on_6.12", || recordings("6.12"))]
}

fn recordings(kernel: &str) -> Outcome {
    let jobs = [Job::new("record", &["1ms:4:64M"])?];
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = 250.0;
    let first = run_jobs(&spec, &jobs)?.result;
    let second = run_jobs(&spec, &jobs)?.result;
    check(first.report == second.report, "reports differ")?;
    check(first.kernel_log == second.kernel_log, "kernel logs differ")?;
    let names: Vec<_> = first.files.iter().map(|(name, _)| name.as_str()).collect();
    if !names.contains(&"record/recording") {
        return fail(format!("no recording among {names:?}"));
    }
    for ((name, one), (other_name, other)) in first.files.iter().zip(&second.files) {
        check(
            name == other_name && one == other,
            format!("{name} differs"),
        )?;
    }
    check(
        first.files.len() == second.files.len(),
        "one run left more files",
    )?;
    // Another seed starts the threads in another order and must change the recording; otherwise the
    // comparison above would prove nothing.
    spec.seed = 2;
    let other = run_jobs(&spec, &jobs)?.result;
    check(
        other.files != first.files,
        "another seed gave the same recording",
    )
}
