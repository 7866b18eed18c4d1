// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * When to copy metadata out: LUC's own controller.
 *
 * 1. Plant. While a commit writes a metadata buffer to the journal, an operation that
 * must change the buffer sleeps. If the commit writes a copy instead, no operation
 * sleeps.
 *
 * 2. Which buffers. Few buffers of a commit are contended: bitmaps, group descriptors,
 * directory blocks, and blocks of the inode table that tasks share. A buffer counts as
 * contended once an operation slept on it, until no operation needed
 * LUC_COPIES_UNUSED_MAX copies in a row. So does the next block: inode tables and
 * directories fill one block after the other, and otherwise each new block would cost a
 * sleep. The caller, which carries the decisions out, keeps these marks. So copying ends
 * buffer by buffer, and no share of delayed operations has to be exceeded (section
 * 5.3.2): a mark costs one sleep, and a sleep takes longer than the copies.
 *
 * 3. Rest. While nothing is copied, the hooks for a commit's buffers cost nothing. So
 * after REST commits in a row without a sleep or a needed copy, marks are ignored until
 * the next sleep.
 *
 * 4. Worked example. One operation sleeps. The next two commits copy the buffer that it
 * slept on; the first of the copies is needed.
 *
 *	commit	delayed	spared	left	copy next
 *	1	1	0	256	2
 *	2	0	1	256	2
 *	3	0	0	255	2
 */
#include "luc_controllers.h"

#define REST 256LL		/* commits; chosen: by then all marks are gone */

enum luc_copies luc_copyout_contended_step(const struct luc_params *params,
					   struct luc_state *s, const struct luc_input *in)
{
	if (in->writes_delayed > 0 || in->buffers_spared > 0)
		s->copy_left_commits = REST;
	else if (s->copy_left_commits > 0)
		s->copy_left_commits--;
	return s->copy_left_commits > 0 ? LUC_COPY_CONTENDED : LUC_COPY_NONE;
}
