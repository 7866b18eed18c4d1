/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of kernel types that the tracer reads. Only names matter: libbpf
 * finds the offset and width of each field in the BTF of the running kernel.
 */
#ifndef LUC_BPF_KERNEL_H
#define LUC_BPF_KERNEL_H

/* Makes bpf_tracing.h use the kernel's register names instead of user space's. */
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	int pid, tgid;
	unsigned int flags;
	struct task_struct *group_leader;
	char comm[16];
	void *worker_private;
};

struct kthread {
	void *data;
};

struct sb_writers {
	int frozen;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	void *s_fs_info;
	struct sb_writers s_writers;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct kiocb {
	struct file *ki_filp;
};

struct open_flags {
	int open_flag;
};

struct block_device {
	__u32 bd_dev;
};

struct buffer_head {
	unsigned long b_state;
	__u64 b_blocknr;
	struct block_device *b_bdev;
};

struct wait_bit_key {
	unsigned long *flags;
	int bit_nr;
};

struct wait_queue_head {
	int luc_unused;
};

struct transaction_s {
	unsigned int t_tid;
};

struct journal_s {
	unsigned long j_flags;
	int j_errno;
	struct block_device *j_fs_dev;
	struct transaction_s *j_running_transaction;
	struct transaction_s *j_committing_transaction;
	unsigned int j_commit_sequence;
	struct wait_queue_head j_wait_transaction_locked;
	void *j_private;
};

struct ext4_sb_info {
	struct journal_s *s_journal;
	unsigned long s_ext4_flags;
};

struct ext4_inode_info {
	unsigned int i_sync_tid;
	unsigned int i_datasync_tid;
	struct inode vfs_inode;
};

/* The registers that PT_REGS_PARMn() reads on x86-64. */
struct pt_regs {
	unsigned long di, si, dx, cx, r8, ax, sp, ip, bp;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

enum jbd_state_bits { BH_Shadow = 24 };

#define S_IFMT 00170000
#define S_IFDIR 0040000
#define O_CREAT 00000100
#define MAX_ERRNO 4095
#define PF_KTHREAD 0x00200000
#define EXT4_SUPER_MAGIC 0xef53

#endif
