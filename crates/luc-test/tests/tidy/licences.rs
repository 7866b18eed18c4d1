//! Crates linked into the program have licences that are compatible with MIT OR Apache-2.0.

use std::process::Command;

use crate::ROOT;

/// Licences of parts that a work under MIT or Apache-2.0 may contain and keep its own licence.
const GO_WITH_OURS: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "Unlicense",
    "CC0-1.0",
    "Unicode-3.0",
];

/// Tells whether an SPDX expression is compatible: each part that AND joins must offer a compatible
/// choice.
fn goes(expression: &str) -> bool {
    let offered = expression.replace('/', " OR ");
    offered.split(" AND ").all(|part| {
        let mut choices = part.trim_matches(['(', ')', ' ']).split(" OR ");
        choices.any(|licence| GO_WITH_OURS.contains(&licence.trim()))
    })
}

/// The lines of `cargo tree` whose licence is not compatible.
fn objections(tree: &str) -> Vec<&str> {
    let goes = |line: &&str| {
        let licence = line.split_once(" | ").map_or("", |(_, licence)| licence);
        goes(licence.trim_end_matches(" (*)"))
    };
    tree.lines().filter(|line| !goes(line)).collect()
}

#[test]
fn what_is_linked_in_may_be() {
    let bad = [
        "a v1.0.0 | GPL-2.0-only",
        "a v1.0.0 | LGPL-2.1-only (*)",
        "a v1.0.0 | MIT AND GPL-2.0-or-later",
        "a v1.0.0 | ",
        "a v1.0.0",
    ];
    for line in bad {
        assert_eq!(objections(line), [line]);
    }
    let good = "a v1.0.0 | MIT/Apache-2.0 (*)\nc v1.0.0 | LGPL-2.1-only OR BSD-2-Clause\nb v1.0.0 | (MIT OR Apache-2.0) AND Unicode-3.0\n";
    assert!(objections(good).is_empty());

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The program does not contain what tests and build scripts use.
    let output = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            "luc",
            "--all-features",
        ])
        .args(["-e", "normal", "--prefix", "none", "--format", "{p} | {l}"])
        .current_dir(ROOT)
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {said}");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(tree.lines().count() > 50, "{tree}");
    assert_eq!(objections(&tree), Vec::<&str>::new());
}
