//! The PID law on its own, as `control/luc_pid.h` documents it.

use std::ffi::c_int;

/// Gains in thousandths.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gains {
    /// Proportional gain.
    pub kp_milli: i64,
    /// Integral gain.
    pub ki_milli: i64,
    /// Derivative gain.
    pub kd_milli: i64,
}

/// The law's memory; the default has seen no error.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidState {
    /// Sum of errors times step lengths, thousandths.
    pub integral_milli: i64,
    /// Error of the last step, thousandths.
    pub error_milli: i64,
    /// 0 before the first step and after a reset.
    pub error_known: i64,
}

/// The terms of one step, thousandths.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidTerms {
    /// Proportional term.
    pub p_milli: i64,
    /// Integral term.
    pub i_milli: i64,
    /// Derivative term.
    pub d_milli: i64,
    /// Their sum.
    pub u_milli: i64,
}

/// The bound at which the actuator was during a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Saturated {
    /// At its lower bound: negative errors are not summed.
    Low = -1,
    /// Between its bounds.
    No = 0,
    /// At its upper bound: positive errors are not summed.
    High = 1,
}

// SAFETY: the declaration repeats that of `control/luc_pid.h`.
unsafe extern "C" {
    fn luc_pid_step(
        gains: *const Gains,
        state: *mut PidState,
        e_milli: i64,
        dt_milli: i64,
        saturated: c_int,
    ) -> PidTerms;
}

/// Runs one step of the PID law. `e_milli` is the error in thousandths of an event, `dt_milli` the
/// length of the step in thousandths of an average step. Any value is accepted.
pub fn pid_step(
    gains: &Gains,
    state: &mut PidState,
    e_milli: i64,
    dt_milli: i64,
    saturated: Saturated,
) -> PidTerms {
    // SAFETY: layouts are pinned by static assertions in shim/layout.c, and
    // the callee keeps neither pointer.
    unsafe { luc_pid_step(gains, state, e_milli, dt_milli, saturated as c_int) }
}
