//! The program `luc`, for machines that run LUC: thin verbs over the libraries of this workspace.
//!
//! A verb is a module of [`cmd`]. `sample` measures journals and processes. The machine that verbs
//! act on is `luc_host`'s.

pub mod cmd;
mod losses;
mod means;
mod sample;
mod tracer;
mod trying;
