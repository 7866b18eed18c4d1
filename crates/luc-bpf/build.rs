//! Compiles the BPF programs into the binary, which then needs neither clang nor sources.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    for path in ["bpf", "abi"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    println!("cargo::rerun-if-env-changed=LUC_CLANG");
    // libbpf's names of processors.
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("the tracer does not support {other} processors").into()),
    };
    let clang = env::var("LUC_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let includes = host_includes(&clang)?;
    for source in ["luc.bpf.c", "health.bpf.c"] {
        compile(&clang, arch, &root.join("bpf").join(source), &includes)?;
    }
    luc_cc::link_what_libelf_needs();
    Ok(())
}

/// Compiles one file of programs.
fn compile(clang: &str, arch: &str, source: &Path, includes: &[String]) -> Result<()> {
    let name = source.with_extension("o");
    let name = name.file_name().ok_or("the source has no name")?;
    let object = PathBuf::from(env::var("OUT_DIR")?).join(name);
    let libbpf = env::var("DEP_BPF_INCLUDE")?;
    let mut command = Command::new(clang);
    command
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(["-I", &libbpf]);
    // The kernel's headers lie where clang finds them for programs of this machine.
    for dir in includes {
        command.arg("-idirafter").arg(dir);
    }
    command.arg("-c").arg(source).arg("-o").arg(&object);
    let status = command
        .status()
        .map_err(|error| format!("{clang}: {error}; the tracer needs clang: apt install clang"))?;
    if !status.success() {
        return Err(format!("{clang} could not compile {}: {status}", source.display()).into());
    }
    strip(clang, &object);
    Ok(())
}

/// Where clang looks for headers when it compiles for this machine.
fn host_includes(clang: &str) -> Result<Vec<String>> {
    let output = Command::new(clang)
        .args(["-v", "-E", "-x", "c", "/dev/null", "-o", "/dev/null"])
        .output()
        .map_err(|error| format!("{clang}: {error}; the tracer needs clang: apt install clang"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let dirs = text
        .lines()
        .skip_while(|line| !line.starts_with("#include <...>"))
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .map(|line| line.trim().to_owned())
        .collect();
    Ok(dirs)
}

/// Strips debug information and keeps types (BTF); without the tool, the object is just larger.
fn strip(clang: &str, object: &Path) {
    let tool = clang.replace("clang", "llvm-strip");
    let _ = Command::new(tool).arg("-g").arg(object).status();
}
