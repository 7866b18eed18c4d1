//! Functions that documents name exist. Documents and comments have short lines, open well, and
//! avoid phrases that are not English; so do messages and help texts.

use std::fs;
use std::path::Path;

use super::{File, ROOT, enforce};

/// Documents whose `function()`s must exist, and the folders of their sources.
const NAMES_FUNCTIONS: [&str; 1] = ["docs/life-of-an-fsync.md"];
const SOURCES: [&str; 2] = ["control", "kmod"];

/// The C of the module and its controllers, which names each kernel function that it hooks.
fn sources() -> String {
    let mut text = String::new();
    for dir in SOURCES {
        let files = fs::read_dir(Path::new(ROOT).join(dir)).expect("a folder of the table");
        for path in files.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == "c") {
                text.push_str(&fs::read_to_string(path).expect("C is text"));
            }
        }
    }
    text
}

/// Tells whether a function of this name is defined, called or hooked.
fn is_there(function: &str, sources: &str) -> bool {
    let (called, quoted) = (format!("{function}("), format!("\"{function}\""));
    let whole = |(at, _): (usize, &str)| {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !sources[..at].ends_with(part)
    };
    sources.contains(&quoted) || sources.match_indices(&called).any(whole)
}

fn functions(file: &File) -> Vec<String> {
    if !NAMES_FUNCTIONS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let sources = sources();
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        for word in line.split('`').skip(1).step_by(2) {
            if let Some(function) = word.strip_suffix("()")
                && !is_there(function, &sources)
            {
                complaints.push(file.at(number, &format!("there is no {function}()")));
            }
        }
    }
    complaints
}

const COLUMNS: usize = 100;

/// Phrases that are not English, each with an ending that makes it English.
const NOT_ENGLISH: [(&str, &str); 5] = [
    (concat!("so ", "many"), " of "),
    (concat!("so-", "manieth"), ""),
    (concat!("that of ", "which"), ""),
    (concat!("the ", "begin"), "n"),
    (concat!("the ", "same of"), ""),
];

/// Words that neither a comment nor a paragraph may open with.
const NOT_AN_OPENING: [&str; 4] = ["Of ", "What ", "Who ", "`None` of"];

/// A line of a comment or of a document.
struct Line<'a> {
    number: usize,
    whole: &'a str,
    /// The line without the marks of a comment or of a list.
    text: &'a str,
    /// No code stands before the text.
    is_alone: bool,
    /// The text opens a comment or a paragraph.
    is_opening: bool,
}

/// Returns the comment of a line of Rust, if it has one. Slashes within a string start none.
fn rust_comment(line: &str) -> Option<&str> {
    let outside = |at: &usize| line[..*at].matches('"').count().is_multiple_of(2);
    let at = line.match_indices("//").map(|(at, _)| at).find(outside)?;
    Some(line[at..].trim_start_matches('/').trim_start_matches('!'))
}

/// Returns the comment of a line of C, if it has one. `is_inside` tells whether the line begins
/// within a comment, and then whether the next one does.
fn c_comment<'a>(line: &'a str, is_inside: &mut bool) -> Option<&'a str> {
    let text = match line.split_once("/*") {
        _ if *is_inside => line.trim_start().trim_start_matches('*'),
        Some((_, text)) => text.trim_start_matches('*'),
        None => return line.split_once("//").map(|(_, text)| text),
    };
    let end = text
        .find("*/")
        .or(line.trim_start().starts_with("*/").then_some(0));
    *is_inside = end.is_none();
    Some(&text[..end.unwrap_or(text.len())])
}

/// Returns the comment of a line of a shell script, a Makefile or a configuration, if it has one.
fn hash_comment(line: &str) -> Option<&str> {
    let starts_comment = |at: &usize| {
        let before = &line[..*at];
        let is_quoted = ['"', '\''].map(|quote| before.matches(quote).count() % 2 == 1);
        (before.is_empty() || before.ends_with(char::is_whitespace)) && is_quoted == [false; 2]
    };
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    Some(line[marks.find(starts_comment)?..].trim_start_matches('#'))
}

