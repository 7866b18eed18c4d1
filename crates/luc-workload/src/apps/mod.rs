//! Real programs as workloads: a table of them, and a shell script for each, which starts a
//! program, loads it for the time asked for, and prints what it measured.
//!
//! `lab/apps/` holds both. A script runs behind `lib.sh`, with these in its environment: `DIR`, an
//! empty folder on the file system to test; `TMP`, one that is not measured; `APP`, the row's name;
//! `TIME_S`, `CLIENTS` and `SEED`; `WITH`, a command to put before the measured program; and the
//! settings of its row.
//! It prints lines for [`Line`].

mod line;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::{Result, WorkloadError};

pub(crate) use line::Line;
pub(crate) use run::{Request, run};

const TABLE: &str = include_str!("../../../../lab/apps/apps.toml");
const LIBRARY: &str = include_str!("../../../../lab/apps/lib.sh");
/// Name of the table in a folder of the user's own programs.
const TABLE_NAME: &str = "apps.toml";

macro_rules! scripts {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../lab/apps/", $name, ".sh"))),)*]
    };
}

/// The scripts of the built-in table.
const SCRIPTS: &[(&str, &str)] = &scripts! {
    "beanstalkd" "dbench" "etcd" "fileio" "fio" "fs-mark" "git" "mariadb" "packages" "postfix"
    "postgres" "postmark" "redis" "rocksdb" "sqlite" "unpack"
};

/// Programs as workloads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apps {
    /// The needs of every script, for a root that is made for one.
    #[serde(default)]
    pub root: Root,
    pub app: BTreeMap<String, App>,
    /// Folder of the scripts; `None` for the built-in ones.
    #[serde(skip)]
    folder: Option<PathBuf>,
}

/// Parts of a root that every script needs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Root {
    pub packages: Vec<String>,
    /// Patterns of paths that no program reads.
    pub unwanted: Vec<String>,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    pub about: String,
    /// The row whose script, programs and measures it shares; its own programs come on top.
    #[serde(default)]
    like: Option<String>,
    /// Variables of the script's environment.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// Programs that must be there, with the Debian package of each.
    #[serde(default)]
    programs: BTreeMap<String, String>,
    /// Whether it commits for several clients at once by itself: LUC must then do no harm.
    #[serde(default)]
    pub groups_itself: bool,
    /// The first one decides.
    #[serde(default)]
    measures: Vec<Measure>,
}

/// A number that a script prints. Its name ends with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    pub name: String,
    pub better: Better,
    pub about: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

/// The built-in table.
pub fn builtin() -> &'static Apps {
    static APPS: LazyLock<Apps> =
        LazyLock::new(|| Apps::parse(TABLE).expect("a test parses lab/apps/apps.toml"));
    &APPS
}

