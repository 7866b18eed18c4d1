//! The text form of processor speeds: one for all or a list, their changes over time, and the
//! clocks of a governor.
//!
//! `3000`, or `3000,3000,1000,1000` for big and little cores. `2s=1500`: the speed from that moment
//! on, as a warm processor would change it.

use luc_power::machine;

use crate::processors::governor::{self, Scaling};
use crate::processors::{ProcessorModel, SpeedChange};
use crate::units::time_ns;

/// The slowest and the fastest speed, MIPS: the host can simulate a second of either in acceptable
/// time.
const BOUNDS_MIPS: [f64; 2] = [0.001, 1e6];
const CPUS_MAX: usize = 1024;

/// Creates a machine with this many processors; if none is given, with one for each listed speed.
///
/// # Errors
/// One line: which speed or time is invalid, or how many speeds there are for how many processors.
pub fn machine(
    cpus: Option<u16>,
    mips: &str,
    changes: &[String],
) -> Result<ProcessorModel, String> {
    let listed = list(mips)?;
    let cpus = cpus.map_or(listed.len(), usize::from);
    let mips = spread(mips, listed, cpus)?;
    let mut changes: Vec<_> = changes
        .iter()
        .map(|text| change(text, cpus))
        .collect::<Result<_, _>>()?;
    changes.sort_by_key(|change| change.at_ns);
    Ok(ProcessorModel {
        mips,
        changes,
        ..ProcessorModel::new(0, 0.0)
    })
}

/// Parses speeds, separated by commas.
///
/// # Errors
/// One line: which of them is invalid.
pub fn list(text: &str) -> Result<Vec<f64>, String> {
    let [least, most] = BOUNDS_MIPS;
    let mips = |part: &str| {
        let value: Option<f64> = part.parse().ok();
        value
            .filter(|mips| (least..=most).contains(mips))
            .ok_or_else(|| format!("mips {text}: '{part}' is not a number from {least} to {most}"))
    };
    let all: Vec<f64> = text.split(',').map(mips).collect::<Result<_, _>>()?;
    if all.len() > CPUS_MAX {
        return Err(format!("mips: more than {CPUS_MAX} speeds"));
    }
    Ok(all)
}

/// Parses a governor and its clocks: speeds in MIPS, `800,1600`, or those of a machine of the
/// energy model, `r710` or `r710:ipc=0.5`. A change of the clock takes no time.
///
/// # Errors
/// One line: the governor or the machine is unknown, or the speeds are invalid.
pub fn scaling(governor: &str, clocks: &str, is_per_processor: bool) -> Result<Scaling, String> {
    let governor = governor::named(governor).map_err(|error| error.to_string())?;
    let mut clocks_mips = if clocks.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let machine: Result<machine::PowerModel, _> = clocks.parse();
        machine.map_err(|error| error.to_string())?.clocks_mips()
    } else {
        list(clocks).map_err(|why| format!("clocks: {why}"))?
    };
    clocks_mips.sort_by(f64::total_cmp);
    Ok(Scaling {
        governor,
        clocks_mips,
        is_per_processor,
        latency_ns: 0,
    })
}

/// Assigns the speeds to processors; a single speed applies to all.
fn spread(text: &str, listed: Vec<f64>, cpus: usize) -> Result<Vec<f64>, String> {
    match listed[..] {
        [one] => Ok(vec![one; cpus]),
        _ if listed.len() == cpus => Ok(listed),
        _ => Err(format!(
            "mips {text}: {} speeds for {cpus} processors; give one speed, or one for each \
             processor",
            listed.len()
        )),
    }
}

fn change(text: &str, cpus: usize) -> Result<SpeedChange, String> {
    let bad = |why: String| format!("mips-at {text}: {why}; give TIME=MIPS, for example 2s=1500");
    let (at, mips) = text
        .split_once('=')
        .ok_or_else(|| bad("'=' is missing".to_owned()))?;
    let at_ns = time_ns(at).map_err(bad)?;
    Ok(SpeedChange {
        at_ns: u64::try_from(at_ns).map_err(|_| bad(format!("{at} is before the start")))?,
        mips: spread(mips, list(mips)?, cpus)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_of_each_and_their_changes() {
        let mips = |cpus, mips| machine(cpus, mips, &[]).unwrap().mips;
        assert_eq!(mips(None, "1000"), [1000.0]);
        assert_eq!(mips(Some(3), "1000"), [1000.0; 3]);
        assert_eq!(mips(None, "3000,1000.5"), [3000.0, 1000.5]);
        assert_eq!(mips(Some(2), "3000,1000"), [3000.0, 1000.0]);
        let texts = ["3s=500,250", "0.002s=1000"].map(String::from);
        let changes = machine(Some(2), "3000", &texts).unwrap().changes;
        let change = |at_ns, mips: [f64; 2]| SpeedChange {
            at_ns,
            mips: mips.to_vec(),
        };
        assert_eq!(
            changes,
            [
                change(2_000_000, [1000.0; 2]),
                change(3_000_000_000, [500.0, 250.0])
            ]
        );
    }

    #[test]
    fn clocks_are_listed_or_those_of_a_machine() {
        let clocks = |text| scaling("schedutil", text, false).unwrap().clocks_mips;
        assert_eq!(clocks("3000,1000"), [1000.0, 3000.0]);
        assert_eq!(clocks("e3-server:ipc=0.5").first(), Some(&400.0));
        for (governor, clocks, why) in [
            ("turbo", "1000", "no governor turbo"),
            ("schedutil", "cray", "no machine cray"),
            ("schedutil", "1000,x", "clocks: mips 1000,x: 'x'"),
            ("schedutil", "", "clocks"),
        ] {
            let error = scaling(governor, clocks, true).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_no_speed_is_told_in_a_line() {
        for (cpus, mips, at, why) in [
            (None, "0", None, "'0' is not a number from 0.001 to 1000000"),
            (None, "-1", None, "'-1'"),
            (None, "nan", None, "'nan'"),
            (None, "inf", None, "'inf'"),
            (None, "1e7", None, "'1e7'"),
            (None, "1000,", None, "''"),
            (Some(3), "1000,2000", None, "2 speeds for 3 processors"),
            (Some(1), "1000", Some("2s"), "'=' is missing"),
            (Some(1), "1000", Some("2=5"), "no unit"),
            (Some(1), "1000", Some("-2s=5"), "before the start"),
            (Some(1), "1000", Some("2s=0"), "'0'"),
            (Some(1), "1000", Some("2s=5,6"), "2 speeds for 1 processors"),
            (Some(1), "1000", Some("99999999999s=5"), "too long"),
        ] {
            let changes: Vec<String> = at.into_iter().map(String::from).collect();
            let error = machine(cpus, mips, &changes).unwrap_err();
            assert!(error.contains(why), "{mips} {at:?}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
