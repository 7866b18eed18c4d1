//! The steps of the controllers.

use crate::ffi;
use crate::layout::{Input, Output, Params, State, Step};

/// One step of the controllers on `state`, whatever the values. Times are ns.
///
/// [`Step::Copyout`] goes to the copy-out heuristic like [`copyout_step`], the
/// others to the batching controller (`control/luc_batch.h`).
pub fn batch_step(step: Step, params: &Params, state: &mut State, input: &Input) -> Output {
    if step == Step::Copyout {
        return copyout_step(params, state, input);
    }
    let mut out = Output::default();
    // SAFETY: the records have the layout of the C structs (tested against
    // their sizes), and the callee keeps no pointer.
    unsafe { ffi::luc_batch_step(step as u32, params, state, input, &raw mut out) };
    out
}

/// Whether a held batch is complete, so that a POLL before its wake-up time is
/// worth while. `events`: sync events that wait for the commit.
pub fn batch_met(params: &Params, state: &State, events: i64) -> bool {
    // SAFETY: the records have the layout of the C structs; the callee reads.
    unsafe { ffi::luc_shim_batch_met(params, state, events) != 0 }
}

/// One step of the copy-out heuristic: reads `writes`, `writes_delayed` and
/// `writes_saved` of the commit that ended, answers in [`Output::copy`].
pub fn copyout_step(params: &Params, state: &mut State, input: &Input) -> Output {
    let mut out = Output::default();
    // SAFETY: as in batch_step.
    unsafe { ffi::luc_copyout_step(params, state, input, &raw mut out) };
    out
}
