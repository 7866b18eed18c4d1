//! The cost of the kernel's paths, in processor instructions.
//!
//! Measured on Debian's 6.12 in the lab, where an instruction is a nanosecond at 1000 MIPS:
//! `luc-lab bench create-fsync` with 1 to 64 threads on 4ms:1, between the kernel's tracepoints
//! (`sched_switch` and one of jbd2's at a time; 800 instructions each are subtracted), and
//! `luc-lab bench fsync-cost`. If only a sum was measured, its parts are shares of it, and their
//! sources say so.

macro_rules! costs {
    ($($name:ident = $value:literal, $source:literal;)+) => {
        /// Instructions for each part of a path.
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
            /// Returns the name, value in instructions, and source of each part.
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
    create_entry = 430, "part of create, for each name searched in the directory's block; --files-per-dir 8 to 150";
    mkdir_exists = 6_000, "mkdir of an existing directory; assumed";
    mkdir_before = 9_000, "mkdir; assumed to cost as much as create";
    mkdir_handle = 45_000, "mkdir, including its block and inode; assumed";
    mkdir_after = 5_600, "mkdir; assumed to cost as much as create";
    open = 14_600, "opening an existing file: create's parts before and after its handle; assumed";
    stat = 9_000, "create's part before its handle, mostly the path; assumed";
    unlink_before = 9_000, "assumed to be as in create";
    unlink_handle = 14_000, "assumed to be as in create";
    evict_handle = 14_000, "freeing a removed file's inode and blocks; assumed as create's";
    unlink_after = 5_600, "assumed to be as in create";
    write_before = 900, "iozone's writes of 1, 8 and 32 pages, 6600, 44200 and 192000, and 1800 more if they change the inode: a share";
    write_page = 5_600, "the same, for each page";
    write_after = 1_000, "the same, a share: after the pages";
    inode_handle = 1_800, "the same, within the handle that changes an inode's times or size";
    page_handle = 600, "a handle that changes nothing, around a page of a write (kernel 3.4); assumed";
    read = 1_900, "as a write without its pages; assumed";
    read_page = 1_200, "finding a page and copying it; assumed";
    writeback_page = 2_000, "from an fsync's start to its first request, 25000, 31000 and 87000 for 1, 4 and 32 pages: for each page";
    disk_page = 3_800, "the driver copies each page, because the lab's disks keep their content in memory: 2600 in the lab's driver, 5000 in the kernel's, from a request's start to its end";
    data_request = 9_000, "the same, for each request, including its interrupt but not the handle that allocates blocks";
    allocate_handle = 14_000, "the same, within the handle that allocates blocks: assumed to be as in create";
    convert_before = 8_000, "write-burst's fsync spends 78000 on 4 pages of data (processors busy): a share of the worker that marks the blocks written, up to its handle";
    convert_handle = 10_000, "the same, within that handle";
    close = 1_600, "create-fsync's close";
    sync_before = 1_700, "between two waits, 52500 with a create: a share of the rest, up to the request";
    sync_after = 1_000, "the same, from the wake-up to the return";
    sync_again = 900, "a task woken by a commit other than its own, 2900 with the switch: a share";
    sync_clean = 1_800, "fsync-cost, clean";
    flush = 4_000, "an empty flush request; assumed";
    seek = 600, "seek in an open file, or stat of it; assumed";
    flowop = 1_500, "what the benchmark does for a flowop besides its calls: draws, clock, counts; assumed";
    hog_turn = 5, "one iteration of hog's empty loop: counted in the compiled program";
    post = 200, "a post to a semaphore for which no task waits; assumed";
    loop_turn = 1_200, "between two waits: a share, what the benchmark does between two operations";
    wake = 1_750, "from a commit's end to the start of the next, for each task woken: 4 to 64";
    sleep_before = 2_000, "a sleep until a set time: each write of write-delay under copy-out costs 18300 (busy processors), 9200 of it in the call, 4700 in switch, interrupt and wake-up; a share of the rest, up to the sleep";
    sleep_after = 2_400, "the same, after the sleep";
    park = 1_500, "the call in which a task waits for another; assumed";
    unpark = 1_500, "the call that wakes it; assumed";
    interrupt = 1_000, "from a request's end to the next switch, less the wake-up";
    spin = 500, "between two checks of a lock whose owner runs; assumed";
    frozen_copy = 2_000, "a copy of a block of 4 KiB; assumed";
    journal_wake = 1_500, "from the switch to the tracepoint of a commit's start";
    journal_lock = 5_000, "from there to the tracepoint of its flushing";
    journal_begin = 4_500, "from there to the next point of preemption";
    journal_fill = 17_000, "from there to the log's write, 17000 and 9000 for each buffer: 4 to 11 of them";
    journal_buffer = 9_000, "the same, for each buffer";
    journal_buffer_end = 700, "from the end of the log's write to the next switch, for each buffer";
    journal_record = 17_000, "from the end of the log's write to the record's";
    journal_end = 3_000, "from the record's end to the first wake-up";
    home_buffer = 3_500, "writing a buffer to its home; assumed";
}
