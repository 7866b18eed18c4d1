//! LUC on a kernel that checks itself, on processors that really run in parallel: use of freed
//! memory, locks in a wrong order, leaks, objects destroyed while in use, and allocations that
//! fail.
//!
//! Building the kernel takes a quarter of an hour, so it is optional: without it these tests are
//! skipped, in CI too. `make torture` builds it.

use libtest_mimic::Trial;
use luc_systest::{
    Answer, Job, Outcome, Replacement, Trouble, broken_sources, check, fail, fault_jobs, guest,
    is_whole, module, program, run_jobs, test, test_alone,
};
use luc_vm::cache::Cache;
use luc_vm::{KernelList, RunSpec, debug_kernel};

/// The kernel with KASAN, lockdep, kmemleak and the like.
const CHECKED: &str = "6.12-debug";
/// The kernel with KCSAN.
const RACES: &str = "6.12-races";
/// Processors of the guest, in parallel: more than this machine may have, so that now and then one
/// stands still at an arbitrary point.
const VCPUS: u32 = 4;

/// The kernel's own code races on purpose in many places that are not marked.
/// A report that names LUC is never allowed.
const RACES_OF_THE_KERNEL: &[&str] = &["BUG: KCSAN: data-race in "];

/// A module that is broken on purpose, in a way that a stock kernel does not show.
struct Broken {
    name: &'static str,
    what: &'static str,
    kernel: &'static str,
    change: Replacement,
    /// Text in the report that it must cause.
    seen_as: &'static str,
}

const BROKEN: [Broken; 5] = [
    Broken {
        name: "copy_freed",
        what: "the copy is freed while jbd2 uses it",
        kernel: CHECKED,
        change: (
            "kmod/copyout.c",
            "	if (used)\n		luc_count(fs, copies, 1);\n	else\n",
            "	if (used)\n		luc_count(fs, copies, 1);\n",
        ),
        seen_as: "KASAN",
    },
    Broken {
        name: "allocates_under_a_lock",
        what: "an allocation that may sleep is made under a spinlock",
        kernel: CHECKED,
        change: (
            "kmod/copyout.c",
            "	if (luc_may_freeze(jh, transaction)) {\n",
            "	kfree(kmalloc(size, GFP_NOFS));\n	if (luc_may_freeze(jh, transaction)) {\n",
        ),
        seen_as: "sleeping function called from invalid context",
    },
    Broken {
        name: "locks_in_two_orders",
        what: "two locks are taken in one order here and in the other there, never at once",
        kernel: CHECKED,
        change: (
            "kmod/copyout.c",
            "	spin_lock(&jh->b_state_lock);\n	if (luc_may_freeze(jh, transaction)) {\n",
            "	spin_lock(&fs->lock);\n	spin_lock(&jh->b_state_lock);\n	spin_unlock(&jh->b_state_lock);\n	spin_unlock(&fs->lock);\n	spin_lock(&jh->b_state_lock);\n	spin_lock(&fs->lock);\n	spin_unlock(&fs->lock);\n	if (luc_may_freeze(jh, transaction)) {\n",
        ),
        seen_as: "possible circular locking",
    },
    Broken {
        name: "leaks",
        what: "what belonged to a file system is not freed",
        kernel: CHECKED,
        change: ("kmod/fs.c", "	kvfree(fs);\n}\n", "}\n"),
        seen_as: "suspected memory leaks",
    },
    Broken {
        name: "unlocked",
        what: "two tasks count their sync calls at once",
        kernel: RACES,
        change: (
            "kmod/sync.c",
            "	if (fs && !(data_race(luc_returns_all_needless(",
            "	if (fs)\n		fs->sync_events++;\n	if (fs && !(data_race(luc_returns_all_needless(",
        ),
        seen_as: "KCSAN",
    },
];

/// All of it takes half an hour: four processors in host time under these checks. `make test` runs
/// a short round of the tests that a change of the module breaks first.
pub fn tests() -> Vec<Trial> {
    let left = |test: Trial| test.with_ignored_flag(true);
    let mut tests = vec![
        test_alone("stress", stress),
        test_alone("unload", unload),
        left(test_alone("nomemory", nomemory)),
        left(test_alone("faults", faults)),
        left(test_alone("races", races)),
        test("broken_sources_fit", || BROKEN.iter().try_for_each(fits)),
    ];
    for broken in &BROKEN {
        let name = format!("broken_{}", broken.name);
        tests.push(left(test_alone(name, move || is_caught(broken))));
    }
    tests
}

/// Picks the length for a whole or a short round.
fn round(whole: u32, short: u32) -> u32 {
    if is_whole() { whole } else { short }
}

