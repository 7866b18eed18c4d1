//! A part of a campaign: some blocks, other values of factors, another number of repeats.

use toml::Spanned;

use crate::check;
use crate::error::{CampaignError, Result, did_you_mean};
use crate::file::{Block, Campaign, Half, Value, Values};

/// Selects a part. The default is everything but blocks that are run only by name.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Use only these blocks
    #[arg(long = "only", value_name = "BLOCK", value_delimiter = ',')]
    pub blocks: Vec<String>,
    /// Replace the values of a factor, for example --set kernel=6.12 or --set vcpus=1,4; may be
    /// repeated
    #[arg(long = "set", value_name = "FACTOR=VALUE,...")]
    pub values: Vec<String>,
    /// Measure each point N times, however wide its intervals are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
    /// Number of points to draw in each block that draws points, or `all`
    #[arg(long, value_name = "N", value_parser = draw)]
    pub draw: Option<u32>,
    /// Use only this half of the drawn points, with its own seeds: a finding must hold on both
    /// halves
    #[arg(long, value_name = "HALF")]
    pub half: Option<Half>,
    /// Seed to use instead of the campaign's: draws other points and uses other seeds
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

fn draw(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        _ if text == "all" => Ok(u32::MAX),
        Ok(points) if points > 0 => Ok(points),
        _ => Err("expected a number of points or `all`".to_owned()),
    }
}

/// Checks the values of a factor that only chooses among settings: one that neither its list nor a
/// setting names would change nothing.
fn known_values(
    factor: &str,
    block: &Block,
    listed: &Values,
    wanted: &[Value],
) -> std::result::Result<(), String> {
    let chosen = block
        .set
        .iter()
        .filter_map(|setting| setting.fits.get(factor));
    let mut known: Vec<&Value> = Vec::new();
    for value in std::iter::once(listed).chain(chosen).flat_map(Values::all) {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    match wanted.iter().find(|value| !known.contains(value)) {
        None => Ok(()),
        Some(Value(value)) => {
            let known: Vec<&str> = known.iter().map(|it| it.0.as_str()).collect();
            let near = did_you_mean(value, known.iter().copied());
            let known = known.join(", ");
            Err(format!("{factor} is never {value}{near}; known: {known}"))
        }
    }
}

impl Campaign {
    /// The values of a factor in all blocks, each once.
    pub fn values_of(&self, factor: &str) -> Vec<&str> {
        let factors = self.blocks.iter().flat_map(|block| &block.factors);
        let named = factors.filter(|(name, _)| name.get_ref() == factor);
        let all = named.flat_map(|(_, values)| values.all());
        let mut once = Vec::new();
        for value in all.map(|value| value.0.as_str()) {
            if !once.contains(&value) {
                once.push(value);
            }
        }
        once
    }

    /// Measures nothing with this arm.
    pub fn leave_out(&mut self, arm: &str) {
        for block in &mut self.blocks {
            block.arms.retain(|known| known.get_ref() != arm);
        }
    }
}

impl Part {
    /// Reduces a campaign to the part, including its tables and plots.
    ///
    /// # Errors
    /// A name that the campaign does not have, or an invalid value.
    pub fn narrow(&self, mut campaign: Campaign) -> Result<Campaign> {
        let source_name = campaign.title.clone();
        let bad = |why: String| CampaignError::BadFile {
            source_name: source_name.clone(),
            why,
        };
        let names: Vec<String> = campaign
            .blocks
            .iter()
            .map(|block| block.name.get_ref().clone())
            .collect();
        for name in &self.blocks {
            if !names.contains(name) {
                let near = did_you_mean(name, names.iter().map(String::as_str));
                return Err(bad(format!(
                    "no block {name}{near}; known: {}",
                    names.join(", ")
                )));
            }
        }
        // First: values are for the blocks that are left.
        campaign.keep(|block| match self.blocks.as_slice() {
            [] => !block.by_name,
            names => names.contains(block.name.get_ref()),
        });
        for text in &self.values {
            let (factor, wanted) = text
                .split_once('=')
                .ok_or_else(|| bad(format!("{text:?}: FACTOR=VALUE,... is needed")))?;
            let wanted: Vec<Value> = wanted
                .split(',')
                .map(|value| Value(value.to_owned()))
                .collect();
            let all = campaign
                .blocks
                .iter()
                .flat_map(|block| block.factors.keys());
            if !all.clone().any(|name| name.get_ref() == factor) {
                let near = did_you_mean(factor, all.map(|name| name.get_ref().as_str()));
                return Err(bad(format!("no factor {factor}{near}")));
            }
            let is_named = |name: &Spanned<String>| name.get_ref() == factor;
            for block in &campaign.blocks {
                let own = block.factors.iter().find(|(name, _)| is_named(name));
                if let Some((_, listed)) = own
                    && !check::uses(&campaign, block, factor)
                {
                    known_values(factor, block, listed, &wanted).map_err(bad)?;
                }
            }
            for block in &mut campaign.blocks {
                let own = block.factors.iter_mut();
                for (_, values) in own.filter(|(name, _)| is_named(name)) {
                    *values = Values::Many(wanted.clone());
                }
            }
        }
        let draws = campaign.blocks.iter().any(|block| block.draw.is_some());
        if !draws && (self.draw.is_some() || self.half.is_some()) {
            return Err(bad("no block draws its points (draw = N)".to_owned()));
        }
        for block in &mut campaign.blocks {
            block.draw = block.draw.map(|own| self.draw.unwrap_or(own));
        }
        campaign.half = self.half;
        campaign.seed = self.seed.unwrap_or(campaign.seed);
        if let Some(repeats) = self.repeats {
            campaign.stop.repeats_min = repeats;
            campaign.stop.repeats_max = repeats;
            for block in &mut campaign.blocks {
                (block.repeats_min, block.repeats_max) = (None, None);
            }
        }
        crate::check::campaign(&campaign).map_err(|(_, why)| bad(why))?;
        Ok(campaign)
    }
}
