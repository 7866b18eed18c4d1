//! A kernel of the list, however it comes: as packages, or built here.

use super::{debug_kernel, fetch};
use crate::cache::Cache;
use crate::error::Result;
use crate::kernels::list::{KernelSpec, KernelTree};
use crate::progress::Progress;

/// Makes sure a kernel is in the cache.
///
/// # Errors
/// No mirror, no such package, no network, no disk space, a debug kernel that is not built: the
/// message tells which.
pub fn kernel(cache: &Cache, spec: &KernelSpec, progress: &mut dyn Progress) -> Result<KernelTree> {
    if spec.source.is_some() {
        debug_kernel::find(cache, spec)
    } else {
        fetch::kernel(cache, spec, progress)
    }
}
