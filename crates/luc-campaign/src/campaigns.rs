//! The campaigns that come with the program. A campaign is a file and a row.

use std::fs;
use std::path::Path;

use crate::error::{CampaignError, Result, did_you_mean};
use crate::file::Campaign;

/// Names and texts.
const ALL: &[(&str, &str)] = &[
    (
        "fsync-loops",
        include_str!("../../../campaigns/fsync-loops.toml"),
    ),
    (
        "reproduce",
        include_str!("../../../campaigns/reproduce.toml"),
    ),
];

/// The names, for people.
pub fn names() -> String {
    let names: Vec<String> = ALL.iter().map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}

/// A campaign that comes with the program, or else a file.
///
/// # Errors
/// It cannot be read, or is wrong.
pub fn load(name: &str) -> Result<Campaign> {
    if let Some((name, text)) = ALL.iter().find(|(own, _)| *own == name) {
        return Campaign::parse(&format!("campaigns/{name}.toml"), text);
    }
    let path = Path::new(name);
    let text = fs::read_to_string(path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound {
            let near = did_you_mean(name, ALL.iter().map(|(own, _)| *own));
            return CampaignError::BadFile {
                source_name: name.to_owned(),
                why: format!(
                    "no such file, and no campaign of that name{near}; there is {}",
                    names()
                ),
            };
        }
        CampaignError::file("read", path)(source)
    })?;
    Campaign::parse(name, &text)
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
