//! Commands in documents exist: each `luc ...` and `luc-lab ...` in a line of code or between
//! backticks names verbs and options that the command line has.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};

const PROGRAMS: [&str; 2] = ["luc", "luc-lab"];

/// Words that end a command for a shell, or for luc.
const ENDS: [&str; 7] = ["--", "#", "|", "&&", ";", ">", "..."];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut found: Vec<PathBuf> = ["", "docs", "docs/adr", "docs/figures", "upstream"]
        .iter()
        .flat_map(|dir| fs::read_dir(root.join(dir)).expect("a folder of documents"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    found.sort();
    found
}

/// The commands of a document: lines of code, and text between backticks.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        let is_code = fenced || line.starts_with("    ");
        if line.starts_with("```") {
            fenced = !fenced;
        } else if is_code {
            found.push(line.to_owned());
        }
    }
    // Code between backticks may continue on the next line.
    let prose: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("```"))
        .collect();
    for paragraph in prose.join("\n").split("\n\n") {
        let words = paragraph.replace('\n', " ");
        found.extend(words.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    found
        .iter()
        .filter_map(|line| {
            let line = line.trim();
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            let is_ours = PROGRAMS
                .iter()
                .any(|name| line.starts_with(&format!("{name} ")));
            is_ours.then(|| line.to_owned())
        })
        .collect()
}

/// The command lines of the programs as clap sees them.
fn programs() -> [Command; 2] {
    [luc::cmd::Cli::command(), luc_lab::cmd::Cli::command()]
}

/// Names the first verb or option of a command line that does not exist.
fn missing(programs: &[Command], line: &str) -> Option<String> {
    let (name, words) = line.split_once(' ')?;
    let program = programs.iter().find(|program| program.get_name() == name)?;
    let mut command = program;
    let mut names_verb = true;
    for word in words.split_whitespace() {
        let word = word.trim_end_matches([',', ';']);
        if ENDS.contains(&word) || word.starts_with(['\'', '"', '>']) {
            return None;
        }
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            let own = command
                .get_arguments()
                .any(|arg| arg.get_long() == Some(name));
            let global = program
                .get_arguments()
                .any(|arg| arg.get_long() == Some(name));
            if !own && !global && !["help", "version"].contains(&name) {
                return Some(format!("no option --{name} of {}", command.get_name()));
            }
        } else if names_verb && command.has_subcommands() {
            match command.find_subcommand(word) {
                Some(verb) => command = verb,
                // A placeholder for a verb, such as VERB.
                None if word.chars().all(char::is_uppercase) => return None,
                None => return Some(format!("no verb {word} of {}", command.get_name())),
            }
        } else {
            names_verb = false;
        }
    }
    None
}

#[test]
fn commands_of_documents_exist() {
    let programs = programs();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("documents are text");
        for line in commands(&text) {
            seen += 1;
            if let Some(why) = missing(&programs, &line) {
                wrong.push(format!("{}: {line}: {why}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "{seen} commands");
}

#[test]
fn commands_that_do_not_exist_are_found() {
    let programs = programs();
    let found =
        commands("Type `luc-lab fly\nhigh`, or\n\n    sudo luc on --wings /srv\n    luc on /srv\n");
    let wrong: Vec<_> = found
        .iter()
        .filter_map(|line| missing(&programs, line))
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(wrong, ["no option --wings of on", "no verb fly of luc-lab"]);
}

/// The doctor's bench has as many cases as its page says.
#[test]
fn the_doctors_cases_are_counted() {
    let text = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let cases = text("crates/luc-systest/tests/system/doctor/cases.rs");
    let starts = |line: &&str| ["case(", "..case("].contains(&line.trim());
    let count = cases.lines().filter(starts).count();
    let page = text("docs/seeing.md");
    let told = format!("The lab tests the doctor on {count} file systems");
    assert!(page.contains(&told), "docs/seeing.md: not {told}");
}

/// A server has no sources: what README links to comes with the package.
#[test]
fn the_package_has_what_its_readme_links_to() {
    let root = root();
    let text = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let mut shipped: Vec<String> = text("debian/luc.docs").lines().map(String::from).collect();
    for line in text("debian/luc.install").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let Some((&"usr/share/doc/luc/docs", sources)) = words.split_last() {
            shipped.extend(sources.iter().map(|&source| source.into()));
        }
    }
    let is_shipped = |path: &str| {
        let covers = |it: &String| match it.split_once('*') {
            Some((before, after)) => {
                let middle = path
                    .strip_prefix(before)
                    .and_then(|it| it.strip_suffix(after));
                middle.is_some_and(|middle| !middle.contains('/'))
            }
            None => path == it || Path::new(path).starts_with(it),
        };
        shipped.iter().any(covers)
    };
    for (document, folder) in [("README.md", ""), ("docs/README.md", "docs/")] {
        let text = text(document);
        let links = text.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            let path = match link.strip_prefix("../") {
                Some(above) => above.to_owned(),
                None => format!("{folder}{link}"),
            };
            assert!(
                is_shipped(&path),
                "{document}: {path} is not in the package"
            );
        }
    }
}
