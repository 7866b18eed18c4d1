//! Computes a claim's figure over our sweep.

use std::collections::BTreeMap;

use luc_control::poles;

use super::causes;
use super::found::{Candidate, Found};
use super::published::{Claim, ClaimTake, Gains, Published};
use crate::figures::PointResults;
use crate::file::{Block, Campaign, Figure, Value, Where};
use crate::points::Point;
use crate::show::Shown;
use luc_stats::{Interval, Prior, Variance};

/// The factor that determines how far repeats spread.
const VCPUS: &str = "vcpus";

/// Answers a claim from the results.
pub fn answer(shown: &Shown<'_>, claim: &Claim) -> Found {
    if let Some(gains) = &claim.poles {
        return of_poles(gains);
    }
    let (Some(figure), Some(block)) = (&claim.of, shown.campaign.block(&claim.block)) else {
        return Found::default();
    };
    if !claim.causes.is_empty() {
        let points = shown.points(&claim.block, &claim.fits);
        return causes::answer(&points, &figure.arm, &figure.measure, &claim.causes);
    }
    figure_of(shown, claim, block, figure)
}

/// Answers the claim for the arm shown for comparison.
pub fn beside(shown: &Shown<'_>, claim: &Claim) -> Option<Found> {
    let (arm, figure) = (claim.beside.as_ref()?, claim.of.as_ref()?);
    let figure = Figure {
        arm: arm.clone(),
        ..figure.clone()
    };
    let block = shown.campaign.block(&claim.block)?;
    Some(figure_of(shown, claim, block, &figure))
}

/// The claim for each combination of the values of its unknowns, with the names of these values;
/// the claim alone if it has no unknown.
pub fn parts(campaign: &Campaign, published: &Published, claim: &Claim) -> Vec<(String, Claim)> {
    let mut parts = vec![(String::new(), claim.clone())];
    for name in &claim.nuisance {
        let (factor, values) = values_of_unknown(campaign, published, claim, name);
        let with = |(label, part): &(String, Claim)| {
            let of = |(value, window): &(String, Vec<Value>)| {
                let separator = if label.is_empty() { "" } else { " and " };
                (
                    format!("{label}{separator}{value}"),
                    part.with(factor, window),
                )
            };
            values.iter().map(of).collect::<Vec<_>>()
        };
        parts = parts.iter().flat_map(with).collect();
    }
    parts
}

/// The factor that stands for an unknown, and its values for each value of the unknown.
fn values_of_unknown<'a>(
    campaign: &Campaign,
    published: &'a Published,
    claim: &Claim,
    name: &'a str,
) -> (&'a str, Vec<(String, Vec<Value>)>) {
    if let Some(windows) = published.windows.get(name) {
        let values = windows.values.iter();
        let of = |(value, window): (&String, &Vec<Value>)| {
            (format!("{} {value}", windows.says), window.clone())
        };
        return (&windows.factor, values.map(of).collect());
    }
    let values = values_of(campaign, claim, name).into_iter();
    let of = |value: Value| (format!("{name} {}", value.0), vec![value]);
    (name, values.map(of).collect())
}

/// The values of a factor at the claim's points.
fn values_of(campaign: &Campaign, claim: &Claim, factor: &str) -> Vec<Value> {
    let block = campaign.block(&claim.block).into_iter();
    let factors = block.flat_map(|block| &block.factors);
    let values = factors
        .filter(|(name, _)| name.get_ref() == factor)
        .flat_map(|(_, values)| values.all());
    let is_meant = |value: &&Value| {
        let wanted = claim.fits.get(factor);
        wanted.is_none_or(|wanted| wanted.all().contains(value))
    };
    values.filter(is_meant).cloned().collect()
}

