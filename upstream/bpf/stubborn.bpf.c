// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worst program on the hooks of jbd2: it holds every commit for ever, and no
 * arrival moves it. upstream/check.sh shows that jbd2 still commits at its own bound,
 * and at once for an urgent waiter.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

SEC("fmod_ret/jbd2_hold_ns")
long BPF_PROG(stubborn_hold_ns, struct jbd2_hold *hold)
{
	return 0x7fffffffffffffffL;
}

SEC("fmod_ret/jbd2_hold_arrived")
int BPF_PROG(stubborn_hold_arrived, struct journal_s *journal, struct transaction_s *transaction)
{
	return -1;
}
