//! Campaigns as a shell sees them: wrong files and folders, results of other versions, changes
//! between two folders.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::{METAL, Pretended, SMALL, luc_lab};
use insta::assert_snapshot;
use luc_campaign::places::{self, Setup};
use luc_campaign::result::ArmResult;
use luc_campaign::store::CellResult;
use luc_campaign::{Cell, Store, arms, campaigns, measures, points};
use luc_test::command::{assert_ends, assert_holds, dense, run};
use luc_test::with_tmpfs;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program in this folder, so that its messages have relative paths.
fn luc_in(dir: &Path) -> Command {
    let mut command = luc_lab();
    command.current_dir(dir);
    command
}

#[test]
fn files_are_told_where_they_are_wrong() {
    let edits = [
        ("title = ", "titel = "),
        ("stop_at = ", "stop = "),
        ("repeats_max = 6", "repeats = 6"),
        ("repeats_max = 6", "repeats_max = 0"),
        ("[[block]]", "[[blok]]"),
        ("disk = [", "disc = ["),
        ("kernel = [\"6.12\"]", "kernel = [\"6.13\"]"),
        ("threads = [1, 4]", "thread = [1, 4]"),
        ("threads = [1, 4]", "threads = []"),
        ("threads = [1, 4]", "threads = [1, 4], vcpus = 0"),
        ("threads = [1, 4]", "threads = [[1], 4]"),
        ("set = ", "skip = [{ threads = [1, 4] }]\nset = "),
        ("set = ", "place = \"labb\"\nset = "),
        ("disk = \"4ms:1\" }, seconds", "disk = \"8ms:1\" }, seconds"),
        (
            "disk = \"4ms:1\" }, seconds",
            "disks = \"4ms:1\" }, seconds",
        ),
        ("\"4ms:1\", \"1ms:64\"", "\"4mz:1\""),
        ("seconds = 1 }", "seconds = 1, vcpu = 4 }"),
        ("{threads}", "{thread}"),
        ("{seconds} {dir}", "{seconds}"),
        ("{seconds} {dir}", "{seconds} '{dir}"),
        ("\"stock\", \"luc\"", "\"stock\", \"lucc\""),
        ("\"stock\", \"luc\"", ""),
        ("stop_at = [\"rate\"]", "stop_at = [\"rat\"]"),
        ("block = \"loops\"", "block = \"loop\""),
        ("rows = [\"disk\"", "rows = [\"disks\""),
        ("heading = \"stock\", arm", "headin = \"stock\", arm"),
        ("at_least = 0.99", "minus = \"stock\""),
        ("arm = \"luc\"", "arm = \"batching\""),
        ("measure = \"rate\" }", "measure = \"rates\" }"),
        ("rows = ", "where = { threads = 16 }\nrows = "),
        ("heading = \"ratio\", where", "heading = \"rat\", where"),
        ("{best.threads}", "{bets.threads}"),
        ("title = \"Small\"", "title = \"Small"),
    ];
    let dir = tempfile::tempdir().expect("a folder");
    let mut shown = String::new();
    for (before, after) in edits {
        assert!(SMALL.contains(before), "{before}");
        let text = SMALL.replacen(before, after, 1);
        fs::write(dir.path().join("bad.toml"), text).expect("written");
        let said = run(luc_in(dir.path()).args(["campaign", "run", "bad.toml"]));
        writeln!(shown, "{before} -> {after}\n{said}").expect("text");
    }
    assert!(!dir.path().join("out").exists(), "nothing was begun");
    assert_snapshot!(shown);

    let many: String = (0..30).fold(String::new(), |mut text, factor| {
        write!(text, " --x {{f{factor}}}").expect("text");
        text
    });
    let factors: String = (0..30).fold(String::new(), |mut text, factor| {
        write!(text, ", f{factor} = [1, 2, 3, 4, 5]").expect("text");
        text
    });
    let text = SMALL
        .replace("{dir}", &format!("{{dir}}{many}"))
        .replace("[1, 4] }", &format!("[1, 4]{factors} }}"));
    fs::write(dir.path().join("bad.toml"), text).expect("written");
    let said = run(luc_in(dir.path()).args(["campaign", "run", "bad.toml"]));
    assert_holds(&said, "more than 100000 points");
}

