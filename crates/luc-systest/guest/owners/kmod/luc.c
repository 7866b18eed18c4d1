// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

MODULE_DESCRIPTION("Empty; see owner_livepatch.c");
MODULE_LICENSE("GPL");
