//! Checks `published.toml` against the campaign that answers it.

use std::collections::BTreeSet;

use super::published::{Claim, ClaimTake, Direction, Published, Unit, Windows};
use super::sweep;
use crate::check;
use crate::error::did_you_mean;
use crate::file::{Block, Campaign, Figure, Value, Where};
use crate::points;

pub(super) fn all(all: &Published, campaign: &Campaign) -> Result<(), String> {
    for (name, share) in [
        ("tolerance_share", all.tolerance_share),
        ("same_share", all.same_share),
    ] {
        if !(0.0..1.0).contains(&share) || share == 0.0 {
            return Err(format!("{name}: must be above 0 and below 1"));
        }
    }
    for factor in all.quick.fits.keys() {
        if !campaign.blocks.iter().any(|block| has(block, factor)) {
            return Err(format!("quick: no block has a factor {factor}"));
        }
    }
    for name in &all.quick.without {
        if campaign.block(name).is_none() {
            return Err(format!("quick: no block {name}"));
        }
    }
    for (name, windows) in &all.windows {
        self::windows(windows, campaign).map_err(|why| format!("windows, {name}: {why}"))?;
    }
    let mut seen = BTreeSet::new();
    for figure in &all.figures {
        for id in std::iter::once(&figure.id).chain(&figure.also) {
            if !seen.insert(id) {
                return Err(format!("figure {id}: the name is used twice"));
            }
            let letter = id.get(..1).unwrap_or_default();
            if !all.documents.contains_key(letter) || id.len() < 2 {
                return Err(format!("figure {id}: no document {letter}"));
            }
        }
        if figure.claims.is_empty() {
            return Err(format!("figure {} has no claim", figure.id));
        }
        for claim in &figure.claims {
            self::claim(claim, all, campaign)
                .map_err(|why| format!("figure {}, {:?}: {why}", figure.id, claim.says))?;
        }
    }
    Ok(())
}

fn has(block: &Block, factor: &str) -> bool {
    block.factors.keys().any(|name| name.get_ref() == factor)
}

/// Checks that each value of the unknown has a window that consists of values of a block.
fn windows(windows: &Windows, campaign: &Campaign) -> Result<(), String> {
    let factor = &windows.factor;
    if windows.values.is_empty() {
        return Err("no values".into());
    }
    if !campaign.blocks.iter().any(|block| has(block, factor)) {
        return Err(format!("no block has a factor {factor}"));
    }
    match windows.values.iter().find(|(_, window)| window.is_empty()) {
        Some((value, _)) => Err(format!("no {factor} stands for {value}")),
        None => Ok(()),
    }
}