#[test]
fn campaigns_keys_and_folders_that_are_none() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("good.toml"), SMALL).expect("written");
    fs::create_dir_all(dir.path().join("empty")).expect("made");
    fs::create_dir_all(dir.path().join("old/cells")).expect("made");
    fs::create_dir_all(dir.path().join("old/failed")).expect("made");
    let campaign = campaigns::parse("good.toml", SMALL).expect("a campaign");
    let point = points::all(&campaign).remove(0);
    let key = point.cell(1).key();
    let edit = |before: &str, after: &str| {
        assert_holds(&key, before);
        key.replacen(before, after, 1)
    };
    let lines: [&[&str]; 16] = [
        &["run", "bensh"],
        &["run", "nothing.toml"],
        &["run", "empty"],
        &["status", "good.toml", "-o", "empty"],
        &["report", "good.toml", "-o", "empty"],
        &["report", "good.toml", "-o", "nothing"],
        &["diff", "empty"],
        &["diff", "old", "empty"],
        &["run", "good.toml", "-o", "good.toml"],
        &["run", "good.toml", "--erase"],
        &["run", "good.toml", "--partition", "p"],
        &["cell", "stock", "-o", "new"],
        &["cell", "{}", "-o", "new"],
        &["cell", &edit("\"lab\"", "\"moon\""), "-o", "new"],
        &["cell", &edit("\"vcpus\"", "\"cpus\""), "-o", "new"],
        &["cell", &edit("4ms:1", "4ms"), "-o", "new"],
    ];
    let mut shown = String::new();
    for line in lines {
        let mut command = luc_in(dir.path());
        command.arg("campaign").args(line).args(match line[0] {
            "status" | "run" => &["--source", SOURCES][..],
            _ => &[],
        });
        let line = line.join(" ");
        let line = if line.len() > 60 { &line[..60] } else { &line };
        writeln!(shown, "{line}\n{}", run(&mut command)).expect("text");
    }
    assert!(!dir.path().join("new").exists(), "no cell was begun");
    assert_snapshot!(shown);
}

/// The output of a benchmark.
const PRINTED: &str = include_str!("../../luc-campaign/tests/data/create-fsync.json");

/// Makes a cell's result from the rates of its arms and the time of measurement.
fn result(
    cell: &Cell,
    versions: &BTreeMap<String, String>,
    rates: [f64; 2],
    at_s: u64,
) -> CellResult {
    let arm = |(name, rate): (&str, f64)| -> ArmResult {
        let mut report: serde_json::Value = serde_json::from_str(PRINTED).expect("JSON");
        report["ops_per_s"] = rate.into();
        let arm = serde_json::json!({ "arm": name, "report": report });
        serde_json::from_value(arm).expect("a result")
    };
    CellResult {
        schema: "luc-cell/1".into(),
        cell: cell.clone(),
        versions: versions.clone(),
        kernel_release: "6.12.0".into(),
        arms: ["stock", "luc"].into_iter().zip(rates).map(arm).collect(),
        at_s,
        took_s: 1.0,
        host: "toy".into(),
    }
}

fn keep(dir: &Path, result: &CellResult) {
    let hash = result.cell.hash(&result.versions);
    let json = serde_json::to_vec(result).expect("JSON");
    fs::write(dir.join(format!("cells/{hash}.json")), json).expect("written");
}

/// Fills a folder with three repeats of each point. `rates` gives rates by threads and repeat.
fn folder(dir: &Path, text: &str, rates: impl Fn(&str, u32) -> Option<[f64; 2]>) {
    Store::open(dir).expect("a store");
    fs::write(dir.join("campaign.toml"), text).expect("written");
    let campaign = campaigns::parse("campaign.toml", text).expect("a campaign");
    let versions = BTreeMap::from([("luc".to_owned(), "1".to_owned())]);
    for point in points::all(&campaign) {
        for repeat in 1..=3 {
            if let Some(rates) = rates(point.value("threads"), repeat) {
                keep(dir, &result(&point.cell(repeat), &versions, rates, 1000));
            }
        }
    }
}

#[test]
fn what_changed_between_two_folders() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let spread = |rate: f64, repeat: u32| rate + f64::from(repeat);
    folder(&at("a"), SMALL, |_, repeat| {
        Some([spread(100.0, repeat), spread(120.0, repeat)])
    });
    // One thread: the same within the spread; four: LUC is slower.
    folder(&at("b"), SMALL, |threads, repeat| {
        let luc = if threads == "4" { 90.0 } else { 120.5 };
        Some([spread(100.3, repeat), spread(luc, repeat)])
    });
    let wider = SMALL.replace("threads = [1, 4]", "threads = [1, 8]");
    let wider = wider.replace("threads = 4 }", "threads = 8 }");
    folder(&at("c"), &wider, |threads, repeat| {
        let single = threads != "1" || repeat == 1;
        single.then(|| [spread(100.0, repeat), spread(120.0, repeat)])
    });
    let mut shown = String::new();
    for line in ["a a", "a b", "a c"] {
        let mut command = luc_in(dir.path());
        command.args(["campaign", "diff"]).args(line.split(' '));
        writeln!(shown, "diff {line}\n{}", run(&mut command)).expect("text");
    }
    let json = luc_in(dir.path())
        .args(["campaign", "diff", "a", "b", "--json"])
        .assert()
        .code(28);
    let json = String::from_utf8_lossy(&json.get_output().stdout).into_owned();
    assert_snapshot!(format!("{shown}{}", dense(&json)));

    // One folder: the latest versions are compared with those before them.
    let campaign = campaigns::parse("good.toml", SMALL).expect("a campaign");
    let newer = BTreeMap::from([("luc".to_owned(), "2".to_owned())]);
    for point in points::all(&campaign) {
        for repeat in 1..=3 {
            let rates = [spread(100.0, repeat), spread(150.0, repeat)];
            keep(&at("a"), &result(&point.cell(repeat), &newer, rates, 2000));
        }
    }
    let said = run(luc_in(dir.path()).args(["campaign", "diff", "a"]));
    assert_holds(&said, "8 figures");
    assert_holds(&said, "4 changed, 4 the same");
    assert_ends(&said, "[exit 28]\n");
}