/// A guest on that kernel, if it has been built.
fn debug_guest(kernel: &str, jobs: &[Job]) -> Result<RunSpec, Trouble> {
    let list = KernelList::builtin()?;
    if let Err(error) = debug_kernel::find(&Cache::open()?, list.get(kernel)?) {
        return Err(if error.is_missing_prerequisite() {
            Trouble::Optional(error.to_string())
        } else {
            error.into()
        });
    }
    let mut spec = guest(kernel, jobs)?;
    spec.virtual_time = false;
    spec.vcpus = VCPUS;
    spec.memory_mib = 2048;
    // To a guest whose processors wait for the host's, a sound timer looks broken.
    spec.kernel_cmdline_extra = "no_timer_check".into();
    spec.timeout_host_s = 1800;
    Ok(spec)
}

/// Runs the jobs and then looks for leaks.
fn run_checked(jobs: Vec<Job>) -> Result<Answer, Trouble> {
    let mut jobs = jobs;
    jobs.push(Job::new("leaks", &[])?);
    run_jobs(&debug_guest(CHECKED, &jobs)?, &jobs)
}

fn stress() -> Outcome {
    let seconds = round(6, 2).to_string();
    let job = Job::new("stress", &["4ms:2:512M"])?.env("SECONDS_EACH", seconds);
    run_checked(vec![job]).map(drop)
}

/// The module is loaded and removed while threads wait for commits in its hooks.
fn unload() -> Outcome {
    let cycles = round(60, 16);
    let job = Job::new("unload", &["10ms:2:512M"])?.env("CYCLES", cycles.to_string());
    let answer = run_checked(vec![job])?;
    let sum = |name: &str| answer.number("unload", "sums", &format!("/{name}"));
    check(
        sum("cycles")? >= f64::from(cycles) && sum("held")? > 0.0,
        format!("{} cycles, {} commits held", sum("cycles")?, sum("held")?),
    )
}

/// One disk with blocks of a page, one with blocks from jbd2's own slab.
fn nomemory() -> Outcome {
    let job = Job::new("nomemory", &["4ms:2:128M", "4ms:2:128M"])?
        .mkfs(&["-b", "1024"])
        .env("SECONDS_EACH", "3");
    run_checked(vec![job]).map(drop)
}

/// The suite `faults` on a kernel that checks itself, without the parts that measure time.
fn faults() -> Outcome {
    run_checked(fault_jobs()?).map(drop)
}

/// Without kmemleak, which that kernel lacks.
fn races() -> Outcome {
    let jobs = [
        races_job("10")?,
        Job::new("stress", &["4ms:2:512M"])?
            .env("SECONDS_EACH", "8")
            .allow(RACES_OF_THE_KERNEL),
        Job::new("unload", &["10ms:2:512M"])?
            .env("CYCLES", "20")
            .allow(RACES_OF_THE_KERNEL),
    ];
    let answer = run_jobs(&races_guest(&jobs)?, &jobs)?;
    for line in answer.told() {
        println!("  {RACES} {line}");
    }
    Ok(())
}

/// On a fast disk: the more syncs, the more can meet.
fn races_job(seconds_each: &str) -> Result<Job, Trouble> {
    let job = Job::new("races", &["20us:64:512M"])?.env("SECONDS_EACH", seconds_each);
    Ok(job.allow(RACES_OF_THE_KERNEL))
}

fn races_guest(jobs: &[Job]) -> Result<RunSpec, Trouble> {
    let mut spec = debug_guest(RACES, jobs)?;
    spec.files
        .push(program("/usr/bin/syncers", "pressure/syncers.c")?);
    Ok(spec)
}

/// Checks that the module's sources have the text that is changed, without a kernel: nobody builds
/// those above every day.
fn fits(broken: &Broken) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    broken_sources(dir.path(), &[broken.change]).map_err(Trouble::Fail)
}

/// Checks that the kernel reports this fault.
fn is_caught(broken: &Broken) -> Outcome {
    let (mut spec, jobs) = if broken.kernel == CHECKED {
        let jobs = vec![Job::new("teeth", &["4ms:2:256M"])?, Job::new("leaks", &[])?];
        (debug_guest(CHECKED, &jobs)?, jobs)
    } else {
        let jobs = vec![races_job("10")?];
        (races_guest(&jobs)?, jobs)
    };
    let dir = tempfile::tempdir().expect("temporary directory");
    broken_sources(dir.path(), &[broken.change]).map_err(Trouble::Fail)?;
    spec.luc_module = Some(module(broken.kernel, dir.path())?);
    let said = match run_jobs(&spec, &jobs) {
        Err(Trouble::Fail(said)) => said,
        Err(other) => return Err(other),
        Ok(_) => return fail(format!("no check notices that {}", broken.what)),
    };
    let line = said.lines().find(|line| line.contains(broken.seen_as));
    match line {
        Some(line) => println!("{}: caught by: {}", broken.what, line.trim()),
        None => return fail(format!("{}: seen as something else: {said}", broken.what)),
    }
    Ok(())
}
