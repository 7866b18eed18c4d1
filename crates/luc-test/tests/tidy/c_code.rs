//! Rules for `abi/`, `control/`, `kmod/`, `lab/disk/` and `fuzz/`.

use std::collections::BTreeSet;

use crate::{File, enforce, files};

const MODEL: &str = "lab/disk/";
const DRIVER: &str = "lab/disk/kmod/";

/// Tells whether a file is of the disk model, not of its driver.
fn in_model(file: &File) -> bool {
    file.below(MODEL) && !file.below(DRIVER)
}

/// Returns C without comments and preprocessor lines, with as many lines as before.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("/*") {
        code.push_str(&rest[..begin]);
        let end = rest[begin..]
            .find("*/")
            .map_or(rest.len(), |n| begin + n + 2);
        code.extend(rest[begin..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
    code.push_str(rest);
    let mut in_directive = false;
    let mut kept = String::new();
    for line in code.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let directive = in_directive || line.trim_start().starts_with('#');
        in_directive = directive && line.trim_end().ends_with('\\');
        if !directive {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

/// The words of a text that could be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn includes(file: &File) -> Vec<String> {
    if !file.is(&["c", "h"]) {
        return Vec::new();
    }
    let own = |name: &str| !name.contains('/');
    let allowed = |name: &str| -> bool {
        let quoted = name.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
        let system = name.strip_prefix('<').and_then(|n| n.strip_suffix('>'));
        let kernel = |n: &str| {
            ["linux/", "asm/", "trace/"]
                .iter()
                .any(|d| n.starts_with(d))
        };
        let in_dir = |dir: &str| quoted.and_then(|n| n.strip_prefix(dir)).is_some_and(own);
        if file.below("abi/") {
            quoted.is_some_and(own)
        } else if file.below("control/") {
            quoted.is_some_and(own) || in_dir("../abi/")
        } else if in_model(file) {
            quoted.is_some_and(own) || in_dir("../../abi/")
        } else if file.below(DRIVER) {
            quoted.is_some_and(own) || in_dir("../") || system.is_some_and(kernel)
        } else if file.below("kmod/") {
            quoted.is_some_and(own)
                || in_dir("../abi/")
                || in_dir("../control/")
                || system.is_some_and(kernel)
        } else if file.below("fuzz/") {
            // User-space headers, and of the product only what is fuzzed.
            let product = ["../abi/", "../control/", "../lab/disk/"];
            quoted.is_some_and(own)
                || product.into_iter().any(in_dir)
                || system.is_some_and(|n| !kernel(n))
        } else {
            true
        }
    };
    file.lines()
        .filter_map(|(number, line)| {
            let name = line.trim_start().strip_prefix("#include")?.trim();
            (!allowed(name)).then(|| file.at(number, &format!("may not include {name}")))
        })
        .collect()
}

#[test]
fn layers_include_only_what_lies_below_them() {
    enforce(
        includes,
        &[
            "control/x.c: #include <stdint.h>\n",
            "control/x.c: #include \"../kmod/luc.h\"\n",
            "control/x.h:   #include <linux/types.h>\n",
            "abi/x.h: #include \"../control/luc_pid.h\"\n",
            "abi/x.h: #include <linux/types.h>\n",
            "kmod/x.c: #include <stdio.h>\n",
            "kmod/x.c: #include \"../crates/x.h\"\n",
            "lab/disk/x.c: #include <linux/types.h>\n",
            "lab/disk/x.h: #include \"kmod/x.h\"\n",
            "lab/disk/kmod/x.c: #include <stdio.h>\n",
            "lab/disk/kmod/x.c: #include \"../../../kmod/luc.h\"\n",
            "control/x.c: #include \"../fuzz/harness.h\"\n",
            "fuzz/x.c: #include \"../kmod/luc.h\"\n",
            "fuzz/x.c: #include <linux/types.h>\n",
        ],
        &[
            "control/x.c: #include \"luc_pid.h\"\n#include \"../abi/luc_types.h\"\n",
            "kmod/x.c: #include <linux/jbd2.h>\n#include \"../control/luc_pid.h\"\n",
            "lab/disk/x.h: #include \"x.h\"\n#include \"../../abi/luc_types.h\"\n",
            "lab/disk/kmod/x.c: #include <linux/fs.h>\n#include \"../lucdisk_model.h\"\n",
            "crates/x.c: #include <stdio.h>\n",
            "fuzz/x.c: #include <stdio.h>\n#include \"../lab/disk/lucdisk_model.h\"\n",
        ],
    );
}

/// Complains about a `static` that is neither a function nor const: it keeps state between calls.
fn static_state(file: &File) -> Vec<String> {
    if !(file.below("control/") || in_model(file)) || !file.is(&["c", "h"]) {
        return Vec::new();
    }
    let code = code_of(&file.text);
    let mut complaints = Vec::new();
    for (at, _) in code.match_indices("static") {
        let rest = &code[at..];
        let end = rest.find([';', '{', '=']).unwrap_or(rest.len());
        let declaration = &rest[..end];
        let mut names = words(declaration);
        let is_word = names.next() == Some("static")
            && !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let is_const = names.any(|word| word == "const");
        if is_word && !is_const && !declaration.contains('(') {
            let line = code[..at].lines().count().max(1);
            complaints.push(file.at(line, &format!("state between calls: {declaration}")));
        }
    }
    complaints
}

#[test]
fn controllers_keep_no_state() {
    enforce(
        static_state,
        &[
            "control/x.c: static int calls;\n",
            "control/x.c: int f(void)\n{\n\tstatic luc_s64 last = 0;\n}\n",
            "control/x.c: static struct luc_state all[4];\n",
            "lab/disk/x.c: static int calls;\n",
        ],
        &[
            "control/x.c: static int f(int static_idle_us)\n{\n}\n",
            "control/x.c: static const int table[] = { 1 };\n",
            "control/x.c: /* static int calls; */\n",
            "kmod/x.c: static int calls;\n",
            "lab/disk/kmod/x.c: static int calls;\n",
        ],
    );
}

fn floating_point(file: &File) -> Vec<String> {
    let c = ["control/", "abi/", "kmod/", MODEL]
        .iter()
        .any(|dir| file.below(dir));
    if !c || !file.is(&["c", "h"]) {
        return Vec::new();
    }
    let code = code_of(&file.text);
    let lines = code.lines().enumerate();
    lines
        .filter(|(_, line)| words(line).any(|word| ["float", "double"].contains(&word)))
        .map(|(index, line)| file.at(index + 1, &format!("floating point: {line}")))
        .collect()
}

#[test]
fn kernel_code_has_no_floating_point() {
    enforce(
        floating_point,
        &[
            "control/x.c: double gain;\n",
            "kmod/x.c: return (float)x;\n",
            "lab/disk/x.c: return (float)x;\n",
        ],
        &["control/x.c: /* double the delay */ int doubled;\n"],
    );
}

fn logic_in_abi(file: &File) -> Vec<String> {
    if !file.below("abi/") {
        return Vec::new();
    }
    let code = code_of(&file.text);
    let dense: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let inline = words(&code).any(|word| word == "inline" || word == "return");
    if inline || dense.contains(") {") || dense.contains("){") {
        return vec![format!(
            "{}: abi/ holds contracts, not functions",
            file.path
        )];
    }
    Vec::new()
}

#[test]
fn contracts_hold_no_logic() {
    enforce(
        logic_in_abi,
        &[
            "abi/x.h: static inline int f(void);\n",
            "abi/x.h: int f(void)\n{\n}\n",
        ],
        &["abi/x.h: #define F(x) \\\n\tdo { x; } while (0)\nstruct s { int a; };\n"],
    );
}

/// Tells whether a C file is only for tests.
fn is_for_tests(file: &File) -> bool {
    file.below("crates/luc-systest/") || file.below("crates/luc-test/")
}

fn licence(file: &File) -> Vec<String> {
    if !file.is(&["c", "h"]) {
        return Vec::new();
    }
    let shared = file.below("abi/") || file.below("control/") || in_model(file);
    let name = if shared {
        "(GPL-2.0-only OR BSD-2-Clause)"
    } else if file.below("crates/") && !is_for_tests(file) {
        "MIT OR Apache-2.0"
    } else {
        "GPL-2.0-only"
    };
    let want = if file.is(&["c"]) {
        format!("// SPDX-License-Identifier: {name}")
    } else {
        format!("/* SPDX-License-Identifier: {name} */")
    };
    if file.text.lines().next() == Some(&want) {
        return Vec::new();
    }
    vec![file.at(1, &format!("the first line must be {want}"))]
}

#[test]
fn every_c_file_names_its_licence() {
    enforce(
        licence,
        &[
            "kmod/x.c: #include <linux/fs.h>\n",
            "kmod/x.c: // SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)\n",
            "control/x.h: /* SPDX-License-Identifier: GPL-2.0-only */\n",
            "lab/disk/x.c: // SPDX-License-Identifier: GPL-2.0-only\n",
            "crates/luc-disk/shim/x.c: // SPDX-License-Identifier: GPL-2.0-only\n",
        ],
        &["kmod/x.c: // SPDX-License-Identifier: GPL-2.0-only\n"],
    );
}

/// Complains about controllers' names in `kmod/`: only their table and files know them.
fn controller_names(file: &File) -> Vec<String> {
    if !file.below("kmod/") || !file.is(&["c", "h"]) {
        return Vec::new();
    }
    let table = ["BATCHINGS", "COPYOUTS"];
    let of_controller = |word: &&str| {
        [
            "LUC_BATCHING_",
            "LUC_COPYOUT_",
            "LUC_POLICY_",
            "luc_batching_",
            "luc_copyout_contended",
        ]
        .iter()
        .any(|prefix| word.starts_with(prefix))
            && !table.contains(&word.trim_start_matches("LUC_"))
    };
    let code = code_of(&file.text);
    let lines = code.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let name = words(line).find(of_controller)?;
            Some(file.at(index + 1, &format!("kmod/ may not know {name}")))
        })
        .collect()
}

