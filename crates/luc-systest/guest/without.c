// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command on a host that lacks something, by the kernel's own refusal:
 *
 *	without fentry CMD...	a security module refuses programs for entries and exits of
 *				functions with EPERM, as some hypervisors' kernels do
 *	without bpf CMD...	there is no bpf(): ENOSYS
 *	without permission CMD...	bpf() says EPERM, as the filters of containers have it
 *	without rights CMD...	root without any capability
 *	without others CMD...	root with CAP_BPF and CAP_PERFMON alone
 *
 * Raw system calls, because the guest has no libbpf.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btf.h"

static void die(const char *what)
{
	fprintf(stderr, "without: %s: %s\n", what, strerror(errno));
	exit(99);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

#define LOAD(size, to, from, at) \
	{ .code = BPF_LDX | (size) | BPF_MEM, .dst_reg = (to), .src_reg = (from), .off = (at) }
#define UNLESS(reg, value, skip) \
	{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (reg), .imm = (value), .off = (skip) }
#define IF(reg, value, skip) \
	{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (reg), .imm = (value), .off = (skip) }
#define RETURN(value) \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = (value) }, \
	{ .code = BPF_JMP | BPF_EXIT }

/* From now on, as long as this process lives, nobody loads a program for fentry. */
static void refuse_fentry(void)
{
	/* Matches a bpf(cmd, attr, size) that loads a tracing program for an entry or an exit. */
	static const struct bpf_insn code[] = {
		LOAD(BPF_DW, BPF_REG_2, BPF_REG_1, 0),
		UNLESS(BPF_REG_2, BPF_PROG_LOAD, 6),
		LOAD(BPF_DW, BPF_REG_3, BPF_REG_1, 8),
		LOAD(BPF_W, BPF_REG_4, BPF_REG_3, offsetof(union bpf_attr, prog_type)),
		UNLESS(BPF_REG_4, BPF_PROG_TYPE_TRACING, 3),
		LOAD(BPF_W, BPF_REG_4, BPF_REG_3, offsetof(union bpf_attr, expected_attach_type)),
		IF(BPF_REG_4, BPF_TRACE_FENTRY, 3),
		IF(BPF_REG_4, BPF_TRACE_FEXIT, 2),
		RETURN(0),
		RETURN(-EPERM),
	};
	static char log[16384];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_LSM,
		.expected_attach_type = BPF_LSM_MAC,
		.attach_btf_id = find_function("bpf_lsm_bpf"),
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	union bpf_attr attach = { 0 };
	int program;

	if (!attr.attach_btf_id)
		die("types");
	program = bpf(BPF_PROG_LOAD, &attr);
	if (program < 0) {
		fputs(log, stderr);
		die("load");
	}
	attach.raw_tracepoint.prog_fd = (uint32_t)program;
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attach) < 0)
		die("attach");
}

/* bpf() fails with this error, here and in what is run from here. */
static void refuse_bpf(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {
		.len = sizeof(code) / sizeof(code[0]),
		.filter = code,
	};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		die("seccomp");
}

/* Keeps these capabilities alone; what is not in the bounding set root does not get by execve(). */
static void keep(uint64_t kept)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap))
			die("capability");
	}
	for (int i = 0; i < 2; i++) {
		data[i].effective = (uint32_t)(kept >> 32 * i);
		data[i].permitted = data[i].effective;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data))
		die("capset");
}

static void take_away(const char *what)
{
	if (!strcmp(what, "fentry"))
		refuse_fentry();
	else if (!strcmp(what, "bpf"))
		refuse_bpf(ENOSYS);
	else if (!strcmp(what, "permission"))
		refuse_bpf(EPERM);
	else if (!strcmp(what, "rights"))
		keep(0);
	else if (!strcmp(what, "others"))
		keep(1ULL << CAP_BPF | 1ULL << CAP_PERFMON);
	else
		die(what);
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc < 3) {
		fputs("usage: without WHAT CMD...\n", stderr);
		return 2;
	}
	take_away(argv[1]);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	if (waitpid(child, &status, 0) != child)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
