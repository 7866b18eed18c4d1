// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracer: durations of operations on chosen file systems, of their journal
 * commits and of waits.
 *
 * It hooks tracepoints and functions of a stock kernel, but none that the module
 * hooks, because the entry of a function has one owner. The start of an operation
 * saves its state for the end in a table of tasks, so one body serves
 * fentry/fexit and kprobe/kretprobe; a host may have only one kind.
 *
 * Where only sums are needed (`timeline` is 0), only syncs, commits and waits are
 * hooked, which costs little.
 */
#include "maps.h"

char LICENSE[] SEC("license") = "GPL";

#include "spans.h"
#include "sync.h"
#include "commit.h"
#include "files.h"
#include "waits.h"
#include "unfinished.h"
#include "text.h"
