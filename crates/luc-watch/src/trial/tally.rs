//! The sums of the windows of both sides, and their ratios.

use luc_bpf::Counts;
use luc_guard::slow::{CERTIFIED, REFUTED};
use luc_guard::{Judge, Measure, Pair, TrialVerdict};
use luc_power::meter::{Energy, Reading, Spent};
use luc_stats::{Interval, Prior};
use serde::Serialize;

use super::meter::Sums;

const CONFIDENCE: f64 = 0.95;

/// Sums over the windows of one side; `None` if something was not seen in one of them.
#[derive(Clone, Debug)]
pub struct Half {
    windows: u64,
    time_ns: u64,
    calls: u64,
    commits: u64,
    traced: Option<Counts>,
    writes_delayed: Option<u64>,
    thread_ns: Option<u64>,
    /// `None` without a meter.
    spent: Option<Spent>,
}

impl Default for Half {
    fn default() -> Self {
        Self {
            windows: 0,
            time_ns: 0,
            calls: 0,
            commits: 0,
            traced: Some(Counts::default()),
            writes_delayed: Some(0),
            thread_ns: Some(0),
            spent: None,
        }
    }
}

/// The figures of one side that people compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    pub windows: u64,
    pub time_s: f64,
    pub sync_calls: u64,
    pub commits: u64,
    pub sync_calls_per_s: Option<f64>,
    pub fsync_mean_ns: Option<u64>,
    pub fsync_p99_ns: Option<u64>,
    pub writes_delayed_per_s: Option<f64>,
    /// CPU time of the journal's thread, per second.
    pub journal_thread_ns_per_s: Option<f64>,
    pub watts: Option<f64>,
    pub joules_per_sync_call: Option<f64>,
}

impl Half {
    /// Adds a window between two moments.
    pub fn add(&mut self, time_ns: u64, begin: &Sums, end: &Sums) {
        let grew = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let plus = |sum: Option<u64>, more: Option<u64>| Some(sum? + more?);
        self.windows += 1;
        self.time_ns += time_ns;
        self.calls += end.calls.saturating_sub(begin.calls);
        self.commits += end.commits.saturating_sub(begin.commits);
        let delayed = grew(end.writes_delayed, begin.writes_delayed);
        self.writes_delayed = plus(self.writes_delayed, delayed);
        self.thread_ns = plus(self.thread_ns, grew(end.thread_ns, begin.thread_ns));
        let spent = begin.energy.as_ref().zip(end.energy.as_ref());
        let spent = spent.map(|(begin, end)| begin.until(end));
        self.spent = Spent::sum(self.spent.take(), spent);
        let more = end.traced.as_ref().zip(begin.traced.as_ref());
        let more = more.map(|(end, begin)| end.since(begin));
        self.traced = self.traced.take().zip(more).map(|(mut sum, more)| {
            sum.add(&more);
            sum
        });
    }

    pub fn shown(&self) -> Shown {
        let seconds = self.time_ns as f64 / 1e9;
        let per_s = |count: u64| (self.time_ns > 0).then(|| count as f64 / seconds);
        let traced = self.traced.as_ref();
        let energy = self.energy();
        let energy = energy.as_ref().and_then(Energy::reading);
        let per_call = |reading: &Reading| reading.joules / self.calls as f64;
        Shown {
            windows: self.windows,
            time_s: seconds,
            sync_calls: self.calls,
            commits: self.commits,
            sync_calls_per_s: per_s(self.calls),
            fsync_mean_ns: traced.and_then(|counts| counts.sync_ns.checked_div(counts.syncs)),
            fsync_p99_ns: traced.and_then(|counts| counts.sync_hist.quantile_ns(0.99)),
            writes_delayed_per_s: self.writes_delayed.and_then(per_s),
            journal_thread_ns_per_s: self.thread_ns.and_then(per_s),
            watts: energy.map(|reading| reading.watts),
            joules_per_sync_call: energy.filter(|_| self.calls > 0).map(per_call),
        }
    }