/// The largest modulus of the poles over all gain sets. It is computed, so its interval has no
/// width.
fn of_poles(gains: &Gains) -> Found {
    let mut largest: Option<(f64, String)> = None;
    let mut sets = 0;
    for &kp in &gains.kp {
        for &ki in &gains.ki {
            for &kd in &gains.kd {
                for &c in &gains.c {
                    sets += 1;
                    // Invalid gains leave the claim without an answer.
                    let Ok(found) = poles(kp, ki, kd, c) else {
                        return Found::default();
                    };
                    let modulus = found.published.modulus;
                    if largest.as_ref().is_none_or(|(most, _)| modulus > *most) {
                        largest = Some((modulus, format!("Kp {kp}, Ki {ki}, Kd {kd}, c {c}")));
                    }
                }
            }
        }
    }
    let Some((modulus, at)) = largest else {
        return Found::default();
    };
    let interval = Interval {
        mean: modulus,
        ends: Some((modulus, modulus)),
        sd: None,
        repeats: 1,
    };
    Found {
        candidates: vec![Candidate {
            at,
            alone: interval,
            jointly: interval,
        }],
        points: sets,
        measured: sets,
        ranking: None,
    }
}

/// A point, or a pair of points, that may give the claim's number.
struct Place<'a> {
    at: String,
    /// Its number of processors, as its block writes it.
    vcpus: String,
    sample: Sample<'a>,
}

enum Sample<'a> {
    Figure(&'a PointResults<'a>, &'a Figure),
    /// The share lost from the first to the second.
    Lost(Vec<f64>, Vec<f64>),
    /// The ratio of the second to the first.
    Rise(Vec<f64>, Vec<f64>),
    /// The second minus the first.
    More(Vec<f64>, Vec<f64>),
    Spread(Vec<f64>),
}

impl Sample<'_> {
    fn interval(&self, confidence: f64, prior: &Prior) -> Option<Interval> {
        match self {
            Self::Figure(results, figure) => results.interval(figure, confidence, prior),
            Self::Rise(from, to) => Interval::of_separate_ratio(to, from, confidence, prior),
            Self::More(from, to) => Interval::of_separate_difference(to, from, confidence, prior),
            Self::Spread(values) => Interval::of_spread(values, confidence),
            Self::Lost(from, to) => {
                let ratio = Interval::of_separate_ratio(to, from, confidence, prior)?;
                Some(Interval {
                    mean: 1.0 - ratio.mean,
                    ends: ratio.ends.map(|(low, high)| (1.0 - high, 1.0 - low)),
                    ..ratio
                })
            }
        }
    }
}

fn figure_of<'a>(
    shown: &'a Shown<'a>,
    claim: &Claim,
    block: &'a Block,
    figure: &'a Figure,
) -> Found {
    let points = shown.points(&claim.block, &claim.fits);
    let of_points = points.len();
    let has_value = |it: &&PointResults<'_>| it.interval(figure, 0.5, &Prior::NONE).is_some();
    let measured: Vec<_> = points.into_iter().filter(has_value).collect();
    let places = if claim.take.is_along() {
        along(shown, claim, block, figure, &measured)
    } else {
        let place = |results: &&'a PointResults<'a>| Place {
            at: label(block, &results.point, None),
            vcpus: results.point.value(VCPUS).to_owned(),
            sample: match claim.take {
                ClaimTake::Spread => Sample::Spread(values(results, figure)),
                _ => Sample::Figure(results, figure),
            },
        };
        measured.iter().map(place).collect()
    };
    let alone = shown.campaign.stop.confidence;
    let jointly = 1.0 - (1.0 - alone) / places.len().max(1) as f64;
    let priors = priors(shown, claim, figure);
    let candidate = |place: &Place<'_>| {
        let prior = priors.get(&place.vcpus).unwrap_or(&Prior::NONE);
        Some(Candidate {
            at: place.at.clone(),
            alone: place.sample.interval(alone, prior)?,
            jointly: place.sample.interval(jointly, prior)?,
        })
    };
    Found {
        candidates: places.iter().filter_map(candidate).collect(),
        points: of_points,
        measured: measured.len(),
        ranking: None,
    }
}

