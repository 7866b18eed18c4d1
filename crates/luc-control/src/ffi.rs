//! The C side, declared. Nothing here is public. `layout.rs` and `pid.rs` declare their own.

use crate::layout::{Input, Output, Params, State};
use std::ffi::{c_char, c_int, c_uint};

#[repr(C)]
pub(crate) struct CEnumerator {
    pub text: *const c_char,
    pub help: *const c_char,
    pub more: *const c_char,
}

#[repr(C)]
pub(crate) struct CKnob {
    pub name: *const c_char,
    pub help: *const c_char,
    pub kind: i64,
    pub min: i64,
    pub max: i64,
    pub default: i64,
    pub enumerators: *const CEnumerator,
    pub enumerators_nr: i64,
}

#[repr(C)]
pub(crate) struct CCounter {
    pub name: *const c_char,
    pub help: *const c_char,
    pub kind: i64,
}

/// `luc_shim_sizes` fills this many values, in this order.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Sizes {
    pub params: i64,
    pub input: i64,
    pub state: i64,
    pub output: i64,
    pub decision: i64,
    pub returns: i64,
    pub returns_slots: i64,
    pub returns_cohorts: i64,
    pub returns_depth: i64,
}

// SAFETY: the declarations below repeat those of `control/*.h` and `shim/tables.c`; the structs
// are generated from the same rows as the C ones.
unsafe extern "C" {
    pub(crate) fn luc_shim_knobs(nr: *mut i64) -> *const CKnob;
    pub(crate) fn luc_shim_counters(nr: *mut i64) -> *const CCounter;
    pub(crate) fn luc_shim_sizes(sizes: *mut Sizes);
    pub(crate) fn luc_shim_policies(nr: *mut i64) -> *const CEnumerator;
    pub(crate) fn luc_complete_events(params: *const Params, state: *const State) -> i64;
    pub(crate) fn luc_control_pass(
        params: *const Params,
        state: *mut State,
        input: *const Input,
    ) -> c_int;
    pub(crate) fn luc_copyout_is_idle(
        params: *const Params,
        state: *const State,
        input: *const Input,
    ) -> c_int;
    pub(crate) fn luc_control_step(
        step: c_uint,
        params: *const Params,
        state: *mut State,
        input: *const Input,
        out: *mut Output,
    );
    pub(crate) fn luc_returns_arrive(returns: *mut u64, task: u32, tid: u32) -> c_int;
    pub(crate) fn luc_returns_enter(returns: *mut u64, task: u32, tid: u32);
    pub(crate) fn luc_returns_repeats(returns: *const u64, task: u32, tid: u32) -> c_int;
    pub(crate) fn luc_returns_expected(returns: *const u64, tid: u32, syncing: *mut i64) -> i64;
}

pub(crate) fn sizes() -> Sizes {
    let mut sizes = Sizes::default();
    // SAFETY: the callee writes exactly the nine values that Sizes holds.
    unsafe { luc_shim_sizes(&raw mut sizes) };
    sizes
}
