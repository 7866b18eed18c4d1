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

/* All types, in the order of their numbers, and the text that names are in. */
struct kernel_types {
	const char *types, *end, *strings;
};

/* 0, or -1 with errno. */
static inline int read_types(struct kernel_types *all)
{
	size_t size;
	const char *data = read_btf(&size);
	const struct btf_header *head = (const void *)data;

	if (!data)
		return -1;
	errno = EINVAL;
	if (size < sizeof(*head) || head->magic != BTF_MAGIC)
		return -1;
	all->types = data + head->hdr_len + head->type_off;
	all->strings = data + head->hdr_len + head->str_off;
	all->end = all->types + head->type_len;
	return all->end > data + size ? -1 : 0;
}

static inline const struct btf_type *next_type(const struct btf_type *type)
{
	return (const void *)((const char *)(type + 1) + tail_of(type));
}

/* Types count from 1; 0 is void, and NULL here. */
static inline const struct btf_type *type_of(const struct kernel_types *all, uint32_t id)
{
	const struct btf_type *type = (const void *)all->types;

	if (!id)
		return NULL;
	while (--id)
		type = next_type(type);
	return type;
}

/* 0 with errno ESRCH if there is no such function. */
static inline uint32_t function_among(const struct kernel_types *all, const char *name)
{
	const struct btf_type *type = (const void *)all->types;
	uint32_t id = 1;

	for (; (const char *)type < all->end; type = next_type(type), id++) {
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(all->strings + type->name_off, name))
			return id;
	}
	errno = ESRCH;
	return 0;
}

/* 0 with errno. */
static inline uint32_t find_function(const char *name)
{
	struct kernel_types all;

	return read_types(&all) ? 0 : function_among(&all, name);
}

#endif
