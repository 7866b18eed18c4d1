//! What must hold in a campaign and in a key, beyond their form.

use std::collections::BTreeSet;

use crate::arms;
use crate::cell::Cell;
use crate::error::did_you_mean;
use crate::file::{Block, Campaign, Figure, Where};
use crate::measures;
use crate::places::{self, Place};
use crate::points;

/// A complaint, and where in the text it belongs, if known.
type Complaint = (Option<usize>, String);

/// Names in braces that no factor gives.
const GIVEN: [&str; 3] = ["dir", "seed", "out"];
/// More points than this are a mistake in the factors.
const POINTS_MAX: usize = 100_000;

pub(crate) fn campaign(campaign: &Campaign) -> Result<(), Complaint> {
    let rule = &campaign.stop;
    for (name, bad) in [
        ("confidence", !(0.5..=0.999).contains(&rule.confidence)),
        (
            "half_width_share",
            !(1e-6..=1.0).contains(&rule.half_width_share),
        ),
        ("repeats_min", !(1..=1000).contains(&rule.repeats_min)),
        ("repeats_max", !(1..=1000).contains(&rule.repeats_max)),
    ] {
        if bad {
            let bounds = match name {
                "confidence" => "0.5 to 0.999",
                "half_width_share" => "0.000001 to 1",
                _ => "1 to 1000",
            };
            return Err((None, format!("stop.{name}: {bounds} are possible")));
        }
    }
    if campaign.blocks.is_empty() {
        return Err((None, "no [[block]]: there is nothing to measure".into()));
    }
    let mut seen = BTreeSet::new();
    for block in &campaign.blocks {
        if !seen.insert(block.name.get_ref()) {
            let why = format!("block {}: the name is used twice", block.name.get_ref());
            return Err((Some(block.name.span().start), why));
        }
        self::block(campaign, block)?;
    }
    for table in &campaign.tables {
        let block = shown_block(campaign, &table.block)?;
        let at = Some(table.block.span().start);
        let named = |why| (at, format!("table {:?}: {why}", table.title));
        known_factors(block, table.rows.iter().chain(&table.across)).map_err(named)?;
        for column in &table.columns {
            figure(block, &column.figure).map_err(named)?;
        }
        conditions(block, &table.fits).map_err(named)?;
        for goal in &table.goals {
            conditions(block, &goal.fits).map_err(named)?;
            if !table
                .columns
                .iter()
                .any(|column| column.heading == goal.heading)
            {
                return Err(named(format!(
                    "a goal for {:?}, which no column is called",
                    goal.heading
                )));
            }
        }
    }
    for plot in &campaign.plots {
        let block = shown_block(campaign, &plot.block)?;
        let named = |why| {
            (
                Some(plot.block.span().start),
                format!("plot {:?}: {why}", plot.title),
            )
        };
        let lines = Some(&plot.lines).filter(|lines| *lines != "arm");
        known_factors(block, plot.each.iter().chain([&plot.x]).chain(lines)).map_err(named)?;
        conditions(block, &plot.fits).map_err(named)?;
        for shown in &plot.figures {
            figure(block, shown).map_err(named)?;
        }
    }
    Ok(())
}

fn shown_block<'a>(
    campaign: &'a Campaign,
    name: &toml::Spanned<String>,
) -> Result<&'a Block, Complaint> {
    let all = campaign
        .blocks
        .iter()
        .map(|block| block.name.get_ref().as_str());
    campaign.block(name.get_ref()).ok_or_else(|| {
        let near = did_you_mean(name.get_ref(), all);
        (
            Some(name.span().start),
            format!("no block {}{near}", name.get_ref()),
        )
    })
}

fn block(campaign: &Campaign, block: &Block) -> Result<(), Complaint> {
    let at = Some(block.name.span().start);
    let named = |why: String| (at, format!("block {}: {why}", block.name.get_ref()));
    let place = place(&block.place).map_err(named)?;
    let own = || place.factors().iter().map(|factor| factor.name);
    let wanted = points::names_in(block.bench.get_ref());
    let wanted: BTreeSet<&str> = wanted.into_iter().map(|(_, name)| name).collect();
    let of_arms = || {
        let arms = block
            .arms
            .iter()
            .filter_map(|name| points::arm(campaign, name.get_ref()));
        arms.flat_map(|arm| {
            [&arm.around, &arm.after, &arm.bench]
                .into_iter()
                .chain(&arm.on)
        })
        .flat_map(|text| points::names_in(text).into_iter().map(|(_, name)| name))
    };
    for (name, values) in &block.factors {
        let text = name.get_ref().as_str();
        let is_known = own().any(|own| own == text)
            || wanted.contains(text)
            || of_arms().any(|name| name == text);
        let is_condition = block
            .set
            .iter()
            .any(|setting| setting.fits.contains_key(text));
        if !is_known && !is_condition {
            let near = did_you_mean(text, own().chain(wanted.iter().copied()));
            let why = format!(
                "{text}: neither a factor of the place {} nor named in bench{near}",
                block.place
            );
            return Err((Some(name.span().start), why));
        }
        if values.all().is_empty() {
            return Err((
                Some(name.span().start),
                format!("{text}: no value, so there is no cell"),
            ));
        }
    }
    for name in wanted.iter().copied().chain(of_arms()) {
        let given = GIVEN.contains(&name)
            || block.factors.keys().any(|factor| factor.get_ref() == name)
            || block
                .set
                .iter()
                .any(|setting| setting.values.contains_key(name));
        if !given {
            let factors = block.factors.keys().map(|factor| factor.get_ref().as_str());
            let near = did_you_mean(name, factors.chain(GIVEN));
            let why = format!("{{{name}}}: no factor of that name{near}");
            return Err((Some(block.bench.span().start), why));
        }
    }
    bench_and_arms(campaign, block, &wanted)?;
    let product = block
        .factors
        .values()
        .map(|values| values.all().len())
        .product::<usize>();
    if product > POINTS_MAX {
        return Err(named(format!(
            "{product} points; at most {POINTS_MAX} are possible"
        )));
    }
    let factors = block.factors.keys().map(toml::Spanned::get_ref);
    let known: BTreeSet<&String> = factors.collect();
    let settings = block.set.iter().map(|setting| &setting.fits);
    for condition in settings.chain(&block.skip) {
        for name in condition.keys() {
            if !known.contains(name) {
                let near = did_you_mean(name, known.iter().map(|name| name.as_str()));
                return Err(named(format!("where: no factor {name}{near}")));
            }
        }
    }
    let points = points::of_block(campaign, block);
    if points.is_empty() {
        return Err(named("every point is skipped, so there is no cell".into()));
    }
    for point in points {
        cell(&point.cell(1)).map_err(named)?;
    }
    Ok(())
}

