/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The trampoline compares calls with these: return addresses of hooked calls, and
 * device numbers. Every processor reads this at each hooked call, so write to it
 * only when it changes.
 */
#ifndef LUC_ENTRY_H
#define LUC_ENTRY_H

#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct luc_entry {
	unsigned long write;		/* 0 while some file system copies out */
	unsigned long file;		/* the same */
	unsigned long sync_file;
	unsigned long complete;
	unsigned long wait_commit;
	unsigned long commit;
	u64 devs;			/* a bit for each slot of luc_table in use */
	unsigned long counted_from;	/* waits that return here have been counted */
	/* The next cache line: called rarely, or by tasks that sleep. */
	unsigned long wait_bit;
	unsigned long fast_commit;
	unsigned long wait_locked;
} ____cacheline_aligned_in_smp;

extern struct luc_entry luc_entry;
extern void luc_trampoline(void *);

/* The argument registers as the trampoline pushes them, last one first. */
struct luc_regs {
	unsigned long r9, r8, cx, dx, si, di;
};

/* In hooks.c; the trampoline calls it for addresses that it does not know. */
void luc_dispatch(const struct luc_regs *regs, unsigned long back,
		  unsigned long caller);

static inline void luc_learn(unsigned long *from, unsigned long back)
{
	if (READ_ONCE(*from) != back)
		WRITE_ONCE(*from, back);
}

void luc_learn_write(unsigned long back);
void luc_learn_file(unsigned long back);

/* Learns that waits which return to caller have already been counted. */
void luc_learn_counted(unsigned long caller);
/* A livepatch has replaced a hooked function: forgets which waits were counted. */
void luc_entry_patched(void);

void luc_entry_forget(void);

#endif
