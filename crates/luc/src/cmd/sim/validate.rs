//! `luc sim validate`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;
use luc_campaign::Store;
use luc_campaign::validate::{Compared, Validation, validate, within};
use serde_json::json;

use crate::Context;
use crate::cmd::print_json;
use crate::exit::Failure;
use crate::units::table;
use crate::verb::Verb;

/// Name and version of the JSON form.
const SCHEMA: &str = "luc-sim-validate/2";
/// Shares that are told.
const NEAR: [f64; 2] = [0.05, 0.10];
/// The same of shares themselves.
const POINTS: f64 = 0.03;

/// Set the simulator's figures beside the lab's
///
/// Takes the results of campaigns that were measured in the lab on virtual time, and simulates each
/// cell that the simulator knows: its benchmark, one processor, ext4 as mkfs makes it. Rates are the
/// benchmarks' main figures; ratios are to the first arm. The share of syncs that waited for two commits
/// stands beside them where the lab knows it: of bursts, and of arms that record.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc sim validate out/demo\n\
    \x20 luc sim validate --json out/bench out/demo")]
pub struct Args {
    /// Folders of results, of `luc campaign run`
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dirs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut results = Vec::new();
        for dir in &self.dirs {
            results.extend(Store::existing(dir)?.read()?.results);
        }
        // As people read them, and the same every time.
        results.sort_by(|a, b| a.cell.cmp(&b.cell));
        let found = validate(&results);
        if self.json {
            return print_json(context, &json!({ "schema": SCHEMA, "validation": found }));
        }
        tell(&found, context)
    }
}

fn tell(found: &Validation, context: &mut Context) -> Result<(), Failure> {
    let percent = |share: f64| format!("{:+.1}%", share * 100.0);
    let figure = |figure: f64| format!("{figure:.*}", if figure < 100.0 { 2 } else { 0 });
    let ratio = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let share = |share: Option<f64>| share.map_or_else(String::new, crate::units::percent);
    let rows: Vec<[String; 10]> = found
        .compared
        .iter()
        .map(|it| {
            [
                it.cell.clone(),
                it.arm.clone(),
                figure(it.lab),
                figure(it.sim),
                percent(it.error_share()),
                ratio(it.lab_ratio),
                ratio(it.sim_ratio),
                it.ratio_error_share().map_or_else(String::new, percent),
                share(it.lab_two_commits_share),
                share(it.sim_two_commits_share),
            ]
        })
        .collect();
    let heads = [
        "cell",
        "arm",
        "lab",
        "simulator",
        "off",
        "lab, ratio",
        "simulator, ratio",
        "off",
        "lab, two commits",
        "simulator",
    ];
    table(&mut context.out, heads, &rows)?;
    writeln!(context.out)?;
    table(&mut context.out, TOTALS, &totals(&found.compared))?;
    let shares = found
        .compared
        .iter()
        .filter_map(Compared::two_commits_error);
    let (near, all_shares) = within(shares, POINTS);
    if all_shares > 0 {
        writeln!(
            context.out,
            "within {:.0} points: {near} of {all_shares} shares of syncs that waited for two commits",
            POINTS * 100.0
        )?;
    }
    if found.left_out > 0 {
        writeln!(
            context.out,
            "left out: {} cells of benchmarks, machines or file systems that the simulator lacks",
            found.left_out
        )?;
    }
    Ok(())
}

const TOTALS: [&str; 7] = [
    "benchmark",
    "rates within 5%",
    "within 10%",
    "of",
    "ratios within 5%",
    "within 10%",
    "of",
];

/// A line for each benchmark, and one for all.
fn totals(compared: &[Compared]) -> Vec<[String; 7]> {
    let names: BTreeSet<&str> = compared.iter().map(|it| it.benchmark.as_str()).collect();
    let total = |name: &str, is_meant: &dyn Fn(&Compared) -> bool| {
        let meant = || compared.iter().filter(|it| is_meant(it));
        let counts = |errors: Vec<f64>| {
            let near = NEAR.map(|share| within(errors.iter().copied(), share).0);
            [near[0], near[1], errors.len()].map(|count| count.to_string())
        };
        let [near, nearly, all] = counts(meant().map(Compared::error_share).collect());
        let ratios = meant().filter_map(Compared::ratio_error_share);
        let [ratio_near, ratio_nearly, ratio_all] = counts(ratios.collect());
        [
            name.to_owned(),
            near,
            nearly,
            all,
            ratio_near,
            ratio_nearly,
            ratio_all,
        ]
    };
    let mut lines: Vec<_> = names
        .into_iter()
        .map(|name| total(name, &|it| it.benchmark == name))
        .collect();
    lines.push(total("all", &|_| true));
    lines
}
