/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's types that the programs read. Only names matter: libbpf
 * finds each field in the BTF of the running kernel.
 */
#ifndef LUC_UPSTREAM_KERNEL_H
#define LUC_UPSTREAM_KERNEL_H

/* Has bpf_tracing.h use the kernel's names of registers, not those of user space. */
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int pid;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct block_device {
	__u32 bd_dev;
};

typedef struct {
	int counter;
} atomic_t;

struct transaction_s {
	unsigned int t_tid;
	long long t_start_time;
	atomic_t t_handle_count;
};

struct journal_s {
	struct block_device *j_fs_dev;
	unsigned long long j_average_commit_time;
	unsigned int j_hold, j_copyout_max;
	atomic_t j_sync_arrived[2];
	unsigned int j_sync_base[2], j_sync_missing[2], j_sync_seen;
};

struct jbd2_hold {
	struct journal_s *journal;
	struct transaction_s *transaction;
	unsigned long long held_ns;
	int waiters, missing;
};

struct buffer_head;

#pragma clang attribute pop

/* All members, with the kernel's types: libbpf compares them. */
struct jbd2_hold_ops {
	long long (*hold_ns)(struct jbd2_hold *hold);
	int (*arrived)(struct journal_s *journal, struct transaction_s *transaction,
		       __u32 waiters);
	int (*copyout_buffers)(struct journal_s *journal, struct transaction_s *transaction);
};

#endif
