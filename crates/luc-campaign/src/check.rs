//! Checks of campaigns and of keys, beyond their syntax.

use std::collections::BTreeSet;

use toml::Spanned;

use crate::arms::{self, Arm};
use crate::cell::Cell;
use crate::error::{CampaignError, did_you_mean};
use crate::file::{Block, Campaign, Column, Figure, TableSpec, Values, Where};
use crate::measures;
use crate::places::{self, Place};
use crate::points::{self, ARM};

/// A complaint, with its offset in the text if known.
type Complaint = (Option<usize>, String);

/// Names in braces that stand for something other than a factor.
const GIVEN: [&str; 3] = ["dir", "seed", "out"];
/// More points than this are a mistake in the factors.
const POINTS_MAX: usize = 100_000;

pub(crate) fn campaign(campaign: &Campaign) -> Result<(), Complaint> {
    let rule = &campaign.stop;
    let is_count = |repeats: u32| (1..=1000).contains(&repeats);
    let is_sure = (0.5..=0.999).contains(&rule.confidence);
    let is_share = (1e-6..=1.0).contains(&rule.half_width_share);
    for (name, is_sound, bounds) in [
        ("confidence", is_sure, "0.5 to 0.999"),
        ("half_width_share", is_share, "0.000001 to 1"),
        ("repeats_min", is_count(rule.repeats_min), "1 to 1000"),
        ("repeats_max", is_count(rule.repeats_max), "1 to 1000"),
    ] {
        if !is_sound {
            return Err((None, format!("stop.{name}: must be {bounds}")));
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
        let named = |why| {
            (
                Some(table.block.span().start),
                format!("table {:?}: {why}", table.title),
            )
        };
        columns(table).map_err(named)?;
    }
    for part in parts(campaign) {
        let block = part.block(campaign)?;
        let conditions = part
            .conditions
            .iter()
            .flat_map(|condition| condition.keys());
        let factors = part.factors.iter().copied().chain(conditions);
        known_factors(block, factors).map_err(|why| part.complaint(&why))?;
        for shown in &part.figures {
            figure(block, shown).map_err(|why| part.complaint(&why))?;
        }
    }
    for sentence in &campaign.sentences {
        for (_, asked) in points::names_in(&sentence.text) {
            let name = asked.split(['.', '%', '+']).next().unwrap_or(asked);
            if !sentence.values.contains_key(name) {
                let known = sentence.values.keys().map(String::as_str);
                let near = did_you_mean(name, known);
                return Err((
                    None,
                    format!("sentence: there is no value {{{asked}}}{near}"),
                ));
            }
        }
    }
    Ok(())
}

/// A part of the report that shows figures of a block, with all that it names there.
struct ReportPart<'a> {
    what: String,
    of: &'a Spanned<String>,
    factors: Vec<&'a String>,
    conditions: Vec<&'a Where>,
    figures: Vec<Figure>,
}

impl ReportPart<'_> {
    fn complaint(&self, why: &str) -> Complaint {
        (Some(self.of.span().start), format!("{}: {why}", self.what))
    }

    fn block<'a>(&self, campaign: &'a Campaign) -> Result<&'a Block, Complaint> {
        let name = self.of.get_ref();
        campaign.block(name).ok_or_else(|| {
            let all = campaign
                .blocks
                .iter()
                .map(|block| block.name.get_ref().as_str());
            let why = format!("no block {name}{}", did_you_mean(name, all));
            (Some(self.of.span().start), why)
        })
    }
}

fn parts(campaign: &Campaign) -> Vec<ReportPart<'_>> {
    let tables = campaign.tables.iter().map(|table| {
        let arms = campaign
            .block(table.block.get_ref())
            .map(|block| &block.arms);
        let first = arms.and_then(|arms| arms.first());
        let first = first.map_or("", |arm| arm.get_ref().as_str());
        let goals = table.goals.iter().map(|goal| &goal.fits);
        let columns = table.columns.iter().map(|column| column.figure(first));
        ReportPart {
            what: format!("table {:?}", table.title),
            of: &table.block,
            factors: table.factors().collect(),
            conditions: goals.chain([&table.fits]).collect(),
            figures: columns.collect(),
        }
    });
    let plots = campaign.plots.iter().map(|plot| {
        let lines = Some(&plot.lines).filter(|lines| *lines != "arm");
        ReportPart {
            what: format!("plot {:?}", plot.title),
            of: &plot.block,
            factors: plot.each.iter().chain([&plot.x]).chain(lines).collect(),
            conditions: vec![&plot.fits],
            figures: plot.figures.clone(),
        }
    });
    let sentences = campaign.sentences.iter();
    let values = sentences.flat_map(|sentence| &sentence.values);
    let values = values.map(|(name, picked)| ReportPart {
        what: format!("sentence, value {name}"),
        of: &picked.block,
        factors: Vec::new(),
        conditions: vec![&picked.fits],
        figures: vec![picked.figure.clone()],
    });
    tables.chain(plots).chain(values).collect()
}

