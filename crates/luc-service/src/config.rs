//! `/etc/luc/luc.toml`, and the files of `/etc/luc/luc.toml.d` in the order of their names.
//!
//! ```toml
//! [[file_system]]
//! path = "/srv/mail"
//!
//! [[file_system]]
//! uuid = "0f3c9c1e-…"
//! policy = "batching"
//! mode = "observe"
//! guard = false
//! set = { delay_limit_us = 5000 }
//! ```
//!
//! Any fault refuses the whole configuration, with file and line: half a configuration is useless.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use luc_control::{Knob, KnobKind, POLICY, knob, policy};
use serde::Deserialize;
use toml::Spanned;

/// A key of an entry, for the man page.
pub struct Key {
    pub name: &'static str,
    /// The values that it takes, and the default.
    pub takes: &'static str,
    pub help: &'static str,
}

/// Every key of a `[[file_system]]`. A test compares it with the fields.
pub const KEYS: [Key; 6] = [
    Key {
        name: "path",
        takes: "a mount point",
        help: "the file system that is mounted there, now or later; give either path or uuid",
    },
    Key {
        name: "uuid",
        takes: "as blkid(8) shows it",
        help: "the file system with this UUID, wherever it is mounted",
    },
    Key {
        name: "policy",
        takes: "a policy of luc-on(1), default luc",
        help: "the policy that LUC uses for this file system",
    },
    Key {
        name: "mode",
        takes: "steer or observe, default steer",
        help: "whether LUC acts or only measures",
    },
    Key {
        name: "guard",
        takes: "true or false, default true",
        help: "whether a guard compares LUC with stock from time to time, and makes LUC stand \
               aside if it harms, as luc-guard(1) does",
    },
    Key {
        name: "set",
        takes: "a table of knobs of luc-set(1)",
        help: "knobs whose values differ from those of the policy; the control group of \
               priority_cgroup may appear later",
    },
];

/// A configuration file: its name, for messages, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

/// How an entry names its file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Names {
    /// Its mount point.
    Path(PathBuf),
    /// Its UUID, in lower case.
    Uuid(String),
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Uuid(uuid) => write!(f, "UUID {uuid}"),
        }
    }
}

/// The settings wanted for one file system.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub names: Names,
    /// Knobs in the order in which they are set; `mode` is one of them.
    pub settings: Vec<(&'static Knob, i64)>,
    /// Knobs that take a control group, by its path: a group may be made later or anew, and its id
    /// is another one after each boot.
    pub groups: Vec<(&'static Knob, String)>,
    /// Whether it is guarded.
    pub guard: bool,
    /// `FILE:LINE`.
    pub at: String,
}

/// The whole configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub entries: Vec<Entry>,
}

/// A fault in a file, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {why}")]
pub struct ConfigError {
    /// `FILE:LINE`.
    pub at: String,
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    file_system: Vec<Spanned<Raw>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    path: Option<Spanned<PathBuf>>,
    uuid: Option<Spanned<String>>,
    policy: Option<Spanned<String>>,
    mode: Option<Spanned<String>>,
    guard: Option<bool>,
    #[serde(default)]
    set: BTreeMap<Spanned<String>, toml::Value>,
}

/// Reads the files.
///
/// # Errors
/// The first fault: invalid TOML, an unknown key, an invalid value, or an entry for no file system
/// or for one that has an entry already.
pub fn read(sources: &[Source]) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for source in sources {
        let place = Place(source);
        let file: File = toml::from_str(&source.text).map_err(|error| place.of_toml(&error))?;
        for raw in file.file_system {
            let entry = place.entry(raw)?;
            let same = |other: &&Entry| other.names == entry.names;
            if let Some(other) = config.entries.iter().find(same) {
                return Err(ConfigError {
                    why: format!(
                        "{} already has an entry, at {}; remove one",
                        entry.names, other.at
                    ),
                    at: entry.at,
                });
            }
            config.entries.push(entry);
        }
    }
    Ok(config)
}

/// A source, to locate faults in.
struct Place<'a>(&'a Source);

