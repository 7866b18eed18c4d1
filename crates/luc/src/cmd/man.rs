//! `luc man`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_mangen::roff::{Roff, roman};
use luc_cli::man::{folder, item, pages, see_also};
use luc_cli::{Context, Failure, Verb};

/// Write the man pages
///
/// Writes one page for luc and one for each verb, from the definition that parses the command line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc man --out man")]
pub struct Args {
    /// Directory to write to; created if absent
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Section of the manual. 1: the verbs; 5: luc.toml, the configuration of `luc service`
    #[arg(long, value_name = "1|5", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    section: u8,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match self.section {
            1 => pages(super::command(), &self.out, context),
            5 => configuration(&self.out, context),
            other => {
                let why = format!("section {other} has no page; use 1 or 5");
                Err(Failure::usage("man", why))
            }
        }
    }
}

/// Writes luc.toml(5) from the keys that the parser knows.
fn configuration(dir: &Path, context: &mut Context) -> Result<(), Failure> {
    folder(dir)?;
    let mut roff = Roff::new();
    roff.control("TH", ["luc.toml", "5", "", "LUC", "LUC"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("luc.toml - configuration of LUC across boots")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "luc-service(1) reads /etc/luc/luc.toml, then the files of /etc/luc/luc.toml.d that end in \
         .toml, in the order of their names. Each [[file_system]] names one file system, and no \
         two name the same one. After an error, the service refuses the whole configuration and \
         reports the file and the line. After a change: systemctl reload luc.",
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
