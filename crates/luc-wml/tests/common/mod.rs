//! Makes plans from sound texts.

// Not every test file needs all of it.
#![allow(dead_code)]

use luc_wml::plan::{Flowop, Plan};
use luc_wml::{Script, parse};

/// Reads a text that must be sound.
pub fn script(text: &str) -> Script {
    parse("test.f", text).unwrap_or_else(|error| panic!("{error}\n---\n{text}"))
}

/// Returns the plan of a sound text.
pub fn plan(text: &str) -> Plan {
    plan_with(text, &[])
}

/// Returns the plan of a sound text with other values for variables.
pub fn plan_with(text: &str, overrides: &[(&str, &str)]) -> Plan {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    script(text)
        .plan(&overrides)
        .unwrap_or_else(|error| panic!("{error}\n---\n{text}"))
}

/// Returns a file whose only thread has these flowops, with a fileset `set` and a file `one`.
pub fn thread_of(flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/d,entries=10,size=64k\n\
         define file name=one,path=/d,size=1m\n\
         define process name=p {{ thread name=t {{\n{flowops}\n}} }}\n\
         run 1\n"
    )
}

/// Returns the only flowop of such a thread.
pub fn flowop(line: &str) -> Flowop {
    let mut plan = plan(&thread_of(&format!("flowop {line}")));
    plan.processes[0].threads[0].flowops.remove(0)
}