impl Place<'_> {
    fn at(&self, offset: usize) -> String {
        let before = self.0.text.as_bytes().iter().take(offset);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.0.path.display())
    }

    fn error(&self, offset: usize, why: impl Into<String>) -> ConfigError {
        ConfigError {
            at: self.at(offset),
            why: why.into(),
        }
    }

    fn of_toml(&self, error: &toml::de::Error) -> ConfigError {
        let offset = error.span().map_or(0, |span| span.start);
        let first = error.message().lines().next().unwrap_or_default();
        self.error(offset, format!("{first}; luc.toml(5) has every key"))
    }

    fn entry(&self, raw: Spanned<Raw>) -> Result<Entry, ConfigError> {
        let begin = raw.span().start;
        let raw = raw.into_inner();
        let names = self.names(begin, raw.path, raw.uuid)?;
        let mut settings: Vec<(&'static Knob, i64)> = Vec::new();
        let mut groups = Vec::new();
        let mut keep = |more: Vec<(&'static Knob, i64)>| {
            for (knob, value) in more {
                settings.retain(|(earlier, _)| earlier.name != knob.name);
                settings.push((knob, value));
            }
        };
        if let Some(named) = raw.policy {
            let start = named.span().start;
            let known = policy(named.get_ref());
            keep(
                known
                    .map_err(|error| self.error(start, error.to_string()))?
                    .settings
                    .clone(),
            );
        }
        if let Some(mode) = raw.mode {
            keep(vec![self.knob(
                "mode",
                mode.get_ref(),
                mode.span().start,
            )?]);
        }
        for (name, value) in raw.set {
            let start = name.span().start;
            if name.get_ref() == POLICY || name.get_ref() == "mode" {
                let why = format!("{} is a separate key, not a knob in set", name.get_ref());
                return Err(self.error(start, why));
            }
            let text = match &value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if let Ok(knob) = knob(name.get_ref())
                && knob.kind == KnobKind::Cgroup
            {
                groups.push((knob, self.group(knob, &text, start)?));
                continue;
            }
            keep(vec![self.knob(name.get_ref(), &text, start)?]);
        }
        Ok(Entry {
            names,
            settings,
            groups,
            guard: raw.guard.unwrap_or(true),
            at: self.at(begin),
        })
    }

    fn names(
        &self,
        begin: usize,
        path: Option<Spanned<PathBuf>>,
        uuid: Option<Spanned<String>>,
    ) -> Result<Names, ConfigError> {
        match (path, uuid) {
            (Some(path), None) => {
                let start = path.span().start;
                let path = path.into_inner();
                if !path.is_absolute() {
                    return Err(self.error(start, "path must be absolute"));
                }
                // Drop doubled and trailing slashes: mounts are listed without them.
                Ok(Names::Path(path.components().collect::<PathBuf>()))
            }
            (None, Some(uuid)) => {
                let text = uuid.get_ref().to_ascii_lowercase();
                let is_sound = !text.is_empty()
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
                if !is_sound {
                    let why = format!(
                        "{} is not a UUID; blkid lists the UUIDs of this machine",
                        uuid.get_ref()
                    );
                    return Err(self.error(uuid.span().start, why));
                }
                Ok(Names::Uuid(text))
            }
            (Some(_), Some(uuid)) => {
                Err(self.error(uuid.span().start, "an entry has path or uuid, not both"))
            }
            (None, None) => Err(self.error(begin, "no file system is named; give path or uuid")),
        }
    }

    /// Checks the form of a control group's path.
    fn group(&self, knob: &Knob, text: &str, start: usize) -> Result<String, ConfigError> {
        if text.trim_matches('/').is_empty() || knob.parse(text).is_ok() {
            let why = format!(
                "{} takes the path of a control group here, as in \"app.slice\"; ids differ after \
                 a boot",
                knob.name
            );
            return Err(self.error(start, why));
        }
        Ok(text.to_owned())
    }

    fn knob(
        &self,
        name: &str,
        value: &str,
        start: usize,
    ) -> Result<(&'static Knob, i64), ConfigError> {
        let knob = knob(name).map_err(|error| self.error(start, error.to_string()))?;
        let value = knob
            .parse(value)
            .map_err(|error| self.error(start, error.to_string()))?;
        Ok((knob, value))
    }
}

/// The file that a fresh package installs: everything in it is a comment.
pub fn template() -> String {
    let mut text = String::from(
        "# The configuration of LUC across boots: luc.toml(5).\n\
         # After a change: systemctl reload luc. `luc service --check` only checks the file.\n#\n\
         # [[file_system]]\n# path = \"/srv/mail\"\n",
    );
    for key in KEYS.iter().filter(|key| key.name != "path") {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# # {}: {} ({})", key.name, key.help, key.takes);
    }
    text
}

