//! LUC's controllers for user space.
//!
//! A thin, safe layer over the C code of `control/`, which also runs inside the kernel module, and
//! over the tables of `abi/`. The crate does no I/O, has no clock and keeps no state of its own.
//!
//! Names end in their unit: `_ns`, `_us`, `_events`; `_milli` means thousandths.

mod bets;
mod dev;
#[allow(clippy::doc_markdown)] // the help texts come from the tables
mod layout;
mod pid;
mod poles;
mod policy;
pub mod replay;
mod returns;
mod step;
// The generated part has the numbers and names of C, and not all of them are used.
#[allow(clippy::unreadable_literal, clippy::cast_possible_wrap)]
#[allow(non_upper_case_globals, dead_code)]
mod tables;

pub use bets::{Bets, BetsVerdict, coin, ln_ratio_ppm};
pub use dev::{Dev, DevError};
pub use layout::{
    Batching, Copies, Copyout, Decision, Field, Input, Mode, Output, Params, Reason, State, Step,
    TrialPhase,
};
pub use pid::{Gains, PidState, PidTerms, Saturated, pid_step};
pub use poles::{Complex, GAIN_MAX, Loop, Poles, PolesError, Stability, poles};
pub use policy::{CUSTOM, POLICY, Policy, policies, policy, policy_text, policy_words};
pub use returns::Returns;
pub use step::{complete_events, control_pass, control_step};
pub use tables::{
    Counter, CounterKind, Enumerator, HookedFunction, Knob, KnobError, KnobKind, counter, counters,
    hooked_functions, knob, knobs,
};
