//! The mirror that this machine itself uses, from its apt sources in both formats. The repository
//! names no mirror of its own.

use std::fs;
use std::path::Path;

use crate::error::{LabError, Result};

/// Environment variable that names a Debian mirror; it overrides the machine's own.
pub const MIRROR_VARIABLE: &str = "LUC_DEBIAN_MIRROR";
/// Environment variable that names a mirror of Debian's security archive.
pub const SECURITY_VARIABLE: &str = "LUC_DEBIAN_SECURITY_MIRROR";

const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Where packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// URI of the main archive.
    pub main: String,
    /// URI of the security archive, if known.
    pub security: Option<String>,
    /// Keyring file that signs both.
    pub keyring: String,
}

impl Mirror {
    /// The line of apt's sources for a suite; `None` for one of the security archive if no mirror
    /// of that is known.
    pub fn source(&self, suite: &str) -> Option<String> {
        let uri = if suite.ends_with("-security") {
            self.security.as_ref()?
        } else {
            &self.main
        };
        let keyring = &self.keyring;
        Some(format!(
            "deb [signed-by={keyring} arch=amd64] {uri} {suite} main"
        ))
    }
}

/// One line or stanza of apt's sources, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Address.
    pub uri: String,
    /// Suites, for instance `bookworm` and `bookworm-updates`.
    pub suites: Vec<String>,
    /// Key file, if one is named.
    pub signed_by: Option<String>,
}

/// Finds the mirror of this machine.
///
/// # Errors
/// [`LabError::NoMirror`] if no source is Debian's, [`LabError::MissingTool`] if the archive's keys
/// are not installed.
pub fn find() -> Result<Mirror> {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let sources = read_sources(Path::new("/etc/apt"));
    let exists = |keyring: &str| Path::new(keyring).exists();
    choose(
        &sources,
        set(MIRROR_VARIABLE),
        set(SECURITY_VARIABLE),
        exists,
    )
}