/// The names of the files in the order in which they are read.
pub fn order(main: &Path, mut drop_ins: Vec<PathBuf>) -> Vec<PathBuf> {
    drop_ins.retain(|path| path.extension().is_some_and(|kind| kind == "toml"));
    drop_ins.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    std::iter::once(main.to_owned()).chain(drop_ins).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    fn one(text: &str) -> Result<Config, ConfigError> {
        read(&[source("luc.toml", text)])
    }

    fn value(entry: &Entry, name: &str) -> Option<i64> {
        let found = entry.settings.iter().find(|(knob, _)| knob.name == name);
        found.map(|(_, value)| *value)
    }

    #[test]
    fn every_key_is_read() {
        let config = one("[[file_system]]\npath = \"/srv//mail/\"\n\n\
             [[file_system]]\nuuid = \"0F3C-9c1e\"\npolicy = \"batching\"\nmode = \"observe\"\n\
             guard = false\nset = { delay_limit_us = 5000, copyout = \"contended\", priority_cgroup = \"a.slice\" }\n")
        .unwrap();
        let [plain, all] = &config.entries[..] else {
            panic!("{config:?}");
        };
        assert_eq!(plain.names, Names::Path("/srv/mail".into()));
        assert_eq!((plain.settings.len(), plain.at.as_str()), (0, "luc.toml:1"));
        assert_eq!(all.names, Names::Uuid("0f3c-9c1e".into()));
        assert_eq!(value(all, "delay_limit_us"), Some(5000));
        assert_eq!(value(all, "mode"), Some(0));
        assert_eq!((plain.guard, all.guard), (true, false));
        let groups: Vec<_> = all
            .groups
            .iter()
            .map(|(knob, path)| (knob.name, &path[..]))
            .collect();
        assert_eq!(groups, [("priority_cgroup", "a.slice")]);
        // The knob overrides the policy, and is listed once.
        assert_eq!(
            value(all, "copyout"),
            Some(knob("copyout").unwrap().parse("contended").unwrap())
        );
        let names: Vec<&str> = all.settings.iter().map(|(knob, _)| knob.name).collect();
        assert_eq!(
            names.iter().filter(|name| **name == "copyout").count(),
            1,
            "{names:?}"
        );
        assert_eq!(one("").unwrap(), Config::default());
        assert_eq!(one(&template()).unwrap(), Config::default());
    }

    #[test]
    fn a_fault_is_told_with_its_file_and_line() {
        for (text, line, words) in [
            (
                "[[file_system]]\npath = \"/a\"\npolcy = \"luc\"\n",
                3,
                "polcy",
            ),
            ("[[filesystem]]\n", 1, "filesystem"),
            ("[[file_system]]\n\npath = \"a\"\n", 3, "absolute"),
            (
                "\n[[file_system]]\nmode = \"steer\"\n",
                2,
                "no file system is named",
            ),
            (
                "[[file_system]]\npath = \"/a\"\nuuid = \"a-b\"\n",
                3,
                "not both",
            ),
            ("[[file_system]]\nuuid = \"../x\"\n", 2, "not a UUID"),
            (
                "[[file_system]]\npath = \"/a\"\npolicy = \"lucky\"\n",
                3,
                "lucky",
            ),
            ("[[file_system]]\npath = \"/a\"\nmode = \"on\"\n", 3, "mode"),
            (
                "[[file_system]]\npath = \"/a\"\nset = { kp_mill = 3 }\n",
                3,
                "kp_mill",
            ),
            (
                "[[file_system]]\npath = \"/a\"\nset = { delay_limit_us = -4 }\n",
                3,
                "delay_limit_us",
            ),
            (
                "[[file_system]]\npath = \"/a\"\nset = { priority_cgroup = 27 }\n",
                3,
                "path of a control group",
            ),
            (
                "[[file_system]]\npath = \"/a\"\nset = { mode = \"steer\" }\n",
                3,
                "a separate key",
            ),
            (
                "[[file_system]]\npath = \"/a\"\n[[file_system]]\npath = \"/a/\"\n",
                3,
                "luc.toml:1",
            ),
            ("[[file_system]\n", 1, ""),
            ("[[file_system]]\npath = 7\n", 2, ""),
        ] {
            let error = one(text).unwrap_err();
            assert_eq!(error.at, format!("luc.toml:{line}"), "{text}: {error}");
            let shown = error.to_string();
            assert!(
                shown.contains(words) && !shown.contains('\n'),
                "{text}: {shown}"
            );
        }
    }

    #[test]
    fn drop_ins_come_behind_in_the_order_of_their_names() {
        let files = order(
            Path::new("/etc/luc/luc.toml"),
            ["d/20-b.toml", "d/readme", "d/10-a.toml"]
                .map(PathBuf::from)
                .into(),
        );
        let names: Vec<_> = files.iter().map(|path| path.to_string_lossy()).collect();
        assert_eq!(names, ["/etc/luc/luc.toml", "d/10-a.toml", "d/20-b.toml"]);
        let entry = "[[file_system]]\npath = \"/a\"\n";
        let error = read(&[source("a.toml", entry), source("b.toml", entry)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "b.toml:1: /a already has an entry, at a.toml:1; remove one"
        );
    }

    #[test]
    fn the_man_page_knows_every_key() {
        for key in &KEYS {
            let text = format!("[[file_system]]\n{} = 7.5\n", key.name);
            let error = one(&text).unwrap_err();
            assert!(!error.why.contains("unknown field"), "{error}");
        }
        let unknown = one("[[file_system]]\nnosuch = 1\n").unwrap_err();
        for key in &KEYS {
            assert!(unknown.why.contains(key.name), "{unknown}");
        }
    }

    proptest! {
        /// Bad input never panics.
        #[test]
        fn any_text_is_a_configuration_or_a_fault(text in "\\PC{0,80}|(\\[\\[file_system\\]\\]\n[a-z]{1,6} = [0-9\"{}a-z/]{0,9}\n){0,3}") {
            if let Err(error) = one(&text) {
                prop_assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}
