// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * jbd2's own batching, applied to every sync (section A.1.4).
 *
 * jbd2_journal_stop() delays a handle with h_sync until the transaction is as old as
 * an average commit takes. That average is capped at max_batch_time (15 ms). The task
 * that synced last is not delayed: a lone stream would only wait for itself. fsync
 * never takes that path; the documents enabled it there to show why it does not help.
 * Age says little about arrivals: the first task to change metadata began the
 * transaction, which may be old when the first sync asks for its commit.
 */
#include "luc_controllers.h"

void luc_batching_age_open(const struct luc_params *params, struct luc_state *state,
			   const struct luc_input *in)
{
	luc_s64 old_enough_ns = luc_clamp(in->commit_avg_ns, 0,
					  luc_us_to_ns(params->age_limit_us));

	state->limit_ns = old_enough_ns;
	if (!in->same_task)
		state->wait_ns = luc_max(luc_sub(old_enough_ns, luc_max(in->age_ns, 0)), 0);
}

/* This rule waits for time to pass, not for sync events. */
luc_s64 luc_batching_age_poll(const struct luc_params *params, struct luc_state *state,
			      const struct luc_input *in)
{
	return LUC_S64_MAX;
}

void luc_batching_age_close(const struct luc_params *params, struct luc_state *state,
			    const struct luc_input *in, struct luc_output *out)
{
}

luc_s64 luc_batching_age_complete(const struct luc_params *params,
				  const struct luc_state *state)
{
	return LUC_S64_MAX;
}

LUC_NEVER_PASSES(luc_batching_age_pass)
