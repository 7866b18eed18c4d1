//! The findings of `luc guard` as metrics.

use luc_host::System;
use luc_host::sysfs::Attached;

use super::families::{labels, on};
use super::text::{Family, Kind, Labels, Value};
use luc_watch::sample::Reading;
use luc_watch::trial::GuardFindings;

/// Metrics of the file systems that a guard has watched.
pub fn families(reading: &Reading, system: &dyn System) -> Vec<Family> {
    let kept: Vec<(Labels, GuardFindings)> = on(reading)
        .filter_map(|(journal, _)| {
            let attached = Attached {
                name: journal.name.replace('/', "!"),
                device: journal.device,
            };
            Some((labels(journal), GuardFindings::read(system, &attached)?))
        })
        .collect();
    findings(&kept)
}

/// The findings' metrics. An unknown value has no series.
pub(super) fn findings(kept: &[(Labels, GuardFindings)]) -> Vec<Family> {
    let family = |name: &str, kind, help: &str, value: &dyn Fn(&GuardFindings) -> Option<f64>| {
        let series = kept.iter().filter_map(|(labels, findings)| {
            Some((labels.clone(), Value::Number(value(findings)?)))
        });
        Family::new(name, kind, help, series)
    };
    let stance = kept.iter().map(|(labels, findings)| {
        let mut labels = labels.clone();
        labels.push(("stance", findings.stance.to_owned()));
        (labels, Value::Number(1.0))
    });
    vec![
        Family::new(
            "luc_guard_stance_info",
            Kind::Gauge,
            "always 1; trying, certified, aside (LUC harmed and observes), retrying or left_alone (set by hand)",
            stance,
        ),
        family(
            "luc_guard_running",
            Kind::Gauge,
            "1 while a guard runs",
            &|findings| Some(f64::from(u8::from(findings.runs))),
        ),
        family(
            "luc_guard_ratio",
            Kind::Gauge,
            "ratio of LUC to stock in the pairs of the current verdict",
            &|findings| findings.ratio,
        ),
        family(
            "luc_guard_verdict_pairs",
            Kind::Gauge,
            "pairs that the current certificate took",
            &|findings| Some(findings.pairs? as f64),
        ),
        family(
            "luc_guard_pairs_total",
            Kind::Counter,
            "pairs of windows compared since the guard began",
            &|findings| Some(findings.pairs_all as f64),
        ),
        family(
            "luc_guard_evidence_for",
            Kind::Gauge,
            "growth of the bet that LUC is at least 0.99 of stock; 100 gives a certificate",
            &|findings| Some(findings.evidence_for),
        ),
        family(
            "luc_guard_evidence_against",
            Kind::Gauge,
            "growth of the bet that LUC is below 0.99 of stock; at 100 LUC stands aside",
            &|findings| Some(findings.evidence_against),
        ),
        family(
            "luc_guard_p99_evidence_for",
            Kind::Gauge,
            "the same for the 99th percentile of a sync: that it is not over 1.2 times stock's",
            &|findings| findings.p99_evidence_for,
        ),
        family(
            "luc_guard_p99_evidence_against",
            Kind::Gauge,
            "growth of the bet that it is; at 100 LUC stands aside",
            &|findings| findings.p99_evidence_against,
        ),
        family(
            "luc_guard_duty",
            Kind::Gauge,
            "largest share of the time that trying may take",
            &|findings| Some(findings.duty),
        ),
    ]
}