/// How far the figure's repeats spread, by the number of processors, over all of the block's
/// points, not only the claim's. One processor repeats itself; several race.
fn priors(shown: &Shown<'_>, claim: &Claim, figure: &Figure) -> BTreeMap<String, Prior> {
    let mut variances: BTreeMap<String, Vec<Variance>> = BTreeMap::new();
    for results in shown.points(&claim.block, &Where::new()) {
        let along = claim.take.is_along();
        let values = if along {
            values(results, figure)
        } else {
            results.values(figure)
        };
        let vcpus = results.point.value(VCPUS).to_owned();
        let of = variances.entry(vcpus).or_default();
        let is_of_ratios = along && claim.take != ClaimTake::MoreEnds || figure.is_ratio();
        of.extend(if is_of_ratios {
            luc_stats::logs(&values).and_then(|logs| Variance::of_values(&logs))
        } else {
            Variance::of_values(&values)
        });
    }
    let of = |(vcpus, points): (String, Vec<Variance>)| (vcpus, Prior::from_variances(&points));
    variances.into_iter().map(of).collect()
}

/// Pairs of points that differ in `over` alone, the earlier value first.
fn along<'a>(
    shown: &Shown<'_>,
    claim: &Claim,
    block: &Block,
    figure: &Figure,
    points: &[&'a PointResults<'a>],
) -> Vec<Place<'a>> {
    let over = claim.over.as_deref().unwrap_or_default();
    let order = values_of(shown.campaign, claim, over);
    let step = |point: &Point<'_>| {
        order
            .iter()
            .position(|value| value.0 == point.value(over))
            .unwrap_or(usize::MAX)
    };
    let (first, last) = (0, order.len().saturating_sub(1));
    let same_group = |a: &Point<'_>, b: &Point<'_>| {
        let mut names = block.factors.keys().map(toml::Spanned::get_ref);
        names.all(|name| name == over || a.value(name) == b.value(name))
    };
    let mut places = Vec::new();
    for first_results in points {
        for last_results in points {
            let (from, to) = (&first_results.point, &last_results.point);
            let (i, j) = (step(from), step(to));
            let is_wanted = match claim.take {
                ClaimTake::Lost => i < j,
                ClaimTake::LostLast => i < j && j == last,
                _ => i == first && j == last && i < j,
            };
            if !is_wanted || !same_group(from, to) {
                continue;
            }
            let (a, b) = (values(first_results, figure), values(last_results, figure));
            let step = format!("{over} {} to {}", from.value(over), to.value(over));
            let mut at = label(block, from, Some(over));
            if !at.is_empty() {
                at += ", ";
            }
            places.push(Place {
                at: at + &step,
                vcpus: from.value(VCPUS).to_owned(),
                sample: match claim.take {
                    ClaimTake::RiseEnds => Sample::Rise(a, b),
                    ClaimTake::MoreEnds => Sample::More(a, b),
                    _ => Sample::Lost(a, b),
                },
            });
        }
    }
    places
}

/// One arm's own values, one for each repeat.
fn values(results: &PointResults<'_>, figure: &Figure) -> Vec<f64> {
    results.values(&figure.alone(&figure.arm))
}

