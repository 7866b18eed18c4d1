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
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* The kernel's type information, whole. */
static char *read_btf(size_t *size)
{
	const char *path = "/sys/kernel/btf/vmlinux";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t done = 0;
	char *data;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	*size = (size_t)st.st_size;
	data = malloc(*size);
	if (!data)
		die("malloc");
	while (done < *size) {
		ssize_t n = read(fd, data + done, *size - done);

		if (n <= 0)
			die(path);
		done += (size_t)n;
	}
	close(fd);
	return data;
}

/* Bytes that follow the head of a type. */
static size_t tail_of(const struct btf_type *type)
{
	size_t n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

/* Number of the function's type; types count from 1. 0 if there is none. */
static uint32_t find_function(const char *name)
{
	size_t size;
	const char *data = read_btf(&size);
	const struct btf_header *head = (const void *)data;
	const char *types = data + head->hdr_len + head->type_off;
	const char *strings = data + head->hdr_len + head->str_off;
	const char *end = types + head->type_len;
	uint32_t id = 1;

	if (size < sizeof(*head) || head->magic != BTF_MAGIC || end > data + size)
		return 0;
	for (; types < end; id++) {
		const struct btf_type *type = (const void *)types;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(strings + type->name_off, name))
			return id;
		types += sizeof(*type) + tail_of(type);
	}
	return 0;
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
