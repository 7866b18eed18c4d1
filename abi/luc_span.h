/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The tracer's records: spans, which have a start and an end.
 *
 * All have the same size and are written at the end of the span: the kernel only
 * copies them, a file of them is an array, and the simulator writes the same. Times
 * are CLOCK_MONOTONIC.
 *
 *   LUC_SPAN(name, text, help)
 */
#ifndef LUC_SPAN_H
#define LUC_SPAN_H

#include "luc_types.h"

typedef unsigned short luc_u16;

#define LUC_SPANS(LUC_SPAN) \
	LUC_SPAN(TASK, "task", "a task is seen for the first time, or under a new name") \
	LUC_SPAN(OPEN, "open", "open or creation of a file, from the path to the open file") \
	LUC_SPAN(WRITE, "write", "write to a file: write, pwrite, writev, AIO, io_uring") \
	LUC_SPAN(FSYNC, "fsync", "fsync, msync, or the sync of an O_SYNC write") \
	LUC_SPAN(FDATASYNC, "fdatasync", "fdatasync, or the sync of an O_DSYNC write") \
	LUC_SPAN(SYNC, "sync", "sync or syncfs, one file system's part") \
	LUC_SPAN(CLOSE, "close", "last close of an open file") \
	LUC_SPAN(COMMIT, "commit", "journal commit, from its start to its end") \
	LUC_SPAN(WAIT_BUFFER, "wait-buffer", "a task slept on metadata that a commit was writing: a write delay") \
	LUC_SPAN(WAIT_LOCKED, "wait-locked", "a task slept until a commit let go of its locked transaction") \
	LUC_SPAN(WAIT_SPACE, "wait-space", "a task slept until the journal had space: checkpoint")

#define LUC_SPAN_KIND(name, text, help) LUC_SPAN_##name,
enum luc_span_kind { LUC_SPANS(LUC_SPAN_KIND) LUC_SPAN_NR };

/* Bits of luc_span.flags. */
#define LUC_SPAN_DIRECTORY 1	/* the file is a directory */
#define LUC_SPAN_CREATED 2	/* OPEN: with O_CREAT */
#define LUC_SPAN_EARLIER 4	/* it began before the watch, and not after begin_ns */
#define LUC_SPAN_UNFINISHED 8	/* it was going on at end_ns, the end of the watch */
#define LUC_SPAN_UNTIMED 16	/* SYNC: another operation that waits for a commit; end unseen */

#define LUC_SPAN_MARKS 3	/* of a commit: locked, flush, log */
#define LUC_SPAN_NAME_BYTES 16	/* the kernel's TASK_COMM_LEN */

/*
 * field      TASK        OPEN CLOSE  WRITE    FSYNC FDATASYNC      COMMIT      WAIT_*
 * object     cgroup id   inode       inode    inode                0           block
 * amount     0           0           bytes    0                    0           0
 * result     0           0           errno    errno                0           0
 * tid        0           0           0        transaction wanted   transaction 0
 * done_tid   0           0           0        last one committed   0           0
 *                                             when it asked
 * marks_ns   name        -           -        [0] begin, [1] end   [0] locked  -
 *                                             of the data flush,   [1] flush
 *                                             0 if there was none  [2] log
 *
 * result is a negative errno, or 0 for success. An fsync waits for (tid - done_tid)
 * commits if that is positive. For a directory `tid` is the running transaction. SYNC
 * has no fields of its own. `within` is the kind of the operation during which a task
 * waited, TASK if that operation is not traced. `block` is the number of the block
 * that a WAIT_BUFFER waits for; the other waits have 0.
 */
struct luc_span {
	luc_u64 begin_ns;
	luc_u64 end_ns;
	luc_u64 object;
	luc_s64 amount;
	union {
		luc_u64 marks_ns[LUC_SPAN_MARKS];
		char name[LUC_SPAN_NAME_BYTES];
	};
	luc_u32 dev;	/* as the kernel encodes it: major << 20 | minor */
	luc_u32 pid;	/* of the thread */
	luc_u32 tgid;	/* of the process */
	luc_u32 tid;
	luc_u32 done_tid;
	int result;
	luc_u16 kind;
	luc_u16 within;
	luc_u32 flags;
};

#define LUC_SPAN_BYTES 88
_Static_assert(sizeof(struct luc_span) == LUC_SPAN_BYTES,
	       "a span is a record of a file: its size may not change unseen");

#endif
