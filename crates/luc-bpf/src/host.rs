//! Finds out which means of tracing this host offers.

use crate::hooks::{HOOKS, Hook, Means};
use crate::sites::{Extent, SITES, Site};
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
/// Modules in which hooked functions may lie.
const MODULES: [&str; 2] = ["ext4", "jbd2"];
/// Exists if perf can make kprobes.
const KPROBES: &str = "/sys/bus/event_source/devices/kprobe/type";

/// Tells whether the kernel hides its memory even from root.
pub(crate) fn locked_down() -> bool {
    std::fs::read_to_string(LOCKDOWN).is_ok_and(|levels| levels.contains("[confidentiality]"))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Whether the kernel's types are there (`/sys/kernel/btf/vmlinux`).
    pub btf: bool,
    pub kprobes: bool,
    /// Whether `kernel.ftrace_enabled` is set. If not, the kernel accepts hooks at the entries of
    /// functions but never calls them.
    pub entries: bool,
    /// Hooked functions whose types are known.
    pub typed: Vec<String>,
    /// Hooked functions that are symbols; `None` if symbols are hidden, but may be known.
    pub symbols: Option<Vec<String>>,
    /// Where the functions lie in which a [`Site`] has calls, and those that it calls.
    pub extents: Vec<(String, Extent)>,
}

impl Offer {
    /// Where a function lies.
    pub fn extent(&self, function: &str) -> Option<Extent> {
        let mut named = self.extents.iter().filter(|(name, _)| name == function);
        let found = named.next().map(|(_, extent)| *extent);
        // Two functions of the same name cannot be told apart.
        found.filter(|_| named.next().is_none())
    }

    /// The function's name on this host, if these means can be tried.
    ///
    /// # Errors
    /// Why not, as a clause.
    pub fn function(
        &self,
        hook: &Hook,
        means: Means,
        allowed: &[Means],
    ) -> Result<&'static str, &'static str> {
        let known = |list: &[String]| {
            let in_list = |name: &&&str| list.iter().any(|other| other == *name);
            hook.functions.iter().find(in_list).copied()
        };
        if !allowed.contains(&means) {
            return Err(match means {
                Means::Fentry => "fentry was not asked for",
                Means::Kprobe => "kprobes were not asked for",
            });
        }
        if means == Means::Kprobe && !self.kprobes {
            return Err("this kernel has no kprobes");
        }
        if !self.entries {
            return Err("kernel.ftrace_enabled is 0");
        }
        match (means, &self.symbols) {
            (Means::Fentry, _) if !self.btf => Err("the kernel has no type information"),
            (Means::Fentry, _) => known(&self.typed).ok_or("the kernel has no types for it"),
            // The kernel resolves the usual name itself, or says that it cannot.
            (Means::Kprobe, None) => Ok(hook.functions[0]),
            (Means::Kprobe, Some(symbols)) => {
                known(symbols).ok_or("the kernel has no such function")
            }
        }
    }

    /// The means to try for a function, each with the function's name on this host, best first.
    pub fn means(&self, hook: &Hook, allowed: &[Means]) -> Vec<(Means, &'static str)> {
        let named = |means| Some((means, self.function(hook, means, allowed).ok()?));
        [Means::Fentry, Means::Kprobe]
            .into_iter()
            .filter_map(named)
            .collect()
    }
}

/// Looks at the host. An unreadable file counts as missing.
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
        symbols: (!places.is_empty())
            .then(|| hooked(|function| named.iter().any(|symbol| symbol.name == function))),
    }
}

/// The hooked functions for which `holds` is true.
fn hooked(holds: impl Fn(&str) -> bool) -> Vec<String> {
    let functions = HOOKS.iter().flat_map(|hook| hook.functions);
    let held = functions.filter(|function| holds(function));
    held.map(|function| (*function).to_owned()).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    name: String,
    /// 0 if the kernel hides it.
    address: u64,
    /// `None` for the kernel itself.
    module: Option<String>,
}

#[derive(Default)]
struct Symbols {
    /// Functions that the hooks and sites name.
    named: Vec<Symbol>,
    /// Start addresses of all functions.
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
    // One string serves some hundred thousand lines.
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

/// Parses `ffffffff81234560 T finish_wait` or `... t ext4_sync_fs\t[ext4]`; `None` otherwise.
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

/// The hooked functions whose types are known. For a function of a module, and for one that the
/// kernel does not list, it is enough that the file of types exists: if it lacks the function,
/// loading fails and kprobes are used.
fn typed(symbols: &[Symbol]) -> Vec<String> {
    let vmlinux = Btf::from_vmlinux().ok();
    let typed_by_kernel = |name: &str| {
        let btf = vmlinux.as_ref();
        btf.is_some_and(|btf| btf.type_by_name::<Func<'_>>(name).is_some())
    };
    let modules = MODULES.map(|module| Path::new(BTF).join(module));
    let any_module = modules.iter().any(|types| types.exists());
    hooked(|name| {
        let mut named = symbols.iter().filter(|symbol| symbol.name == name);
        match named.next().map(|symbol| &symbol.module) {
            Some(Some(module)) => Path::new(BTF).join(module).exists(),
            Some(None) => typed_by_kernel(name),
            None if symbols.is_empty() => typed_by_kernel(name) || any_module,
            None => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fentry_first_then_kprobes_then_nothing() {
        let hook = &HOOKS[0];
        let [usual, other] = hook.functions else {
            panic!("{hook:?}");
        };
        let both = [Means::Fentry, Means::Kprobe];
        let mut offer = Offer {
            btf: true,
            kprobes: true,
            entries: true,
            typed: vec![(*usual).to_owned()],
            symbols: Some(vec![(*other).to_owned(), (*usual).to_owned()]),
            extents: Vec::new(),
        };
        let (fentry, kprobe) = ((Means::Fentry, *usual), (Means::Kprobe, *usual));
        assert_eq!(offer.means(hook, &both), [fentry, kprobe]);
        assert_eq!(offer.means(hook, &[Means::Kprobe]), [kprobe]);
        offer.typed.clear();
        assert_eq!(offer.means(hook, &both), [kprobe]);
        // The name in newer kernels.
        offer.symbols = Some(vec![(*other).to_owned()]);
        assert_eq!(offer.means(hook, &both), [(Means::Kprobe, *other)]);
        offer.kprobes = false;
        assert_eq!(offer.means(hook, &both), []);
        offer.typed.push((*usual).to_owned());
        offer.btf = false;
        assert_eq!(offer.means(hook, &both), []);
        // Without a list of symbols, the usual name is tried.
        offer.kprobes = true;
        offer.symbols = None;
        assert_eq!(offer.means(hook, &both), [kprobe]);
        offer.btf = true;
        offer.entries = false;
        assert_eq!(offer.means(hook, &both), []);
    }

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