fn claim(claim: &Claim, all: &Published, campaign: &Campaign) -> Result<(), String> {
    if !claim.cannot.is_empty() {
        return match &claim.of {
            Some(_) => Err("cannot and of exclude each other".into()),
            None => Ok(()),
        };
    }
    if claim.published.is_none() && claim.side.is_none() {
        return Err("a number or a side is needed".into());
    }
    if claim.published == Some(claim.none()) {
        return Err("the number means no effect; use side = \"same\"".into());
    }
    if claim.level && (claim.published.is_none() || claim.side.is_some()) {
        return Err("a level needs a number and must not have a side".into());
    }
    let is_bare = matches!(
        claim.side,
        Some(Direction::Same | Direction::NotBelow | Direction::NotAbove)
    );
    if is_bare && claim.published.is_some() {
        return Err("this side does not allow a number".into());
    }
    let Some(figure) = &claim.of else {
        return match claim.poles {
            Some(_) if claim.unit == Unit::Modulus => Ok(()),
            Some(_) => Err("poles need unit = \"modulus\"".into()),
            None => Err("of or poles is needed".into()),
        };
    };
    if claim.poles.is_some() {
        return Err("of and poles exclude each other".into());
    }
    let Some(block) = campaign.block(&claim.block) else {
        let all = campaign.blocks.iter().map(|block| block.name.get_ref());
        let near = did_you_mean(&claim.block, all.map(String::as_str));
        return Err(format!("no block {}{near}", claim.block));
    };
    check::figure(block, figure)?;
    let shares = [
        ClaimTake::Lost,
        ClaimTake::LostEnds,
        ClaimTake::LostLast,
        ClaimTake::Spread,
    ];
    let unit_fits = if !claim.causes.is_empty() {
        claim.unit == Unit::Correlation
    } else if shares.contains(&claim.take) {
        claim.unit == Unit::Share
    } else if claim.take == ClaimTake::MoreEnds {
        claim.unit == Unit::Count
    } else {
        (claim.take == ClaimTake::RiseEnds || figure.is_ratio()) == (claim.unit == Unit::Times)
    };
    if !unit_fits {
        return Err("the unit does not match the figure".into());
    }
    if (claim.take.is_plain() || !claim.causes.is_empty())
        && (figure.is_ratio() || figure.minus.is_some())
    {
        return Err("this take uses one arm's own values, without to or minus".into());
    }
    for name in &claim.causes {
        crate::measures::check(name)?;
    }
    match &claim.over {
        Some(factor) if !has(block, factor) => {
            return Err(format!("over: the block has no factor {factor}"));
        }
        over if over.is_some() != claim.take.is_along() => {
            return Err("over belongs with a take that follows a factor".into());
        }
        _ => {}
    }
    nuisances(claim, all, campaign, block)?;
    if let Some(arm) = &claim.beside {
        let beside = Figure {
            arm: arm.clone(),
            ..figure.clone()
        };
        check::figure(block, &beside)?;
    }
    if let Some(lab) = &claim.lab {
        elsewhere(&claim.elsewhere(lab), figure, campaign).map_err(|why| format!("lab: {why}"))?;
    }
    let Some(name) = &claim.explanation else {
        return Ok(());
    };
    let Some(explanation) = all.explanations.get(name) else {
        let near = did_you_mean(name, all.explanations.keys().map(String::as_str));
        return Err(format!("no explanation {name}{near}"));
    };
    if explanation.on == explanation.off {
        return Err(format!("explanation {name}: on and off are the same"));
    }
    for (which, conditions) in [("on", &explanation.on), ("off", &explanation.off)] {
        elsewhere(&all.given(claim, conditions), figure, campaign)
            .map_err(|why| format!("explanation {name}, {which}: {why}"))?;
    }
    Ok(())
}

/// Checks that the claim's figure exists at these other points.
fn elsewhere(at: &Claim, figure: &Figure, campaign: &Campaign) -> Result<(), String> {
    let block = campaign.block(&at.block);
    let block = block.ok_or_else(|| format!("no block {}", at.block))?;
    check::figure(block, figure)?;
    conditions(campaign, block, &at.fits)
}

/// Checks that every combination of the unknowns has points.
fn nuisances(
    claim: &Claim,
    all: &Published,
    campaign: &Campaign,
    block: &Block,
) -> Result<(), String> {
    for name in &claim.nuisance {
        let factor = all.windows.get(name).map_or(name, |it| &it.factor);
        if !has(block, factor) {
            return Err(format!("nuisance: the block has no factor {factor}"));
        }
        if claim.fits.contains_key(factor) && factor != name {
            return Err(format!("nuisance {name}: where fixes {factor}"));
        }
    }
    let parts = sweep::parts(campaign, all, claim);
    if !claim.nuisance.is_empty() && parts.len() < 2 {
        let names = claim.nuisance.join(", ");
        return Err(format!("nuisance {names}: needs at least two values"));
    }
    for (name, part) in parts {
        let name = if name.is_empty() { "where" } else { &name };
        conditions(campaign, block, &part.fits).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// Checks that points of the block fit.
fn conditions(campaign: &Campaign, block: &Block, fits: &Where) -> Result<(), String> {
    values(block, fits)?;
    let points = points::of_block(campaign, block);
    if points.iter().any(|point| point.fits(fits)) {
        return Ok(());
    }
    Err("no point matches".into())
}

/// Checks that every value is one of the block's.
fn values(block: &Block, conditions: &Where) -> Result<(), String> {
    for (name, wanted) in conditions {
        let factor = block.factors.iter().find(|(own, _)| own.get_ref() == name);
        let Some((_, own)) = factor else {
            let all = block.factors.keys().map(|name| name.get_ref().as_str());
            return Err(format!("no factor {name}{}", did_you_mean(name, all)));
        };
        for Value(value) in wanted.all() {
            if !own.all().iter().any(|Value(own)| own == value) {
                return Err(format!("{name} is never {value}"));
            }
        }
    }
    Ok(())
}
