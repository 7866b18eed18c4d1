//! The harnesses of `fuzz/` with the ordinary compiler: their seeds and a fixed sequence of
//! random inputs, trapping on undefined behaviour. `make fuzz` searches much further; this
//! finds plain defects, and proves it with builds that are broken on purpose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Number of random inputs after the seeds.
const RUNS: &str = "2000";

/// A fuzzed part: name of the harness and of its seeds, folder of the sources.
#[derive(Clone, Copy)]
struct Target {
    name: &'static str,
    sources: &'static str,
}

const CONTROL: Target = Target {
    name: "control",
    sources: "control",
};
const BETS: Target = Target {
    name: "bets",
    sources: "control",
};
const DISK: Target = Target {
    name: "disk",
    sources: "lab/disk",
};

/// A build that is broken on purpose: text that occurs once in a file, and its replacement.
struct Broken {
    what: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

const BROKEN: [Broken; 13] = [
    Broken {
        what: "a hold beyond the knob delay_limit_us",
        file: "control/luc_control.c",
        old: "s->wait_ns = luc_clamp(s->wait_ns, 0, luc_us_to_ns(p->delay_limit_us));",
        new: "s->wait_ns = luc_max(s->wait_ns, 0);",
    },
    Broken {
        what: "a hold beyond an average commit",
        file: "control/batching_returns.c",
        old: "luc_s64 limit = commit - (commit >> MARGIN_SHIFT);",
        new: "luc_s64 limit = luc_add(commit, commit >> MARGIN_SHIFT);",
    },
    Broken {
        what: "a held commit that is not let go when nobody comes",
        file: "control/luc_control.c",
        old: "else if (in->now_ns >= idle_ns)",
        new: "else if (in->now_ns > idle_ns)",
    },
    Broken {
        what: "an integral without bounds",
        file: "control/luc_pid.c",
        old: "state->integral_milli = luc_clamp(sum, -LUC_PID_E_MAX_MILLI,\n\t\t\t\t\t\t  LUC_PID_E_MAX_MILLI);",
        new: "state->integral_milli = sum;",
    },
    Broken {
        what: "a product of any two numbers that is not saturated",
        file: "control/luc_controllers.h",
        old: "return luc_mul(luc_max(us, 0), LUC_NS_PER_US);",
        new: "return luc_max(us, 0) * LUC_NS_PER_US;",
    },
    Broken {
        what: "a cohort behind the last one",
        file: "control/luc_returns.c",
        old: "return &r->cohort[tid & (LUC_RETURNS_COHORTS - 1)];",
        new: "return &r->cohort[tid % (LUC_RETURNS_COHORTS + 1)];",
    },
    Broken {
        what: "a stake that may lose all",
        file: "control/luc_bets.c",
        old: "#define BETS_SHARE_PPM 750000LL",
        new: "#define BETS_SHARE_PPM 1000000LL",
    },
    Broken {
        what: "a bet that is not rounded down, nor its logarithm",
        file: "control/luc_bets.c",
        old: "product / LUC_PPM - (product % LUC_PPM < 0);\n\n\treturn bet_ppm ? luc_ln_ratio_ppm(LUC_PPM + bet_ppm, LUC_PPM) - 1 : 0;",
        new: "product / LUC_PPM;\n\n\treturn bet_ppm ? luc_ln_ratio_ppm(LUC_PPM + bet_ppm, LUC_PPM) + 1 : 0;",
    },
    Broken {
        what: "a sum of pairs that is not saturated",
        file: "control/luc_bets.c",
        old: "luc_add(bets->squares, off * off)",
        new: "bets->squares + off * off",
    },
    Broken {
        what: "runs in the cache that are left without blocks, once a division by zero",
        file: "lab/disk/lucdisk_model.c",
        old: "\tif (!s->spilled_blocks)\n\t\ts->spilled_extents = 0;\n",
        new: "",
    },
    Broken {
        what: "a run behind the last one",
        file: "lab/disk/lucdisk_model.c",
        old: "if (s->extents == LUCDISK_EXTENTS) {",
        new: "if (s->extents > LUCDISK_EXTENTS) {",
    },
    Broken {
        what: "a token bucket that holds twice what it may",
        file: "lab/disk/lucdisk_math.h",
        old: "lucdisk_sub(*due_ns, lucdisk_sub(depth_ns, cost_ns))",
        new: "lucdisk_sub(*due_ns, lucdisk_sub(2 * depth_ns, cost_ns))",
    },
    Broken {
        what: "a cache that waits for no room",
        file: "lab/disk/lucdisk_model.c",
        old: "if (s->dirty_blocks > room - blocks) {",
        new: "if (s->dirty_blocks > room) {",
    },
];

fn copy_sources(folder: &str, to: &Path) {
    let to = to.join(folder);
    fs::create_dir_all(&to).expect("a folder can be made");
    for entry in fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "c" || end == "h") {
            let name = path.file_name().expect("a name");
            fs::copy(&path, to.join(name)).expect("a file can be copied");
        }
    }
}

