/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a piece of the kernel's text, in which the loader searches for calls. */
#ifndef LUC_BPF_TEXT_H
#define LUC_BPF_TEXT_H

#include "maps.h"

struct text_piece {
	__u8 bytes[LUC_TEXT_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct text_piece);
} text SEC(".maps");

struct text_request {
	__u64 address;
};

SEC("syscall")
int read_text(struct text_request *request)
{
	__u32 zero = 0;
	struct text_piece *piece = bpf_map_lookup_elem(&text, &zero);

	if (!piece)
		return -1;
	return bpf_probe_read_kernel(piece, sizeof(*piece), (void *)request->address);
}

#endif
