//! The shape of the repository: what may lie where and know about what.
//!
//! Every rule is a function from a file to complaints. Each must reject bad
//! examples first, so that no rule can pass by looking at nothing.

mod c_code;
mod circles;
mod licences;
mod prose;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const LINES_MAX: usize = 600;

/// Units that names of numbers end in.
const UNITS: [&str; 12] = [
    "ns", "us", "ms", "s", "percent", "permille", "milli", "events", "runs", "resets", "buffers",
    "bytes",
];

struct File {
    path: String,
    text: String,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    fn is(&self, endings: &[&str]) -> bool {
        let ending = self.path.rsplit_once('.').map_or("", |(_, ending)| ending);
        endings.contains(&ending)
    }

    fn below(&self, dir: &str) -> bool {
        self.path.starts_with(dir)
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// Complains about every line that holds one of the texts.
    fn lines_with(&self, texts: &[&str], what: &str) -> Vec<String> {
        self.lines()
            .filter_map(|(number, line)| {
                let text = texts.iter().find(|text| line.contains(**text))?;
                Some(self.at(number, &format!("{what}: {text}")))
            })
            .collect()
    }
}

/// A rule: complaints about a file, none if the rule does not concern it.
type Rule = fn(&File) -> Vec<String>;

/// Every text file that is or could be committed.
fn files() -> Vec<File> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .current_dir(ROOT)
        .output()
        .expect("git is there");
    assert!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let unique: BTreeSet<_> = names.split('\0').filter(|name| !name.is_empty()).collect();
    let read = |path: &str| {
        // Deleted but not yet committed, or not text: nothing to look at.
        let text = fs::read_to_string(Path::new(ROOT).join(path)).ok()?;
        Some(File::new(path, &text))
    };
    unique.into_iter().filter_map(read).collect()
}

/// Checks that a rule complains about every bad example, `path: text`, and about no good one; then
/// applies it to the whole repository.
fn enforce(rule: Rule, bad: &[&str], good: &[&str]) {
    let complaints = |example: &&str| {
        let (path, text) = example.split_once(": ").expect("a path and a text");
        rule(&File::new(path, text))
    };
    for example in bad {
        assert!(
            !complaints(example).is_empty(),
            "passes, but must not: {example}"
        );
    }
    for example in good {
        let complaints = complaints(example);
        assert!(complaints.is_empty(), "must pass: {complaints:?}");
    }
    let files = files();
    assert!(files.len() > 100, "only {} files found", files.len());
    let complaints: Vec<_> = files.iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Tells whether a crate may use another one of the project, by the table of ARCHITECTURE.md;
/// `None` if it has no row. The column "may depend on" has names, "all", or "all but" names.
fn may_use(name: &str, used: &str) -> Option<bool> {
    let path = Path::new(ROOT).join("ARCHITECTURE.md");
    let text = fs::read_to_string(path).expect("ARCHITECTURE.md");
    let begin = format!("| `crates/{name}` | ");
    let row = text.lines().find_map(|line| line.strip_prefix(&begin))?;
    let allowed = row.split(" | ").nth(1)?;
    let named = allowed
        .split('`')
        .skip(1)
        .step_by(2)
        .any(|word| word == used);
    Some(named != allowed.starts_with("all"))
}

/// Forbidden uses of the project's crates in a Cargo.toml.
fn crate_uses(file: &File) -> Vec<String> {
    let name = file
        .path
        .strip_prefix("crates/")
        .and_then(|rest| rest.strip_suffix("/Cargo.toml"));
    let Some(name) = name else {
        return Vec::new();
    };
    if may_use(name, name).is_none() {
        return vec![format!("{}: no row in ARCHITECTURE.md", file.path)];
    }
    let mut section = "";
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        let line = line.trim();
        let used = if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']');
            // `[dependencies.name]` is another form of the same.
            match section.rsplit_once('.') {
                Some((table, used)) if table.ends_with("dependencies") => {
                    section = table;
                    used
                }
                _ => continue,
            }
        } else if section.ends_with("dependencies") {
            line.split(['.', ' ', '=']).next().unwrap_or_default()
        } else {
            continue;
        };
        let allowed = match used {
            "luc-cc" => section == "build-dependencies",
            "luc-test" => section == "dev-dependencies" || name == "luc-systest",
            _ => !used.starts_with("luc") || may_use(name, used) == Some(true),
        };
        if !allowed {
            complaints.push(file.at(number, &format!("{name} may not use {used}")));
        }
    }
    complaints
}

