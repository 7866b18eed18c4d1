//! What a figure is measured on.

use crate::document::Cell;
use crate::load::{Job, Measurement};

/// A kernel on so many virtual processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// By its name in the list of kernels.
    pub kernel: &'a str,
    /// Virtual processors.
    pub vcpus: u32,
}

impl Host<'_> {
    /// A boot of it that measures these cells.
    pub(crate) fn job(self, cpu_mips: u32, cells: Vec<Measurement>) -> Job {
        Job {
            kernel: self.kernel.to_owned(),
            cpu_mips,
            vcpus: self.vcpus,
            virtual_time: true,
            cells,
        }
    }

    /// The kernel, and what is not as usual.
    pub(crate) fn at_speed(self, cpu_mips: u32) -> String {
        let speed = match cpu_mips {
            1000 => String::new(),
            mips => format!(", {mips} MIPS"),
        };
        format!("kernel {}{speed}", self.cell().text)
    }

    /// The first column of its rows.
    pub(crate) fn cell(self) -> Cell {
        match self.vcpus {
            1 => Cell::new(self.kernel),
            vcpus => Cell::new(format!("{}, {vcpus} CPUs", self.kernel)),
        }
    }
}
