//! The machine that a figure is measured on.

use luc_lab::KernelList;

use super::load::{Job, Measurement};

/// Kernels that every part is measured on; they have figures to reach.
pub fn every_kernel() -> Vec<String> {
    KernelList::builtin().map_or_else(|_| Vec::new(), |list| list.tagged("every"))
}

/// A kernel with a number of virtual processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// Name in the list of kernels.
    pub kernel: &'a str,
    /// Virtual processors.
    pub vcpus: u32,
}

impl Host<'_> {
    /// One boot that measures these cells.
    pub(crate) fn job(self, cpu_mips: u32, cells: Vec<Measurement>) -> Job {
        Job {
            kernel: self.kernel.to_owned(),
            cpu_mips,
            vcpus: self.vcpus,
            virtual_time: true,
            cells,
        }
    }

    /// The kernel, and the processors where there are several.
    pub(crate) fn name(self) -> String {
        match self.vcpus {
            1 => self.kernel.to_owned(),
            vcpus => format!("{}, {vcpus} CPUs", self.kernel),
        }
    }

    /// The same in a sentence, with a speed other than 1000 MIPS.
    pub(crate) fn at_speed(self, cpu_mips: u32) -> String {
        match cpu_mips {
            1000 => format!("kernel {}", self.name()),
            mips => format!("kernel {}, {mips} MIPS", self.name()),
        }
    }
}
