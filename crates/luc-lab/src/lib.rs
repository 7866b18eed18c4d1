//! The program `luc-lab`, for those who measure: thin verbs over the libraries of this workspace.
//!
//! A verb is a module of [`cmd`].

mod bar;
pub mod cmd;
mod failure;
