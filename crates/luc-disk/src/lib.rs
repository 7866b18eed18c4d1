//! The service model of the lab's disk for user space.
//!
//! A thin, safe layer over the C code of `lab/disk/`, which also runs in the guest's driver, with
//! parameter sets of real devices ([`presets`]). For tests and tables, a small deterministic queue
//! ([`Queue`]) replaces the driver. The crate does no I/O and has no clock.
//!
//! Names end in their unit: `_ns`, `_bytes`, `_events`.

mod ffi;
mod figures;
pub mod file_system;
mod knobs;
mod model;
mod preset;
mod queue;
mod request;
mod spec;

pub use figures::Figures;
pub use knobs::{Knob, KnobError, Params, knob, knobs};
pub use model::Model;
pub use preset::{Preset, PresetKnob, UnknownPreset, preset, presets};
pub use queue::{Completion, Queue, Ran, run};
pub use request::{Op, Request};
pub use spec::{Spec, SpecError};

/// The driver's sources, by path relative to the repository: the files of `lab/disk/`, and the
/// header of `abi/` that they include.
pub const SOURCES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sources.rs"));
