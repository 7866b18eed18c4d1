//! Compiles the project's freestanding C into Rust; for build scripts.

use std::env;
use std::path::Path;
use std::process::Command;

/// Flags for the C code: no libc, and warnings are errors. Each controller has all functions of its
/// table, and some do not need all parameters.
const FLAGS: [&str; 6] = [
    "-std=gnu11",
    "-ffreestanding",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
];

/// Debug builds trap on undefined behaviour in C as they do on overflow in Rust, so every test of a
/// debug build also tests for that.
const TRAPS: [&str; 2] = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];

/// Returns a build without sources, with these folders for headers.
pub fn freestanding(includes: &[&Path]) -> cc::Build {
    let mut build = cc::Build::new();
    build.includes(includes);
    for flag in FLAGS {
        build.flag(flag);
    }
    build
}

/// Makes a debug build trap on undefined behaviour; does not change a release build.
///
/// # Errors
/// The compiler cannot be run.
pub fn trap_in_debug(build: &mut cc::Build) -> Result<(), cc::Error> {
    if env::var_os("PROFILE").is_none_or(|profile| profile != "debug") {
        return Ok(());
    }
    for flag in TRAPS {
        if build.is_flag_supported(flag)? {
            build.flag(flag);
        } else {
            println!(
                "cargo::warning=the C compiler lacks {flag}: undefined behaviour goes unnoticed"
            );
        }
    }
    Ok(())
}

/// Adds libzstd to the end of the linker's command line, for programs that contain libbpf: newer
/// versions of libelf need it when they are linked statically.
pub fn link_what_libelf_needs() {
    let output = Command::new("pkg-config")
        .args(["--print-requires-private", "libelf"])
        .output();
    let needs = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if needs.is_ok_and(|needs| needs.lines().any(|line| line.starts_with("libzstd"))) {
        println!("cargo::rustc-link-arg=-lzstd");
    }
}
