//! The program `luc`, for machines that run LUC: thin verbs over the libraries of this workspace.
//!
//! A verb is a module of [`cmd`]: it parses its arguments, calls a library and prints. What happens
//! in between is `luc_watch`'s; the machine that verbs act on is `luc_host`'s.

pub mod cmd;
