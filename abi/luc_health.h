/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The state of one journal, as the kernel keeps it. */
#ifndef LUC_HEALTH_H
#define LUC_HEALTH_H

#include "luc_types.h"

struct luc_health {
	luc_u32 dev;	/* of the file system, as the kernel encodes it */
	luc_u32 frozen;	/* 0, or the stage of a freeze */
	luc_u32 ext4_flags;	/* s_ext4_flags */
	luc_u32 journal_flags;	/* j_flags */
	luc_u32 journal_errno;	/* j_errno, without its sign */
};

#endif
