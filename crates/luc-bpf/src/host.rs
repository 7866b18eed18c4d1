//! What this host offers to a tracer.

use crate::hooks::{HOOKS, Offer};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const BTF: &str = "/sys/kernel/btf";
const SYMBOLS: &str = "/proc/kallsyms";
/// There where perf can make kprobes.
const KPROBES: &str = "/sys/bus/event_source/devices/kprobe/type";

/// Looks what there is. What cannot be read counts as not there.
pub fn offer() -> Offer {
    let btf = Path::new(BTF).join("vmlinux").exists();
    let symbols = symbols();
    let names = |list: &[Symbol]| list.iter().map(|symbol| symbol.name.clone()).collect();
    Offer {
        btf,
        kprobes: Path::new(KPROBES).exists(),
        typed: if btf { typed(&symbols) } else { Vec::new() },
        symbols: names(&symbols),
    }
}

struct Symbol {
    name: String,
    /// The module that it belongs to, if it is none of the kernel itself.
    module: Option<String>,
}

/// Those functions of ours that are symbols.
fn symbols() -> Vec<Symbol> {
    let Ok(file) = File::open(SYMBOLS) else {
        return Vec::new();
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    lines.filter_map(|line| symbol(&line)).collect()
}

/// `ffffffff81234560 T finish_wait` or `... t ext4_sync_fs\t[ext4]`.
fn symbol(line: &str) -> Option<Symbol> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    HOOKS.iter().find(|hook| hook.functions.contains(&name))?;
    let module = words
        .next()
        .map(|word| word.trim_matches(['[', ']']).to_owned());
    Some(Symbol {
        name: name.to_owned(),
        module,
    })
}

/// Those whose types are known. Of a module's functions only the file of its
/// types is looked at: where it lacks one, loading fails and kprobes are taken.
fn typed(symbols: &[Symbol]) -> Vec<String> {
    let vmlinux = Btf::from_vmlinux().ok();
    let has = |symbol: &&Symbol| match &symbol.module {
        None => vmlinux
            .as_ref()
            .is_some_and(|btf| btf.type_by_name::<Func<'_>>(&symbol.name).is_some()),
        Some(module) => Path::new(BTF).join(module).exists(),
    };
    let found = symbols.iter().filter(has);
    found.map(|symbol| symbol.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_kallsyms() {
        let found = symbol("ffffffff9a4f0d60 T finish_wait").unwrap();
        assert_eq!((found.name.as_str(), found.module), ("finish_wait", None));
        let found = symbol("0000000000000000 t ext4_sync_fs\t[ext4]").unwrap();
        assert_eq!(found.module.as_deref(), Some("ext4"));
        for line in ["", "x", "0 T finish", "0 T finish_wait_queue", "0 T"] {
            assert!(symbol(line).is_none(), "{line}");
        }
    }
}
