//! Functions that documents name exist, lines of documents and comments are short, and comments
//! avoid phrases that are not English.

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

/// Complains about long lines of a document, except tables and code, which cannot be wrapped.
fn long_lines(file: &File) -> Vec<String> {
    if !file.is(&["md"]) {
        return Vec::new();
    }
    let mut fenced = false;
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        fenced ^= line.starts_with("```");
        let whole = fenced || line.starts_with(['|', '\t']) || line.starts_with("    ");
        if !whole && line.chars().count() > COLUMNS {
            complaints.push(file.at(number, &format!("longer than {COLUMNS} columns")));
        }
    }
    complaints
}

/// A paragraph of a comment: its first line, and the text of each line without the marks.
type Paragraph<'a> = (usize, Vec<&'a str>);

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

/// Returns the comments of a file. Lines of comment in a row are one paragraph, up to an empty one.
fn paragraphs(file: &File) -> Vec<Paragraph<'_>> {
    let mut all: Vec<Paragraph> = Vec::new();
    let (mut is_open, mut is_inside) = (false, false);
    for (number, line) in file.lines() {
        let alone = line.trim_start().starts_with(['/', '*']) || is_inside;
        let text = if file.is(&["rs"]) {
            rust_comment(line)
        } else {
            c_comment(line, &mut is_inside)
        };
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        match (text, all.last_mut()) {
            (Some(text), Some((_, texts))) if is_open && alone => texts.push(text),
            (Some(text), _) => all.push((number, vec![text])),
            (None, _) => {}
        }
        is_open = text.is_some() && alone;
    }
    all
}

/// What people do not write: anywhere in a comment, with what may follow all the same; and where
/// it opens.
const NOT_ENGLISH: [(&str, &str); 3] = [
    (concat!("so ", "many"), " of "),
    (concat!("so-", "manieth"), ""),
    (concat!("the ", "begin "), ""),
];
const NOT_AN_OPENING: [&str; 4] = ["Of ", "The same of ", "Who ", "`None` of"];

/// Returns where a paragraph has the phrase, unless what follows makes it English.
fn find_phrase(text: &str, phrase: &str, allowed: &str) -> Option<usize> {
    let mut found = text.match_indices(phrase).map(|(at, _)| at);
    found.find(|at| allowed.is_empty() || !text[at + phrase.len()..].starts_with(allowed))
}

fn phrases(file: &File) -> Vec<String> {
    if !file.is(&["rs", "c", "h"]) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (first, texts) in paragraphs(file) {
        // A phrase may be broken over two lines.
        let text = texts.join(" ").to_lowercase() + " ";
        for (phrase, allowed) in NOT_ENGLISH {
            if let Some(at) = find_phrase(&text, phrase, allowed) {
                let mut ends = texts.iter().scan(0, |end, line| {
                    *end += line.to_lowercase().len() + 1;
                    Some(*end)
                });
                let number = first + ends.position(|end| at < end).unwrap_or(0);
                complaints.push(file.at(number, &format!("not English: {phrase}")));
            }
        }
        for opening in NOT_AN_OPENING {
            if texts[0].starts_with(opening) {
                complaints.push(file.at(first, &format!("a comment opens with: {opening}")));
            }
        }
    }
    complaints
}

/// Complains about long lines of comment in Rust, except tables and what has no place to break.
fn long_comments(file: &File) -> Vec<String> {
    // Doc comments of clap's types are help texts, which clap wraps; the line does not tell them
    // from others.
    let is_help = file.below("crates/luc/src/cmd/") || file.path.ends_with("/args.rs");
    if !file.is(&["rs"]) || is_help {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in file.lines() {
        let line_is_comment = line.trim_start().starts_with("//");
        let Some(text) = rust_comment(line).filter(|_| line_is_comment) else {
            continue;
        };
        let text = text.trim();
        let whole = text.starts_with('|') || text.contains("://") || !text.contains(' ');
        if !whole && line.chars().count() > COLUMNS {
            let what = format!("a comment longer than {COLUMNS} columns");
            complaints.push(file.at(number, &what));
        }
    }
    complaints
}

#[test]
fn comments_are_english() {
    let many = concat!("so ", "many");
    let begin = concat!("the ", "begin");
    enforce(
        phrases,
        &[
            &format!("x.rs: /// Drops {many} pages.\n"),
            &format!("x.rs: let n = 1; // {many} pages\n"),
            &format!("x.rs: let n = \"//\"; // {many} pages\n"),
            concat!("x.rs: /// Drops pages, so\n/// ", "many as there are.\n"),
            concat!("x.rs: //! Every so-", "manieth page.\n"),
            &format!("x.c: int n;\t/* since {begin} */\n"),
            &format!("x.h: /*\n * From one to\n * {begin} of another.\n */\n"),
            &format!("x.h: // {many} pages\n"),
            "x.rs: /// Of a page.\n",
            "x.rs: /// Pages.\n///\n/// The same of blocks.\n",
            "x.rs: // Who waits is woken.\n",
            "x.c: /*\n * `None` of a page.\n */\n",
        ],
        &[
            &format!("x.rs: /// Because {many} of them wait.\n"),
            &format!("x.rs: let text = \"{many} pages\";\n"),
            &format!("x.c: int {}n;\n/* A page. */\nchar *s = \"{many}\";\n", '*'),
            &format!("x.md: {many} pages\n"),
            "x.rs: /// All of it, and more:\n/// Of it.\n",
            "x.rs: /// From the beginning on.\n",
            "x.rs: // Whose page it is.\n",
        ],
    );
}

#[test]
fn comments_of_rust_are_short() {
    let (long, path) = ("a ".repeat(51), "a/".repeat(51));
    enforce(
        long_comments,
        &[
            &format!("x.rs: //! {long}\n"),
            &format!("x.rs: fn f() {{}}\n    // {long}\n"),
        ],
        &[
            &format!("x.rs: //! | {long} |\n"),
            &format!("x.rs: // see https://{path}\n"),
            &format!("x.rs: // {path}\n"),
            &format!("x.rs: /// {}\n", "a ".repeat(40)),
            &format!("crates/luc/src/cmd/x.rs: /// {long}\n"),
            &format!("crates/x/src/args.rs: /// {long}\n"),
        ],
    );
}

#[test]
fn lines_of_documents_are_short() {
    let (long, row) = ("a ".repeat(51), format!("| {} |", "a ".repeat(51)));
    let (code, fence) = (format!("    {long}\n"), format!("```\n{long}\n```\n"));
    enforce(
        long_lines,
        &[
            &format!("docs/x.md: {long}"),
            &format!("docs/x.md: {fence}{long}\n"),
        ],
        &[
            &format!("docs/x.md: {row}"),
            &format!("docs/x.md: {code}"),
            &format!("docs/x.md: {fence}"),
            &format!("x.rs: {long}"),
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
