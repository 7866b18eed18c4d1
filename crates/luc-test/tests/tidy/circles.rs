//! No modules of a crate import each other, directly or through others.
//!
//! A module and its submodules may: they share what lies in its own file. Towards others they are
//! one.

use super::{File, files};
use std::collections::{BTreeMap, BTreeSet};

/// Modules, such as `luc::cmd::trace`, each with the paths that its code names.
type Modules = BTreeMap<String, Vec<String>>;

/// The module of a file; `None` for tests.
fn module(path: &str) -> Option<String> {
    let path = path.strip_prefix("crates/")?.strip_suffix(".rs")?;
    let (name, rest) = path.split_once("/src/")?;
    let mut names = vec![name];
    names.extend(rest.split('/'));
    names.retain(|name| !["lib", "main", "mod"].contains(name));
    (!names.contains(&"tests")).then(|| names.join("::"))
}

/// Adds the paths of a tree: `a::{b, c as d}` gives `a::b` and `a::c as d`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let mut depth = 0;
    let parts = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let path = format!("{prefix}{part}");
        match path.strip_suffix('}').and_then(|path| path.split_once('{')) {
            Some((head, inner)) => expand(head, inner, paths),
            None => paths.push(path.trim_end_matches("::self").to_owned()),
        }
    }
}

/// The paths in a file, without those in comments and in the tests at its end.
fn paths(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = text.unwrap_or_default().lines();
    let code: Vec<_> = lines.filter_map(|line| line.split("//").next()).collect();
    let code = code.join("\n");
    let part = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let mut paths = Vec::new();
    for word in ["use ", "crate::", "super::"] {
        let found = code.match_indices(word).map(|(at, _)| code.split_at(at));
        for (_, from) in found.filter(|(before, _)| !before.ends_with(part)) {
            if let Some(tree) = from.strip_prefix("use ") {
                expand("", tree.split(';').next().unwrap_or_default(), &mut paths);
            } else {
                let path = from.split(|c| !part(c)).next().unwrap_or_default();
                // Such a path imports no name.
                paths.push(format!("{} as _", path.trim_end_matches("::")));
            }
        }
    }
    paths
}

/// The module that defines what a path names, not one that only imports it.
fn home(module: &str, path: &str, modules: &Modules) -> Option<String> {
    let mut at = module.to_owned();
    let path = path.split(" as ").next()?;
    for (index, name) in path.split("::").enumerate() {
        let below = format!("{at}::{name}");
        match name {
            "self" => {}
            "crate" => at.truncate(at.find("::").unwrap_or(at.len())),
            "super" => at.truncate(at.rfind("::").unwrap_or(at.len())),
            _ if modules.contains_key(&below) => at = below,
            // The path leads into another crate.
            _ if index == 0 => return None,
            _ if at != module && name != "*" => {
                let brings = |path: &&String| path.rsplit([':', ' ']).next() == Some(name);
                let imported = modules.get(&at)?.iter().find(brings);
                return imported
                    .and_then(|path| home(&at, path, modules))
                    .or(Some(at));
            }
            _ => break,
        }
    }
    Some(at)
}

/// The modules of one parent in which two modules lie; `None` if one lies in the other.
fn siblings(one: &str, other: &str) -> Option<(String, String)> {
    let mut names = one.split("::").zip(other.split("::"));
    let differ = names.position(|(a, b)| a != b)?;
    let up = |path: &str| {
        path.split("::")
            .take(differ + 1)
            .collect::<Vec<_>>()
            .join("::")
    };
    Some((up(one), up(other)))
}

/// Lists the imports of modules in circles and between two circles.
fn circles(files: &[File]) -> Vec<String> {
    let mut modules = Modules::new();
    for file in files {
        if let Some(module) = module(&file.path) {
            modules.entry(module).or_default().extend(paths(&file.text));
        }
    }
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (at, paths) in &modules {
        let homes = paths.iter().filter_map(|path| home(at, path, &modules));
        for (from, to) in homes.filter_map(|home| siblings(at, &home)) {
            edges.entry(from).or_default().insert(to);
        }
    }
    // A module that uses none of the others, or that none of them uses, is in no circle.
    let mut before = usize::MAX;
    while edges.len() < before {
        before = edges.len();
        let left: BTreeSet<String> = edges.keys().cloned().collect();
        let used: BTreeSet<String> = edges.values().flatten().cloned().collect();
        edges.retain(|at, others| {
            others.retain(|other| left.contains(other));
            used.contains(at) && !others.is_empty()
        });
    }
    let complaint = |(at, others)| format!("a circle: {at} imports {others:?}");
    edges.iter().map(complaint).collect()
}

#[test]
fn no_modules_import_each_other() {
    let found = |sources: &[(&str, &str)]| {
        let file =
            |(name, text): &(&str, &str)| File::new(&format!("crates/x/src/{name}.rs"), text);
        circles(&sources.iter().map(file).collect::<Vec<_>>())
    };
    let lib = ("lib", "pub use b::B as C;\n");
    let b = ("b", "use crate::{c, a::{self, A}};\n");
    let circle = [
        r#"a circle: x::a imports {"x::b"}"#,
        r#"a circle: x::b imports {"x::a"}"#,
    ];
    for a in [
        "use super::b::B;\n",
        "fn f() { crate::b::f() }\n",
        "use crate::C;\n",
    ] {
        assert_eq!(
            found(&[lib, b, ("a", a), ("c", "use crate::b;")])[..1],
            circle[..1],
            "{a}"
        );
        assert_eq!(found(&[lib, b, ("a", a), ("c", "")]), circle, "{a}");
    }
    assert_eq!(
        found(&[b, ("a/mod", "use crate::d::D;\n"), ("d", "use super::b;\n")]).len(),
        3
    );
    let tests = "// use crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
    let above = ("a/mod", "use self::e::E;\nuse super::c::C;\nfn f() {}\n");
    assert!(found(&[lib, b, ("a", tests), ("c", "")]).is_empty());
    assert!(found(&[lib, b, above, ("a/e", "use super::f;\nuse crate::a;\n")]).is_empty());
    let complaints = circles(&files());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