/// The benchmark names its folder, and every arm and measure is known.
fn bench_and_arms(
    campaign: &Campaign,
    block: &Block,
    wanted: &BTreeSet<&str>,
) -> Result<(), Complaint> {
    let at = Some(block.name.span().start);
    let named = |why: String| (at, format!("block {}: {why}", block.name.get_ref()));
    if !wanted.contains("dir") {
        return Err((
            Some(block.bench.span().start),
            "bench must name the folder, {dir}".into(),
        ));
    }
    if shlex::split(block.bench.get_ref()).is_none() {
        return Err((
            Some(block.bench.span().start),
            "bench: a quote is not closed".into(),
        ));
    }
    if block.arms.is_empty() {
        return Err(named("arms: at least one is needed".into()));
    }
    for name in &block.arms {
        if points::arm(campaign, name.get_ref()).is_none() {
            let known = arms::builtin().keys().chain(campaign.arms.keys());
            let near = did_you_mean(name.get_ref(), known.map(String::as_str));
            return Err((
                Some(name.span().start),
                format!("no arm {}{near}", name.get_ref()),
            ));
        }
    }
    for name in &block.stop_at {
        measures::check(name).map_err(named)?;
    }
    Ok(())
}

/// Checks a key, or a cell of a campaign.
pub(crate) fn cell(cell: &Cell) -> Result<(), String> {
    let place = place(&cell.place)?;
    for (name, value) in &cell.machine {
        let Some(factor) = place.factors().iter().find(|factor| factor.name == name) else {
            let near = did_you_mean(name, place.factors().iter().map(|factor| factor.name));
            return Err(format!(
                "{name}: no factor of the place {}{near}",
                cell.place
            ));
        };
        (factor.check)(value).map_err(|why| format!("{name} {value:?}: {why}"))?;
    }
    for factor in place.factors() {
        if !cell.machine.contains_key(factor.name) {
            return Err(format!(
                "{}: the place {} needs it",
                factor.name, cell.place
            ));
        }
    }
    if cell.arms.is_empty() || shlex::split(&cell.bench).is_none_or(|words| words.is_empty()) {
        return Err("it has no arm, or no benchmark".to_owned());
    }
    place.check(cell)
}

fn place(name: &str) -> Result<&'static dyn Place, String> {
    places::find(name).ok_or_else(|| {
        let near = did_you_mean(name, places::ALL.iter().map(|place| place.name()));
        format!("no place {name}{near}")
    })
}

/// Factors that a table or a plot is made of.
fn known_factors<'a>(block: &Block, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let known = || {
        let factors = block.factors.keys().map(|name| name.get_ref().as_str());
        factors.chain(
            block
                .set
                .iter()
                .flat_map(|setting| setting.values.keys().map(String::as_str)),
        )
    };
    for name in names {
        if !known().any(|known| known == name) {
            return Err(format!(
                "{name}: no factor of the block{}",
                did_you_mean(name, known())
            ));
        }
    }
    Ok(())
}

fn conditions(block: &Block, conditions: &Where) -> Result<(), String> {
    known_factors(block, conditions.keys())
}

pub(crate) fn figure(block: &Block, figure: &Figure) -> Result<(), String> {
    measures::check(&figure.measure)?;
    if figure.to.is_some() && figure.minus.is_some() {
        return Err("a figure is a ratio (to) or a difference (minus), not both".into());
    }
    let known = || block.arms.iter().map(|arm| arm.get_ref().as_str());
    for name in [Some(&figure.arm), figure.to.as_ref(), figure.minus.as_ref()]
        .into_iter()
        .flatten()
    {
        if !known().any(|known| known == name) {
            return Err(format!(
                "{name}: no arm of the block{}",
                did_you_mean(name, known())
            ));
        }
    }
    Ok(())
}