#[test]
fn crates_depend_downwards() {
    enforce(
        crate_uses,
        &[
            "crates/luc-control/Cargo.toml: [dependencies]\nluc-trace.workspace = true\n",
            "crates/luc-vm/Cargo.toml: [dev-dependencies]\nluc-control = { path = \"../luc-control\" }\n",
            "crates/luc-workload/Cargo.toml: [dependencies.luc-control]\nworkspace = true\n",
            "crates/luc-report/Cargo.toml: [dependencies]\nluc.workspace = true\n",
            "crates/luc-trace/Cargo.toml: [dependencies]\nluc-test.workspace = true\n",
            "crates/luc/Cargo.toml: [dev-dependencies]\nluc-systest.workspace = true\n",
            "crates/luc/Cargo.toml: [dependencies]\nluc-workload.workspace = true\n",
            "crates/luc-lab/Cargo.toml: [dependencies]\nluc.workspace = true\n",
            "crates/luc-new/Cargo.toml: [package]\n",
        ],
        &[
            "crates/luc-trace/Cargo.toml: [package]\nname = \"luc-trace\"\n[dependencies]\nluc-control.workspace = true\n",
            "crates/luc/Cargo.toml: [dependencies]\nluc-model.workspace = true\n[build-dependencies]\nluc-cc.workspace = true\n",
        ],
    );
}

/// The project's crates that `name` needs in the end, by the `[dependencies]` of each.
fn closure(name: &str, found: &mut BTreeSet<String>) {
    let path = Path::new(ROOT).join(format!("crates/{name}/Cargo.toml"));
    let text = fs::read_to_string(path).expect("a crate");
    let after = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = after.split("\n[").next().unwrap_or_default();
    for used in section.lines().filter(|line| line.starts_with("luc-")) {
        let used = used.split(['.', ' ']).next().unwrap_or_default();
        if found.insert(used.to_owned()) {
            closure(used, found);
        }
    }
}

/// The laboratory stays out of the program that servers install.
#[test]
fn servers_need_no_laboratory() {
    let mut server = BTreeSet::new();
    closure("luc", &mut server);
    let mut lab = BTreeSet::new();
    closure("luc-lab", &mut lab);
    for name in [
        "luc-campaign",
        "luc-report",
        "luc-sim-loads",
        "luc-torture",
        "luc-vm",
        "luc-wml",
        "luc-workload",
    ] {
        assert!(!server.contains(name), "luc needs {name}");
        assert!(lab.contains(name), "luc-lab does not need {name}");
    }
}

/// Paths that exist on one machine only. They are split, or the rule would
/// complain about this file.
fn machine_paths(file: &File) -> Vec<String> {
    let paths = [
        concat!("/wo", "rk/main"),
        concat!("/wo", "rk/shared"),
        concat!("/ho", "me/"),
        concat!("/root/", "."),
        concat!("/tmp/", "p/"),
        concat!("/tmp/", "target"),
    ];
    file.lines_with(&paths, "a path of one machine")
}

#[test]
fn no_path_of_one_machine() {
    enforce(
        machine_paths,
        &[
            concat!("README.md: see /wo", "rk/main/x\n"),
            concat!("a.rs: \"/ho", "me/me/x\"\n"),
        ],
        &["a.rs: \"/mnt/0\"\n"],
    );
}

/// Complains about names of package sources: the user chooses those.
fn hosts(file: &File) -> Vec<String> {
    // debian/copyright names its format by an address.
    if ["Cargo.lock", "debian/copyright"].contains(&&*file.path) || file.below("LICENSES/") {
        return Vec::new();
    }
    let hosts = [
        concat!("debian", ".org"),
        concat!("ubuntu", ".com"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
        concat!("golang", ".org"),
        concat!("docker", ".io"),
        concat!("static.rust", "-lang"),
    ];
    file.lines_with(&hosts, "a package source")
}

#[test]
fn no_package_source_is_named() {
    enforce(
        hosts,
        &[concat!(
            "scripts/x.sh: curl https://deb.debian",
            ".org/debian\n"
        )],
        &[concat!("Cargo.lock: registry+crates", ".io\n")],
    );
}

fn length(file: &File) -> Vec<String> {
    if !file.is(&["rs", "c", "h", "sh"]) {
        return Vec::new();
    }
    let lines = file.text.lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    vec![format!(
        "{}: {lines} lines, at most {LINES_MAX}: find the seam",
        file.path
    )]
}

#[test]
fn files_stay_short() {
    let long = "x\n".repeat(LINES_MAX + 1);
    let enough = "x\n".repeat(LINES_MAX);
    enforce(
        length,
        &[&format!("a.rs: {long}"), &format!("kmod/a.c: {long}")],
        &[&format!("a.rs: {enough}"), &format!("a.snap: {long}")],
    );
}

fn unfinished(file: &File) -> Vec<String> {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
        concat!("#[allow(un", "used"),
    ];
    if file.below("LICENSES/") || file.path == "Cargo.lock" {
        return Vec::new();
    }
    file.lines_with(&words, "unfinished")
}

#[test]
fn nothing_is_left_for_later() {
    enforce(
        unfinished,
        &[
            concat!("a.rs: // TO", "DO: more\n"),
            concat!("a.rs: \tto", "do!()\n"),
            concat!("a.rs: #[ig", "nore = \"slow\"]\n"),
        ],
        &["a.rs: fn method() {}\n"],
    );
}

