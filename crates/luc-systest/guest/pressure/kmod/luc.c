// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

MODULE_DESCRIPTION("Empty; see pressure_alloc.c");
MODULE_LICENSE("GPL");
