//! The steps of the controllers.

use crate::layout::{Input, Output, Params, State, Step};
use std::ffi::{c_int, c_uint};

// SAFETY: the declarations repeat those of `control/luc_control.h`.
unsafe extern "C" {
    fn luc_control_step(
        step: c_uint,
        params: *const Params,
        state: *mut State,
        input: *const Input,
        out: *mut Output,
    );
    fn luc_control_pass(params: *const Params, state: *mut State, input: *const Input) -> c_int;
    fn luc_complete_events(params: *const Params, state: *const State) -> i64;
}

/// Runs one step on `state` of the controllers that `params` names. Any values are accepted. Times
/// are ns.
pub fn control_step(step: Step, params: &Params, state: &mut State, input: &Input) -> Output {
    let mut out = Output::default();
    // SAFETY: the records have the layout of the C structs (tested against
    // their sizes), and the callee keeps no pointer.
    unsafe { luc_control_step(step as u32, params, state, input, &raw mut out) };
    out
}

/// Runs OPEN and CLOSE in one, for a commit that is neither held nor recorded. Returns true if OPEN
/// would answer "now" and that is cheap to know; only then is `state` as after OPEN and CLOSE with
/// `input`.
pub fn control_pass(params: &Params, state: &mut State, input: &Input) -> bool {
    // SAFETY: the records have the layout of the C structs; the callee writes `state` alone.
    unsafe { luc_control_pass(params, state, input) != 0 }
}

/// Returns the number of sync events at which a held batch is worth a POLL before its wake-up time;
/// [`i64::MAX`] if no number is.
pub fn complete_events(params: &Params, state: &State) -> i64 {
    // SAFETY: the records have the layout of the C structs; the callee reads.
    unsafe { luc_complete_events(params, state) }
}
