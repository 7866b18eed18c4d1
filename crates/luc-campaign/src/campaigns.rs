//! Reads campaigns: built-in ones and files. A built-in campaign is a file and a row of `ALL`.

use std::fs;
use std::path::Path;

use crate::check;
use crate::error::{CampaignError, Result, did_you_mean};
use crate::file::Campaign;

/// Names and texts of the built-in campaigns.
pub(crate) const ALL: &[(&str, &str)] = &[
    ("demo", include_str!("../../../campaigns/demo.toml")),
    ("bench", include_str!("../../../campaigns/bench.toml")),
    ("policies", include_str!("../../../campaigns/policies.toml")),
    ("scaling", include_str!("../../../campaigns/scaling.toml")),
    (
        "reproduce",
        include_str!("../../../campaigns/reproduce.toml"),
    ),
    ("validate", include_str!("../../../campaigns/validate.toml")),
    ("journals", include_str!("../../../campaigns/journals.toml")),
    ("power", include_str!("../../../campaigns/power.toml")),
    ("arena", include_str!("../../../campaigns/arena.toml")),
    (
        "recommend",
        include_str!("../../../campaigns/recommend.toml"),
    ),
    ("apps", include_str!("../../../campaigns/apps.toml")),
];

/// Lists the names for messages.
pub fn names() -> String {
    let names: Vec<String> = ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}

/// Parses the text of a campaign. Error messages name its file `source_name`.
///
/// # Errors
/// The first mistake, with its line and column.
pub fn parse(source_name: &str, text: &str) -> Result<Campaign> {
    let parsed: std::result::Result<Campaign, toml::de::Error> = toml::from_str(text);
    let mut campaign = parsed.map_err(|error| CampaignError::BadFile {
        source_name: error.span().map_or_else(
            || source_name.to_owned(),
            |span| positioned(source_name, text, span.start),
        ),
        why: with_suggestion(&one_line(error.message())),
    })?;
    text.clone_into(&mut campaign.text);
    let whole = campaign.written_out().map_err(|name| {
        let known = campaign.blocks.iter().map(|block| block.name.get_ref());
        let near = did_you_mean(name.get_ref(), known.map(String::as_str));
        let why = format!("set_as: no block {}{near}", name.get_ref());
        (Some(name.span().start), why)
    });
    let sound = whole
        .and_then(|()| check::campaign(&campaign))
        .and_then(|()| check::whole(&campaign));
    sound.map_err(|(at, why)| CampaignError::BadFile {
        source_name: at.map_or_else(
            || source_name.to_owned(),
            |at| positioned(source_name, text, at),
        ),
        why,
    })?;
    Ok(campaign)
}

/// `FILE:LINE:COLUMN` of an offset in the text.
fn positioned(source_name: &str, text: &str, at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |part| part.chars().count())
        + 1;
    format!("{source_name}:{line}:{column}")
}

/// Appends the nearest of the known keys that the parser's message lists.
fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let near = match (message.starts_with("unknown field"), quoted.next()) {
        (true, Some(unknown)) => did_you_mean(unknown, quoted),
        _ => String::new(),
    };
    format!("{message}{near}")
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Loads a built-in campaign, or else a file.
///
/// # Errors
/// It cannot be read, or has a mistake.
pub fn load(name: &str) -> Result<Campaign> {
    if let Some((name, text)) = ALL.iter().find(|(own, _)| *own == name) {
        return parse(&format!("campaigns/{name}.toml"), text);
    }
    let path = Path::new(name);
    let text = fs::read_to_string(path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound {
            let near = did_you_mean(name, ALL.iter().map(|(own, _)| *own));
            return CampaignError::BadFile {
                source_name: name.to_owned(),
                why: format!(
                    "no such file and no campaign of that name{near}; known: {}",
                    names()
                ),
            };
        }
        CampaignError::BadFile {
            source_name: name.to_owned(),
            why: format!("cannot read it: {}", luc_host::plain(&source)),
        }
    })?;
    parse(name, &text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn own_campaigns_are_sound() {
        for (name, _) in super::ALL {
            super::load(name).unwrap();
        }
    }
}
