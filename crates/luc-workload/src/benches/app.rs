//! Workload `app`: a real program, by a row of the table of `apps`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueHint, value_parser};
use serde::{Deserialize, Serialize};

use crate::apps::{self, Apps, Better, Measure, Request};
use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::observer::Observer;
use crate::scratch::Scratch;
use crate::text::Lines;
use crate::{Result, Stop, WorkloadError};

/// Starts a program in DIR, loads it for the time asked for, and prints its measures, of which the
/// first decides. Ends every process that it started. The program must be installed, here or in the
/// root that --root names.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench app sqlite-wal /srv/scratch\n\
    \x20 luc-lab bench app etcd-unpack --clients 16 --seconds 10 --json /srv/scratch")]
pub struct App {
    /// The program, as in the table
    #[arg(value_name = "NAME", help = name_help())]
    pub name: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Length of the measurement; programs with a fixed amount of work ignore it
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Clients that ask at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = threads())]
    pub clients: u32,
    /// Seed of what the clients draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Command to put before the measured program, such as eatmydata
    #[arg(long = "with", value_name = "COMMAND", default_value = "")]
    #[serde(default)]
    pub wrapped: String,
    /// Folder that the programs find as their root; needs root
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    #[serde(skip)]
    pub root: Option<PathBuf>,
    /// Folder with programs of your own: a table apps.toml, and their scripts
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    #[serde(skip)]
    pub apps: Option<PathBuf>,
}

fn name_help() -> String {
    let names: Vec<_> = apps::builtin().app.keys().map(String::as_str).collect();
    format!("The program: {}", names.join(", "))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppResult {
    pub args: App,
    pub about: String,
    /// Whether it commits for several clients at once by itself.
    pub groups_itself: bool,
    /// Values by name; some are missing if the run was interrupted.
    pub measures: BTreeMap<String, f64>,
    /// The meaning of the values; the first one decides.
    pub table: Vec<Measure>,
}

impl Benchmark for App {
    type Found = AppResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let own = self.apps.as_deref().map(Apps::read).transpose()?;
        let table = own.as_ref().unwrap_or_else(|| apps::builtin());
        let named = |error: WorkloadError| WorkloadError::App {
            why: format!("{}: {error}", self.name),
        };
        let app = table.find(&self.name).map_err(named)?;
        let script = table.script(&self.name, app).map_err(named)?;
        let meter = self.common.energy.start(stop)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let observer = Observer::new(&scratch, meter);
        let request = Request {
            name: &self.name,
            app,
            script: &script,
            dir: scratch.path(),
            root: self.root.as_deref(),
            variables: vec![
                ("TIME_S", self.seconds.to_string()),
                ("CLIENTS", self.clients.to_string()),
                ("SEED", self.seed.to_string()),
                ("WITH", self.wrapped.clone()),
            ],
        };
        let ran = apps::run(&request, &observer, stop)?;
        scratch.remove()?;
        Ok(Measured {
            elapsed_ns: ran.elapsed_ns,
            interrupted: ran.interrupted,
            observed: ran.observed,
            found: AppResult {
                args: self.clone(),
                about: app.about.clone(),
                groups_itself: app.groups_itself,
                measures: ran.measures,
                table: app.measures().to_vec(),
            },
        })
    }
}

impl AppResult {
    fn deciding(&self) -> Option<&Measure> {
        self.table.first()
    }
}

impl Found for AppResult {
    fn title(&self) -> String {
        let App { name, clients, .. } = &self.args;
        format!("app {name}: {}, {clients} clients", self.about)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        for measure in &self.table {
            let Some(value) = self.measures.get(&measure.name) else {
                lines.line(&measure.name, "not measured")?;
                continue;
            };
            let better = match measure.better {
                Better::Higher => "more is better",
                Better::Lower => "less is better",
            };
            lines.line(
                &measure.name,
                format!("{value:.3}: {}; {better}", measure.about),
            )?;
        }
        Ok(())
    }

    fn figures(&self) -> Figures<'_> {
        let deciding = self.deciding();
        Figures {
            main: deciding.and_then(|measure| self.measures.get(&measure.name).copied()),
            is_a_rate: deciding.is_some_and(|measure| measure.better == Better::Higher),
            ..Figures::default()
        }
    }
}
