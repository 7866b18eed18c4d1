/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits, seen where a task goes to sleep: a task that does not wait pays nothing.
 *
 * buffer, locked: kprobes on the calls inside the functions that wait. The loader
 *   finds them in the kernel's text (text.h). Where it cannot, the called functions
 *   are hooked instead, whichever their caller:
 *   buffer: an argument of bit_wait_io() is the bit; the shadow bit of a buffer is
 *     set while a commit writes it.
 *   locked: the address of the wait queue, which lies inside the journal.
 * space: __jbd2_log_wait_for_space() is called only if space is lacking.
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
		introduce(state, begin_ns, false);
		span = begin_span(kind, begin_ns, dev);
		if (!span)
			return 0;
		span->within = operation(state);
		if (kind == LUC_SPAN_WAIT_BUFFER)
			span->object = state->buffer_block;
		end_span(span, now_ns);
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
	/* Only syncs set pending_ns: a task often waits just before its last sync. */
	hand_in_at(state, now_ns);
	return 0;
}

/* Ends a wait, if there is one. */
static __always_inline int over(__u16 kind, struct task_state *state, __u64 *since_ns, __u32 dev)
{
	__u64 begin_ns = *since_ns;

	if (!begin_ns)
		return 0;
	*since_ns = 0;
	return waited(kind, state, begin_ns, dev);
}

/* The task waits for a bit of a buffer's state `word`. */
static __always_inline int buffer_begin(unsigned long *word, int bit)
{
	struct task_state *state;
	struct buffer_head *bh;
	__u32 dev;

	if (bit != (int)bpf_core_enum_value(enum jbd_state_bits, BH_Shadow))
		return 0;
	bh = (void *)word - bpf_core_field_offset(struct buffer_head, b_state);
	dev = BPF_CORE_READ(bh, b_bdev, bd_dev);
	state = task_on(dev);
	if (!state)
		return 0;
	state->buffer_dev = dev;
	state->buffer_block = BPF_CORE_READ(bh, b_blocknr);
	begun(&state->buffer_ns);
	return 0;
}

static __always_inline int buffer_end(void)
{
	struct task_state *state = task_if_known();

	return state ? over(LUC_SPAN_WAIT_BUFFER, state, &state->buffer_ns, state->buffer_dev) : 0;
}

static __always_inline int locked_begin(struct wait_queue_head *queue)
{
	struct task_state *state;

	for (__u32 i = 0; i < LUC_COUNTS_SLOTS && i < settings.filesystems; i++) {
		if (filesystems[i].queue != (__u64)queue)
			continue;
		state = chosen() ? task() : NULL;
		/* A task that is woken too early goes on waiting. */
		if (!state || state->locked_ns)
			return 0;
		state->locked_dev = settings.devs[i];
		state->locked_ns = bpf_ktime_get_ns();
		__sync_fetch_and_add(&waiting, 1);
		return 0;
	}
	return 0;
}

static __always_inline int locked_end(void)
{
	struct task_state *state = waiting ? task_if_known() : NULL;

	if (!state || !state->locked_ns)
		return 0;
	__sync_fetch_and_add(&waiting, -1);
	return over(LUC_SPAN_WAIT_LOCKED, state, &state->locked_ns, state->locked_dev);
}

static __always_inline int space_begin(struct journal_s *journal)
{
	__u32 dev = BPF_CORE_READ(journal, j_fs_dev, bd_dev);
	struct task_state *state = task_on(dev);

	if (!state)
		return 0;
	state->space_dev = dev;
	begun(&state->space_ns);
	return 0;
}

static __always_inline int space_end(void)
{
	struct task_state *state = task_if_known();

	return state ? over(LUC_SPAN_WAIT_SPACE, state, &state->space_ns, state->space_dev) : 0;
}

/* At the calls; a wait for a bit ends after its call. */
SEC("kprobe")
int BPF_KPROBE(call_buffer, unsigned long *word, int bit) { return buffer_begin(word, bit); }
SEC("kprobe")
int BPF_KPROBE(called_buffer) { return buffer_end(); }
SEC("kprobe")
int BPF_KPROBE(call_locked, struct wait_queue_head *queue) { return locked_begin(queue); }
SEC("kprobe")
int BPF_KPROBE(called_locked) { return locked_end(); }

SEC("fentry/bit_wait_io")
int BPF_PROG(fentry_bit_wait, struct wait_bit_key *key)
{
	return buffer_begin(key->flags, key->bit_nr);
}
SEC("fexit/bit_wait_io")
int BPF_PROG(fexit_bit_wait) { return buffer_end(); }
SEC("kprobe/bit_wait_io")
int BPF_KPROBE(kprobe_bit_wait, struct wait_bit_key *key)
{
	return buffer_begin(BPF_CORE_READ(key, flags), BPF_CORE_READ(key, bit_nr));
}
SEC("kretprobe/bit_wait_io")
int BPF_KRETPROBE(kretprobe_bit_wait) { return buffer_end(); }

/* wait_transaction_locked() calls one of the two, depending on the kernel. */
SEC("fentry/prepare_to_wait")
int BPF_PROG(fentry_wait, struct wait_queue_head *queue) { return locked_begin(queue); }
SEC("kprobe/prepare_to_wait")
int BPF_KPROBE(kprobe_wait, struct wait_queue_head *queue) { return locked_begin(queue); }
SEC("fentry/prepare_to_wait_exclusive")
int BPF_PROG(fentry_wait_exclusive, struct wait_queue_head *queue) { return locked_begin(queue); }
SEC("kprobe/prepare_to_wait_exclusive")
int BPF_KPROBE(kprobe_wait_exclusive, struct wait_queue_head *queue)
{
	return locked_begin(queue);
}
SEC("fentry/finish_wait")
int BPF_PROG(fentry_waited) { return locked_end(); }
SEC("kprobe/finish_wait")
int BPF_KPROBE(kprobe_waited) { return locked_end(); }

SEC("fentry/__jbd2_log_wait_for_space")
int BPF_PROG(fentry_space, struct journal_s *journal) { return space_begin(journal); }
SEC("fexit/__jbd2_log_wait_for_space")
int BPF_PROG(fexit_space) { return space_end(); }
SEC("kprobe/__jbd2_log_wait_for_space")
int BPF_KPROBE(kprobe_space, struct journal_s *journal) { return space_begin(journal); }
SEC("kretprobe/__jbd2_log_wait_for_space")
int BPF_KRETPROBE(kretprobe_space) { return space_end(); }

#endif