#[test]
fn the_module_knows_no_controller() {
    enforce(
        controller_names,
        &[
            "kmod/x.c: if (p->batching == LUC_BATCHING_RETURNS)\n",
            "kmod/x.c: luc_batching_returns_open(p, s, in);\n",
            "kmod/x.c: return p->copyout != LUC_COPYOUT_OFF;\n",
        ],
        &[
            "kmod/x.c: luc_copyout_set(fs, false);\n",
            "kmod/x.c: /* as LUC_BATCHING_RETURNS does */\n",
            "control/x.c: case LUC_BATCHING_RETURNS:\n",
        ],
    );
}

/// The C files that a Kbuild does not compile.
fn not_built(kbuild: &str, sources: &[String]) -> Vec<String> {
    let objects: BTreeSet<&str> = kbuild
        .lines()
        .filter(|line| line.starts_with("luc-y"))
        .flat_map(|line| line.split_whitespace().skip(2))
        .collect();
    // A wildcard compiles all of control/: a controller needs no line of its own.
    let control = kbuild.contains("$(wildcard $(src)/../control/*.c)");
    let built = |path: &String| match path.strip_prefix("kmod/") {
        Some(own) => objects.contains(own.replace(".c", ".o").as_str()),
        None => control,
    };
    sources
        .iter()
        .filter(|path| !built(path))
        .cloned()
        .collect()
}

