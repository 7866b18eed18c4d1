//! A fleet's summary for people.

use std::io::{self, Write};

use luc_sim_loads::fleet::record::HoldingVerdict;
use luc_sim_loads::fleet::summary::{BELOW, FleetEnergy, Gains, PhaseTimes, Summary};

use luc_cli::units::{UNKNOWN, count, counted, duration, known, list, percent, share, table};

const COLUMNS: usize = 100;

pub fn tell(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    gains(summary, out)?;
    if let Some(it) = &summary.energy {
        energy(it, out)?;
    }
    loads(summary, out)?;
    barriers(summary, out)
}

/// `400 nodes`, or `120 of 400 nodes`.
fn so_far(done: u32, all: u32, one: &str, many: &str) -> String {
    if done == all {
        return counted(all, one, many);
    }
    format!("{} of {}", count(done), counted(all, one, many))
}

/// Hours of a year, over watts of a kilowatt.
const KWH_PER_W_YEAR: f64 = 8.766;

fn energy(it: &FleetEnergy, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "Energy at the wall, modelled for {}: {:.1} W a node on stock, {:.1} W with LUC",
        it.machine, it.stock_watts, it.luc_watts
    )?;
    let kwh = it.saved_share * it.stock_watts * 1000.0 * KWH_PER_W_YEAR;
    let (than, nodes) = match it.saved_share {
        share if share < 0.0 => ("more", "more"),
        _ => ("less", "fewer"),
    };
    writeln!(
        out,
        "  The same operations take {} {than} energy, on as many nodes {nodes}: {} kWh a year for \
         1000 nodes",
        percent(it.saved_share.abs()),
        count(luc_cli::units::rounded(kwh.abs()))
    )
}

fn gains(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let nodes = so_far(summary.nodes, summary.nodes_all, "node", "nodes");
    writeln!(out, "LUC/stock, {nodes}, and by the verdict of LUC's trial")?;
    let guard = summary.guard.iter().map(|it| {
        let verdict = match it.verdict {
            HoldingVerdict::Held => "holding stays",
            HoldingVerdict::None => "no verdict yet",
            HoldingVerdict::Stock => "stock stays",
        };
        (verdict, it.gains.as_ref(), it.below)
    });
    let all = [("all", summary.gains.as_ref(), summary.below)];
    let rows: Vec<[String; 11]> = all
        .into_iter()
        .chain(guard)
        .map(|(name, gains, below)| gains_row(name, gains, below))
        .collect();
    let below = BELOW.map(|bound| format!("below {bound}"));
    let [one, few, most] = below.each_ref().map(String::as_str);
    let heads = [
        "", "nodes", "p1", "p10", "p50", "p90", "p99", "mean", one, few, most,
    ];
    table(out, heads, &rows)?;
    for it in &summary.guard {
        let nodes = it.gains.map_or(0, |gains| gains.nodes);
        let slower = it.below[0];
        if it.verdict == HoldingVerdict::Stock && slower > 0 {
            let (of, loss) = (counted(nodes, "node", "nodes"), percent(it.loss_mean));
            let slower = count(slower);
            writeln!(
                out,
                "Where stock stays, {slower} of {of} lose {loss} on average through the trial"
            )?;
        }
    }
    if let Some(worst) = &summary.worst {
        let (node, gain) = (count(worst.node), worst.gain);
        writeln!(out, "Worst node: {node}, LUC/stock {gain:.3}")?;
        writeln!(out, "  {}", worst.command)?;
    }
    Ok(())
}

fn gains_row(name: &str, gains: Option<&Gains>, below: [u32; 3]) -> [String; 11] {
    let nodes = gains.map_or(0, |it| it.nodes);
    let value = |of: fn(&Gains) -> f64| known(gains.map(|it| format!("{:.3}", of(it))));
    let [one, few, most] = below.map(|below| share(below.into(), nodes.into()));
    [
        name.to_owned(),
        count(nodes),
        value(|it| it.p1),
        value(|it| it.p10),
        value(|it| it.p50),
        value(|it| it.p90),
        value(|it| it.p99),
        value(|it| it.mean),
        one,
        few,
        most,
    ]
}

fn loads(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nMedian LUC/stock by load and disk")?;
    let loads: Vec<String> = summary.by_load.iter().map(|row| row.load.clone()).collect();
    let longest = loads.iter().map(|load| load.chars().count()).max();
    let disks: Vec<&str> = summary.disks.iter().map(String::as_str).collect();
    let disks = [&disks[..], &["all"]].concat();
    let mut begin = 0;
    while begin < disks.len() {
        // As many columns as a line holds, and at least one.
        let mut width = longest.unwrap_or(0);
        let fits = disks[begin..].iter().take_while(|disk| {
            width += 2 + disk.chars().count().max(4);
            width <= COLUMNS
        });
        let end = begin + fits.count().max(1);
        let heads = [&["load"], &disks[begin..end]].concat();
        let rows: Vec<Vec<String>> = summary
            .by_load
            .iter()
            .map(|row| {
                let cells = row.gains[begin..end].iter();
                let cells = cells.map(|it| known(it.map(|it| format!("{:.2}", it.p50))));
                std::iter::once(row.load.clone()).chain(cells).collect()
            })
            .collect();
        list(out, &heads, &rows)?;
        begin = end;
    }
    Ok(())
}

fn barriers(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    if summary.groups_all == 0 {
        return Ok(());
    }
    let groups = so_far(summary.groups, summary.groups_all, "group", "groups");
    writeln!(
        out,
        "\nPhases of parallel programs, {groups}: until the slowest node is done"
    )?;
    let mut rows = Vec::new();
    for row in &summary.barriers {
        for (arm, times) in [("stock", &row.stock), ("luc", &row.luc)] {
            rows.push(phases_row(&row.disk, row.nodes, arm, times));
        }
    }
    let heads = [
        "disk",
        "nodes",
        "",
        "phases",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "mean node",
        "slowdown",
    ];
    table(out, heads, &rows)?;
    if rows
        .iter()
        .any(|row| row.iter().any(|cell| cell == UNKNOWN))
    {
        writeln!(
            out,
            "{UNKNOWN}: too few phases to tell; --phases N makes more"
        )?;
    }
    Ok(())
}

fn phases_row(disk: &str, nodes: u32, arm: &str, times: &PhaseTimes) -> [String; 10] {
    let [p50, p99, p999, p9999] = times.at_ns.map(|ns| known(ns.map(duration)));
    [
        disk.to_owned(),
        count(nodes),
        arm.to_owned(),
        count(times.phases),
        p50,
        p99,
        p999,
        p9999,
        luc_base::words::time(times.node_mean_ns),
        format!("{:.2}", times.slowdown),
    ]
}