fn choose(
    sources: &[Source],
    main: Option<String>,
    security: Option<String>,
    exists: impl Fn(&str) -> bool,
) -> Result<Mirror> {
    let pick = |wanted: Archive| {
        sources
            .iter()
            .find(|source| archive(source) == Some(wanted))
            .map(|s| s.uri.clone())
    };
    let main = main
        .or_else(|| pick(Archive::Main))
        .ok_or(LabError::NoMirror {
            archive: "debian",
            variable: MIRROR_VARIABLE,
        })?;
    let keyring = sources
        .iter()
        .filter(|source| archive(source).is_some())
        .filter_map(|source| source.signed_by.as_deref())
        .chain(KEYRINGS)
        .find(|path| path.starts_with('/') && exists(path))
        .ok_or_else(|| LabError::missing("debian-archive-keyring", "debian-archive-keyring"))?;
    Ok(Mirror {
        main,
        security: security.or_else(|| pick(Archive::Security)),
        keyring: keyring.to_owned(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Archive {
    Main,
    Security,
}

/// Recognizes Debian's archives by the end of their path, or by key and suites if a mirror uses a
/// path of its own.
fn archive(source: &Source) -> Option<Archive> {
    let path = source.uri.trim_end_matches('/');
    let path = path.strip_suffix(".list").unwrap_or(path);
    if path.ends_with("/debian-security") {
        return Some(Archive::Security);
    }
    if path.ends_with("/debian") {
        return Some(Archive::Main);
    }
    let signed = source
        .signed_by
        .as_deref()
        .is_some_and(|k| k.contains("debian-archive"));
    match (
        signed,
        source.suites.iter().any(|s| s.contains("-security")),
    ) {
        (true, true) => Some(Archive::Security),
        (true, false) => Some(Archive::Main),
        (false, _) => None,
    }
}

fn read_sources(etc_apt: &Path) -> Vec<Source> {
    let mut files = vec![etc_apt.join("sources.list")];
    let mut parts: Vec<_> = fs::read_dir(etc_apt.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    parts.sort();
    files.extend(parts);
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|e| e.to_str()) {
            Some("list") => sources.extend(parse_list(&text)),
            Some("sources") => sources.extend(parse_deb822(&text)),
            _ => {}
        }
    }
    sources
}

/// Parses the one-line format: `deb [signed-by=KEY] URI SUITE COMPONENT...`.
fn parse_list(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let mut rest = line.strip_prefix("deb")?.trim_start();
    if rest.len() == line.len() - "deb".len() {
        return None; // deb-src, or no blank after deb
    }
    let mut signed_by = None;
    if let Some(options) = rest.strip_prefix('[') {
        let (options, after) = options.split_once(']')?;
        signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="))
            .map(str::to_owned);
        rest = after.trim_start();
    }
    let mut words = rest.split_whitespace();
    let uri = usable_uri(words.next()?)?;
    let suite = words.next()?.to_owned();
    words.any(|component| component == "main").then(|| Source {
        uri,
        suites: vec![suite],
        signed_by,
    })
}

/// Parses the deb822 format: stanzas of `Field: value`, blank lines between.
fn parse_deb822(text: &str) -> Vec<Source> {
    let without_comments: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    without_comments
        .split(|line| line.trim().is_empty())
        .flat_map(parse_stanza)
        .collect()
}

fn parse_stanza(lines: &[&str]) -> Vec<Source> {
    let field = |name: &str| -> Vec<String> {
        let mut words = Vec::new();
        let mut inside = false;
        for line in lines {
            if line.starts_with([' ', '\t']) {
                if inside {
                    words.extend(line.split_whitespace().map(str::to_owned));
                }
                continue;
            }
            inside = false;
            if let Some((key, value)) = line.split_once(':')
                && key.eq_ignore_ascii_case(name)
            {
                inside = true;
                words.extend(value.split_whitespace().map(str::to_owned));
            }
        }
        words
    };
    let has = |name: &str, word: &str| field(name).iter().any(|w| w == word);
    if has("Enabled", "no") || !has("Types", "deb") || !has("Components", "main") {
        return Vec::new();
    }
    let signed_by = field("Signed-By")
        .into_iter()
        .find(|word| word.starts_with('/'));
    field("URIs")
        .iter()
        .filter_map(|uri| usable_uri(uri))
        .map(|uri| Source {
            uri,
            suites: field("Suites"),
            signed_by: signed_by.clone(),
        })
        .collect()
}

/// Returns the URI, unless it is a removable medium, which cannot serve other suites.
fn usable_uri(uri: &str) -> Option<String> {
    (uri.contains(":/") && !uri.starts_with("cdrom:")).then(|| uri.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

    fn find_in(sources: &[Source]) -> Result<Mirror> {
        choose(sources, None, None, |path| path == KEY)
    }

    #[test]
    fn one_line_format() {
        let sources = parse_list(
            "# deb http://old.example/debian bookworm main\n\
             deb cdrom:[Debian]/ bookworm main\n\
             deb-src http://mirror.example/debian bookworm main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://vendor.example/apt stable main\n\
             deb http://mirror.example/debian/ bookworm main contrib # comment\n\
             deb http://mirror.example/debian-security bookworm-security main\n\
             debris\n",
        );
        assert_eq!(sources.len(), 3);
        assert_eq!(sources[0].signed_by.as_deref(), Some("/k.gpg"));
        let mirror = find_in(&sources).unwrap();
        assert_eq!(mirror.main, "http://mirror.example/debian");
        assert_eq!(
            mirror.security.as_deref(),
            Some("http://mirror.example/debian-security")
        );
        assert_eq!(mirror.keyring, KEY);
    }

    #[test]
    fn deb822_format() {
        let sources = parse_deb822(&format!(
            "Types: deb\nURIs: http://vendor.example/node\nSuites: nodistro\nComponents: main\n\
             Signed-By: /usr/share/keyrings/vendor.gpg\n\n\
             Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: sid\nComponents: main\n\n\
             Types: deb deb-src\n# a comment inside\nURIs: http://mirror.example/some/path\n\
             Suites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: {KEY}\n\n\
             Types: deb\nURIs: http://mirror.example/sec\nSuites: bookworm-security\n\
             Components: main\nSigned-By: {KEY}\n"
        ));
        assert_eq!(sources.len(), 3);
        assert_eq!(sources[1].suites, ["bookworm", "bookworm-updates"]);
        let mirror = find_in(&sources).unwrap();
        assert_eq!(mirror.main, "http://mirror.example/some/path");
        assert_eq!(
            mirror.security.as_deref(),
            Some("http://mirror.example/sec")
        );
    }

    #[test]
    fn cloud_images_name_mirror_lists() {
        let sources = parse_deb822(
            "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\nComponents: main\n",
        );
        assert_eq!(
            find_in(&sources).unwrap().main,
            "mirror+file:///etc/apt/mirrors/debian.list"
        );
    }

    #[test]
    fn other_distributions_are_told_what_to_do() {
        let sources = parse_list("deb http://archive.example/ubuntu jammy main\n");
        let error = find_in(&sources).unwrap_err().to_string();
        assert!(error.contains(MIRROR_VARIABLE), "{error}");
        let given = choose(
            &sources,
            Some("http://x.example/debian".into()),
            None,
            |p| p == KEY,
        );
        assert_eq!(given.unwrap().main, "http://x.example/debian");
    }
}
