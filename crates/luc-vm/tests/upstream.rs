//! upstream/: do the patches apply, and do the BPF programs compile?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Oldest version of clang that supports signed division in BPF.
const CLANG_LEAST: u32 = 18;
/// Unpacked sources of the kernel that `kernels.toml` names for 7.2-upstream.
const SOURCES: &str = "LUC_LINUX_SOURCE";

/// Patches of a folder in their order; a cover letter comes first.
fn patches(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut patches: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "patch"))
        .collect();
    patches.sort();
    patches
}

/// The first line of a patch's subject.
fn subject(patch: &str) -> &str {
    let found = patch.lines().find(|line| line.starts_with("Subject: "));
    found.expect("a subject")
}

/// Files that a patch changes, relative to the sources, and whether it creates them.
fn changed(patch: &str) -> Vec<(&str, bool)> {
    let lines: Vec<_> = patch.lines().collect();
    lines
        .windows(2)
        .filter_map(|pair| {
            let old = pair[0].strip_prefix("--- ")?;
            let new = pair[1].strip_prefix("+++ b/")?;
            Some((new, old == "/dev/null"))
        })
        .collect()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Copies the files that a patch changes, unless an earlier patch brought them already.
fn bring(patch: &str, sources: &Path, to: &Path) {
    for (path, made) in changed(patch) {
        let target = to.join(path);
        if made || target.exists() {
            continue;
        }
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(sources.join(path), target).unwrap();
    }
}

#[test]
fn the_series_is_numbered_and_says_what_it_is_made_against() {
    let series = patches("upstream");
    assert_eq!(series.len(), 4, "a cover letter and three patches");
    for (number, path) in series.iter().enumerate() {
        let text = fs::read_to_string(path).unwrap();
        let wanted = format!("Subject: [PATCH {number}/3] ");
        assert!(subject(&text).starts_with(&wanted), "{}", path.display());
        assert_eq!(changed(&text).is_empty(), number == 0);
    }
    let cover = fs::read_to_string(&series[0]).unwrap();
    assert!(cover.contains("base: tag v7.2.13"));
}

#[test]
fn patches_apply_one_after_the_other() {
    let series = patches("upstream").into_iter().skip(1);
    let all: Vec<_> = series.chain(patches("upstream/later")).collect();
    assert_eq!(all.len(), 4);
    let Some(sources) = std::env::var_os(SOURCES).map(PathBuf::from) else {
        luc_test::skip_expected("patches_apply", &format!("{SOURCES} names no sources"));
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!changed(&text).is_empty(), "{}", path.display());
        bring(&text, &sources, dir.path());
        let mut command = Command::new("patch");
        // No fuzz, and no offset: the patches are made for this very version.
        command.args(["--strip=1", "--force", "--fuzz=0", "--directory"]);
        let output = command.arg(dir.path()).arg("--input").arg(&path).output();
        let output = output.unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{}: {text}", path.display());
        assert!(!text.contains("offset"), "{}: {text}", path.display());
    }
}

/// The first clang found under a name with its version, as distributions install it.
fn clang() -> Option<String> {
    let names = (CLANG_LEAST..CLANG_LEAST + 10).map(|version| format!("clang-{version}"));
    names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
}

#[test]
fn bpf_programs_compile() {
    let headers = Path::new("/usr/include/bpf/bpf_helpers.h").exists();
    let (Some(clang), true) = (clang(), headers) else {
        let why = format!("needs clang-{CLANG_LEAST} or later, and libbpf-dev");
        luc_test::skip_expected("bpf_programs_compile", &why);
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let objects = ["luc.bpf.o", "stubborn.bpf.o"].map(|name| dir.path().join(name));
    let mut command = Command::new("make");
    command.arg("-C").arg(Path::new(ROOT).join("upstream/bpf"));
    command.arg(format!("CLANG={clang}"));
    for (variable, object) in ["OBJECT", "STUBBORN"].into_iter().zip(&objects) {
        command.arg(format!("{variable}={}", object.display()));
    }
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for object in objects {
        assert!(fs::metadata(object).unwrap().len() > 0);
    }
}