/// Returns a line of a document, unless it is a row of a table or code, which cannot be wrapped.
fn prose<'a>(line: &'a str, is_fenced: &mut bool) -> Option<&'a str> {
    let is_fence = line.starts_with("```");
    *is_fenced ^= is_fence;
    let is_code = is_fence || *is_fenced || line.starts_with(['|', '\t']);
    (!is_code && !line.starts_with("    ")).then(|| line.trim_start_matches(['-', ' ']))
}

/// Returns the lines of a file's comments, or of the file if it is a document.
fn prose_lines(file: &File) -> Vec<Line<'_>> {
    const HASHED: [&str; 11] = [
        "", "conf", "config", "f", "postinst", "preset", "prerm", "service", "sh", "toml", "yml",
    ];
    let mut lines: Vec<Line> = Vec::new();
    let (mut is_inside, mut is_open) = (false, false);
    for (number, whole) in file.lines() {
        let was_inside = is_inside;
        let (text, marks): (_, &[char]) = if file.is(&["rs"]) {
            (rust_comment(whole), &['/'])
        } else if file.is(&["c", "h"]) {
            (c_comment(whole, &mut is_inside), &['/', '*'])
        } else if file.is(&["md"]) {
            (prose(whole, &mut is_inside), &[])
        } else if file.is(&HASHED) && !file.below("LICENSES/") {
            (hash_comment(whole), &['#'])
        } else {
            return Vec::new();
        };
        let is_alone = was_inside || marks.is_empty() || whole.trim_start().starts_with(marks);
        // The lines of the interpreter and of the licence are no part of the comment below them.
        let is_text =
            |text: &&str| !text.is_empty() && !text.starts_with("!/") && !text.starts_with("SPDX-");
        let text = text.map(str::trim).filter(is_text);
        lines.extend(text.map(|text| Line {
            number,
            whole,
            text,
            is_alone,
            is_opening: !(is_open && is_alone) || whole.starts_with("- "),
        }));
        is_open = text.is_some() && is_alone;
    }
    lines
}

/// Complains about phrases anywhere in a file: in strings, which may be messages, too.
fn phrases(file: &File) -> Vec<String> {
    // A phrase may be broken over two lines.
    let (mut text, mut ends) = (String::new(), Vec::new());
    for (_, line) in file.lines() {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || "/*!#+->|".contains(c));
        text += &line.trim_end_matches([' ', '\\']).to_lowercase();
        text.push(' ');
        ends.push(text.len());
    }
    let mut complaints = Vec::new();
    for (phrase, allowed) in NOT_ENGLISH {
        for (at, _) in text.match_indices(phrase) {
            if allowed.is_empty() || !text[at + phrase.len()..].starts_with(allowed) {
                let number = ends.partition_point(|end| *end <= at) + 1;
                complaints.push(file.at(number, &format!("not English: {phrase}")));
            }
        }
    }
    complaints
}

fn openings(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for line in prose_lines(file).iter().filter(|line| line.is_opening) {
        for opening in NOT_AN_OPENING {
            if line.text.starts_with(opening) {
                complaints.push(file.at(line.number, &format!("opens with: {opening}")));
            }
        }
    }
    complaints
}

/// Complains about long lines of text, except tables and lines that have no place to break.
fn long_lines(file: &File) -> Vec<String> {
    // Doc comments of clap's types are help texts, which clap wraps; the line does not tell them
    // from others.
    if file.below("crates/luc/src/cmd/") || file.path.ends_with("/args.rs") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for line in prose_lines(file).iter().filter(|line| line.is_alone) {
        let text = line.text;
        let is_whole = text.starts_with('|') || text.contains("://") || !text.contains(' ');
        if !is_whole && line.whole.chars().count() > COLUMNS {
            complaints.push(file.at(line.number, &format!("longer than {COLUMNS} columns")));
        }
    }
    complaints
}

