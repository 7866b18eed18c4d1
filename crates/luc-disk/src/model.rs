//! The model itself, as `lab/disk/lucdisk_model.h` documents it.

use crate::ffi;
use crate::knobs::Params;
use crate::request::Request;

/// A disk: parameters and state. A clone is independent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    params: Params,
    // struct lucdisk_state, opaque; u64 for its alignment.
    state: Vec<u64>,
}

impl Model {
    /// Creates an idle disk with this many 512-byte sectors.
    pub fn new(params: Params, sectors: u64) -> Self {
        // SAFETY: a plain function of no arguments.
        let bytes = unsafe { ffi::lucdisk_shim_state_bytes() };
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let mut state = vec![0; bytes.div_ceil(size_of::<u64>())];
        // SAFETY: params has as many values as the knob table has rows; state has the size and
        // alignment of struct lucdisk_state.
        unsafe { ffi::lucdisk_init(state.as_mut_ptr(), params.as_ptr(), sectors) };
        Self { params, state }
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of further requests that may start now.
    pub fn free_channels(&self) -> u32 {
        // SAFETY: as in new; both are only read.
        unsafe { ffi::lucdisk_free_channels(self.params.as_ptr(), self.state.as_ptr()) }
    }

    /// Returns the index of the request that the disk starts next, in `waiting` with the oldest
    /// first; `None` if none can start before a request in service ends.
    pub fn choose(&self, waiting: &[Request], now_ns: u64) -> Option<usize> {
        let n = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        // SAFETY: as in new; waiting has at least n requests, all only read.
        let index = unsafe {
            ffi::lucdisk_choose(
                self.params.as_ptr(),
                self.state.as_ptr(),
                waiting.as_ptr(),
                n,
                now_ns,
            )
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        (index < waiting.len()).then_some(index)
    }

    /// Starts a request and returns its completion time.
    pub fn start(&mut self, request: &Request, now_ns: u64) -> u64 {
        let params = self.params.as_ptr();
        // SAFETY: as in new; the request is only read.
        unsafe { ffi::lucdisk_start(params, self.state.as_mut_ptr(), request, now_ns) }
    }

    /// Completes a started request.
    pub fn end(&mut self, request: &Request, now_ns: u64) {
        let params = self.params.as_ptr();
        // SAFETY: as in new; the request is only read.
        unsafe { ffi::lucdisk_end(params, self.state.as_mut_ptr(), request, now_ns) }
    }
}
