//! Events that a file system may meet while LUC holds its commits and copies its metadata out: a
//! disk that fails, stalls or disappears, no memory, signals, another clock, a processor that goes
//! offline, suspend, growth, a thousand mounts. Each time the same load runs with LUC and without,
//! and the results must be the same.

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, LUCDISK_FAILS, Outcome, Trouble, disk_module, guest, guest_source, module,
    program, run_jobs, script, tests_on_every,
};
use luc_vm::{Content, GuestFile, RunSpec};

/// Kernel log lines when the kernel kills the task that took all memory.
const MEMORY_IS_OUT: &[&str] = &["Out of memory: Killed process", "Call Trace:"];

/// Kernel log lines of a task that hangs on a disk.
const TASK_HANGS: &[&str] = &["for more than", "Call Trace:"];

pub fn tests() -> Vec<Trial> {
    let mut tests = tests_on_every("disk", disk);
    tests.extend(tests_on_every("system", system));
    tests.extend(tests_on_every("holding", holding));
    tests
}

/// A guest with the lab's disk and the load.
fn guest_for(kernel: &str, jobs: &[Job]) -> Result<RunSpec, Trouble> {
    let mut spec = guest(kernel, jobs)?;
    spec.cpu_mips = 125.0;
    let driver = Content::Host(disk_module(kernel)?);
    spec.files.extend([
        GuestFile::new("/t/lucdisk.ko", driver),
        script("disk_lib.sh"),
        script("pressure_lib.sh"),
        program("/usr/bin/syncers", "pressure/syncers.c")?,
    ]);
    Ok(spec)
}

/// Runs the jobs and prints what they measured.
fn run(spec: &RunSpec, jobs: &[Job]) -> Result<Answer, Trouble> {
    let answer = run_jobs(spec, jobs)?;
    for line in answer.told() {
        println!("  {} {line}", spec.kernel);
    }
    Ok(answer)
}

fn disk(kernel: &str) -> Outcome {
    let mut jobs = vec![
        Job::new("pressure_errors", &[])?.allow(LUCDISK_FAILS),
        Job::new("pressure_gone", &[])?.allow(LUCDISK_FAILS),
    ];
    // It is long, and tests code of the module that is alike on all kernels.
    if kernel == "6.12" {
        jobs.push(Job::new("pressure_mounts", &[])?);
    }
    run(&guest_for(kernel, &jobs)?, &jobs)?;
    Ok(())
}

fn system(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("pressure_waits", &[])?,
        Job::new("pressure_admin", &[])?,
        Job::new("pressure_suspend", &[])?,
        Job::new("pressure_memory", &[])?.allow(MEMORY_IS_OUT),
    ];
    let mut spec = guest_for(kernel, &jobs)?;
    // With virtual time they share one host processor, which is enough to take one away.
    spec.vcpus = 2;
    // The tests fill all of it several times over.
    spec.memory_mib = 320;
    spec.modules.push("quota_v2".into());
    bring(&mut spec, &["pressure_alloc.ko", "pressure_suspend.ko"])?;
    run(&spec, &jobs)?;
    Ok(())
}

/// The ends of a hold, tasks that no commit is held for, a task that must not steer holds, a wait
/// that no disk ends, and LUC's lines in the kernel log.
fn holding(kernel: &str) -> Outcome {
    let jobs = [
        Job::new("holding", &["1ms:8:64M"])?,
        Job::new("spinner", &["4ms:1:64M"])?,
        Job::new("priority", &["4ms:1:64M"])?,
        Job::new("hung", &[])?.allow(TASK_HANGS),
    ];
    let mut spec = guest_for(kernel, &jobs)?;
    spec.cpu_mips = 500.0;
    bring(&mut spec, &["pressure_reclaim.ko", "pressure_suspend.ko"])?;
    run(&spec, &jobs)?;
    Ok(())
}

/// Brings modules of `guest/pressure` into the guest.
fn bring(spec: &mut RunSpec, names: &[&str]) -> Outcome {
    let modules = module(&spec.kernel, &guest_source("pressure"))?;
    for name in names {
        let content = Content::Host(modules.with_file_name(name));
        spec.files
            .push(GuestFile::new(format!("/t/{name}"), content));
    }
    Ok(())
}
