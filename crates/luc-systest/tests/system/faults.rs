//! Faults that an administrator or a failing disk can cause to a file system that LUC
//! steers. After each fault: one clear line, the right exit code, stock
//! behaviour, and nothing in the kernel log but what the fault itself prints.
//!
//! Also other owners of the functions that LUC hooks: the second owner gets an error, and neither
//! harms the other.

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, NULL_BLK_FAILS, Outcome, Replacement, Trouble, broken_sources, check, dmsetup,
    failed, fault_jobs, guest, guest_source, module, program, run_jobs, tests_on_every,
};
use luc_vm::{Content, GuestFile};

pub fn tests() -> Vec<Trial> {
    let mut tests = tests_on_every("faults", faults);
    tests.extend(tests_on_every("owners", owners));
    tests.extend(tests_on_every("attach", attach));
    tests.extend(tests_on_every("stopped", stopped));
    tests.extend(tests_on_every(
        "offline_and_container",
        offline_and_container,
    ));
    tests
}

/// Kernel log lines of a loop device whose file has no space.
const LOOP_FAILS: &[&str] = &[
    "I/O error, dev loop0",
    "EXT4-fs error (device loop0)",
    "EXT4-fs warning (device loop0)",
    "EXT4-fs (loop0)",
    "Aborting journal on device loop0",
];

fn jobs() -> Result<Vec<Job>, Trouble> {
    let mut jobs = fault_jobs()?;
    jobs.extend([
        Job::new("health", &["1ms:8:64M"])?
            .allow(NULL_BLK_FAILS)
            .allow(LOOP_FAILS),
        Job::new("fast", &["1ms:8:64M"])?.mkfs(&["-O", "fast_commit"]),
        Job::new("many", &["1ms:8:32M"; 8])?,
        Job::new("sequence", &["1ms:8:64M"])?,
        Job::new("refused", &["1ms:8:32M"])?.mkfs(&["-O", "^has_journal"]),
    ]);
    Ok(jobs)
}

fn faults(kernel: &str) -> Outcome {
    let jobs = jobs()?;
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = 250.0;
    spec.files.push(program("/t/shutdown", "shutdown.c")?);
    spec.files.push(dmsetup());
    let modules = ["dm-mod", "loop"];
    spec.modules.extend(modules.map(str::to_owned));
    let answer = run_jobs(&spec, &jobs)?;
    keeps_up_with_a_full_journal(&answer)?;
    many_are_independent(&answer)
}

/// A module of the tests that gets in LUC's way.
fn owner(kernel: &str, name: &str) -> Result<GuestFile, Trouble> {
    let modules = module(kernel, &guest_source("owners"))?;
    let content = Content::Host(modules.with_file_name(name));
    Ok(GuestFile::new(format!("/t/{name}"), content))
}

/// A real BPF program and a real livepatch on functions that LUC hooks; and tracers.
fn owners(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("owned", &["1ms:8:32M"])?,
        Job::new("tracers", &["1ms:8:32M"])?,
    ];
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = 250.0;
    spec.files.push(owner(kernel, "owner_livepatch.ko")?);
    spec.files.push(program("/t/fentry", "owners/fentry.c")?);
    run_jobs(&spec, &jobs)?;
    Ok(())
}

/// A kernel whose ftrace fails, before or after LUC hooks anything: it never recovers.
fn stopped(kernel: &str) -> Outcome {
    for when in ["off", "on"] {
        let jobs = [Job::new("stopped", &["1ms:8:32M"])?.env("WHEN", when)];
        let mut spec = guest(kernel, &jobs)?;
        spec.cpu_mips = 250.0;
        spec.files.push(owner(kernel, "stop_ftrace.ko")?);
        run_jobs(&spec, &jobs)?;
    }
    Ok(())
}

/// A processor that is offline, and then a container, whose script unmounts tracefs.
fn offline_and_container(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("offline", &["1ms:8:64M"])?,
        Job::new("container", &["1ms:8:64M"])?,
    ];
    let mut spec = guest(kernel, &jobs)?;
    spec.vcpus = 2;
    run_jobs(&spec, &jobs)?;
    Ok(())
}

/// A module that poisons freed memory, modules that refuse the kernel, a caller without rights.
fn attach(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("attach", &["1ms:8:64M", "200ms:1:64M"])?,
        Job::new("rights", &["1ms:8:64M"])?,
    ];
    let mut spec = guest(kernel, &jobs)?;
    spec.cpu_mips = 250.0;
    spec.files.push(program("/t/without", "without.c")?);
    let poisoned: Replacement = (
        "kmod/fs.c",
        "\tkvfree(fs);\n}\n",
        "\tmemset(fs, 0x6b, sizeof(*fs));\n\tkvfree(fs);\n}\n",
    );
    let untested: Replacement = (
        "kmod/layout.c",
        "luc_tested[] = { LUC_KERNELS(LUC_SERIES) };",
        "luc_tested[] = { { 2, 4 } };",
    );
    let vendor: Replacement = ("kmod/layout.c", "if (!LINUX_VERSION_SUBLEVEL)", "if (true)");
    let preempt_rt: Replacement = ("kmod/layout.c", "IS_ENABLED(CONFIG_PREEMPT_RT)", "true");
    for (name, change) in [
        ("poisoned", poisoned),
        ("untested", untested),
        ("vendor", vendor),
        ("preempt_rt", preempt_rt),
    ] {
        let dir = tempfile::tempdir().map_err(failed)?;
        broken_sources(dir.path(), &[change]).map_err(Trouble::Fail)?;
        let content = Content::Host(module(kernel, dir.path())?);
        spec.files
            .push(GuestFile::new(format!("/t/{name}.ko"), content));
    }
    run_jobs(&spec, &jobs)?;
    Ok(())
}

/// With a journal of 4 MiB, lack of space forces commits all the time, and neither holding them nor
/// copying may let the load collapse. This does not measure speed: such a load is chaotic, and
/// stock alone varies by a third from one build of the programs to the next.
fn keeps_up_with_a_full_journal(answer: &Answer) -> Outcome {
    let rate = |file: &str| answer.number("journal", file, "/ops_per_s");
    let (stock, luc) = (rate("stock")?, rate("luc")?);
    check(
        luc >= 0.6 * stock,
        format!("full journal: {luc:.0} operations/s with LUC, {stock:.0} without"),
    )
}

fn many_are_independent(answer: &Answer) -> Outcome {
    let status = answer.json("many", "status")?;
    let list = status["file_systems"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    check(list.len() == 8, format!("{} file systems of 8", list.len()))?;
    for (index, fs) in list.iter().enumerate() {
        let policy = ["stock", "static", "batching", "copyout", "luc"][index % 5];
        check(
            fs["name"] == format!("nullb{index}") && fs["knobs"]["policy"] == policy,
            format!("file system {index} has not kept its policy: {fs}"),
        )?;
        let count = |name: &str| fs["counters"][name].as_i64().unwrap_or(-1);
        check(count("commits") > 10, format!("no commits counted: {fs}"))?;
        let may_hold = ["static", "batching", "luc"].contains(&policy);
        check(
            may_hold == (count("commits_held") > 0),
            format!("policy {policy} held {} commits", count("commits_held")),
        )?;
    }
    Ok(())
}