impl Apps {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let parsed: std::result::Result<Self, _> = toml::from_str(text);
        let mut apps = parsed.map_err(|error| {
            error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        })?;
        let rows = apps.app.iter();
        let likes: Vec<_> = rows
            .filter_map(|(name, app)| Some((name.clone(), app.like.clone()?)))
            .collect();
        for (name, like) in likes {
            let base = apps.app.get(&like).filter(|base| base.like.is_none());
            let base = base.ok_or_else(|| format!("{name}: no row {like} to be like"))?;
            let (programs, measures) = (base.programs.clone(), base.measures.clone());
            let groups_itself = base.groups_itself;
            if let Some(app) = apps.app.get_mut(&name) {
                app.programs.extend(programs);
                app.measures = measures;
                app.groups_itself = groups_itself;
            }
        }
        Ok(apps)
    }

    /// Reads a folder of the user's own programs.
    ///
    /// # Errors
    /// There is no table, or it is not a table of programs.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(TABLE_NAME);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| WorkloadError::call("read", &path, error))?;
        let mut apps = Self::parse(&text)
            .map_err(|why| WorkloadError::Arguments(format!("{}: {why}", path.display())))?;
        apps.folder = Some(folder.to_owned());
        Ok(apps)
    }

    /// Finds a program.
    ///
    /// # Errors
    /// The table has none of this name, or one without a measure.
    pub fn find(&self, name: &str) -> Result<&App> {
        let app = self.app.get(name).ok_or_else(|| {
            let names: Vec<_> = self.app.keys().map(String::as_str).collect();
            WorkloadError::Arguments(format!("no such program; there are {}", names.join(", ")))
        })?;
        if app.measures.is_empty() {
            return Err(WorkloadError::Arguments("it has no measures".into()));
        }
        Ok(app)
    }

    /// The text that the shell runs for a program.
    ///
    /// # Errors
    /// The script cannot be read.
    pub(crate) fn script(&self, name: &str, app: &App) -> Result<String> {
        let name = app.like.as_deref().unwrap_or(name);
        let own = match &self.folder {
            Some(folder) => {
                let path = folder.join(format!("{name}.sh"));
                std::fs::read_to_string(&path)
                    .map_err(|error| WorkloadError::call("read", &path, error))?
            }
            None => SCRIPTS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| WorkloadError::Arguments(format!("no script {name}.sh")))?,
        };
        Ok(format!("{LIBRARY}\n{own}"))
    }

    /// Debian packages of a root in which a program runs.
    ///
    /// # Errors
    /// As [`Apps::find`].
    pub fn packages(&self, name: &str) -> Result<Vec<&str>> {
        let own = self.find(name)?.programs.values();
        let mut all: Vec<_> = own.chain(&self.root.packages).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

impl App {
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    pub(crate) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// `PROGRAM:PACKAGE` for each program, as `lib.sh` reads them.
    pub(crate) fn needs(&self) -> String {
        let pairs = self.programs.iter();
        let pairs: Vec<_> = pairs
            .map(|(program, package)| format!("{program}:{package}"))
            .collect();
        pairs.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_script_and_every_script_a_row() {
        let used: BTreeSet<&str> = builtin()
            .app
            .iter()
            .map(|(name, app)| app.like.as_deref().unwrap_or(name))
            .collect();
        let there: BTreeSet<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(used, there);
    }

    #[test]
    fn rows_are_sound() {
        let units = ["_ms", "_per_s", "_s", "_mb_per_s"];
        for (name, app) in &builtin().app {
            let measures = builtin().find(name).unwrap().measures();
            let names: BTreeSet<_> = measures.iter().map(|measure| &measure.name).collect();
            assert_eq!(names.len(), measures.len(), "{name}");
            for measure in measures {
                assert!(
                    units.iter().any(|unit| measure.name.ends_with(unit)),
                    "{name}: {measure:?}"
                );
                assert!(!measure.about.is_empty(), "{name}: {measure:?}");
            }
            assert!(!app.about.is_empty() && !app.programs.is_empty(), "{name}");
            let upper = |name: &String| name.bytes().all(|byte| byte.is_ascii_uppercase());
            assert!(app.settings.keys().all(upper), "{name}");
        }
    }

    #[test]
    fn a_row_is_like_another() {
        let (etcd, beside) = (&builtin().app["etcd"], &builtin().app["etcd-install"]);
        assert_eq!(etcd.measures, beside.measures);
        let mut programs = etcd.programs.clone();
        programs.insert("dpkg".into(), "dpkg".into());
        programs.insert("dpkg-deb".into(), "dpkg".into());
        assert_eq!(beside.programs, programs);
        for like in ["gone", "b"] {
            let rows = format!("[app.a]\nabout=''\nlike='{like}'\n[app.b]\nabout=''\nlike='a'\n");
            let error = Apps::parse(&rows).unwrap_err();
            assert!(error.contains("to be like"), "{error}");
        }
    }

    #[test]
    fn an_unknown_program_is_refused_with_those_that_exist() {
        let error = builtin().find("oracle").unwrap_err().to_string();
        assert!(error.contains(", dbench, etcd, "), "{error}");
    }

    #[test]
    fn a_root_has_the_program_and_the_common_tools_once() {
        let packages = builtin().packages("etcd").unwrap();
        assert!(packages.contains(&"etcd-server") && packages.contains(&"dash"));
        let unique: BTreeSet<_> = packages.iter().collect();
        assert_eq!(unique.len(), packages.len());
    }
}
