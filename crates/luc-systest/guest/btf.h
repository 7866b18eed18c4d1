/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Number of a kernel function's type, which programs at its entry are loaded with.
 * By reading the types as they are, because the guest has no libbpf.
 */
#ifndef LUC_GUEST_BTF_H
#define LUC_GUEST_BTF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LUC_BTF "/sys/kernel/btf/vmlinux"

/* The kernel's type information, whole; NULL with errno if it cannot be read. */
static char *read_btf(size_t *size)
{
	int fd = open(LUC_BTF, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t done = 0;
	char *data;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	*size = (size_t)st.st_size;
	data = malloc(*size);
	while (data && done < *size) {
		ssize_t n = read(fd, data + done, *size - done);

		if (n <= 0)
			return NULL;
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

/* Types count from 1. 0 with errno, ESRCH if there is no such function. */
static uint32_t find_function(const char *name)
{
	size_t size;
	const char *data = read_btf(&size);
	const struct btf_header *head = (const void *)data;
	const char *types, *strings, *end;
	uint32_t id = 1;

	if (!data)
		return 0;
	errno = EINVAL;
	if (size < sizeof(*head) || head->magic != BTF_MAGIC)
		return 0;
	types = data + head->hdr_len + head->type_off;
	strings = data + head->hdr_len + head->str_off;
	end = types + head->type_len;
	if (end > data + size)
		return 0;
	for (; types < end; id++) {
		const struct btf_type *type = (const void *)types;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(strings + type->name_off, name))
			return id;
		types += sizeof(*type) + tail_of(type);
	}
	errno = ESRCH;
	return 0;
}

#endif
