//! What the kernel's paths cost, in instructions of a processor.
//!
//! Measured on Debian's 6.12 in the lab, where an instruction is a nanosecond at 1000 MIPS: `luc bench
//! create-fsync` with 1 to 64 threads on 4ms:1, between the kernel's tracepoints (`sched_switch` and
//! one of jbd2's at a time, 800 instructions each, taken off), and `luc bench fsync-cost`. Where only
//! a sum is measured, its parts are shares of it, and say so.

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
    create_before = 9_000, "create in an empty directory, 28600: a share, up to the handle";
    create_handle = 14_000, "the same, within the handle";
    create_after = 5_600, "the same, after the handle";
    create_entry = 430, "of create, for each name in the directory's block, which is searched; --files-per-dir 8 to 150";
    mkdir_exists = 6_000, "mkdir of a directory that is there; assumed";
    mkdir_before = 9_000, "mkdir; assumed as create's";
    mkdir_handle = 45_000, "mkdir, with a block and an inode of its own; assumed";
    mkdir_after = 5_600, "mkdir; assumed as create's";
    write_before = 2_000, "write-delay's write of 4 KiB, 10000, for each page: a share, up to the handle";
    write_handle = 5_000, "the same, within the handle";
    write_after = 3_000, "the same, after the handle";
    allocate_handle = 15_000, "writing back a new file's data, within its handle; assumed";
    close = 1_600, "create-fsync's close";
    sync_before = 1_700, "between two waits, 52500 with a create: a share of what is left, up to the request";
    sync_after = 1_000, "the same, from the wake-up to the return";
    sync_again = 900, "a task that another's commit wakes, 2900 with the switch: a share";
    sync_clean = 1_800, "fsync-cost, clean";
    loop_turn = 1_200, "between two waits: a share, what the benchmark does between two operations";
    wake = 1_750, "from a commit's end to the next one's begin, by the tasks woken: 4 to 64";
    interrupt = 1_000, "from a request's end to the next switch, less the wake-up";
    frozen_copy = 2_000, "a copy of a block of 4 KiB; assumed";
    journal_wake = 1_500, "from the switch to the tracepoint of a commit's begin";
    journal_lock = 5_000, "from there to the tracepoint of its flushing";
    journal_begin = 4_500, "from there to the next point of preemption";
    journal_fill = 17_000, "from there to the log's write, 17000 and 9000 for each buffer: 4 to 11 of them";
    journal_buffer = 9_000, "the same, for each buffer";
    journal_buffer_end = 700, "from the end of the log's write to the next switch, for each buffer";
    journal_record = 17_000, "from the end of the log's write to the record's";
    journal_end = 3_000, "from the record's end to the first wake-up";
}
