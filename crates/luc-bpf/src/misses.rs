//! Events that the kernel skipped because the program was already running on that processor: its
//! task was preempted inside it.

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Events that this program missed; 0 if the kernel does not count them.
pub(crate) fn count(program: BorrowedFd<'_>) -> u64 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let Ok(mut bytes) = u32::try_from(size_of_val(&info)) else {
        return 0;
    };
    let pointer: *mut libbpf_sys::bpf_prog_info = &raw mut info;
    // SAFETY: the call writes at most `bytes` bytes of `info`, which lives until it returns.
    let result = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), pointer.cast(), &raw mut bytes)
    };
    if result == 0 {
        info.recursion_misses
    } else {
        0
    }
}