#[test]
fn every_source_is_built_everywhere() {
    let example = [
        "kmod/a.c".into(),
        "control/b.c".into(),
        "control/c.c".into(),
    ];
    let kbuild = "obj-m := luc.o\nluc-y := a.o\n";
    assert_eq!(not_built(kbuild, &example), ["control/b.c", "control/c.c"]);

    let files = files();
    let sources: Vec<String> = files
        .iter()
        .filter(|f| (f.below("kmod/") || f.below("control/")) && f.is(&["c"]))
        .map(|f| f.path.clone())
        .collect();
    assert!(sources.len() > 8, "{sources:?}");
    let text = |path: &str| {
        let file = files.iter().find(|f| f.path == path);
        file.map(|f| f.text.clone()).unwrap_or_default()
    };
    let missing = not_built(&text("kmod/Kbuild"), &sources);
    assert!(missing.is_empty(), "not in kmod/Kbuild: {missing:?}");
    // User space compiles every file in control/.
    let build = text("crates/luc-control/build.rs");
    assert!(build.contains("read_dir(&control)"), "see above");
}

/// The series of the kernels that are known to work, such as `6.12`.
fn series_that_work() -> BTreeSet<String> {
    let list = luc_vm::KernelList::builtin().expect("kernels.toml");
    let works = |kernel: &&luc_vm::KernelSpec| kernel.status == luc_vm::KernelStatus::Works;
    let releases = list.kernels.iter().filter(works);
    releases
        .filter_map(|kernel| {
            let mut numbers = kernel.release.as_deref()?.split(['.', '-']);
            Some(format!("{}.{}", numbers.next()?, numbers.next()?))
        })
        .collect()
}

/// The kernels that the module loads on, that dkms builds for and that were tested are the same.
#[test]
fn kernels_are_one_list() {
    let files = files();
    let text = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.map(|file| file.text.clone()).unwrap_or_default()
    };
    let header = text("kmod/kernels.h");
    let rows: Vec<_> = header
        .lines()
        .filter_map(|line| {
            let numbers = line.trim().strip_prefix("LUC_KERNEL(")?.split_once(')')?.0;
            let (major, minor) = numbers.split_once(", ")?;
            // Leaves out the row that describes the table.
            let digits = major.chars().all(|c| c.is_ascii_digit());
            digits.then(|| format!("{major}.{minor}"))
        })
        .collect();
    let works = series_that_work();
    assert!(works.len() > 3, "{works:?}");
    assert_eq!(rows.iter().cloned().collect::<BTreeSet<_>>(), works);
    let series = rows.join("|").replace('.', "\\.");
    let pattern = format!("BUILD_EXCLUSIVE_KERNEL=\"^({series})[.-]\"");
    assert!(
        text("kmod/dkms.conf").contains(&pattern),
        "kmod/dkms.conf lacks {pattern}"
    );
}

/// Module, dkms and packages have the version of the program.
#[test]
fn the_version_is_one_number() {
    let files = files();
    let version = env!("CARGO_PKG_VERSION");
    for (path, line) in [
        ("kmod/luc.h", format!("#define LUC_VERSION \"{version}\"")),
        ("kmod/dkms.conf", format!("PACKAGE_VERSION=\"{version}\"")),
        ("debian/changelog", format!("luc ({version}) ")),
    ] {
        let file = files.iter().find(|file| file.path == path);
        let first = file.and_then(|file| file.lines().find(|(_, text)| text.starts_with(&line)));
        assert!(first.is_some(), "{path} lacks {line}");
    }
}
