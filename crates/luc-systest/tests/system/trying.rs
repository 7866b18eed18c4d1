//! `luc try` and `luc guard` on real file systems: a load that LUC helps, one that it changes
//! nothing for, and one that bad knobs make it harm; and faults.

use libtest_mimic::Trial;
use luc_systest::{Answer, Job, Outcome, Trouble, check, guest, run_jobs, script, test, test_on};

/// A slow processor spends the fewest host seconds on loads that run for minutes.
const CPU_MIPS: f64 = 125.0;

pub fn tests() -> Vec<Trial> {
    vec![
        test_on("guard", "6.12", guarding),
        test_on("try", "6.12", trying),
        test_on("try", "6.1", trying),
        test("certified_without_gain", certified_without_gain).with_ignored_flag(true),
    ]
}

fn trying(kernel: &str) -> Outcome {
    let mut jobs = vec![Job::new("trying", &["10ms:1"])?];
    // The trial is alike on all kernels.
    if kernel == "6.12" {
        jobs.push(Job::new("verdict", &["10ms:1"])?);
    }
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = CPU_MIPS;
    let answer = run_jobs(&spec, &jobs)?;
    // Each sync waits for two commits on stock, and for one with LUC. On 6.1 with one processor the
    // journal's thread wakes up last, so that stock keeps the merged batches of LUC's windows.
    let (range, begin) = match kernel {
        "6.1" => (0.8..2.6, ""),
        _ => (1.5..2.2, "LUC helps here: it gives "),
    };
    judge(&answer, "helped", range, begin)?;
    // Five pairs: an interval is 3% wide, and its mean lies up to 2% from 1.
    judge(&answer, "lone", 0.95..1.05, "")?;
    // The bad knobs add 16 ms of waiting to two requests of 10 ms: 0.56, and up to 0.61 where
    // programs without optimisation take longer in between.
    judge(&answer, "harmed", 0.5..0.65, "LUC harms here: it gives ")
}

/// Checks that the ratio's whole interval is in the range, that both sides were measured in full,
/// and that the sentence begins like this.
fn judge(answer: &Answer, name: &str, range: std::ops::Range<f64>, begin: &str) -> Outcome {
    let number = |pointer: &str| answer.number("trying", name, pointer);
    for end in ["/ratio/low", "/ratio/mean", "/ratio/high"] {
        let value = number(end)?;
        let what = format!("{name}: {end} is {value}, expected {range:?}");
        check(range.contains(&value), what)?;
    }
    for side in ["luc", "stock"] {
        for figure in [
            "sync_calls_per_s",
            "fsync_mean_ns",
            "fsync_p99_ns",
            "journal_thread_ns_per_s",
        ] {
            let value = number(&format!("/{side}/{figure}"))?;
            check(value > 0.0, format!("{name}: {side}'s {figure} is {value}"))?;
        }
    }
    let sentence = answer.json("trying", name)?["sentence"].clone();
    let sentence = sentence.as_str().unwrap_or_default();
    check(sentence.starts_with(begin), format!("{name}: {sentence}"))
}

fn guarding(kernel: &str) -> Outcome {
    let disks = ["100ms:1", "100ms:1", "20us:64:64M"];
    let answer = guards(kernel, "guarding", &disks)?;
    let ratio = |file| answer.number("guarding", file, "/file_systems/0/guard/ratio");
    let (certified, refuted) = (ratio("certified")?, ratio("refuted")?);
    check(
        (1.7..2.2).contains(&certified),
        format!("certified at {certified}"),
    )?;
    // The bad knobs add 50 ms to two requests of 100 ms.
    check(
        (0.75..0.85).contains(&refuted),
        format!("refuted at {refuted}"),
    )
}

/// The certificate takes a hundred pairs.
fn certified_without_gain() -> Outcome {
    let answer = guards("6.12", "lone", &["50ms:1"])?;
    let sentence = answer.json("lone", "lone")?["sentence"].clone();
    let sentence = sentence.as_str().unwrap_or_default();
    println!("  {sentence}");
    check(
        sentence.contains("at least 0.99 of stock with 99% confidence"),
        format!("lone: {sentence}"),
    )
}

fn guards(kernel: &str, name: &'static str, disks: &[&str]) -> Result<Answer, Trouble> {
    let jobs = [Job::new(name, disks)?];
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = CPU_MIPS;
    // It runs hours of virtual time: the longest of all tests, also on a busy machine.
    spec.timeout_host_s = 1800;
    spec.files.push(script("guarding_lib.sh"));
    run_jobs(&spec, &jobs)
}
