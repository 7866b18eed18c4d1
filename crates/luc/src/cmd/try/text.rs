//! A trial as text: one line per pair, then both sides in full.

use std::io::{self, Write};

use luc_base::words::{three, with_interval};
use luc_cli::units::{self, UNKNOWN, known, known_time};
use luc_power::meter::Boundary;
use luc_watch::trial::{Shown, Tally};

/// Prints the heads of the columns, each as wide as its widest usual number.
pub fn heads(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>5}  {:>9}  {:>9}  {:>8}  {:>8}  {:<17}",
        "pairs", "calls/s", "calls/s", "fsync", "fsync", "ratio so far"
    )?;
    writeln!(
        out,
        "{:>5}  {:>9}  {:>9}  {:>8}  {:>8}  {:<17}",
        "", "LUC", "stock", "LUC", "stock", "(95% interval)"
    )
}

fn rate(value: Option<f64>) -> String {
    known(value.map(luc_base::words::rate))
}

/// Prints a line about all pairs so far.
pub fn row(out: &mut dyn Write, tally: &Tally) -> io::Result<()> {
    let (on, off) = (tally.on.shown(), tally.off.shown());
    let ratio = match tally.ratio() {
        None => UNKNOWN.to_owned(),
        Some(ratio) => with_interval(ratio.mean, ratio.low.zip(ratio.high), 2),
    };
    let line = format!(
        "{:>5}  {:>9}  {:>9}  {:>8}  {:>8}  {ratio}",
        on.windows,
        rate(on.sync_calls_per_s),
        rate(off.sync_calls_per_s),
        known_time(on.fsync_mean_ns),
        known_time(off.fsync_mean_ns),
    );
    writeln!(out, "{line}")
}

/// Prints both sides in full; their energy is that of these parts of the machine.
pub fn totals(out: &mut dyn Write, tally: &Tally, of: Option<Boundary>) -> io::Result<()> {
    let (on, off) = (tally.on.shown(), tally.off.shown());
    let thread = |shown: &Shown| {
        let per_s = shown.journal_thread_ns_per_s;
        known(per_s.map(|ns| units::percent(ns / 1e9)))
    };
    let row = |head: &str, of: &dyn Fn(&Shown) -> String| [head.to_owned(), of(&on), of(&off)];
    let rows = [
        row("windows", &|one| units::count(i128::from(one.windows))),
        row("sync calls per second", &|one| rate(one.sync_calls_per_s)),
        row("commits", &|one| units::count(i128::from(one.commits))),
        row("fsync, mean", &|one| known_time(one.fsync_mean_ns)),
        row("fsync, 99th percentile", &|one| {
            known_time(one.fsync_p99_ns)
        }),
        row("writes delayed per second", &|one| {
            rate(one.writes_delayed_per_s)
        }),
        row("journal thread, share of a processor", &thread),
        row("watts", &|one| known(one.watts.map(three))),
        row("joules per sync call", &|one| {
            known(
                one.joules_per_sync_call
                    .map(|joules| format!("{joules:.4}")),
            )
        }),
    ];
    writeln!(out)?;
    units::table(out, ["", "LUC", "stock"], &rows)?;
    if let Some(of) = of {
        writeln!(out, "energy of {of}")?;
    }
    writeln!(out)
}
