/* SPDX-License-Identifier: GPL-2.0-only */
/* open, write and close: only with a timeline. */
#ifndef LUC_BPF_FILES_H
#define LUC_BPF_FILES_H

#include "spans.h"

static __always_inline __u32 device(struct inode *inode, bool direct)
{
	struct super_block *sb = READ(direct, inode, i_sb);

	return READ(direct, sb, s_dev);
}

/* The file system is not known until the file is open. */
static __always_inline int open_begin(const struct open_flags *op, bool direct)
{
	struct task_state *state;

	if (!chosen())
		return 0;
	state = task();
	if (!state)
		return 0;
	state->open_flags = READ(direct, op, open_flag);
	begun(&state->open_ns);
	return 0;
}

static __always_inline int open_end(struct file *file, bool direct)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	struct inode *inode;
	__u64 begin_ns, now_ns;
	__u32 dev;

	if (!state || !state->open_ns)
		return 0;
	begin_ns = state->open_ns;
	state->open_ns = 0;
	if (!file || (unsigned long)file >= (unsigned long)-MAX_ERRNO)
		return 0;
	inode = READ(direct, file, f_inode);
	dev = device(inode, direct);
	if (!watched(dev))
		return 0;
	now_ns = bpf_ktime_get_ns();
	introduce(state, begin_ns, true);
	span = begin_span(LUC_SPAN_OPEN, begin_ns, dev);
	if (!span)
		return 0;
	span->object = READ(direct, inode, i_ino);
	if ((READ(direct, inode, i_mode) & S_IFMT) == S_IFDIR)
		span->flags |= LUC_SPAN_DIRECTORY;
	if (state->open_flags & O_CREAT)
		span->flags |= LUC_SPAN_CREATED;
	end_span(span, now_ns);
	return 0;
}

static __always_inline int write_begin(struct kiocb *iocb, bool direct)
{
	struct file *file = READ(direct, iocb, ki_filp);
	struct inode *inode = READ(direct, file, f_inode);
	__u32 dev = device(inode, direct);
	struct task_state *state = task_on(dev);

	if (!state)
		return 0;
	state->write_dev = dev;
	state->write_inode = READ(direct, inode, i_ino);
	begun(&state->write_ns);
	introduce(state, state->write_ns, false);
	return 0;
}

static __always_inline int write_end(long ret)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	__u64 now_ns;

	if (!state || !state->write_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	span = begin_span(LUC_SPAN_WRITE, state->write_ns, state->write_dev);
	state->write_ns = 0;
	if (!span)
		return 0;
	span->object = state->write_inode;
	span->amount = ret > 0 ? ret : 0;
	span->result = ret < 0 ? ret : 0;
	end_span(span, now_ns);
	return 0;
}

static __always_inline int close_begin(struct inode *inode, bool direct)
{
	__u32 dev = device(inode, direct);
	struct task_state *state = task_on(dev);

	if (!state)
		return 0;
	state->close_dev = dev;
	state->close_inode = READ(direct, inode, i_ino);
	begun(&state->close_ns);
	return 0;
}

static __always_inline int close_end(void)
{
	struct task_state *state = task_if_known();
	struct luc_span *span;
	__u64 now_ns;

	if (!state || !state->close_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	span = begin_span(LUC_SPAN_CLOSE, state->close_ns, state->close_dev);
	state->close_ns = 0;
	if (!span)
		return 0;
	span->object = state->close_inode;
	end_span(span, now_ns);
	return 0;
}

SEC("fentry/do_filp_open")
int BPF_PROG(fentry_open, int dfd, void *path, const struct open_flags *op)
{
	return open_begin(op, true);
}
SEC("fexit/do_filp_open")
int BPF_PROG(fexit_open, int dfd, void *path, const struct open_flags *op, struct file *ret)
{
	return open_end(ret, true);
}
SEC("kprobe/do_filp_open")
int BPF_KPROBE(kprobe_open, int dfd, void *path, const struct open_flags *op)
{
	return open_begin(op, false);
}
SEC("kretprobe/do_filp_open")
int BPF_KRETPROBE(kretprobe_open, struct file *ret) { return open_end(ret, false); }

SEC("fentry/ext4_file_write_iter")
int BPF_PROG(fentry_write, struct kiocb *iocb) { return write_begin(iocb, true); }
SEC("fexit/ext4_file_write_iter")
int BPF_PROG(fexit_write, struct kiocb *iocb, void *from, long ret) { return write_end(ret); }
SEC("kprobe/ext4_file_write_iter")
int BPF_KPROBE(kprobe_write, struct kiocb *iocb) { return write_begin(iocb, false); }
SEC("kretprobe/ext4_file_write_iter")
int BPF_KRETPROBE(kretprobe_write, long ret) { return write_end(ret); }

SEC("fentry/ext4_release_file")
int BPF_PROG(fentry_close, struct inode *inode) { return close_begin(inode, true); }
SEC("fexit/ext4_release_file")
int BPF_PROG(fexit_close) { return close_end(); }
SEC("kprobe/ext4_release_file")
int BPF_KPROBE(kprobe_close, struct inode *inode) { return close_begin(inode, false); }
SEC("kretprobe/ext4_release_file")
int BPF_KRETPROBE(kretprobe_close) { return close_end(); }

#endif
