//! `luc-lab sim validate`

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;
use luc_campaign::Store;
use luc_campaign::validate::{
    AGREES_SHARE, SEEDS, SimulatedArm, SimulatedFigure, Validation, validate, within,
};
use serde_json::json;

use crate::failure::OrFailure as _;
use luc_cli::units::table;
use luc_cli::{Context, Failure, Verb};

const SCHEMA: &str = "luc-sim-validate/3";
/// Error bounds for the totals.
const NEAR: [f64; 2] = [0.05, 0.10];
/// Error bound for figures that are shares themselves.
const POINTS: f64 = 0.03;

/// Compare the simulator's figures with the lab's
///
/// Reads the results of campaigns that were measured in the lab on virtual time. Simulates each
/// cell that the simulator supports: a benchmark that it has, one processor, ext4 as mkfs makes it.
/// Rates are the benchmarks' main figures; ratios are relative to the first arm. For bursts, and
/// for arms that record, also shows the share of syncs that waited for two commits.
///
/// A load may have several states, of which the lab shows one. Each cell is therefore simulated
/// with several seeds, and the table shows their median and range. A figure of the lab agrees if at
/// least a quarter of the seeds are within 5% of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim validate out/demo\n\
    \x20 luc-lab sim validate --json out/bench out/demo")]
pub struct Args {
    /// Directories of results of `luc-lab campaign run`
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dirs: Vec<PathBuf>,
    /// Number of seeds per cell, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut results = Vec::new();
        for dir in &self.dirs {
            results.extend(
                Store::existing(dir)
                    .or_failure()?
                    .read()
                    .or_failure()?
                    .results,
            );
        }
        // Sorted, so that the output is the same every time.
        results.sort_by(|a, b| a.cell.cmp(&b.cell));
        let found = validate(&results, self.seeds);
        if self.json {
            return context.print_json(&json!({ "schema": SCHEMA, "validation": found }));
        }
        tell(&found, context)
    }
}

fn tell(found: &Validation, context: &mut Context) -> Result<(), Failure> {
    let percent = |share: f64| format!("{:+.1}%", share * 100.0);
    let figure = |figure: f64| format!("{figure:.*}", if figure < 100.0 { 2 } else { 0 });
    let share = |share: Option<f64>| share.map_or_else(String::new, luc_cli::units::percent);
    let range = |it: &SimulatedFigure, of: &dyn Fn(f64) -> String| {
        if it.sim_min < it.sim_max {
            format!("{} to {}", of(it.sim_min), of(it.sim_max))
        } else {
            String::new()
        }
    };
    let ratio = |ratio: f64| format!("{ratio:.2}");
    let rows: Vec<[String; 13]> = found
        .compared
        .iter()
        .map(|it| {
            let of_ratio = |of: &dyn Fn(&SimulatedFigure) -> String| {
                it.ratio.as_ref().map_or_else(String::new, of)
            };
            [
                it.cell.clone(),
                it.arm.clone(),
                figure(it.rate.lab),
                figure(it.rate.sim_median),
                range(&it.rate, &figure),
                percent(it.rate.error_share()),
                luc_cli::units::percent(it.rate.near_share),
                of_ratio(&|it| ratio(it.lab)),
                of_ratio(&|it| ratio(it.sim_median)),
                of_ratio(&|it| range(it, &ratio)),
                of_ratio(&|it| percent(it.error_share())),
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
        "its range",
        "off",
        "near",
        "lab, ratio",
        "simulator, ratio",
        "its range",
        "off",
        "lab, two commits",
        "simulator",
    ];
    table(&mut context.out, heads, &rows)?;
    writeln!(context.out)?;
    table(&mut context.out, TOTALS, &totals(&found.compared))?;
    writeln!(
        context.out,
        "agrees: at least {} of the seeds are within 5% of the lab; the other columns use the \
         seeds' median",
        luc_cli::units::percent(AGREES_SHARE)
    )?;
    let shares = found
        .compared
        .iter()
        .filter_map(SimulatedArm::two_commits_error);
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

const TOTALS: [&str; 9] = [
    "benchmark",
    "rates agree",
    "within 5%",
    "within 10%",
    "of",
    "ratios agree",
    "within 5%",
    "within 10%",
    "of",
];

/// Returns one line per benchmark, and one for all.
fn totals(compared: &[SimulatedArm]) -> Vec<[String; 9]> {
    let names: BTreeSet<&str> = compared.iter().map(|it| it.benchmark.as_str()).collect();
    let total = |name: &str, is_meant: &dyn Fn(&SimulatedArm) -> bool| {
        let meant = || compared.iter().filter(|it| is_meant(it));
        let [rates, rates_5, rates_10, rates_all] = counts(meant().map(|it| &it.rate));
        let ratios = meant().filter_map(|it| it.ratio.as_ref());
        let [ratios, ratios_5, ratios_10, ratios_all] = counts(ratios);
        [
            name.to_owned(),
            rates,
            rates_5,
            rates_10,
            rates_all,
            ratios,
            ratios_5,
            ratios_10,
            ratios_all,
        ]
    };
    let mut lines: Vec<_> = names
        .into_iter()
        .map(|name| total(name, &|it| it.benchmark == name))
        .collect();
    lines.push(total("all", &|_| true));
    lines
}

/// Counts the figures that agree, those whose median is within each of [`NEAR`], and all figures.
fn counts<'a>(figures: impl Iterator<Item = &'a SimulatedFigure> + Clone) -> [String; 4] {
    let errors = || figures.clone().map(SimulatedFigure::error_share);
    let [near, nearly] = NEAR.map(|share| within(errors(), share).0);
    let agree = figures.clone().filter(|it| it.agrees()).count();
    [agree, near, nearly, figures.count()].map(|count| count.to_string())
}
