//! Real programs in a guest, each with its own root, on ext4 and on XFS.

use std::fs;
use std::process::Command;

use libtest_mimic::Trial;
use luc_systest::{Outcome, Trouble, check, failed, lab_binary, root, test};
use serde_json::Value;

const CAMPAIGN: &str = r#"
title = "Programs"
[stop]
repeats_min = 1
repeats_max = 1
[arms.xfs]
help = "XFS"
fs = "xfs"
[[block]]
name = "apps"
bench = "app {app} --clients 2 --seconds 1 {dir}"
arms = ["stock", "xfs"]
factors = { kernel = "6.12", disk = "nvme:512M", memory_mib = 2048, app = ["sqlite-wal", "packages", "postfix"] }
"#;

pub fn tests() -> Vec<Trial> {
    vec![test("programs_run_on_ext4_and_xfs", on_ext4_and_xfs)]
}

fn on_ext4_and_xfs() -> Outcome {
    let dir = tempfile::tempdir().map_err(failed)?;
    let file = dir.path().join("apps.toml");
    fs::write(&file, CAMPAIGN).map_err(failed)?;
    let output = Command::new(lab_binary())
        .args(["campaign", "run", "--source"])
        .arg(root())
        .arg("--out")
        .arg(dir.path().join("out"))
        .arg(&file)
        .output()
        .map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(luc_cli::Code::LabUnavailable.number().into()) {
        return Err(Trouble::Skip(said));
    }
    check(output.status.success(), said)?;
    let cells = fs::read_dir(dir.path().join("out/cells")).map_err(failed)?;
    let mut reports = 0;
    for cell in cells {
        let text = fs::read_to_string(cell.map_err(failed)?.path()).map_err(failed)?;
        let cell: Value = serde_json::from_str(&text).map_err(failed)?;
        for arm in cell["arms"].as_array().into_iter().flatten() {
            let report = &arm["report"];
            let deciding = report["table"][0]["name"].as_str().unwrap_or_default();
            let value = report["measures"][deciding].as_f64();
            check(value > Some(0.0), format!("{report}"))?;
            // Only ext4 has a journal whose commits the kernel shows.
            let commits = report["journal"]["commits"].as_u64();
            let is_stock = arm["arm"] == "stock";
            check(is_stock == (commits > Some(0)), format!("{report}"))?;
            reports += 1;
        }
    }
    check(reports == 6, format!("{reports} reports, expected 6"))
}
