//! `luc-lab sim costs`

use luc_sim::costs::Costs;
use serde_json::json;

use luc_cli::units::table;
use luc_cli::{Context, Failure, Verb};

/// List the simulated cost of each part of the kernel's paths, with its source
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim costs")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let rows = Costs::default().rows();
        if self.json {
            let costs: Vec<_> = rows
                .iter()
                .map(|(name, value, source)| {
                    json!({ "name": name, "instructions": value, "source": source })
                })
                .collect();
            return context.print_json(&json!({ "schema": "luc-sim-costs/1", "costs": costs }));
        }
        let rows: Vec<[String; 3]> = rows
            .into_iter()
            .map(|(name, value, source)| [name.to_owned(), value.to_string(), source.to_owned()])
            .collect();
        Ok(table(
            &mut context.out,
            ["part", "instructions", "source"],
            &rows,
        )?)
    }
}