/// Checks what a table's columns need of each other and of its goals.
fn columns(table: &TableSpec) -> Result<(), String> {
    let nameless = |column: &&Column| column.arm.is_none() && table.arms.is_none();
    if let Some(column) = table.columns.iter().find(nameless) {
        return Err(format!("column {:?} names no arm", column.heading));
    }
    over_points(table)?;
    let has_heading = |heading: &String| {
        let mut columns = table.columns.iter();
        columns.any(|column| column.heading == *heading)
    };
    if let Some(ranked) = &table.ranked {
        if table.is_over_points() || table.across.is_some() || table.worst.is_some() {
            return Err(
                "ranked: each row is one point, so `across`, `worst` and columns over many \
                        points are not possible"
                    .into(),
            );
        }
        if ranked.by.is_empty() {
            return Err("ranked: `by` names no column".into());
        }
        if let Some(by) = ranked.by.iter().find(|by| !has_heading(by)) {
            let known = table.columns.iter().map(|column| column.heading.as_str());
            let near = did_you_mean(by, known);
            return Err(format!("ranked: no column has the heading {by:?}{near}"));
        }
    }
    match table.goals.iter().find(|goal| !has_heading(&goal.heading)) {
        Some(goal) => Err(format!(
            "a goal for {:?}, but no column has that heading",
            goal.heading
        )),
        None => Ok(()),
    }
}

/// Checks that all rows of a table are of one kind: one point, many points, or one of the worst.
fn over_points(table: &TableSpec) -> Result<(), String> {
    let many = table.columns.iter().filter(|column| column.over.is_some());
    if ![0, table.columns.len()].contains(&many.count()) {
        return Err("either all columns have `points`, or none".into());
    }
    match table.worst {
        Some(0) => Err("worst: at least 1 is needed".into()),
        Some(_) if table.is_over_points() || table.across.is_some() || table.arms.is_some() => Err(
            "worst: each row is one point, so `across`, `arms` and columns over many points are \
             not possible"
                .into(),
        ),
        Some(_) if table.deciding().is_none() => {
            Err("worst: it ranks points by a column's bound, but no column has one".into())
        }
        _ => Ok(()),
    }
}

fn block(campaign: &Campaign, block: &Block) -> Result<(), Complaint> {
    let at = Some(block.name.span().start);
    let named = |why: String| (at, format!("block {}: {why}", block.name.get_ref()));
    let place = place(&block.place).map_err(named)?;
    let own = || place.factors().iter().map(|factor| factor.name);
    let bench = std::iter::once(block.bench.get_ref().as_str());
    let of_own = own().flat_map(|name| points::values_of(block, name));
    let wanted = points::names_asked(block, bench.chain(of_own));
    let asked_by_arms = names_of_arms(campaign, block);
    let of_arms = || asked_by_arms.iter().copied();
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
                format!("{text}: it has no values, so there are no cells"),
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
        .fold(1_usize, usize::saturating_mul);
    if product > POINTS_MAX {
        return Err(named(format!("more than {POINTS_MAX} points, the maximum")));
    }
    let factors = block.factors.keys().map(toml::Spanned::get_ref);
    let known: BTreeSet<&String> = factors.collect();
    let settings = block.set.iter().map(|setting| &setting.fits);
    let of_settings = settings.flat_map(|condition| condition.keys());
    let of_skip = block.skips().flat_map(|condition| condition.keys());
    for name in of_settings.chain(of_skip.filter(|name| *name != ARM)) {
        if !known.contains(name) {
            let near = did_you_mean(name, known.iter().map(|name| name.as_str()));
            return Err(named(format!("where: no factor {name}{near}")));
        }
    }
    if block.draw == Some(0) {
        return Err(named("draw: at least 1 point is needed".into()));
    }
    let points = points::of_block(campaign, block);
    if points.is_empty() && campaign.half.is_none() {
        return Err(named(format!(
            "every point is skipped{}, so there is no cell",
            skipped(block)
        )));
    }
    for point in points {
        let first = point.cell(1);
        let left = points::names_in(&first.bench);
        if let Some((_, name)) = left.iter().find(|(_, name)| !GIVEN.contains(name)) {
            return Err(named(format!(
                "{{{name}}}: some point has no value of that name, or the value refers to itself"
            )));
        }
        cell(&first).map_err(named)?;
    }
    Ok(())
}

