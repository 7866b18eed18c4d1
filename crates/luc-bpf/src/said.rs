//! Keeps libbpf's warnings for the error that they explain, instead of printing them.

use libbpf_rs::PrintLevel;
use std::sync::{Mutex, PoisonError};

static SAID: Mutex<String> = Mutex::new(String::new());

/// Keeps libbpf's warnings from now on.
pub(crate) fn listen() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        // A log of the verifier may be long; the failure is at its end.
        if said.len() > 1 << 20 {
            said.clear();
        }
        said.push_str(&text);
    })));
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The reason in the last warnings, as a suffix of an error.
pub(crate) fn last() -> String {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    reason(&said)
}

/// The verifier's verdict: the last line of its log except statistics.
fn reason(said: &str) -> String {
    let log = said.split("-- BEGIN PROG LOAD LOG --").last();
    let log = log.filter(|_| said.contains("-- BEGIN PROG LOAD LOG --"));
    let lines = log.map(|log| log.split("-- END PROG LOAD LOG --").next().unwrap_or(log));
    let mut lines = lines.unwrap_or(said).lines().map(str::trim);
    let telling = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
    match lines.rfind(telling) {
        Some(line) => format!(": {line}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_verdict_is_the_reason() {
        let log = "libbpf: prog 'x': BPF program load failed: Permission denied\n\
                   libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx()\n1: (79) r6 = *(u64 *)(r1 +0)\n\
                   access beyond struct file at off 900 size 8\n\
                   processed 2 insns (limit 1000000) max_states_per_insn 0\n\
                   -- END PROG LOAD LOG --\nlibbpf: failed to load object 'luc'\n";
        assert_eq!(reason(log), ": access beyond struct file at off 900 size 8");
        assert_eq!(reason("libbpf: no BTF\n\n"), ": libbpf: no BTF");
        assert_eq!(reason(""), "");
    }
}
