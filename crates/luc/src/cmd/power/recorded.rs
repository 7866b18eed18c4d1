//! `luc power --from`: lower clocks by the simulator.

use std::io::Write;
use std::path::Path;

use luc_base::words::{rate, with_interval};
use luc_cli::recordings::{note_unseen, recording, unreadable};
use luc_cli::units::{UNKNOWN, duration, known, percent, table};
use luc_cli::{Context, Failure};
use luc_model::Rule;
use luc_model::clocks::{
    AtClock, ClockComparison, Clocks, Descent, FileSystem, Gaps, at_lower_clocks,
};
use luc_model::diagnosis::Estimate;
use luc_power::machine::PowerModel;
use serde::Serialize;

use crate::cmd::trace::place;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    /// It is computed by the simulator: no clock was changed.
    model: bool,
    tolerance: f64,
    file_systems: &'a [FileSystem],
}

pub fn foretell(
    file: &Path,
    machine: Option<&PowerModel>,
    tolerance: f64,
    json: bool,
    context: &mut Context,
) -> Result<(), Failure> {
    let trace = recording(file, context)?;
    if trace.spans.is_empty() {
        let why = "holds no operation and no commit; the model needs a recording of the tracer";
        return Err(unreadable(file, why.to_owned()));
    }
    note_unseen(&trace, file, context)?;
    let file_systems = at_lower_clocks(&trace, tolerance, machine);
    if json {
        return context.print_json(&Report {
            schema: 1,
            model: true,
            tolerance,
            file_systems: &file_systems,
        });
    }
    let out = &mut *context.out;
    writeln!(
        out,
        "a model, not a measurement: the simulator runs the recorded load at lower clocks"
    )?;
    if machine.is_some() {
        writeln!(
            out,
            "joules are those of the whole machine at the wall, disk included"
        )?;
    }
    for it in &file_systems {
        let place = place(it.mount_point.as_deref(), &it.device);
        writeln!(out, "\n{place}, {}", duration(it.duration_ns))?;
        match (&it.clocks, &it.refused) {
            (Some(clocks), _) => print(clocks, tolerance, out)?,
            (None, why) => {
                let why = why.as_deref().unwrap_or(UNKNOWN);
                writeln!(out, "no simulation: {why}")?;
            }
        }
    }
    Ok(())
}

fn print(clocks: &Clocks, tolerance: f64, out: &mut dyn Write) -> std::io::Result<()> {
    if clocks.descents.iter().any(|it| it.gaps == Gaps::Compute) {
        writeln!(
            out,
            "{} of the threads' time lies in gaps between their operations; it is not recorded \
             whether they compute there",
            percent(clocks.gaps_share)
        )?;
    }
    for descent in &clocks.descents {
        writeln!(out)?;
        print_descent(descent, clocks, tolerance, out)?;
    }
    writeln!(out)?;
    if let Some(why) = clocks.energy_unknown {
        writeln!(out, "energy unknown: {why}")?;
    }
    for rule in [Rule::Stock, Rule::Luc] {
        let descents = clocks.of_rule(rule);
        let answer = match descents.last() {
            Some(last) if !last.trusted => format!(
                "no answer, because the simulation of the recording is off by {}",
                percent(last.error_share)
            ),
            _ => {
                let ends: Vec<_> = descents.iter().map(|it| it.lowest).collect();
                lowest(&ends, tolerance)
            }
        };
        writeln!(out, "{}: {answer}", name(rule))?;
    }
    Ok(())
}

fn name(rule: Rule) -> &'static str {
    if rule == Rule::Luc {
        "with LUC"
    } else {
        "stock"
    }
}

fn print_descent(
    descent: &Descent,
    clocks: &Clocks,
    tolerance: f64,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let has_both = clocks.descents.iter().any(|it| it.gaps == Gaps::Compute);
    let gaps = match descent.gaps {
        Gaps::Compute => ", if threads compute in the gaps",
        Gaps::Wait if has_both => ", if threads wait in the gaps",
        Gaps::Wait => "",
    };
    let off = percent(descent.error_share);
    let off = match (descent.rule, descent.trusted) {
        (Rule::Stock, true) => format!("; off by {off} from the recording"),
        (Rule::Stock, false) => {
            format!("; off by {off} from the recording, too much to be trusted")
        }
        _ => String::new(),
    };
    writeln!(
        out,
        "{}{gaps}: {} syncs/s with a p99 of {} at the recorded clock{off}",
        name(descent.rule),
        rate(descent.rates.syncs_per_s),
        duration(descent.rates.sync.p99_ns)
    )?;
    let heads = [
        "clock",
        "syncs/s (95% interval)",
        "p99 (95% interval)",
        "J/sync",
        "verdict",
    ];
    let rows: Vec<_> = descent.clocks.iter().map(|at| row(at, tolerance)).collect();
    table(out, heads, &rows)
}

fn row(at: &AtClock, tolerance: f64) -> [String; 5] {
    let verdict = match at.verdict {
        ClockComparison::Recorded => "the recorded".to_owned(),
        ClockComparison::Within => format!("within {}", percent(tolerance)),
        ClockComparison::Slower => "slower".to_owned(),
        ClockComparison::Undecided => "undecided".to_owned(),
    };
    [
        share(at.clock_share),
        ratio(&at.rate_ratio),
        known(at.p99_ratio.as_ref().map(ratio)),
        known(at.joules_per_sync.map(|joules| format!("{joules:.4}"))),
        verdict,
    ]
}

fn share(clock_share: f64) -> String {
    format!("{clock_share:.1}")
}

fn ratio(it: &Estimate) -> String {
    with_interval(it.value, it.low.zip(it.high), 3)
}

/// Names the lowest clock, or its range: at first that of the lower speed.
fn lowest(lowest: &[Option<f64>], tolerance: f64) -> String {
    let within = percent(tolerance);
    let ends: Vec<f64> = lowest.iter().map(|it| it.unwrap_or(1.0)).collect();
    let of = |end: &f64| share(*end);
    match &ends[..] {
        [computing, waiting] if of(computing) != of(waiting) => format!(
            "the lowest clock within {within} is {} to {} of the recorded one: {} if threads \
             compute in the gaps, {} if they wait",
            of(waiting),
            of(computing),
            of(computing),
            of(waiting)
        ),
        [end, ..] if *end < 1.0 => {
            format!(
                "the lowest clock within {within} is {} of the recorded one",
                of(end)
            )
        }
        _ => format!("no lower clock is shown to stay within {within} of the recorded one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_a_range_where_it_cannot_be_told() {
        for (ends, said) in [
            (
                vec![None, None],
                "no lower clock is shown to stay within 1.0% of the recorded one",
            ),
            (
                vec![Some(0.4)],
                "the lowest clock within 1.0% is 0.4 of the recorded one",
            ),
            (
                vec![None, Some(0.4)],
                "the lowest clock within 1.0% is 0.4 to 1.0 of the recorded one: 1.0 if threads \
                 compute in the gaps, 0.4 if they wait",
            ),
        ] {
            assert_eq!(lowest(&ends, 0.01), said);
        }
    }
}
