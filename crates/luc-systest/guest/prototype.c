// SPDX-License-Identifier: GPL-2.0-only
/*
 *	prototype FUNCTION	prints the types of a kernel function's result and parameters
 */
#include <stdio.h>

#include "btf.h"

static void print_type(const struct kernel_types *all, uint32_t id)
{
	const struct btf_type *type = type_of(all, id);

	if (!type) {
		fputs("void", stdout);
		return;
	}
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		print_type(all, type->type);
		fputs(" *", stdout);
		return;
	case BTF_KIND_CONST:
		fputs("const ", stdout);
		print_type(all, type->type);
		return;
	case BTF_KIND_STRUCT:
		fputs("struct ", stdout);
		break;
	case BTF_KIND_UNION:
		fputs("union ", stdout);
		break;
	case BTF_KIND_ENUM:
		fputs("enum ", stdout);
		break;
	}
	fputs(all->strings + type->name_off, stdout);
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";
	const struct btf_type *function, *prototype;
	const struct btf_param *params;
	struct kernel_types all;

	if (read_types(&all) || !(function = type_of(&all, function_among(&all, name)))) {
		fprintf(stderr, "prototype: %s: %s\n", name, strerror(errno));
		return 1;
	}
	prototype = type_of(&all, function->type);
	params = (const void *)(prototype + 1);
	print_type(&all, prototype->type);
	for (unsigned int i = 0; i < BTF_INFO_VLEN(prototype->info); i++) {
		fputs(i ? ", " : "(", stdout);
		print_type(&all, params[i].type);
	}
	puts(")");
	return 0;
}