/// The cells of an export are measured elsewhere, so their folder holds nothing else.
#[test]
fn gathered_cells_are_compared_after_a_report() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("good.toml"), SMALL).expect("written");
    let gathered = dir.path().join("gathered");
    folder(&gathered, SMALL, |_, repeat| {
        let rate = 100.0 + f64::from(repeat);
        Some([rate, rate * 2.0])
    });
    fs::remove_file(gathered.join("campaign.toml")).expect("removed");
    fs::remove_dir(gathered.join("failed")).expect("removed");
    let diff = || run(luc_in(dir.path()).args(["campaign", "diff", "gathered", "gathered"]));
    let refused = diff();
    let remedy = "`luc-lab campaign report CAMPAIGN --out gathered` writes it";
    assert_holds(&refused, remedy);
    luc_in(dir.path())
        .args(["campaign", "report", "good.toml", "--out", "gathered"])
        .assert()
        .success();
    let same = diff();
    assert_holds(&same, "0 changed, 8 the same");
}

#[test]
fn results_that_are_damaged_old_or_of_the_future() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("out");
    fs::write(dir.path().join("good.toml"), SMALL).expect("written");
    folder(&out, SMALL, |_, _| None);
    let campaign = campaigns::parse("good.toml", SMALL).expect("a campaign");
    let setup = Setup {
        source: SOURCES.into(),
        ..Setup::default()
    };
    let lab = places::find("lab").expect("a place");
    let mut files = Vec::new();
    for point in points::all(&campaign) {
        let versions = lab.versions(&point.cell(1), &setup).expect("versions");
        let mut other = versions.clone();
        other.insert("luc".into(), "0".into());
        for repeat in 1..=3 {
            let cell = point.cell(repeat);
            // The clock was far ahead when the first repeat was measured.
            let at_s = if repeat == 1 { u64::MAX } else { 1000 };
            keep(&out, &result(&cell, &versions, [100.0, 200.0], at_s));
            files.push(out.join(format!("cells/{}.json", cell.hash(&versions))));
            keep(&out, &result(&cell, &other, [1.0, 1.0], 2000));
        }
    }
    let status = || {
        let line = [
            "campaign",
            "status",
            "good.toml",
            "-o",
            "out",
            "--source",
            SOURCES,
        ];
        run(luc_in(dir.path()).args(line))
    };
    let whole = status();
    let campaign_run = |dir: &Path| {
        let line = [
            "campaign",
            "run",
            "good.toml",
            "-o",
            "out",
            "--source",
            SOURCES,
        ];
        run(luc_in(dir).args(line))
    };
    // Nothing is missing, so nothing is measured; current versions take precedence over newer
    // results.
    let said = campaign_run(dir.path());
    assert_holds(&said, "4 figures reached their bounds.");
    assert_holds(&said, "2.000");

    fs::write(&files[0], "{\"schema\":\"luc-cell/1\",").expect("cut short");
    let text = fs::read_to_string(&files[1]).expect("a result");
    fs::write(&files[1], text.replace("luc-cell/1", "luc-cell/9")).expect("written");
    let named = |text: String| {
        let short = |text: String, path: &std::path::PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy();
            text.replace(&*name, "HASH.json")
        };
        files.iter().fold(text, short)
    };
    assert_snapshot!(format!("{whole}{}", named(status())));

    // A run would measure the damaged cells again, but another run holds the folder.
    let store = Store::open(&out).expect("a store");
    let lock = store.lock().expect("the lock");
    let said = campaign_run(dir.path());
    assert_holds(&said, "another campaign run is using this folder");
    assert_ends(&said, "[exit 27]\n");
    drop(lock);
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    with_tmpfs("size=256k", |dir| {
        fs::write(dir.join("good.toml"), SMALL).expect("written");
        folder(&dir.join("out"), SMALL, |_, _| Some([1.0, 2.0]));
        let full = fs::write(dir.join("fill"), vec![1; 1 << 20]);
        assert!(full.is_err(), "the disk is full");
        let before = fs::read_dir(dir.join("out/cells"))
            .expect("results")
            .count();
        let said = run(luc_in(dir).args(["campaign", "report", "good.toml", "-o", "out"]));
        let line = "luc-lab: cannot write out/report.html: No space left on device";
        assert_holds(&said, line);
        let source = ["--source", SOURCES];
        let line = ["campaign", "run", "good.toml", "-o", "out"];
        let said = run(luc_in(dir).args(line).args(source));
        let line = "luc-lab: cannot write out/campaign.toml: No space left on device";
        assert_holds(&said, line);
        assert_ends(&said, "[exit 1]\n");
        fs::remove_file(dir.join("fill")).expect("room again");
        let after = fs::read_dir(dir.join("out/cells"))
            .expect("results")
            .count();
        assert_eq!(before, after);
        let names: Vec<_> = fs::read_dir(dir.join("out"))
            .expect("listed")
            .flatten()
            .collect();
        assert!(
            names
                .iter()
                .all(|name| !name.file_name().to_string_lossy().starts_with('.'))
        );
        luc_in(dir)
            .args(["campaign", "diff", "out", "out"])
            .assert()
            .success();
    });
}

