//! What the kernel's paths cost, in instructions of a processor.
//!
//! Measured on Debian's 6.12 in the lab, where an instruction is a nanosecond at 1000 MIPS, on a disk
//! that takes no time: `luc lab run --disk 0ns:1 -- luc bench fsync-cost .` and `luc bench
//! create-fsync`. Where only a sum is measured, its parts are shares of it, and say so.

macro_rules! costs {
    ($($name:ident = $value:literal, $source:literal;)+) => {
        /// Instructions of each part of a path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Costs {
            $(#[doc = $source] pub $name: u64,)+
        }

        impl Default for Costs {
            fn default() -> Self {
                Self { $($name: $value,)+ }
            }
        }

        impl Costs {
            /// Name, value in instructions, and source of each.
            pub fn rows(&self) -> Vec<(&'static str, u64, &'static str)> {
                vec![$((stringify!($name), self.$name, $source),)+]
            }
        }
    };
}

costs! {
    create_before = 9_000, "create-fsync's create, 40600 at 16 threads: a share, up to the handle";
    create_handle = 26_000, "the same, within the handle";
    create_after = 5_600, "the same, after the handle";
    mkdir_exists = 6_000, "mkdir of a directory that is there; assumed";
    mkdir_before = 9_000, "mkdir; assumed as create's";
    mkdir_handle = 45_000, "mkdir, with a block and an inode of its own; assumed";
    mkdir_after = 5_600, "mkdir; assumed as create's";
    write_before = 2_000, "write-delay's write of 4 KiB, 10000, for each page: a share, up to the handle";
    write_handle = 5_000, "the same, within the handle";
    write_after = 3_000, "the same, after the handle";
    allocate_handle = 15_000, "writing back a new file's data, within its handle; assumed";
    close = 2_200, "create-fsync's close";
    sync_before = 3_500, "fsync-cost, committed less commit, 10500: a share, up to the request";
    sync_after = 3_500, "the same, from the wake-up to the return";
    sync_clean = 1_800, "fsync-cost, clean";
    loop_turn = 2_500, "what the benchmark does between two operations; assumed";
    wake = 700, "waking a task; assumed";
    frozen_copy = 2_000, "a copy of a block of 4 KiB; assumed";
    journal_wake = 5_000, "fsync-cost's commit, 51700 for one buffer: a share, up to the lock";
    journal_begin = 12_000, "the same, from the lock to the first buffer";
    journal_buffer = 3_500, "fsync-cost, 5500 for each further buffer: a share, before its write";
    journal_buffer_end = 2_000, "the same, after its write";
    journal_record = 12_000, "a share of the commit: from the end of the log's write to the record's";
    journal_end = 17_200, "a share of the commit: from the record's end to the next sleep";
}
