//! What this host offers to a tracer.

use crate::hooks::{HOOKS, Offer};
use crate::sites::{SITES, Site};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const BTF: &str = "/sys/kernel/btf";
const SYMBOLS: &str = "/proc/kallsyms";
const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// Modules that functions of ours may lie in.
const MODULES: [&str; 2] = ["ext4", "jbd2"];
/// There where perf can make kprobes.
const KPROBES: &str = "/sys/bus/event_source/devices/kprobe/type";

/// Whether the kernel keeps what it holds from everybody, root too.
pub(crate) fn locked_down() -> bool {
    std::fs::read_to_string(LOCKDOWN).is_ok_and(|levels| levels.contains("[confidentiality]"))
}

/// Where a function lies in the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its begin.
    pub address: u64,
    /// Bytes up to the next one.
    pub bytes: u64,
}

/// Looks what there is. What cannot be read counts as not there.
pub fn offer() -> Offer {
    let btf = Path::new(BTF).join("vmlinux").exists();
    let Symbols { named, mut places } = symbols();
    places.sort_unstable();
    let extents = named.iter().filter_map(|symbol| {
        let next = places.partition_point(|place| *place <= symbol.address);
        let bytes = places.get(next)?.checked_sub(symbol.address)?;
        let address = symbol.address;
        Some((symbol.name.clone(), Extent { address, bytes }))
    });
    Offer {
        btf,
        kprobes: Path::new(KPROBES).exists(),
        entries: !std::fs::read_to_string(FTRACE).is_ok_and(|text| text.trim() == "0"),
        extents: extents.collect(),
        typed: if btf { typed(&named) } else { Vec::new() },
        symbols: (!places.is_empty()).then(|| hooked(&named)),
    }
}

/// The functions among these that hooks are for.
fn hooked(symbols: &[Symbol]) -> Vec<String> {
    let functions = HOOKS.iter().flat_map(|hook| hook.functions);
    let known = |function: &&&str| symbols.iter().any(|symbol| symbol.name == **function);
    functions
        .filter(known)
        .map(|function| (*function).to_owned())
        .collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    name: String,
    /// 0 where the kernel does not tell.
    address: u64,
    /// The module that it belongs to, if it is none of the kernel itself.
    module: Option<String>,
}

#[derive(Default)]
struct Symbols {
    /// Functions of ours: hooked, or called where a task goes to sleep.
    named: Vec<Symbol>,
    /// Where any function begins.
    places: Vec<u64>,
}

fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    let Ok(file) = File::open(SYMBOLS) else {
        return symbols;
    };
    let ours: HashSet<&str> = HOOKS
        .iter()
        .flat_map(|hook| hook.functions.iter().copied())
        .chain(SITES.iter().flat_map(Site::names))
        .collect();
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    // One string for all: there are some hundred thousand.
    while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some((address, name, module)) = symbol(&line) {
            symbols.places.push(address);
            if ours.contains(name) {
                symbols.named.push(Symbol {
                    name: name.to_owned(),
                    address,
                    module: module.map(str::to_owned),
                });
            }
        }
        line.clear();
    }
    symbols
}

/// `ffffffff81234560 T finish_wait` or `... t ext4_sync_fs\t[ext4]`; None of what is no function.
fn symbol(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let ("T" | "t" | "W" | "w") = words.next()? else {
        return None;
    };
    let name = words.next()?;
    let module = words.next().map(|word| word.trim_matches(['[', ']']));
    Some((address, name, module))
}

/// The functions whose types are known. Of a module's functions, and of those that the kernel
/// does not list, only the files of types are looked at: where one lacks the function, loading
/// fails and kprobes are taken.
fn typed(symbols: &[Symbol]) -> Vec<String> {
    let vmlinux = Btf::from_vmlinux().ok();
    let typed_by_kernel = |name: &str| {
        let btf = vmlinux.as_ref();
        btf.is_some_and(|btf| btf.type_by_name::<Func<'_>>(name).is_some())
    };
    let modules = MODULES.map(|module| Path::new(BTF).join(module));
    let any_module = modules.iter().any(|types| types.exists());
    let has = |name: &&&str| {
        let mut named = symbols.iter().filter(|symbol| symbol.name == **name);
        match named.next().map(|symbol| &symbol.module) {
            Some(Some(module)) => Path::new(BTF).join(module).exists(),
            Some(None) => typed_by_kernel(name),
            None if symbols.is_empty() => typed_by_kernel(name) || any_module,
            None => false,
        }
    };
    let functions = HOOKS.iter().flat_map(|hook| hook.functions);
    functions
        .filter(has)
        .map(|name| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_kallsyms() {
        let found = symbol("ffffffff9a4f0d60 T finish_wait\n");
        assert_eq!(found, Some((0xffff_ffff_9a4f_0d60, "finish_wait", None)));
        let found = symbol("0000000000000000 t ext4_sync_fs\t[ext4]\n");
        assert_eq!(found, Some((0, "ext4_sync_fs", Some("ext4"))));
        for line in ["", "x", "0 T", "0 D finish_wait", "x T finish_wait", "0"] {
            assert_eq!(symbol(line), None, "{line}");
        }
    }
}
