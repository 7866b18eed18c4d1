//! A search for a clock as text: one line per clock, then the answer.

use std::fmt;
use std::io::{self, Write};

use luc_base::words::with_interval;
use luc_cli::units::{known, percent};
use luc_power::meter::Boundary;
use luc_watch::clock::{ClockFindings, Clocks};
use luc_watch::trial::Ratio;

/// A table with a line per clock.
pub struct ClockTable {
    clock_width: usize,
    tolerance: f64,
}

impl ClockTable {
    /// Leaves room for each of these clocks.
    pub fn new(clocks: &Clocks, tolerance: f64) -> Self {
        let all = clocks.lower.iter().chain([&clocks.highest]);
        let widths = all.map(|clock| clocks.shown(clock).len());
        Self {
            clock_width: widths.max().unwrap_or(0),
            tolerance,
        }
    }

    /// Prints the heads of the columns, each as wide as its widest usual text.
    pub fn heads(&self, out: &mut dyn Write, clocks: &Clocks) -> io::Result<()> {
        let heads = [
            "clock", "pairs", "syncs/s", "p99", "watts", "J/sync", "verdict",
        ];
        self.line(out, heads)?;
        let of = format!("ratios to {} (95% interval)", clocks.shown(&clocks.highest));
        self.line(out, ["", "", &of, "", "", "", ""])
    }

    pub fn row(&self, out: &mut dyn Write, findings: &ClockFindings) -> io::Result<()> {
        let verdict = match (findings.verdict, findings.reason) {
            ("within", _) => format!("within {}", percent(self.tolerance)),
            ("undecided", Some(why)) => format!("undecided: {why}"),
            ("highest", _) => "the highest".into(),
            (verdict, _) => verdict.into(),
        };
        let number = |value: Option<f64>| known(value.map(luc_base::words::three));
        let cells = [
            &findings.clock,
            &known(findings.pairs.map(|pairs| pairs.to_string())),
            &ratio(findings.rate_ratio),
            &ratio(findings.p99_ratio),
            &number(findings.watts),
            &number(findings.joules_per_sync),
            &verdict,
        ];
        self.line(out, cells.map(String::as_str))
    }

    fn line(&self, out: &mut dyn Write, cells: [&str; 7]) -> io::Result<()> {
        let [clock, pairs, rate, p99, watts, joules, verdict] = cells;
        let width = self.clock_width;
        let line = format!(
            "{clock:<width$}  {pairs:>5}  {rate:<22}  {p99:<22}  {watts:>5}  {joules:>6}  {verdict}"
        );
        writeln!(out, "{}", line.trim_end())?;
        out.flush()
    }
}

fn ratio(ratio: Option<Ratio>) -> String {
    known(ratio.map(|it| with_interval(it.mean, it.low.zip(it.high), 3)))
}

/// The answer.
pub struct Sentence<'a> {
    pub tolerance: f64,
    pub lowest: Option<&'a str>,
    pub error: f64,
    pub saved_kwh: Option<f64>,
    pub of: Option<Boundary>,
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = percent(self.tolerance);
        let Some(lowest) = self.lowest else {
            return write!(
                f,
                "no lower clock is shown to stay within {within} of the highest"
            );
        };
        let error = percent(self.error);
        write!(
            f,
            "the lowest clock within {within} of the highest is {lowest} (a false one has a chance \
             of at most {error})"
        )?;
        match self.saved_kwh.zip(self.of) {
            Some((saved, of)) if saved < 0.0 => {
                write!(
                    f,
                    "; it saves nothing: {:.1} kWh a year more ({of})",
                    -saved
                )
            }
            Some((saved, of)) => write!(f, "; it saves {saved:.1} kWh a year ({of})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let mut sentence = Sentence {
            tolerance: 0.01,
            lowest: Some("2400 MHz"),
            error: 0.02,
            saved_kwh: None,
            of: Some(Boundary::Packages { packages: 1 }),
        };
        let plain = "the lowest clock within 1.0% of the highest is 2400 MHz (a false one has \
                     a chance of at most 2.0%)";
        assert_eq!(sentence.to_string(), plain);
        for (kwh, said) in [
            (87.66, "; it saves 87.7 kWh a year"),
            (-3.0, "; it saves nothing: 3.0 kWh a year more"),
        ] {
            sentence.saved_kwh = Some(kwh);
            let of = "(1 processor package alone, without DRAM and disks)";
            assert_eq!(sentence.to_string(), format!("{plain}{said} {of}"));
        }
        sentence.lowest = None;
        assert_eq!(
            sentence.to_string(),
            "no lower clock is shown to stay within 1.0% of the highest"
        );
    }

    #[test]
    fn unknown_is_never_zero() {
        let findings = ClockFindings {
            clock: "1200 MHz".into(),
            pairs: Some(0),
            rate_ratio: None,
            p99_ratio: None,
            watts: None,
            joules_per_sync: None,
            verdict: "undecided",
            reason: Some("no sync"),
        };
        let mut line = Vec::new();
        let table = ClockTable {
            clock_width: 8,
            tolerance: 0.01,
        };
        table.row(&mut line, &findings).unwrap();
        let line = String::from_utf8(line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "1200",
                "MHz",
                "0",
                "-",
                "-",
                "-",
                "-",
                "undecided:",
                "no",
                "sync"
            ]
        );
    }
}