fn c_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect()
}

/// Compiles a harness with the driver that needs no fuzzer; `change` may break the sources.
fn build(target: Target, change: impl FnOnce(&Path)) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("temporary directory");
    for folder in ["abi", "fuzz", target.sources] {
        copy_sources(folder, dir.path());
    }
    change(dir.path());
    let program = dir.path().join("harness");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-Wno-unused-parameter")
        .args(["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"])
        .arg(
            dir.path()
                .join("fuzz")
                .join(target.name)
                .with_extension("c"),
        )
        .arg(dir.path().join("fuzz/plain.c"))
        .args(c_files(&dir.path().join(target.sources)))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", target.name);
    (dir, program)
}

fn run(target: Target, program: &Path) -> Output {
    let folder = Path::new(ROOT).join("fuzz/seeds").join(target.name);
    let entries = fs::read_dir(folder).expect("a folder of seeds");
    let mut seeds: Vec<_> = entries.map(|seed| seed.expect("a seed").path()).collect();
    seeds.sort();
    assert!(seeds.len() > 5, "{seeds:?}");
    let mut command = Command::new(program);
    command.arg(RUNS).args(seeds);
    command.output().expect("the harness runs")
}

fn holds(target: Target) {
    let (_dir, program) = build(target, |_| {});
    let output = run(target, &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", target.name);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(&format!("and {RUNS} random")), "{told}");
}

#[test]
fn controllers_keep_their_bounds_under_any_input() {
    holds(CONTROL);
}

#[test]
fn the_bets_keep_their_bounds_under_any_input() {
    holds(BETS);
}

#[test]
fn the_disk_model_keeps_its_bounds_under_any_input() {
    holds(DISK);
}

#[test]
fn broken_builds_are_caught() {
    for broken in &BROKEN {
        let target = match broken.file {
            "control/luc_bets.c" => BETS,
            file if file.starts_with(CONTROL.sources) => CONTROL,
            _ => DISK,
        };
        let (_dir, program) = build(target, |dir| {
            let path = dir.join(broken.file);
            let text = fs::read_to_string(&path).expect("a source");
            let found = text.matches(broken.old).count();
            assert_eq!(found, 1, "{}: {}", broken.what, broken.old);
            fs::write(&path, text.replace(broken.old, broken.new)).expect("written");
        });
        let output = run(target, &program);
        assert!(!output.status.success(), "not caught: {}", broken.what);
        // A check or a trap caught it; the harness itself could run.
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("failing input: "), "{errors}");
    }
}

/// A controller that the harness does not know is fuzzed like those that it knows.
#[test]
fn a_new_controller_is_fuzzed() {
    let (_dir, program) = build(CONTROL, |dir| {
        luc_test::toy::add_controller(dir, |source| source);
    });
    let output = run(CONTROL, &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let (_dir, program) = build(CONTROL, |dir| {
        luc_test::toy::add_controller(dir, |source| {
            let limit = "state->limit_ns = luc_us_to_ns(HOLD_US);";
            assert_eq!(source.matches(limit).count(), 1);
            source.replace(limit, "state->limit_ns = -1;")
        });
    });
    let output = run(CONTROL, &program);
    assert!(
        !output.status.success(),
        "a limit below nothing is not found"
    );
}
