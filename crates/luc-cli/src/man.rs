//! Man pages, from the definition that parses the command line.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use luc_control::{counters, knobs, policies};

use crate::{Code, Failure};
use crate::{Context, help, verbs_of};

/// Creates the folder if need be, writes a page for the program and one for each of its verbs, and
/// tells how many.
pub fn pages(mut command: clap::Command, dir: &Path, context: &mut Context) -> Result<(), Failure> {
    folder(dir)?;
    // Global options reach the subcommands only once clap has built them.
    command.build();
    let name = command.get_name().to_owned();
    let written = write_pages(&command, &[name], &[], dir)?;
    writeln!(context.out, "{written} pages in {}", dir.display())?;
    Ok(())
}

/// Creates the folder of the pages if need be.
pub fn folder(dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(())
}

/// Writes the pages of a verb and its subcommands. `above` names those of its parent and siblings.
fn write_pages(
    command: &clap::Command,
    path: &[String],
    above: &[String],
    dir: &Path,
) -> Result<usize, Failure> {
    let name = path.join("-");
    let file = dir.join(format!("{name}.1"));
    let verbs = || command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let held = verbs().map(|verb| format!("{name}-{}", verb.get_name()));
    let held: Vec<String> = held.collect();
    let related: Vec<&String> = above
        .iter()
        .chain(&held)
        .filter(|page| **page != name)
        .collect();
    let text = page(command, path, &related)?;
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let mut written = 1;
    let beside: Vec<String> = std::iter::once(name).chain(held).collect();
    for verb in verbs() {
        let mut path = path.to_vec();
        path.push(verb.get_name().to_owned());
        written += write_pages(verb, &path, &beside, dir)?;
    }
    Ok(written)
}

/// A page: the sections that clap knows, then the tables, set as lists
/// because filled text would run their lines together.
fn page(command: &clap::Command, path: &[String], related: &[&String]) -> Result<Vec<u8>, Failure> {
    let usage = path.join(" ");
    let shown = command
        .clone()
        .name(path.join("-"))
        .bin_name(usage)
        .after_help("")
        .after_long_help("");
    let man = Man::new(shown)
        .manual("LUC")
        .source(concat!("luc ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command, &path.join(" ")).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    let has_options = command
        .get_arguments()
        .any(|argument| !argument.is_hide_set());
    if has_options {
        man.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let verb = path.last().map_or("", String::as_str);
    if matches!(verb, "on" | "set") {
        knob_list().to_writer(&mut text)?;
    }
    if verb == "status" {
        counter_list().to_writer(&mut text)?;
    }
    example_list(command).to_writer(&mut text)?;
    let verbs: Vec<&str> = match path {
        [_] => verbs_of(command),
        [_, verb, ..] => vec![verb],
        [] => Vec::new(),
    };
    exit_list(&verbs).to_writer(&mut text)?;
    see_also(related).to_writer(&mut text)?;
    Ok(text)
}

/// The usage as `--help` shows it: `luc on [OPTIONS] <PATH|DEVICE>`.
fn synopsis(command: &clap::Command, usage: &str) -> Roff {
    let shown = command.clone().bin_name(usage).render_usage().to_string();
    let line = shown.trim_start_matches("Usage: ");
    let rest = line.strip_prefix(usage).unwrap_or(line);
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(usage), roman(rest)]);
    roff
}

/// Adds an item to a list: a name, what follows it, and its meaning.
pub fn item(roff: &mut Roff, name: &str, after: &str, help: &str) {
    roff.control("TP", []);
    roff.text([bold(name), roman(after)]);
    roff.text([roman(help)]);
}

fn knob_list() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["POLICIES"]);
    for policy in policies() {
        item(&mut roff, policy.text, "", policy.help);
    }
    roff.control("SH", ["KNOBS"]);
    for knob in knobs() {
        let allowed = format!(
            " ({}; default {})",
            help::range(knob),
            knob.format(knob.default)
        );
        item(&mut roff, knob.name, &allowed, knob.help);
    }
    for (knob, words) in help::controllers() {
        roff.control("SH", [format!("VALUES OF {}", knob.name).as_str()]);
        for word in words {
            item(&mut roff, word.text, "", &help::word_help(word));
        }
    }
    roff
}

fn counter_list() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COUNTERS"]);
    for counter in counters() {
        item(&mut roff, counter.name, "", counter.help);
    }
    roff
}

fn exit_list(verbs: &[&str]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in Code::for_verbs(verbs) {
        item(&mut roff, &code.number().to_string(), "", &meaning);
    }
    roff
}

fn example_list(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    // Not filled: each example is one line, as it is typed.
    roff.control("nf", []);
    for line in help::examples(command) {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// The pages that belong to this one.
pub fn see_also(related: &[&String]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    for (at, page) in related.iter().enumerate() {
        let end = if at + 1 < related.len() {
            "(1),"
        } else {
            "(1)"
        };
        roff.text([bold(page.as_str()), roman(end)]);
    }
    roff
}
