/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits: seen where a task goes to sleep, so that who need not wait pays
 * nothing.
 *
 * locked: wait_transaction_locked() puts the task on a wait queue inside the
 *   journal, so the queue's address tells.
 * buffer: who waits for a bit has an entry that says which; the shadow bit of
 *   a buffer is set while a commit writes it.
 * space: __jbd2_log_wait_for_space() is called only where space is lacking.
 *
 * The commit's own thread waits for each of its blocks, and is passed over.
 */
#ifndef LUC_BPF_WAITS_H
#define LUC_BPF_WAITS_H

#include "spans.h"

static __always_inline int waited(__u16 kind, struct task_state *state, __u64 begin_ns, __u32 dev)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct luc_span *span;
	struct luc_counts *c;
	struct fs_state *fs;
	__u32 which;

	if (settings.timeline) {
		span = begin_span(kind, begin_ns, now_ns, dev);
		if (!span)
			return 0;
		span->within = operation(state);
		end_span(span);
		return 0;
	}
	fs = watched(dev);
	c = fs ? counts_of(fs) : NULL;
	which = kind - LUC_SPAN_WAIT_BUFFER;
	if (!c || which >= LUC_WAITS)
		return 0;
	c->waits[which] += 1;
	c->wait_ns[which] += now_ns - begin_ns;
	if (kind == LUC_SPAN_WAIT_BUFFER)
		count_duration(c->wait_hist, now_ns - begin_ns);
	state->pending.wait_ns += now_ns - begin_ns;
	hand_in(state, now_ns);
	return 0;
}

static __always_inline void locked_begin(__u32 dev)
{
	struct task_state *state = chosen() ? task() : NULL;

	if (!state || state->locked_ns)
		return;
	state->locked_dev = dev;
	state->locked_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&waiting, 1);
}

static __always_inline void buffer_begin(struct wait_queue_entry *entry)
{
	struct wait_bit_queue_entry *wait =
		(void *)entry - bpf_core_field_offset(struct wait_bit_queue_entry, wq_entry);
	struct task_state *state;
	struct buffer_head *bh;
	__u32 dev;

	if (BPF_CORE_READ(wait, key.bit_nr) !=
	    (int)bpf_core_enum_value(enum jbd_state_bits, BH_Shadow))
		return;
	bh = (void *)BPF_CORE_READ(wait, key.flags) -
	     bpf_core_field_offset(struct buffer_head, b_state);
	dev = BPF_CORE_READ(bh, b_bdev, bd_dev);
	state = task_on(dev);
	/* Woken and not yet let through, it waits on. */
	if (!state || state->buffer_ns)
		return;
	state->buffer_dev = dev;
	state->buffer_ns = bpf_ktime_get_ns();
	__sync_fetch_and_add(&waiting, 1);
}

static __always_inline int wait_begin(struct wait_queue_head *queue,
				      struct wait_queue_entry *entry, bool direct)
{
	__u64 current = bpf_get_current_task();

	for (__u32 i = 0; i < LUC_COUNTS_SLOTS && i < settings.filesystems; i++) {
		if (filesystems[i].queue == (__u64)queue) {
			locked_begin(settings.devs[i]);
			return 0;
		}
		if (filesystems[i].committer == current)
			return 0;
	}
	if (&wake_bit_function && READ(direct, entry, func) == &wake_bit_function)
		buffer_begin(entry);
	return 0;
}

/* A wait that was counted among those going on, and is over. */
static __always_inline int over(__u16 kind, struct task_state *state, __u64 *since_ns, __u32 dev)
{
	__u64 begin_ns = *since_ns;

	*since_ns = 0;
	__sync_fetch_and_add(&waiting, -1);
	return waited(kind, state, begin_ns, dev);
}

static __always_inline int wait_end(void)
{
	struct task_state *state;

	if (!waiting)
		return 0;
	state = task_if_known();
	if (!state)
		return 0;
	if (state->buffer_ns)
		return over(LUC_SPAN_WAIT_BUFFER, state, &state->buffer_ns, state->buffer_dev);
	if (state->locked_ns)
		return over(LUC_SPAN_WAIT_LOCKED, state, &state->locked_ns, state->locked_dev);
	return 0;
}

static __always_inline int space_begin(struct journal_s *journal)
{
	__u32 dev = BPF_CORE_READ(journal, j_fs_dev, bd_dev);
	struct task_state *state = task_on(dev);

	if (!state)
		return 0;
	state->space_dev = dev;
	state->space_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int space_end(void)
{
	struct task_state *state = task_if_known();
	__u64 begin_ns;

	if (!state || !state->space_ns)
		return 0;
	begin_ns = state->space_ns;
	state->space_ns = 0;
	return waited(LUC_SPAN_WAIT_SPACE, state, begin_ns, state->space_dev);
}

/* Which of the two wait_transaction_locked() calls depends on the kernel. */
SEC("fentry/prepare_to_wait")
int BPF_PROG(fentry_wait, struct wait_queue_head *queue, struct wait_queue_entry *entry)
{
	return wait_begin(queue, entry, true);
}
SEC("kprobe/prepare_to_wait")
int BPF_KPROBE(kprobe_wait, struct wait_queue_head *queue, struct wait_queue_entry *entry)
{
	return wait_begin(queue, entry, false);
}
SEC("fentry/prepare_to_wait_exclusive")
int BPF_PROG(fentry_wait_exclusive, struct wait_queue_head *queue, struct wait_queue_entry *entry)
{
	return wait_begin(queue, entry, true);
}
SEC("kprobe/prepare_to_wait_exclusive")
int BPF_KPROBE(kprobe_wait_exclusive, struct wait_queue_head *queue,
	       struct wait_queue_entry *entry)
{
	return wait_begin(queue, entry, false);
}
SEC("fentry/finish_wait")
int BPF_PROG(fentry_waited) { return wait_end(); }
SEC("kprobe/finish_wait")
int BPF_KPROBE(kprobe_waited) { return wait_end(); }

SEC("fentry/__jbd2_log_wait_for_space")
int BPF_PROG(fentry_space, struct journal_s *journal) { return space_begin(journal); }
SEC("fexit/__jbd2_log_wait_for_space")
int BPF_PROG(fexit_space) { return space_end(); }
SEC("kprobe/__jbd2_log_wait_for_space")
int BPF_KPROBE(kprobe_space, struct journal_s *journal) { return space_begin(journal); }
SEC("kretprobe/__jbd2_log_wait_for_space")
int BPF_KRETPROBE(kretprobe_space) { return space_end(); }

#endif
