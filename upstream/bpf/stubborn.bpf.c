// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worst answers to jbd2: they hold every commit for ever, and no arrival moves
 * them. upstream/check.sh shows that jbd2 still commits at its own bound,
 * and at once for an urgent waiter.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

SEC("struct_ops/hold_ns")
long BPF_PROG(stubborn_hold_ns, struct jbd2_hold *hold)
{
	return 0x7fffffffffffffffL;
}

SEC("struct_ops/arrived")
int BPF_PROG(stubborn_arrived, struct journal_s *journal, struct transaction_s *transaction,
	     __u32 waiters)
{
	return -1;
}

SEC(".struct_ops.link")
struct jbd2_hold_ops stubborn = {
	.hold_ns = (void *)stubborn_hold_ns,
	.arrived = (void *)stubborn_arrived,
};