#[test]
fn bare_metal_refuses_before_it_changes_anything() {
    let machine = Pretended::new();
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("metal.toml"), METAL).expect("written");
    let fast = METAL.replace("factors = { ", "factors = { frequency_khz = 2000000, ");
    fs::write(dir.path().join("fast.toml"), fast).expect("written");
    let many = METAL.replace("factors = { ", "factors = { cores = 64, ");
    fs::write(dir.path().join("many.toml"), many).expect("written");
    machine.put("/sys/class/block/vdf/dev", "254:80");
    std::os::unix::fs::symlink("../../class/block/vdf", machine.at("/sys/dev/block/254:80"))
        .expect("a link");
    machine.put("/dev/vdf", [0; 4096]);
    let mut shown = String::new();
    for line in [
        "metal.toml",
        "metal.toml --device /dev/vdf",
        "metal.toml --device /dev/vdb --erase",
        "metal.toml --device /srv/data --erase",
        "metal.toml --device /dev/vdf --erase",
        "fast.toml --device /dev/vdf --erase",
        "many.toml --device /dev/vdf --erase",
    ] {
        let mut command = luc_in(dir.path());
        command
            .args(["campaign", "run", "-o", "out"])
            .args(line.split(' '));
        command.env("LUC_SYSROOT", machine.dir.path());
        writeln!(shown, "{line}\n{}", run(&mut command)).expect("text");
    }
    machine.put("/proc/self/status", "CapEff:\t0000000000000000\n");
    let mut command = luc_in(dir.path());
    command
        .args(["campaign", "restore"])
        .env("LUC_SYSROOT", machine.dir.path());
    write!(shown, "restore\n{}", run(&mut command)).expect("text");
    assert_snapshot!(shown);
    assert!(machine.acts.borrow().is_empty());
}

/// The document explains every word that a campaign's file may hold.
#[test]
fn the_format_is_documented() {
    let path = Path::new(SOURCES).join("docs/campaigns.md");
    let text = fs::read_to_string(path).expect("the document");
    let mut words: Vec<String> = Vec::new();
    for place in places::ALL {
        words.push(place.name().to_owned());
        words.extend(place.factors().iter().map(|factor| factor.name.to_owned()));
    }
    words.extend(measures::ALL.iter().map(|measure| measure.name.to_owned()));
    words.extend(arms::builtin().keys().cloned());
    // The parser lists the keys that it knows when it meets an unknown one.
    for table in [
        "zzz = 1",
        "title = \"x\"\n[stop]\nzzz = 1",
        "title = \"x\"\n[arms.x]\nzzz = 1",
        "title = \"x\"\n[[block]]\nzzz = 1",
        "title = \"x\"\n[[table]]\nzzz = 1",
        "title = \"x\"\n[[plot]]\nzzz = 1",
        "title = \"x\"\n[[table]]\ncolumns = [{ zzz = 1 }]",
        "title = \"x\"\n[[table]]\ngoal = [{ zzz = 1 }]",
        "title = \"x\"\n[[plot]]\nfigures = [{ zzz = 1 }]",
        "title = \"x\"\n[[sentence]]\nzzz = 1",
        "title = \"x\"\n[[sentence]]\nvalues = { x = { zzz = 1 } }",
    ] {
        let error = campaigns::parse("x", table).expect_err("an unknown key");
        let error = error.to_string();
        let (_, known) = error.split_once("expected").expect(&error);
        words.extend(known.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    assert!(words.len() > 80, "{words:?}");
    words.retain(|word| !text.contains(&format!("`{word}`")));
    assert!(words.is_empty(), "not in docs/campaigns.md: {words:?}");
}
