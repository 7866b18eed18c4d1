//! Compiles the C offsets with which the tests compare the records.

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let abi = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../abi");
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed={}", abi.display());
    let mut build = luc_cc::freestanding(&[&abi]);
    build.file("shim/offsets.c").try_compile("luc_span")?;
    Ok(())
}
