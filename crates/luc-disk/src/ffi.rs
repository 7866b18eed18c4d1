//! Declarations of the C side. Nothing here is public.

use crate::request::Request;
use std::ffi::c_char;

#[repr(C)]
pub(crate) struct CKnob {
    pub name: *const c_char,
    pub help: *const c_char,
    pub min: i64,
    pub max: i64,
    pub default: i64,
}

// SAFETY: the declarations below repeat those of `lab/disk/lucdisk_model.h` and `shim/tables.c`.
// Parameters are an array of i64 of the length of the knob table; the state is opaque memory.
unsafe extern "C" {
    pub(crate) fn lucdisk_shim_knobs(nr: *mut i64) -> *const CKnob;
    pub(crate) fn lucdisk_shim_state_bytes() -> i64;
    pub(crate) fn lucdisk_init(state: *mut u64, params: *const i64, sectors: u64);
    pub(crate) fn lucdisk_free_channels(params: *const i64, state: *const u64) -> u32;
    pub(crate) fn lucdisk_choose(
        params: *const i64,
        state: *const u64,
        waiting: *const Request,
        n: u32,
        now_ns: u64,
    ) -> u32;
    pub(crate) fn lucdisk_start(
        params: *const i64,
        state: *mut u64,
        request: *const Request,
        now_ns: u64,
    ) -> u64;
    pub(crate) fn lucdisk_end(
        params: *const i64,
        state: *mut u64,
        request: *const Request,
        now_ns: u64,
    );
}
