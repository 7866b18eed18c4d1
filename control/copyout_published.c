// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copy-out exactly as published (section 5.3.2).
 *
 * Copying starts once more than a threshold share of a commit's writes was delayed, 5%
 * by default. It stops after four commits in a row without a delayed write. While copies
 * are written no write is delayed, so every run is clean and copying stops after four
 * commits, whatever the load: it oscillates. The documents count write calls; this
 * counts journal handles, operations that change metadata. Other writes cannot be
 * delayed, and counting them needs a hook in every write. So the share here is never
 * smaller than theirs.
 */
#include "luc_controllers.h"

/* delayed / handles > threshold, without the division. */
static int is_over_threshold(const struct luc_params *params, const struct luc_input *in)
{
	return in->writes_delayed > 0 && luc_mul(in->writes_delayed, 1000) >
	       luc_mul(luc_max(in->handles, 1), params->copyout_threshold_permille);
}

enum luc_copies luc_copyout_published_step(const struct luc_params *params,
					   struct luc_state *s, const struct luc_input *in)
{
	luc_s64 runs = luc_max(params->copyout_clean_runs, 1);

	if (is_over_threshold(params, in))
		s->copy_left_commits = runs;
	else if (s->copy_left_commits > 0)
		s->copy_left_commits = in->writes_delayed > 0 ? runs : s->copy_left_commits - 1;
	return s->copy_left_commits > 0 ? LUC_COPY_ALL : LUC_COPY_NONE;
}
