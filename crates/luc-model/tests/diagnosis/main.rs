//! Traces with a known answer: each must get it as the first verdict.

#[path = "../common/mod.rs"]
mod common;

mod blamed;
mod cases;
mod glimpse;
mod help;
mod known;
mod partial;
mod processors;
mod text;
mod unseen;

use common::{DEV, Little, MS};
use luc_model::diagnosis::{Diagnosis, Facts, diagnose};

const SECOND: u64 = 1000 * MS;

fn facts() -> Facts {
    Facts {
        path: Some("/srv/data".into()),
        device: Some("/dev/vdb".into()),
        ..Facts::default()
    }
}

fn judge(little: &Little) -> Diagnosis {
    diagnose(&little.trace(), DEV, &facts())
}
