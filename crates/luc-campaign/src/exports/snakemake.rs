//! A Snakefile: one rule, and the results to make with it. A result's file name is known before the
//! file exists, so Snakemake and LUC agree on what is missing.

use std::fmt::Write as _;
use std::path::Path;

use super::{Export, source_words};
use crate::error::{CampaignError, Result};

/// The rules; `{name:q}` is Snakemake's syntax for a quoted word.
const RULES: &str = r#"
rule all:
    input:
        [OUT + "/cells/" + name + ".json" for name in CELLS]

rule cell:
    output:
        OUT + "/cells/{name}.json"
    params:
        key=lambda wildcards: CELLS[wildcards.name][0]
    threads:
        lambda wildcards: CELLS[wildcards.name][1]
    resources:
        mem_mb=lambda wildcards: CELLS[wildcards.name][2]
    shell:
        "{LUC:q} campaign cell {params.key:q} --out {OUT:q} {SOURCE}"
"#;

/// # Errors
/// A Snakefile cannot hold a path.
pub fn text(export: &Export<'_>) -> Result<String> {
    let title = export.title();
    let mut text = format!("# The next wave of the campaign: {title}\n\n");
    for (name, path) in [("LUC", &export.program), ("OUT", &export.dir)] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {}", literal(word(path)?));
    }
    let source = source_words(word(&export.source).map(Path::new)?)?;
    let _ = writeln!(text, "SOURCE = {}", literal(source.trim()));
    text += "# Name of the result: key of the cell, processors, memory in MiB.\nCELLS = {\n";
    for missing in &export.missing {
        let name = missing.cell.hash(&missing.versions);
        let key = literal(&missing.cell.key());
        let needs = missing.needs;
        let _ = writeln!(
            text,
            "    {}: ({key}, {}, {}),",
            literal(&name),
            needs.processors.max(1),
            needs.memory_mib
        );
    }
    text += "}\n";
    text += RULES;
    Ok(text)
}

/// A Python literal: a JSON string is one.
fn literal(text: &str) -> String {
    // A text always has a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

/// A path as text; fails on braces, which Snakemake reads as wildcards.
fn word(path: &Path) -> Result<&str> {
    let text = path.to_str().filter(|text| !text.contains(['{', '}']));
    text.ok_or_else(|| CampaignError::BadFolder {
        path: path.to_owned(),
        why: "a Snakefile cannot refer to it: it is not UTF-8, or contains a brace".to_owned(),
    })
}