    /// Returns the energy of its windows; `None` without a meter or a window.
    pub fn energy(&self) -> Option<Energy> {
        self.spent.clone().map(Spent::energy)
    }
}

/// A ratio of two sides over all pairs; of LUC to stock, above 1 is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub mean: f64,
    /// Ends of the 95% confidence interval; `None` for a single pair.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub pairs: usize,
}

impl Ratio {
    /// The mean of the pairs' ratios; `None` without any.
    pub fn from_ratios(ratios: &[f64]) -> Option<Self> {
        let interval = Interval::of_ratios(ratios, CONFIDENCE, &Prior::NONE)?;
        Some(Self {
            mean: interval.mean,
            low: interval.ends.map(|(low, _)| low),
            high: interval.ends.map(|(_, high)| high),
            pairs: interval.repeats,
        })
    }
}

/// Everything so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub on: Half,
    pub off: Half,
    rates: Vec<f64>,
    latencies: Vec<f64>,
    judge: Judge,
    found: Option<(TrialVerdict, u64)>,
    p99: Option<TrialVerdict>,
    pub idle_pairs: u64,
}

impl Tally {
    pub fn hear(&mut self, pair: &Pair) {
        let Some(rate) = pair.log_ratio(Measure::Rate) else {
            self.idle_pairs += 1;
            return;
        };
        // A ratio to 0 has no finite logarithm: the judge counts it, but the mean cannot.
        if rate.is_finite() {
            self.rates.push(rate.exp());
            let latency = pair.log_ratio(Measure::Latency).map(f64::exp);
            self.latencies.extend(latency);
        }
        self.judge.hear(pair);
        let work = self.judge.work_verdict();
        let pairs = self.judge.evidence().pairs();
        self.found = self.found.or(work.map(|verdict| (verdict, pairs)));
        self.p99 = self.p99.or(self.judge.slow().verdict());
    }

    /// The measure that counts for this load.
    pub fn measure(&self) -> Measure {
        self.judge.measure()
    }

    /// The ratio by that measure.
    pub fn ratio(&self) -> Option<Ratio> {
        self.ratio_of(self.measure())
    }

    pub fn ratio_of(&self, measure: Measure) -> Option<Ratio> {
        let ratios = match measure {
            Measure::Rate => &self.rates,
            Measure::Latency => &self.latencies,
        };
        Ratio::from_ratios(ratios)
    }

    /// The first verdict by that measure, and how many pairs it took.
    pub fn found(&self) -> Option<(TrialVerdict, u64)> {
        self.found
    }

    /// The first verdict about the 99th percentile of a sync; `None` also if times are not seen.
    pub fn p99_verdict(&self) -> Option<TrialVerdict> {
        self.p99
    }
}

pub fn sentence(tally: &Tally) -> String {
    let Some(ratio) = tally.ratio() else {
        return "nothing to compare".into();
    };
    let what = match tally.measure() {
        Measure::Rate => "sync calls per second",
        Measure::Latency => "speed of a sync call",
    };
    let pairs = luc_base::words::counted(ratio.pairs as i128, "pair", "pairs");
    let of = |ends: String| {
        format!(
            "{:.2} of stock's {what} (95% confidence interval {ends}, {pairs})",
            ratio.mean
        )
    };
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else {
        return format!(
            "LUC gives {}; one pair proves nothing",
            of("unknown".into())
        );
    };
    let gives = of(format!("{low:.2} to {high:.2}"));
    let verdict = match tally.found() {
        Some((TrialVerdict::Certified, pairs)) => {
            format!("; at least 0.99 of stock with 99% confidence, after {pairs} pairs")
        }
        Some((TrialVerdict::Refuted, pairs)) => {
            format!("; less than 0.99 of stock with 99% confidence, after {pairs} pairs")
        }
        None => String::new(),
    };
    let p99 = match tally.p99_verdict() {
        Some(TrialVerdict::Certified) => {
            format!("; 99th percentile at most {CERTIFIED} times stock's with 99% confidence")
        }
        Some(TrialVerdict::Refuted) => {
            format!("; 99th percentile over {REFUTED} times stock's with 99% confidence")
        }
        None => String::new(),
    };
    let what = if low > 1.0 {
        "LUC helps here: it gives"
    } else if high < 1.0 {
        "LUC harms here: it gives"
    } else {
        "no difference is shown: LUC gives"
    };
    format!("{what} {gives}{verdict}{p99}")
}

