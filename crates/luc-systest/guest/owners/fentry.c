// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts a BPF program on the entry of a kernel function, as bpftrace or a bcc
 * tool does, and keeps it there until standard input ends:
 *
 *	fentry FUNCTION
 *
 * prints "attached" once the program is in place and at the end how often it
 * ran. Raw system calls, because the guest has no libbpf.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../btf.h"

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* A program that returns 0, for the entry of the function with this type. */
static int load(uint32_t function)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static char log[4096];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = BPF_TRACE_FENTRY,
		.attach_btf_id = function,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0) {
		fputs(log, stdout);
		die("load");
	}
	return fd;
}

/* How often the program ran while the kernel counted. */
static unsigned long long runs_of(int program)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = {
		.info = {
			.bpf_fd = (uint32_t)program,
			.info_len = sizeof(info),
			.info = (uintptr_t)&info,
		},
	};

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		die("info");
	return info.run_cnt;
}

int main(int argc, char **argv)
{
	union bpf_attr count = { .enable_stats = { .type = BPF_STATS_RUN_TIME } };
	union bpf_attr attach = { 0 };
	uint32_t function;
	int program;
	char byte;

	if (argc != 2) {
		fputs("usage: fentry FUNCTION\n", stderr);
		return 2;
	}
	function = find_function(argv[1]);
	if (!function && errno != ESRCH)
		die(LUC_BTF);
	if (!function) {
		printf("%s: not in the kernel's type information\n", argv[1]);
		return 1;
	}
	program = load(function);
	if (bpf(BPF_ENABLE_STATS, &count) < 0)
		die("count");
	attach.raw_tracepoint.prog_fd = (uint32_t)program;
	/* The link and with it the program lasts as long as this process. */
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attach) < 0)
		die("attach");
	puts("attached");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	printf("ran %llu times\n", runs_of(program));
	return 0;
}