#[test]
fn texts_are_english() {
    let many = concat!("so ", "many");
    let begin = concat!("the ", "begin");
    enforce(
        phrases,
        &[
            &format!("x.rs: /// Drops {many} pages.\n"),
            &format!("x.rs: let text = \"{many} pages\";\n"),
            concat!("x.rs: let text = \"so \\\n    ", "many pages\";\n"),
            concat!("x.rs: /// Drops pages, so\n/// ", "many as there are.\n"),
            concat!("x.rs: //! Every so-", "manieth page.\n"),
            &format!("x.c: int n;\t/* since {begin} */\n"),
            &format!("x.h: /*\n * From one to\n * {begin} of another.\n */\n"),
            &format!("x.md: {many} pages\n"),
            &format!("x.sh: # {many} pages\n"),
            &format!("debian/control: Description: {many} pages\n"),
            concat!("x.toml: # The page, that of ", "which is told.\n"),
            concat!("x.f: # One page.\n# The ", "same of\n# blocks.\n"),
        ],
        &[
            &format!("x.rs: /// Because {many} of them wait.\n"),
            "x.rs: /// From the beginning on.\n",
            concat!("x.md: It is so.\n\n", "Many pages.\n"),
        ],
    );
    let long = format!("x.c: \n\nint n; /* {many} pages */\n");
    let (path, text) = long.split_once(": ").expect("a path and a text");
    assert!(phrases(&File::new(path, text))[0].starts_with("x.c:3: "));
}

#[test]
fn comments_and_paragraphs_open_well() {
    enforce(
        openings,
        &[
            "x.rs: /// Of a page.\n",
            "x.rs: let n = \"//\"; // What waits.\n",
            "x.rs: /// Pages.\n///\n/// What blocks hold.\n",
            "x.rs: // Who waits is woken.\n",
            "x.c: int n;\t/* Of a page. */\n",
            "x.c: /*\n * `None` of a page.\n */\n",
            "x.h: // What waits.\n",
            "x.sh: n=${#m} # Of a page.\n",
            "x.toml: # Pages.\n#\n# What blocks hold.\n",
            "x.sh: #!/bin/sh\n# SPDX-License-Identifier: MIT\n# What it does.\n",
            "Makefile: # Who waits is woken.\n",
            "debian/rules: # Of a page.\n",
            "x.md: Pages.\n\nOf blocks, more.\n",
            "x.md: - Pages.\n- Who waits is woken.\n",
        ],
        &[
            "x.rs: /// All of it, and more:\n/// Of it.\n",
            "x.rs: // Whose page it is.\n",
            &format!("x.c: int {}n;\n/* A page. */\nchar *s = \"Of\";\n", '*'),
            "x.sh: echo \"a # Of a page\"\n",
            "x.sh: n=${x#What }\n",
            "x.md: # What LUC does\n",
            "x.md: A page\nOf blocks.\n\n    Of code\n\n```\nOf code\n```\n",
        ],
    );
}

#[test]
fn lines_of_text_are_short() {
    let (long, path) = ("a ".repeat(51), "a/".repeat(51));
    let (row, code) = (format!("| {long} |"), format!("    {long}\n"));
    let fence = format!("```\n{long}\n```\n");
    enforce(
        long_lines,
        &[
            &format!("x.rs: //! {long}\n"),
            &format!("x.rs: fn f() {{}}\n    // {long}\n"),
            &format!("x.c: /*\n * {long}\n */\n"),
            &format!("x.sh: true\n# {long}\n"),
            &format!("x.toml: # {long}\n"),
            &format!("Makefile: # {long}\n"),
            &format!("docs/x.md: {long}"),
            &format!("docs/x.md: {fence}{long}\n"),
        ],
        &[
            &format!("x.rs: //! {row}\n"),
            &format!("x.rs: {long}"),
            &format!("x.rs: // see https://{path}\n"),
            &format!("x.rs: // {path}\n"),
            &format!("x.rs: /// {}\n", "a ".repeat(40)),
            &format!("crates/luc/src/cmd/x.rs: /// {long}\n"),
            &format!("crates/x/src/args.rs: /// {long}\n"),
            &format!("x.sh: {long}\n"),
            &format!("docs/x.md: {row}"),
            &format!("docs/x.md: {code}"),
            &format!("docs/x.md: {fence}"),
        ],
    );
}

#[test]
fn functions_that_documents_name_exist() {
    let path = NAMES_FUNCTIONS[0];
    assert!(Path::new(ROOT).join(path).exists(), "{path} is gone");
    enforce(
        functions,
        &[
            &format!("{path}: then `no_such_function()` runs\n"),
            // The end of another function's name.
            &format!("{path}: then `on_commit()` runs\n"),
        ],
        &[&format!(
            "{path}: `luc_on_commit()` at `ext4_sync_file()`\n"
        )],
    );
}
