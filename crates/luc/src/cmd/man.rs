//! `luc man`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use luc_control::{counters, knobs, policies};

use crate::Context;
use crate::exit::{Code, Failure};
use crate::help;
use crate::verb::Verb;

/// Write the man pages
///
/// One page for luc and one for every verb, all from the definition that
/// parses the command line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc man --out man")]
pub struct Args {
    /// Where to put them; created if need be
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// 1: the verbs; 5: luc.toml, the configuration of `luc service`
    #[arg(long, value_name = "1|5", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    section: u8,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot create {}", self.out.display()))?;
        match self.section {
            1 => {}
            5 => return configuration(&self.out, context),
            other => {
                let why = format!("section {other} has no page; use 1 or 5");
                return Err(Failure::usage("man", why));
            }
        }
        let mut command = super::command();
        // Global options reach the subcommands only once clap has built them.
        command.build();
        let written = write_pages(&command, &["luc".to_owned()], &[], &self.out)?;
        writeln!(context.out, "{written} pages in {}", self.out.display())?;
        Ok(())
    }
}

/// Writes luc.toml(5) from the keys that the parser knows.
fn configuration(dir: &Path, context: &mut Context) -> Result<(), Failure> {
    let mut roff = Roff::new();
    roff.control("TH", ["luc.toml", "5", "", "LUC", "LUC"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(
        "luc.toml - what LUC does on this machine, from boot to boot",
    )]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "luc-service(1) reads /etc/luc/luc.toml, then the files of /etc/luc/luc.toml.d that end in \
         .toml, in the order of their names. Each [[file_system]] names one file system, and no \
         two name the same one. An error refuses the whole configuration, and is reported with its \
         file and line. After a change: systemctl reload luc.",
    )]);
    roff.control("SH", ["KEYS OF A FILE SYSTEM"]);
    for key in &luc_service::config::KEYS {
        item(&mut roff, key.name, &format!(" ({})", key.takes), key.help);
    }
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for line in EXAMPLE.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    let related = ["luc-service", "luc-on", "luc-set"].map(String::from);
    let mut text = Vec::new();
    roff.to_writer(&mut text)?;
    see_also(&related.iter().collect::<Vec<_>>()).to_writer(&mut text)?;
    let file = dir.join("luc.toml.5");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(context.out, "1 page in {}", dir.display())?;
    Ok(())
}

/// Example configuration for the man page.
const EXAMPLE: &str = "\
[[file_system]]
path = \"/srv/mail\"

[[file_system]]
uuid = \"3f6a…\"
mode = \"observe\"
set = { delay_limit_us = 5000 }";

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
    exit_list().to_writer(&mut text)?;
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

fn item(roff: &mut Roff, name: &str, after: &str, help: &str) {
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
            help::range(knob.min, knob.max, &knob.words()),
            knob.format(knob.default)
        );
        item(&mut roff, knob.name, &allowed, knob.help);
    }
    for (knob, words) in help::controllers() {
        roff.control("SH", [format!("WORDS OF {}", knob.name).as_str()]);
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

fn exit_list() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in Code::ALL {
        item(&mut roff, &code.number().to_string(), "", meaning);
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

fn see_also(related: &[&String]) -> Roff {
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