/// The first rule by which points are skipped, if its factors have no other values here.
fn skipped(block: &Block) -> String {
    let has_only = |(name, wanted): (&String, &Values)| {
        let factor = block.factors.iter().find(|(own, _)| own.get_ref() == name);
        let own = factor.map_or(&[] as &[_], |(_, values)| values.all());
        own.iter().all(|value| wanted.all().contains(value))
    };
    let mut rules = block.skips().filter(|skip| !skip.contains_key(ARM));
    let rule = rules.find(|skip| skip.iter().all(has_only));
    let of_rule = rule.into_iter().flatten().map(|(name, _)| {
        let own = points::values_of(block, name).collect::<Vec<_>>();
        format!("{name} {}", own.join(", "))
    });
    let of_rule: Vec<String> = of_rule.collect();
    if of_rule.is_empty() {
        String::new()
    } else {
        format!(" ({})", of_rule.join(" with "))
    }
}

/// Whether a block uses the value of a factor itself, not only as a condition.
pub(crate) fn uses(campaign: &Campaign, block: &Block, factor: &str) -> bool {
    let place = places::find(&block.place);
    let own = place.map_or(&[] as &[_], |place| place.factors());
    let bench = std::iter::once(block.bench.get_ref().as_str());
    let of_own = own
        .iter()
        .flat_map(|own| points::values_of(block, own.name));
    own.iter().any(|own| own.name == factor)
        || points::names_asked(block, bench.chain(of_own)).contains(factor)
        || names_of_arms(campaign, block).contains(factor)
}

fn names_of_arms<'a>(campaign: &'a Campaign, block: &'a Block) -> BTreeSet<&'a str> {
    let arms = block
        .arms
        .iter()
        .filter_map(|name| points::arm(campaign, name.get_ref()));
    points::names_asked(block, arms.flat_map(Arm::texts).map(String::as_str))
}

/// Checks rules that need not hold for a part of a campaign: every named value is used, and every
/// condition can be met.
pub(crate) fn whole(campaign: &Campaign) -> Result<(), Complaint> {
    for block in &campaign.blocks {
        let at = Some(block.name.span().start);
        let named = |why: String| (at, format!("block {}: {why}", block.name.get_ref()));
        // A borrowed setting may be for values of factors that this block lacks.
        let own = block.set.iter().filter(|setting| !setting.is_borrowed);
        let conditions = own.map(|setting| &setting.fits);
        for condition in conditions.chain(&block.skip) {
            has_values(block, condition).map_err(named)?;
        }
        used(campaign, block).map_err(named)?;
    }
    for part in parts(campaign) {
        let block = part.block(campaign)?;
        for condition in &part.conditions {
            has_values(block, condition).map_err(|why| part.complaint(&why))?;
        }
    }
    Ok(())
}

/// Checks that each value of a block's own `set` is a factor of the place, or that this block or an
/// arm of the file uses its name.
fn used(campaign: &Campaign, block: &Block) -> Result<(), String> {
    let place = place(&block.place)?;
    let own: BTreeSet<&str> = place.factors().iter().map(|factor| factor.name).collect();
    let bench = std::iter::once(block.bench.get_ref().as_str());
    let of_own = own.iter().flat_map(|name| points::values_of(block, name));
    let mut asked = points::names_asked(block, bench.chain(of_own));
    asked.extend(names_of_arms(campaign, block));
    let arms_of_file = campaign.arms.values().flat_map(Arm::texts);
    asked.extend(points::names_asked(block, arms_of_file.map(String::as_str)));
    let block_name = block.name.get_ref();
    let parts = parts(campaign);
    let own_parts = parts.iter().filter(|part| part.of.get_ref() == block_name);
    let shown: BTreeSet<&str> = own_parts
        .flat_map(|part| {
            let conditions = part
                .conditions
                .iter()
                .flat_map(|condition| condition.keys());
            part.factors.iter().copied().chain(conditions)
        })
        .map(String::as_str)
        .collect();
    // A borrowed setting is used by the block that lends it.
    let own_set = block.set.iter().filter(|setting| !setting.is_borrowed);
    for name in own_set.flat_map(|setting| setting.values.keys()) {
        let name = name.as_str();
        let is_factor = block.factors.keys().any(|factor| factor.get_ref() == name);
        if !own.contains(name) && !asked.contains(name) && !shown.contains(name) && !is_factor {
            let near = did_you_mean(name, own.iter().chain(&asked).copied());
            return Err(format!(
                "set: {name} is neither a factor of the place {} nor named in bench{near}",
                block.place
            ));
        }
    }
    Ok(())
}

