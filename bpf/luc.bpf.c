// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracer: what operations on chosen file systems, their journal commits
 * and their waits take.
 *
 * Tracepoints and functions of a stock kernel; none of the functions that the
 * module hooks, as a function has one owner of its entry. What a program
 * needs of a function's begin at its end waits in a table of tasks, so one
 * body serves fentry/fexit and kprobe/kretprobe, of which a host may have
 * only one kind.
 *
 * Where only counts are wanted (`timeline` is 0), only what costs little is
 * attached: syncs, commits, and waits, which are over when they are seen.
 */
#include "maps.h"

char LICENSE[] SEC("license") = "GPL";

#include "spans.h"
#include "sync.h"
#include "commit.h"
#include "files.h"
#include "waits.h"
#include "text.h"
