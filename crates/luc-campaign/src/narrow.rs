//! A part of a campaign: some blocks, other values of factors, another number of repeats.

use crate::error::{CampaignError, Result, did_you_mean};
use crate::file::{Campaign, Half, Value, Values};

/// Selects a part. The default is everything but blocks that are run only by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Names of blocks.
    pub blocks: Vec<String>,
    /// `FACTOR=VALUE,VALUE`: blocks that have the factor get these values instead of their own.
    pub values: Vec<String>,
    /// Number of repeats of each point, however wide its intervals.
    pub repeats: Option<u32>,
    /// Number of points in each block that draws.
    pub draw: Option<u32>,
    /// Half of the drawn points.
    pub half: Option<Half>,
    /// Seed instead of the campaign's: gives other points and other seeds.
    pub seed: Option<u64>,
}

impl Part {
    /// Reduces a campaign to the part, including its tables and plots.
    ///
    /// # Errors
    /// A name that the campaign does not have, or an invalid value.
    pub fn of(&self, mut campaign: Campaign) -> Result<Campaign> {
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
            let factors = campaign
                .blocks
                .iter_mut()
                .flat_map(|block| &mut block.factors);
            for (_, values) in factors.filter(|(name, _)| name.get_ref() == factor) {
                *values = Values::Many(wanted.clone());
            }
        }
        campaign.keep(|block| match self.blocks.as_slice() {
            [] => !block.by_name,
            names => names.contains(block.name.get_ref()),
        });
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