#[cfg(test)]
mod tests {
    use luc_guard::{Bucket, Times, Window};

    use super::*;

    fn pair(on: u64, off: u64) -> Pair {
        let window = |calls| Window {
            time_ns: 1_000_000_000,
            calls,
            commits: calls,
            waited_ns: None,
            times: None,
        };
        Pair {
            on: window(on),
            off: window(off),
        }
    }

    fn after(pairs: impl Iterator<Item = (u64, u64)>) -> Tally {
        let mut tally = Tally::default();
        for (on, off) in pairs {
            tally.hear(&pair(on, off));
        }
        tally
    }

    #[test]
    fn sentences() {
        let said = |pairs: Vec<(u64, u64)>| sentence(&after(pairs.into_iter()));
        assert_eq!(said(vec![(3, 4)]), "nothing to compare");
        assert_eq!(
            said(vec![(200, 100)]),
            "LUC gives 2.00 of stock's sync calls per second (95% confidence interval unknown, 1 pair); one pair proves nothing"
        );
        let helps = said((0..30).map(|n| (1760 + n, 1000 + n)).collect());
        assert_eq!(
            helps,
            "LUC helps here: it gives 1.75 of stock's sync calls per second (95% confidence interval 1.75 to 1.75, 30 pairs); at least 0.99 of stock with 99% confidence, after 10 pairs"
        );
        let harms = said((0..30).map(|n| (920, 1000 + n)).collect());
        assert!(
            harms.starts_with("LUC harms here: it gives 0.91"),
            "{harms}"
        );
        assert!(harms.contains("less than 0.99 of stock with 99% confidence"));
        let same = said(vec![(1000, 1010), (1010, 1000), (1000, 1000)]);
        assert!(
            same.starts_with("no difference is shown: LUC gives 1.00"),
            "{same}"
        );
    }

    #[test]
    fn a_sentence_tells_of_the_99th_percentile_where_times_are_seen() {
        let said = |on_ms: u64| {
            let mut tally = Tally::default();
            for n in 0..30 {
                let mut pair = pair(1000 + n, 1000);
                for (window, ms) in [(&mut pair.on, on_ms), (&mut pair.off, 10)] {
                    window.times = Some(Times::new([Bucket {
                        from_ns: ms * 1_000_000,
                        to_ns: (ms + 1) * 1_000_000,
                        syncs: window.calls,
                    }]));
                }
                tally.hear(&pair);
            }
            sentence(&tally)
        };
        for (on_ms, end) in [
            (
                10,
                "; 99th percentile at most 1.33 times stock's with 99% confidence",
            ),
            (
                20,
                "; 99th percentile over 1.2 times stock's with 99% confidence",
            ),
        ] {
            assert!(said(on_ms).ends_with(end), "{}", said(on_ms));
        }
    }

    #[test]
    fn what_was_not_seen_is_not_nothing() {
        let mut half = Half::default();
        let sums = |calls| Sums {
            calls,
            commits: calls,
            writes_delayed: Some(calls),
            ..Sums::default()
        };
        half.add(2_000_000_000, &sums(10), &sums(30));
        let shown = half.shown();
        assert_eq!(shown.sync_calls_per_s, Some(10.0));
        assert_eq!(shown.writes_delayed_per_s, Some(10.0));
        assert_eq!((shown.fsync_mean_ns, shown.fsync_p99_ns), (None, None));
        assert_eq!(shown.journal_thread_ns_per_s, None);
        assert_eq!(Half::default().shown().sync_calls_per_s, None);
    }
}