/// Checks that each value of a condition occurs for its factor somewhere in the block.
fn has_values(block: &Block, condition: &Where) -> Result<(), String> {
    for (name, values) in condition {
        let possible: BTreeSet<&str> = if name == ARM {
            block
                .arms
                .iter()
                .map(|arm| arm.get_ref().as_str())
                .collect()
        } else {
            points::values_of(block, name).collect()
        };
        for value in values.all() {
            if !possible.contains(value.0.as_str()) {
                let possible: Vec<&str> = possible.into_iter().collect();
                return Err(format!(
                    "where: {name} is never {}; possible values: {}",
                    value.0,
                    possible.join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the benchmark names its folder, and that every arm and measure is known.
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

/// Reads a key.
///
/// # Errors
/// It does not describe a valid cell.
pub fn cell_of_key(key: &str) -> Result<Cell, CampaignError> {
    let bad = |why| CampaignError::BadKey { why };
    let read: Cell = serde_json::from_str(key).map_err(|error| {
        bad(format!(
            "{error}; a key is a line of JSON, as `luc-lab campaign export` prints it"
        ))
    })?;
    cell(&read).map_err(bad)?;
    Ok(read)
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
        let is_used = factor.default != Some(places::NONE);
        if is_used && !cell.machine.contains_key(factor.name) {
            return Err(format!(
                "{}: the place {} needs it",
                factor.name, cell.place
            ));
        }
    }
    if cell.arms.is_empty() || shlex::split(&cell.bench).is_none_or(|words| words.is_empty()) {
        return Err("it has no arms or no benchmark".to_owned());
    }
    place.check(cell)
}

fn place(name: &str) -> Result<&'static dyn Place, String> {
    places::find(name).ok_or_else(|| {
        let near = did_you_mean(name, places::ALL.iter().map(|place| place.name()));
        format!("no place {name}{near}")
    })
}

/// Checks that the factors of a table or a plot are known.
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

/// Checks a measure with every value of the factor that it names, if it names one.
fn measure(block: &Block, name: &str) -> Result<(), String> {
    let Some((_, factor)) = points::names_in(name).into_iter().next() else {
        return measures::check(name);
    };
    let known = || place(&block.place).map(|place| place.factors().iter().map(|it| it.name));
    if !known()?.any(|known| known == factor) {
        let near = did_you_mean(factor, known()?);
        let place = &block.place;
        return Err(format!(
            "measure {name}: no factor {factor} of the place {place}{near}"
        ));
    }
    let mut filled = points::values_of(block, factor)
        .map(|value| name.replace(&format!("{{{factor}}}"), value))
        .peekable();
    if filled.peek().is_none() {
        return Err(format!(
            "measure {name}: the block has no values of {factor}"
        ));
    }
    filled.try_for_each(|name| measures::check(&name))
}

pub(crate) fn figure(block: &Block, shown: &Figure) -> Result<(), String> {
    measure(block, &shown.measure)?;
    let bases = [
        shown.to.is_some(),
        !shown.to_best_of.is_empty(),
        !shown.to_worst_of.is_empty(),
        shown.minus.is_some(),
    ];
    if bases.into_iter().filter(|is_given| *is_given).count() > 1 {
        return Err("a figure can have only one of to, to_best_of, to_worst_of and minus".into());
    }
    if shown.relative_to_arm.is_some() && shown.relative_to.is_empty() {
        return Err("relative_to_arm needs relative_to, which names the other point".into());
    }
    let known = || block.arms.iter().map(|arm| arm.get_ref().as_str());
    for name in [Some(&shown.arm), shown.to.as_ref(), shown.minus.as_ref()]
        .into_iter()
        .flatten()
        .chain(&shown.to_best_of)
        .chain(&shown.to_worst_of)
        .chain(&shown.relative_to_arm)
    {
        if !known().any(|known| known == name) {
            return Err(format!(
                "{name}: no arm of the block{}",
                did_you_mean(name, known())
            ));
        }
    }
    shown
        .over
        .as_ref()
        .map_or(Ok(()), |over| figure(block, over))
}
