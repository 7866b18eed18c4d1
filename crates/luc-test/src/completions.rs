//! Asks shells what they complete by the completion scripts of a program.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{program, run};
use crate::skip_expected;

/// Returns the script of the program `name` for a shell.
pub fn script(name: &str, shell: &str) -> String {
    let said = run(program(name).args(["completions", shell]));
    said.trim_end_matches("[exit 0]\n").to_owned()
}

/// Has each shell read its script. fish and zsh are optional, because nothing else needs them.
pub fn assert_shells_read_them(name: &str) {
    let dir = tempfile::tempdir().expect("temporary folder");
    for shell in ["bash", "zsh", "fish"] {
        let file = dir.path().join(shell);
        fs::write(&file, script(name, shell)).expect("temporary file");
        match Command::new(shell).arg("-n").arg(&file).status() {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(_) if shell != "bash" => {
                let test = format!("completions of {name} for {shell}");
                skip_expected(&test, &format!("there is no {shell}"));
            }
            Err(error) => panic!("{shell}: {error}"),
        }
    }
}

/// Checks that bash offers `expected`, among other words, for the last of `words`.
pub fn assert_bash_offers(words: &[&str], expected: &[&str]) {
    let name = words[0];
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), script(name, "bash")).expect("temporary file");
    let asks = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         set_by=$(complete -p \"$1\"); set_by=${set_by#*-F }; \"${set_by%% *}\" \"$1\" \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", asks, "bash"])
        .arg(file.path())
        .args(words)
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let offered: Vec<&str> = said.lines().collect();
    for word in expected {
        assert!(offered.contains(word), "{words:?}: {offered:?}");
    }
}

/// Checks that fish offers `expected`, and nothing else, at the end of `line`, if there is a fish.
pub fn assert_fish_offers(line: &str, expected: &[&str]) {
    let name = line.split(' ').next().expect("a program");
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), script(name, "fish")).expect("temporary file");
    let output = Command::new("fish")
        .args(["--no-config", "-c", "source $argv[1]; complete -C$argv[2]"])
        .arg(file.path())
        .arg(line)
        .env("PATH", path_with(&assert_cmd::cargo::cargo_bin(name)))
        .output();
    let Ok(output) = output else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let words = said.lines().filter_map(|line| line.split('\t').next());
    let mut offered: Vec<&str> = words.collect();
    offered.sort_unstable();
    assert_eq!(offered, expected, "{line}");
}

/// fish completes only programs that it finds.
fn path_with(program: &Path) -> OsString {
    let mut path = program.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
