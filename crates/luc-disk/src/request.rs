//! Requests to a disk.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Op {
    /// Reads data from the disk.
    Read,
    /// Writes data to the disk.
    Write,
    /// Writes the volatile cache to the medium.
    Flush,
}

/// A request, with the layout of `struct lucdisk_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Request {
    /// First 512-byte sector.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub bytes: u32,
    op: u32,
    fua: u32,
    /// Time of arrival.
    pub arrived_ns: u64,
}

impl Request {
    /// Creates a request that arrives at time 0; a queue sets the actual time.
    pub fn new(op: Op, sector: u64, bytes: u32) -> Self {
        Self {
            sector,
            bytes,
            op: op as u32,
            fua: 0,
            arrived_ns: 0,
        }
    }

    pub fn read(sector: u64, bytes: u32) -> Self {
        Self::new(Op::Read, sector, bytes)
    }

    pub fn write(sector: u64, bytes: u32) -> Self {
        Self::new(Op::Write, sector, bytes)
    }

    /// Creates a write that is durable when it completes.
    pub fn write_fua(sector: u64, bytes: u32) -> Self {
        Self {
            fua: 1,
            ..Self::write(sector, bytes)
        }
    }

    pub fn flush() -> Self {
        Self::new(Op::Flush, 0, 0)
    }

    /// Operation of the request.
    pub fn op(&self) -> Op {
        match self.op {
            0 => Op::Read,
            1 => Op::Write,
            _ => Op::Flush,
        }
    }
}
