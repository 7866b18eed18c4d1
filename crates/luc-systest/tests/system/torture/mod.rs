//! Power cuts: nothing is lost while LUC is switched on and off, and a module that is broken on
//! purpose is caught. `luc-lab torture` makes such cuts by the thousand.

mod broken;
use std::path::PathBuf;

use broken::{BROKEN, Broken};
use clap::Parser as _;
use libtest_mimic::Trial;
use luc_report::torture::{Torture, TortureArgs, torture};
use luc_report::{Quiet, ReportError, StockLab};
use luc_systest::{Outcome, Trouble, check, lab_binary, root, test, tests_on_every};

/// Host time that a sound module may take, seconds; it takes a tenth, a minute or two.
const SOUND_LIMIT_S: u64 = 1200;
/// Host time after which a broken module counts as caught, seconds: many hang.
const BROKEN_LIMIT_S: u64 = 150;
/// Most runs in which a broken module must be caught: some damage only what changes at the very
/// moment of a commit, and which moments a run has depends on the build.
const BROKEN_RUNS: u32 = 6;

/// One of each kind, a minute or less each: nothing, copies, memory, syncs, wake-ups. `make
/// test-all` runs the others, too.
const QUICK: [&str; 4] = [
    "not_at_all",
    "copy_is_stale",
    "copy_freed_twice",
    "forgets_to_wake",
];

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    torture: TortureArgs,
}

pub fn tests() -> Vec<Trial> {
    let mut tests = tests_on_every("cuts", cuts);
    for broken in &BROKEN {
        let name = format!("broken_{}", broken.name);
        let left = !QUICK.contains(&broken.name);
        tests.push(test(name, move || is_caught(broken)).with_ignored_flag(left));
    }
    tests.push(test("broken_sources_fit", || {
        BROKEN.iter().try_for_each(fits)
    }));
    tests
}

/// Checks that the module's sources have the text that is changed, of all builds.
fn fits(broken: &Broken) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    broken.write(dir.path()).map_err(Trouble::Fail)
}

/// Cuts the power of one scenario, with the module of these sources.
fn cut(
    kernel: &str,
    scenario: &str,
    seed: u32,
    source: PathBuf,
    limit_s: u64,
) -> Result<Torture, ReportError> {
    let seed = seed.to_string();
    let words = [
        "torture",
        "--seed",
        &seed,
        "--kernels",
        kernel,
        "--only",
        scenario,
        "--cuts",
        "60",
        "--ops",
        "150",
        "-j",
        "1",
    ];
    let args = Cli::parse_from(words).torture;
    let lab = StockLab {
        luc_lab: Some(lab_binary()),
        source,
        limit_s,
    };
    torture(&args, &lab, &Quiet)
}

fn trouble(error: ReportError) -> Trouble {
    match error {
        ReportError::Lab { source, .. } => source.into(),
        other @ ReportError::Failed { .. } => Trouble::Fail(other.to_string()),
    }
}

fn cuts(kernel: &str) -> Outcome {
    let result = cut(
        kernel,
        "ordered luc (on and off)",
        1,
        root().into(),
        SOUND_LIMIT_S,
    )
    .map_err(trouble)?;
    for torment in &result.torments {
        let summary = &torment.summary;
        for loss in &summary.losses {
            println!("{kernel}: {loss}");
        }
        println!(
            "{kernel} {}: {} cuts, {} syncs verified, {} files read, {} lost",
            torment.policy,
            summary.cuts,
            summary.syncs_verified,
            summary.files,
            summary.losses.len()
        );
        check(summary.cuts == 60, "not all cuts were made")?;
        check(summary.syncs_verified > 1000, "hardly a sync was verified")?;
    }
    for scenario in &result.unfinished {
        println!("{kernel} {}: {}", scenario.scenario, scenario.why);
    }
    check(result.torments.len() == 1, "not one scenario")?;
    check(result.losses() == (0, 0), "promises were broken")
}

/// Checks that a broken module loses something, or that the kernel complains. One build only looks
/// broken, and must pass.
fn is_caught(broken: &Broken) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    broken.write(dir.path()).map_err(Trouble::Fail)?;
    let limit_s = if broken.must_fail() {
        BROKEN_LIMIT_S
    } else {
        SOUND_LIMIT_S
    };
    let runs = if broken.must_fail() { BROKEN_RUNS } else { 1 };
    let mut caught = None;
    for seed in 1..=runs {
        let source = dir.path().into();
        let result = cut("6.12", broken.scenario, seed, source, limit_s).map_err(trouble)?;
        caught = by_what(result);
        if caught.is_some() {
            break;
        }
        println!("{}: nothing is lost with seed {seed}", broken.what);
    }
    if let Some(by) = &caught {
        println!("{}: caught by: {by}", broken.what);
    }
    check(
        caught.is_some() == broken.must_fail(),
        format!("{}: caught is {}", broken.what, caught.is_some()),
    )
}

/// The first thing that is wrong, if anything is.
fn by_what(result: Torture) -> Option<String> {
    let losses = result.torments.into_iter().flat_map(|t| t.summary.losses);
    let losses = losses.map(|loss| loss.to_string());
    let unfinished = result.unfinished.into_iter().map(|scenario| scenario.why);
    losses.chain(unfinished).next()
}
