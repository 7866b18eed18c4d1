//! The part of the campaign that chosen figures need.

use std::collections::BTreeSet;

use super::published::{Claim, Published, Reported};
use crate::file::{Campaign, Value, Values, Where};
use crate::points;

/// The campaign cut down to the points of these figures' claims; `None` if they need none. Cells
/// keep their keys, so that runs for other figures, quick or not, share results.
pub fn campaign(
    published: &Published,
    whole: &Campaign,
    figures: &[&Reported],
    quick: bool,
) -> Option<Campaign> {
    let claims = figures.iter().flat_map(|figure| &figure.claims);
    let claims: Vec<Claim> = claims
        .flat_map(|claim| published.everywhere(claim))
        .collect();
    // Plots belong to the answer of all figures.
    let is_all = figures.len() == published.figures.len();
    let plots = whole.plots.iter().filter(|_| is_all && !quick);
    let mut cut = whole.clone();
    for block in &mut cut.blocks {
        let name = block.name.get_ref().clone();
        let of_block = claims
            .iter()
            .filter(|claim| claim.of.is_some() && claim.block == name);
        let of_plots = plots.clone().filter(|plot| *plot.block.get_ref() == name);
        let conditions = of_block.map(|claim| &claim.fits);
        let conditions: Vec<&Where> = conditions.chain(of_plots.map(|plot| &plot.fits)).collect();
        for (factor, values) in &mut block.factors {
            let factor = factor.get_ref();
            let named: Option<BTreeSet<&Value>> = conditions
                .iter()
                .map(|fits| Some(fits.get(factor)?.all()))
                .collect::<Option<Vec<_>>>()
                .map(|all| all.into_iter().flatten().collect());
            if let Some(named) = named {
                keep(values, |value| named.contains(value));
            }
            // Simulated points are quick enough with few repeats.
            let is_less = quick && block.place == "lab";
            let fits = is_less.then(|| published.quick.fits.get(factor)).flatten();
            if let Some(wanted) = fits {
                keep(values, |value| wanted.all().contains(value));
            }
        }
        if quick {
            let repeats = match block.place.as_str() {
                "lab" => published.quick.repeats,
                _ => published.quick.repeats_simulated,
            };
            block.repeats_min = Some(repeats);
            block.repeats_max = Some(repeats);
        }
    }
    let empty: BTreeSet<String> = cut
        .blocks
        .iter()
        .filter(|block| points::of_block(&cut, block).is_empty())
        .map(|block| block.name.get_ref().clone())
        .collect();
    cut.keep(|block| {
        let name = block.name.get_ref();
        let mut own = claims.iter().filter(|claim| claim.of.is_some());
        let is_left_out = quick && published.quick.without.contains(name) || empty.contains(name);
        let is_plotted = plots.clone().any(|plot| plot.block.get_ref() == name);
        (is_plotted || own.any(|claim| claim.block == *name)) && !is_left_out
    });
    (!cut.blocks.is_empty()).then_some(cut)
}

/// The simulated part of a campaign; `None` if it has none.
pub fn simulated(campaign: &Campaign) -> Option<Campaign> {
    let mut part = campaign.clone();
    part.keep(|block| block.place == "sim");
    (!part.blocks.is_empty()).then_some(part)
}

/// Keeps the wanted values; a factor that has none of them keeps all.
fn keep(values: &mut Values, wanted: impl Fn(&Value) -> bool) {
    let kept: Vec<Value> = values
        .all()
        .iter()
        .filter(|value| wanted(value))
        .cloned()
        .collect();
    if !kept.is_empty() {
        *values = Values::Many(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::campaign as whole;
    use super::*;
    use crate::points;

    #[test]
    fn a_figure_needs_its_points_alone() {
        let (published, whole) = (Published::builtin(), whole());
        let of = |names: &[&str], quick| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            campaign(published, whole, &published.chosen(&names).unwrap(), quick)
        };
        assert!(of(&["D5.6"], false).is_none(), "poles are computed");
        let all = of(&[], false).unwrap();
        let one = of(&["d5.8"], false).unwrap();
        let quick = of(&["D5.8"], true).unwrap();
        let [all, one, quick] = [&all, &one, &quick].map(points::all);
        assert!(all.len() > one.len() && one.len() > quick.len() && !quick.is_empty());
        // Simulated claims look along the speeds, of which a quick run leaves out none.
        let speeds = |points: &[points::Point<'_>]| -> BTreeSet<String> {
            let simulated = points.iter().filter(|point| point.place() == "sim");
            simulated
                .map(|point| point.value("mips").to_owned())
                .collect()
        };
        assert_eq!(speeds(&quick), speeds(&one));
        // The cells of a quick run are cells of the whole campaign.
        let keys: BTreeSet<String> = all.iter().map(|point| point.cell(1).key()).collect();
        for point in quick.iter().chain(&one) {
            assert!(keys.contains(&point.cell(1).key()));
        }
    }
}
