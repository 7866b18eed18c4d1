//! Cache lines that move between processors, as counted by a plugin of QEMU (`lab/lines/lines.c`,
//! which defines the counts).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::error::{LabError, Result};
use crate::tools::{capture, digest};

/// The plugin's sources: name and text. The first one is compiled.
const SOURCES: [(&str, &str); 2] = [
    ("lines.c", include_str!("../../../../lab/lines/lines.c")),
    (
        "qemu_plugin.h",
        include_str!("../../../../lab/lines/qemu_plugin.h"),
    ),
];
const PLUGIN: &str = "lines.so";

/// Calls of one load under one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineGroup {
    /// Processors that made calls.
    pub processors: u32,
    /// Calls of all of them.
    pub calls: u64,
    /// Lines that a call usually uses, summed over the processors, as are the next two.
    pub touched: u32,
    /// Lines among these that a call writes.
    pub written: u32,
    /// Lines among these that move to the processor at each call.
    pub moved: u32,
    /// Accesses that did not fit into the table: if there are any, the figures are too small.
    pub lost: u64,
    /// The lines that move.
    pub moving: Vec<MovingLine>,
}

/// A line that processors write and others use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingLine {
    /// A virtual address in the line.
    pub at: String,
    /// Address of an instruction that writes it.
    pub by: String,
    /// Processors that use it.
    pub touch: u32,
    /// Processors that write it.
    pub write: u32,
}

impl LineGroup {
    /// A sum over the processors, per call and processor.
    pub fn per_call(&self, sum: u32) -> f64 {
        f64::from(sum) / f64::from(self.processors.max(1))
    }
}

/// Compiles the plugin, once for each state of its sources.
///
/// # Errors
/// No compiler, or an error of the compiler.
pub(crate) fn plugin(cache: &Cache) -> Result<PathBuf> {
    let key = format!("lines/{}", digest(SOURCES.map(|(_, text)| text)));
    let entry = cache.entry(&key, |dir| {
        for (name, text) in SOURCES {
            let path = dir.join(name);
            fs::write(&path, text).map_err(LabError::io("write", path))?;
        }
        let options = "-std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden";
        let mut cc = Command::new("cc");
        cc.current_dir(dir).args(options.split(' '));
        cc.args(["-o", PLUGIN, SOURCES[0].0]);
        capture(&mut cc, "gcc").map(drop)
    })?;
    Ok(entry.join(PLUGIN))
}

/// Parses the output of the plugin: a group on each line.
///
/// # Errors
/// A line is not a group.
pub(crate) fn parse(text: &str) -> Result<Vec<LineGroup>> {
    text.lines()
        .map(|line| {
            serde_json::from_str(line)
                .map_err(|e| LabError::BadResults(format!("counted lines {line:?}: {e}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        let text = "{\"processors\":2,\"calls\":9,\"moving\":[{\"at\":\"0x40\",\"by\":\"0x1\",\"touch\":2,\
                    \"write\":1}],\"touched\":30,\"written\":11,\"moved\":2,\"lost\":0}\n";
        let groups = parse(text).unwrap();
        let group = &groups[0];
        assert_eq!((groups.len(), group.moving[0].write), (1, 1));
        assert!((group.per_call(group.written) - 5.5).abs() < 1e-9);
        assert!(parse("{}").is_err() && parse("").unwrap().is_empty());
    }
}