/// Describes a point by the factors that vary, except `but`.
fn label(block: &Block, point: &Point<'_>, but: Option<&str>) -> String {
    let varying = block
        .factors
        .iter()
        .filter(|(name, values)| values.all().len() > 1 && but != Some(name.get_ref().as_str()));
    let words: Vec<String> = varying
        .map(|(name, _)| format!("{} {}", name.get_ref(), point.value(name.get_ref())))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use super::super::verdict::{self, ClaimVerdict};
    use super::*;
    use crate::points;
    use crate::result::ArmResult;
    use crate::store::{CellResult, Results};

    const CAMPAIGN: &str = r#"
title = "toy"
[[block]]
name = "toy"
bench = "metarates --procs 4 --files 4 --dir {dir}"
arms = ["stock", "luc"]
factors = { kernel = "6.12", disk = "4ms:1", vcpus = [1, 4], mips = [125, 250, 500] }
repeats_max = 3
"#;

    fn arm(name: &str, rate: f64) -> ArmResult {
        let printed = include_str!("../../tests/data/create-fsync.json");
        let mut report: serde_json::Value = serde_json::from_str(printed).unwrap();
        report["ops_per_s"] = rate.into();
        ArmResult {
            arm: name.to_owned(),
            report: serde_json::from_value(report).unwrap(),
            // A positive number, since the rate is 60 to 150.
            #[allow(clippy::cast_possible_truncation)]
            counters: [
                ("waited".to_owned(), (1e6 / rate) as i64),
                ("steady".to_owned(), 7),
            ]
            .into(),
            after: None,
        }
    }

    /// Stock's rate depends on processors and speed; LUC's is 1.5 times stock's at 500 MIPS. Each
    /// repeat adds 1%.
    fn results(campaign: &Campaign, repeats: u32, but: Option<&str>) -> Results {
        let mut all = Results::default();
        for point in points::all(campaign) {
            let (vcpus, mips) = (point.value("vcpus"), point.value("mips"));
            if Some(mips) == but {
                continue;
            }
            let rate = match (vcpus, mips) {
                ("4", "250") => 120.0,
                ("4", "500") => 60.0,
                _ => 100.0,
            };
            let gain = if mips == "500" { 1.5 } else { 1.0 };
            for repeat in 1..=repeats {
                let rate = rate * (1.0 + 0.01 * f64::from(repeat));
                all.results.push(CellResult {
                    schema: String::new(),
                    cell: point.cell(repeat),
                    versions: crate::cell::Versions::new(),
                    kernel_release: String::new(),
                    arms: vec![arm("stock", rate), arm("luc", rate * gain)],
                    at_s: 0,
                    took_s: 0.0,
                    host: String::new(),
                });
            }
        }
        all
    }

    fn answer_to(text: &str, repeats: u32, but: Option<&str>) -> Found {
        let campaign = crate::campaigns::parse("toy.toml", CAMPAIGN).unwrap();
        let results = results(&campaign, repeats, but);
        let claim: Claim =
            toml::from_str(&format!("says = \"\"\nblock = \"toy\"\n{text}")).unwrap();
        answer(&Shown::new(&campaign, &results, None), &claim)
    }

    /// The number that decides, and where it is from.
    fn decides(text: &str, repeats: u32, but: Option<&str>) -> (Interval, String) {
        let claim: Claim = toml::from_str(&format!("says = \"\"\n{text}")).unwrap();
        let found = answer_to(text, repeats, but);
        let (interval, at) = found.extreme(claim.extremes()[0]).unwrap();
        (interval, at.to_owned())
    }

    const RATIO: &str = "unit = \"times\"\npublished = 2\nof = { arm = \"luc\", to = \"stock\", measure = \"rate\" }\n";
    const LOST: &str = "unit = \"share\"\npublished = 0.1\nover = \"mips\"\nof = { arm = \"stock\", measure = \"rate\" }\n";

    #[test]
    fn extremes_of_points() {
        let (most, at) = decides(RATIO, 3, None);
        assert!((most.mean - 1.5).abs() < 1e-9);
        assert!(at.contains("mips 500"), "{at}");
        let all = answer_to(RATIO, 3, None);
        assert_eq!((all.points, all.measured, all.candidates.len()), (6, 6, 6));
        let (least, _) = decides(&format!("{RATIO}take = \"min\""), 3, None);
        assert!((least.mean - 1.0).abs() < 1e-9);
        // Above at every point: the smallest counts.
        let (every, _) = decides(&format!("{RATIO}take = \"every\""), 3, None);
        assert!((every.mean - 1.0).abs() < 1e-9);
        let partly = answer_to(RATIO, 3, Some("500"));
        assert_eq!((partly.points, partly.measured), (6, 4));
        let none = answer_to(&format!("{RATIO}where = {{ mips = 500 }}"), 3, Some("500"));
        assert_eq!(
            (none.points, none.measured, none.candidates.len()),
            (2, 0, 0)
        );
    }

    #[test]
    fn losses_along_a_factor() {
        for (take, lost, at) in [
            ("lost", 0.5, "vcpus 4, mips 250 to 500"),
            ("lost-ends", 0.4, "vcpus 4, mips 125 to 500"),
            ("lost-last", 0.5, "vcpus 4, mips 250 to 500"),
        ] {
            let (interval, found_at) = decides(&format!("{LOST}take = \"{take}\""), 3, None);
            assert!((interval.mean - lost).abs() < 1e-9, "{take}: {interval:?}");
            assert_eq!(found_at, at);
            let (low, high) = interval.ends.unwrap();
            assert!(low < interval.mean && interval.mean < high);
        }
        // The ends are the first and the last speed that the claim covers.
        let (_, part) = decides(
            &format!("{LOST}take = \"lost-ends\"\nwhere = {{ mips = [250, 500] }}"),
            3,
            None,
        );
        assert_eq!(part, "vcpus 4, mips 250 to 500");
        // Without results at the last speed there is no answer.
        let open = answer_to(&format!("{LOST}take = \"lost-ends\""), 3, Some("500"));
        assert_eq!(open.candidates, []);
        let rise = LOST.replace("share", "times") + "take = \"rise-ends\"";
        let (rise, _) = decides(&rise, 3, None);
        assert!((rise.mean - 1.0).abs() < 1e-9, "vcpus 1 rises most");
        let more = LOST.replace("share", "count") + "take = \"more-ends\"";
        let (interval, _) = decides(&more, 3, None);
        assert!(interval.mean.abs() < 1e-9, "{interval:?}");
        let (single, _) = decides(&format!("{LOST}take = \"lost\""), 1, None);
        assert_eq!(single.ends, None);
    }

    #[test]
    fn intervals_of_many_hold_at_once() {
        let one = answer_to(
            &format!("{LOST}take = \"lost-ends\"\nwhere = {{ vcpus = 4 }}"),
            3,
            None,
        );
        let two = answer_to(&format!("{LOST}take = \"lost-ends\""), 3, None);
        let width = |interval: &Interval| interval.ends.map(|(low, high)| high - low).unwrap();
        let [only] = &one.candidates[..] else {
            panic!("{one:?}");
        };
        assert_eq!(only.alone, only.jointly);
        let same = two
            .candidates
            .iter()
            .find(|it| it.at.starts_with("vcpus 4"))
            .unwrap();
        assert_eq!(same.alone, only.alone);
        assert!(width(&same.jointly) > width(&same.alone));
    }

    /// The verdict on the loss from the first speed to the last, and its reason.
    /// The explanation `races` is on and off under these conditions.
    fn loss_judged(rest: &str, (on, off): (&str, &str)) -> (ClaimVerdict, String) {
        let campaign = crate::campaigns::parse("toy.toml", CAMPAIGN).unwrap();
        let results = results(&campaign, 3, None);
        let claim = format!("says = \"\"\nblock = \"toy\"\n{LOST}take = \"lost-ends\"\n{rest}");
        let mut published = Published::builtin().clone();
        published.figures.truncate(1);
        published.figures[0].claims = vec![toml::from_str(&claim).unwrap()];
        let speeds = "says = \"ipc\"\nfactor = \"mips\"\n\
                      values = { half = [125, 250], one = [250, 500] }";
        let speeds = toml::from_str(speeds).unwrap();
        published.windows.insert("speeds".to_owned(), speeds);
        let races = format!("says = \"races\"\non = {on}\noff = {off}");
        let races = toml::from_str(&races).unwrap();
        published.explanations.insert("races".to_owned(), races);
        let figures = published.chosen(&[]).unwrap();
        let shown = Shown::new(&campaign, &results, None);
        let answers = document::answer(&published, &figures, Some(&shown));
        let judged = &answers[0].claims[0].judged;
        (judged.verdict, judged.why.clone())
    }

    /// In the toy only four processors lose.
    #[test]
    fn an_experiment_explains_a_refuted_claim() {
        let (one, four) = ("{ vcpus = 1 }", "{ vcpus = 4 }");
        let claim = format!("where = {one}\nexplanation = \"races\"");
        let (verdict, why) = loss_judged(&claim, (four, one));
        assert_eq!(verdict, ClaimVerdict::Explained);
        let is_told = why.starts_with("races: 40.0% (") && why.ends_with(" without");
        assert!(is_told, "{why}");
        // The cause does nothing, or the opposite.
        for causes in [(one, one), (one, four)] {
            assert_eq!(loss_judged(&claim, causes).0, ClaimVerdict::Refuted);
        }
        // Four lose at the higher speeds only.
        let claim = "where = { vcpus = 4 }\nnuisance = [\"speeds\"]\nexplanation = \"races\"";
        let (high, low) = ("{ ipc = \"one\" }", "{ ipc = \"half\" }");
        let verdict = |causes| loss_judged(claim, causes).0;
        assert_eq!(verdict((high, low)), ClaimVerdict::Explained);
        assert_eq!(verdict((low, high)), ClaimVerdict::Refuted);
    }

    #[test]
    fn a_claim_has_to_hold_for_each_value_of_a_nuisance_factor() {
        let (verdict, why) = loss_judged("nuisance = [\"vcpus\"]", ("{}", "{}"));
        assert_eq!(verdict, ClaimVerdict::Refuted);
        let parts = "(refuted with vcpus 1; same direction with vcpus 4)";
        assert!(why.ends_with(parts), "{why}");
        // Four processors lose from 250 to 500 MIPS alone, one never does.
        let (verdict, why) = loss_judged("nuisance = [\"vcpus\", \"speeds\"]", ("{}", "{}"));
        assert_eq!(verdict, ClaimVerdict::Refuted);
        let parts = "(refuted with vcpus 1 and ipc half or vcpus 1 and ipc one or vcpus 4 and ipc \
                     half; same direction with vcpus 4 and ipc one)";
        assert!(why.ends_with(parts), "{why}");
    }

    #[test]
    fn causes_are_ranked_over_all_repeats() {
        let claim = |causes: &str| {
            format!(
                "unit = \"correlation\"\nside = \"above\"\ncauses = [{causes}]\n\
                 of = {{ arm = \"stock\", measure = \"rate\" }}"
            )
        };
        let found = answer_to(&claim(r#""counter:steady", "counter:waited""#), 3, None);
        let [strongest] = &found.candidates[..] else {
            panic!("{found:?}");
        };
        let interval = strongest.alone;
        let (low, high) = interval.ends.unwrap();
        assert!(interval.mean > 0.9 && 0.0 < low && low < interval.mean && high <= 1.0);
        assert_eq!(strongest.at, "counter:waited hurts, 18 runs");
        assert_eq!((found.points, found.measured), (6, 6));
        let ranking = found.ranking.unwrap();
        // A constant quantity is not ranked.
        let [only] = &ranking.quantities[..] else {
            panic!("{ranking:?}");
        };
        assert!(only.pearson < -0.9 && only.spearman < -0.9);
        assert!((ranking.component_variance_share.unwrap() - 1.0).abs() < 1e-9);
        // A measure that is not counted there differs from one that is not measured yet.
        for (repeats, verdict) in [(3, ClaimVerdict::CannotBeAsked), (0, ClaimVerdict::Unknown)] {
            let text = claim("\"cache_miss_share\"");
            let found = answer_to(&text, repeats, None);
            assert_eq!(found.candidates, []);
            let claim: Claim = toml::from_str(&format!("says = \"\"\n{text}")).unwrap();
            assert_eq!(
                verdict::judge(&claim, &found, Published::builtin()).verdict,
                verdict
            );
        }
    }

    #[test]
    fn spread_is_of_the_repeats() {
        let text = "unit = \"share\"\npublished = 0.12\nlevel = true\ntake = \"spread\"\nof = { arm = \"stock\", measure = \"rate\" }";
        let (found, _) = decides(text, 3, None);
        assert!((found.mean - 0.01 / 1.02).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn poles_of_many_sets_are_the_outermost() {
        let gains = |kp: Vec<f64>| Gains {
            kp,
            ki: vec![0.25],
            kd: vec![0.25],
            c: vec![1.0],
        };
        let modulus = |found: &Found| found.candidates[0].alone.mean;
        let one = of_poles(&gains(vec![0.8]));
        assert!((modulus(&one) - 0.737).abs() < 1e-3);
        let more = of_poles(&gains(vec![0.8, 0.1]));
        assert!(modulus(&more) > modulus(&one));
        assert_eq!(more.points, 2);
        assert_eq!(of_poles(&gains(vec![-1.0])), Found::default());
    }
}