/// Every `unsafe` needs a reason in the comment right above.
fn reasons_for_unsafe(file: &File) -> Vec<String> {
    if !file.is(&["rs"]) {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut complaints = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        // A word inside a string is not code: count the quotes before it.
        let uses = code.match_indices("unsafe").any(|(at, word)| {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !code[..at].ends_with(name)
                && !code[at + word.len()..].starts_with(name)
                && code[..at].matches('"').count() % 2 == 0
        });
        if !uses {
            continue;
        }
        // The comment may lie above the statement that the block is part of.
        let above = lines[..index].iter().rev().map(|line| line.trim());
        let reason = above
            .take_while(|line| {
                line.starts_with("//") || line.starts_with("#[") || line.ends_with('=')
            })
            .any(|line| line.starts_with("// SAFETY: ") || line.starts_with("/// # Safety"));
        if !reason {
            complaints.push(file.at(index + 1, "unsafe without a SAFETY comment above it"));
        }
    }
    complaints
}

#[test]
fn unsafe_code_says_why_it_is_safe() {
    let unsafe_word = "unsafe";
    let bare = format!("fn f() {{\n    {unsafe_word} {{ g() }}\n}}\n");
    let far = format!("// SAFETY: it is\nlet x = 1;\n{unsafe_word} {{ g() }}\n");
    let told = format!("// SAFETY: it is, because\n// of this\n{unsafe_word} {{ g() }}\n");
    let quoted = format!("let word = \"{unsafe_word}\"; // {unsafe_word}\n");
    enforce(
        reasons_for_unsafe,
        &[&format!("a.rs: {bare}"), &format!("a.rs: {far}")],
        &[&format!("a.rs: {told}"), &format!("a.rs: {quoted}")],
    );
}

/// Complains about targets of a Makefile that are words, not files, and not phony: a file of that
/// name would stop them.
fn phony_targets(file: &File) -> Vec<String> {
    if file.path.rsplit('/').next() != Some("Makefile") {
        return Vec::new();
    }
    let joined = file.text.replace("\\\n", " ");
    let rules = joined.lines().filter_map(|line| line.split_once(':'));
    let rules = rules.filter(|(_, rest)| !rest.starts_with([':', '=']));
    let (phony, rules): (Vec<_>, Vec<_>) = rules.partition(|(head, _)| *head == ".PHONY");
    let phony = phony.iter().flat_map(|(_, names)| names.split_whitespace());
    let phony: BTreeSet<&str> = phony.collect();
    // Recipes begin with a tab, and hold more than words.
    let is_of_words = |c: char| c.is_ascii_lowercase() || c == '-' || c == ' ';
    let heads = rules.iter().map(|(head, _)| *head);
    let heads = heads.filter(|head| head.chars().all(is_of_words));
    let targets = heads.flat_map(str::split_whitespace);
    let targets = targets.filter(|name| !phony.contains(name));
    targets
        .map(|name| format!("{}: {name} is not in .PHONY", file.path))
        .collect()
}

#[test]
fn targets_that_are_no_files_are_phony() {
    enforce(
        phony_targets,
        &[
            "Makefile: all: x\nx:\n\ttouch x\n.PHONY: all\n",
            "a/Makefile: a b-c:\n.PHONY: a \\\n\tb\n",
        ],
        &[
            "Makefile: a b: c.o\n# d: e\nc.o: c.c\n\tf: g\nX := y\n.PHONY: a \\\n\tb\n",
            "Makefile.in: a:\n",
        ],
    );
}

/// Tells whether a number's name ends in its unit, apart from a final `max` or `min`.
fn has_unit(name: &str) -> bool {
    let name = name
        .strip_suffix("_max")
        .or_else(|| name.strip_suffix("_min"))
        .unwrap_or(name);
    name.rsplit('_')
        .next()
        .is_some_and(|last| UNITS.contains(&last))
}

/// Tells whether a counter of things names the thing, and one of time ends in its unit.
fn names_what_it_counts(name: &str) -> bool {
    const THINGS: [&str; 8] = [
        "commits", "writes", "handles", "buffers", "copies", "closed", "events", "copyout",
    ];
    let of_time = ["avg", "hold", "delay", "held", "gap"];
    let about_time = words_of(name).any(|word| of_time.contains(&word));
    let counts = words_of(name).any(|word| THINGS.contains(&word));
    has_unit(name) || (counts && (!about_time || name.starts_with("commits")))
}

fn words_of(name: &str) -> impl Iterator<Item = &str> {
    name.split('_')
}

#[test]
fn numbers_name_their_unit() {
    assert!(has_unit("delay_limit_us") && has_unit("static_resets_max"));
    assert!(!has_unit("delay_limit") && !has_unit("timeout") && !has_unit("us_delay"));
    assert!(names_what_it_counts("commits_held") && names_what_it_counts("held_max_ns"));
    assert!(!names_what_it_counts("write_delay") && !names_what_it_counts("hold"));
    assert!(!names_what_it_counts("commit_avg"));
    for knob in luc_control::knobs() {
        let is_number = matches!(knob.kind, luc_control::KnobKind::Int);
        assert!(!is_number || has_unit(knob.name), "knob {}", knob.name);
    }
    for counter in luc_control::counters() {
        let name = counter.name;
        assert!(names_what_it_counts(name), "counter {name}");
    }
}
