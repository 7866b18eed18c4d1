//! The program holds the tracer, and with it libbpf.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    luc_cc::link_what_libelf_needs();
}
