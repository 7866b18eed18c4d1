//! The estimator of returning tasks, as `control/luc_returns.h` documents it.

use std::ffi::c_int;

// SAFETY: the declarations repeat those of `control/luc_returns.h` and `shim/layout.c`, with
// struct luc_returns as the u64 that [`Returns`] keeps it in.
unsafe extern "C" {
    safe static luc_shim_returns_bytes: i64;
    fn luc_returns_arrive(returns: *mut u64, task: u32, tid: u32) -> c_int;
    fn luc_returns_enter(returns: *mut u64, task: u32, tid: u32);
    fn luc_returns_repeats(returns: *const u64, task: u32, tid: u32) -> c_int;
    fn luc_returns_expected(returns: *const u64, tid: u32, syncing: *mut i64) -> i64;
}

/// Estimates which tasks are likely to come: remembers the transaction that each last waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returns {
    // struct luc_returns, opaque; u64 for its alignment.
    memory: Vec<u64>,
}

impl Returns {
    /// Creates an empty estimator.
    pub fn new() -> Self {
        let bytes = usize::try_from(luc_shim_returns_bytes).unwrap_or(0);
        Self {
            memory: vec![0; bytes.div_ceil(size_of::<u64>())],
        }
    }

    /// Notes that a task begins a sync call; `tid` is the newest transaction that any task waited
    /// for.
    pub fn enter(&mut self, task: u32, tid: u32) {
        // SAFETY: as in arrive.
        unsafe { luc_returns_enter(self.memory.as_mut_ptr(), task, tid) }
    }

    /// Tells whether [`enter`](Self::enter) with the same arguments would change nothing.
    pub fn repeats(&self, task: u32, tid: u32) -> bool {
        // SAFETY: as in arrive; the callee only reads.
        unsafe { luc_returns_repeats(self.memory.as_ptr(), task, tid) != 0 }
    }

    /// Notes that a task begins to wait for transaction `tid`. Returns true if it is new there,
    /// false if it was counted already.
    pub fn arrive(&mut self, task: u32, tid: u32) -> bool {
        // SAFETY: memory has the size and at least the alignment of struct
        // luc_returns, and began as all zeros, which is its empty value.
        unsafe { luc_returns_arrive(self.memory.as_mut_ptr(), task, tid) != 0 }
    }

    /// Returns how many tasks may still come before `tid` is closed: tasks that the transactions
    /// before it released and that are not back, and tasks inside a sync call.
    pub fn expected(&self, tid: u32) -> i64 {
        self.coming(tid).0
    }

    /// Returns how many of the expected tasks are inside a sync call.
    pub fn syncing(&self, tid: u32) -> i64 {
        self.coming(tid).1
    }

    fn coming(&self, tid: u32) -> (i64, i64) {
        let mut syncing = 0;
        // SAFETY: as in arrive; the callee reads memory and writes syncing.
        let all = unsafe { luc_returns_expected(self.memory.as_ptr(), tid, &raw mut syncing) };
        (all, syncing)
    }
}

impl Default for Returns {
    fn default() -> Self {
        Self::new()
    }
}
