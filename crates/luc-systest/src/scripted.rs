//! A campaign whose cells are measured by a script: it copies prepared results to the names that
//! `luc-lab campaign cell` would give them. For tests of programs that run cells elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use luc_campaign::measure::VersionsOf;
use luc_campaign::places::Setup;
use luc_campaign::result::{ArmResult, Measured};
use luc_campaign::{Cell, Store, campaigns, points};
use luc_test::command::script;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{Trouble, fail, failed, lab_binary, root};

/// Five points, twice each; the figures are so far apart that each is measured a third time.
const CAMPAIGN: &str = r#"
title = "Scripted"
stop = { repeats_min = 2, repeats_max = 3 }

[[block]]
name = "loops"
bench = "create-fsync --threads {threads} --seconds 1 {dir}"
arms = ["stock"]
factors = { kernel = "6.12", disk = "1ms:64", threads = [1, 2, 4, 8, 16] }
"#;
/// Its cells.
pub const CELLS: usize = 15;

/// The program. A file `once-NAME` or `always-NAME` makes the cell of that name leave no result,
/// and `seconds` says how long each cell takes.
const PROGRAM: &str = r#"#!/bin/sh
here=$(dirname "$0")
while [ $# -gt 0 ]; do
	case $1 in
	cell) case $2 in -*) ;; *) key=$2 ;; esac ;;
	--from) from=$2 ;;
	--nth) nth=$2 ;;
	--out) out=$2 ;;
	esac
	shift
done
[ "$from" ] && key=$(sed -n "${nth}p" "$from")
cell=$(printf %s "$key" | sha256sum | cut -c 1-64)
echo "$cell" >> "$here/begun"
sleep "$(cat "$here/seconds")"
if [ -e "$here/always-$cell" ]; then echo "out of paper" >&2; exit 7; fi
if [ -e "$here/once-$cell" ]; then rm "$here/once-$cell"; exit 7; fi
mkdir -p "$out/cells" "$out/failed"
name=$(basename "$here/$cell"/*)
cp "$here/$cell/$name" "$out/cells/.$name.$$" && mv "$out/cells/.$name.$$" "$out/cells/$name"
echo "$cell" >> "$here/ended"
"#;

/// The campaign, its program, and a folder for its results.
pub struct Scripted {
    dir: TempDir,
    /// Names of the cells.
    pub cells: Vec<String>,
}

impl Scripted {
    pub fn new() -> Result<Self, Trouble> {
        let dir = tempfile::tempdir().map_err(failed)?;
        let campaign = campaigns::parse("scripted.toml", CAMPAIGN).map_err(failed)?;
        fs::write(dir.path().join("scripted.toml"), CAMPAIGN).map_err(failed)?;
        let program = dir.path().join("luc");
        script(&program, PROGRAM);
        let mut scripted = Self {
            dir,
            cells: Vec::new(),
        };
        scripted.take("0")?;
        let setup = Setup {
            source: root().to_owned(),
            ..Setup::default()
        };
        let mut versions = VersionsOf::new(&setup);
        let report = report(scripted.dir.path())?;
        for point in points::all(&campaign) {
            for repeat in 1..=campaign.stop.repeats_max {
                let cell = point.cell(repeat);
                let versions = versions.for_cell(&cell).map_err(failed)?.cloned();
                let versions = versions.unwrap_or_default();
                scripted.prepare(&cell, &versions, &report)?;
            }
        }
        Ok(scripted)
    }

    fn prepare(
        &mut self,
        cell: &Cell,
        versions: &luc_campaign::cell::Versions,
        report: &serde_json::Value,
    ) -> Result<(), Trouble> {
        let mut report = report.clone();
        for figure in ["ops_per_s", "file_creation_rate_per_s"] {
            report[figure] = (1000.0 * f64::from(cell.repeat)).into();
        }
        let prepared = Store::open(&self.dir.path().join("prepared")).map_err(failed)?;
        let arm = ArmResult {
            arm: "stock".to_owned(),
            report: serde_json::from_value(report).map_err(failed)?,
            counters: std::collections::BTreeMap::new(),
            after: None,
        };
        let measured = Measured {
            kernel_release: "6.12.0".to_owned(),
            arms: vec![arm],
        };
        prepared
            .keep(cell, versions, measured, 1.0)
            .map_err(failed)?;
        let digest = Sha256::digest(cell.key());
        let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = digits.concat();
        let own = self.dir.path().join(&name);
        fs::create_dir(&own).map_err(failed)?;
        let file = format!("{}.json", cell.hash(versions));
        let from = prepared.dir().join("cells").join(&file);
        fs::rename(from, own.join(&file)).map_err(failed)?;
        self.cells.push(name);
        Ok(())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn campaign(&self) -> PathBuf {
        self.file("scripted.toml")
    }

    pub fn program(&self) -> PathBuf {
        self.file("luc")
    }

    /// The folder of the results.
    pub fn out(&self) -> PathBuf {
        self.file("out")
    }

    /// Sets how long a cell takes from now on, as an argument of `sleep`.
    pub fn take(&self, seconds: &str) -> Result<(), Trouble> {
        fs::write(self.file("seconds"), seconds).map_err(failed)
    }

    /// Makes a cell leave no result, once or always.
    pub fn spoil(&self, how: &str, cell: &str) -> Result<(), Trouble> {
        fs::write(self.file(&format!("{how}-{cell}")), "").map_err(failed)
    }

    /// Names of the cells that were begun (`begun`) or done (`ended`), once for each time.
    pub fn noted(&self, which: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(which)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Counts the results, or the failures.
    pub fn count(&self, folder: &str) -> usize {
        let entries = fs::read_dir(self.out().join(folder));
        let files = entries.into_iter().flatten().flatten();
        let is_result = |path: &Path| path.extension().is_some_and(|kind| kind == "json");
        files.filter(|file| is_result(&file.path())).count()
    }
}

/// A real result of this machine.
fn report(dir: &Path) -> Result<serde_json::Value, Trouble> {
    let words = "bench create-fsync --threads 1 --seconds 0.1 --warmup-s 0 --json";
    let output = Command::new(lab_binary())
        .args(words.split(' '))
        .arg(dir)
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return fail(format!("luc-lab {words}: {said}"));
    }
    serde_json::from_slice(&output.stdout).map_err(failed)
}
