/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Holding or not, decided by measurement: see the essay in luc_trial.c. */
#ifndef LUC_TRIAL_H
#define LUC_TRIAL_H

#include "../abi/luc_decision.h"

/* Nothing has been measured yet. */
void luc_trial_init(struct luc_state *state);

/* May this commit be held? Uses up one commit of a ban; reads state->stale. */
int luc_trial_allows(struct luc_state *state);

/* The same of a commit that is only observed, which uses up nothing. */
int luc_trial_would_allow(const struct luc_state *state);

/* A commit was only observed: what a window counted up to it is no window. */
void luc_trial_rested(struct luc_state *state);

/* There was a pause: what waits showed before it tells nothing now. */
void luc_trial_paused(struct luc_state *state);

/* A commit was urgent: the next ones of either kind pass unheld. */
void luc_trial_urged(struct luc_state *state);

/* Does the trial, or its verdict, ask for commits without copies, as on stock? */
int luc_trial_forbids_copies(const struct luc_state *state);

/*
 * A wait ended: sync events at open, arrivals since, tasks still out; how long it
 * took, and how long a commit takes. Any values.
 */
void luc_trial_waited(struct luc_state *state, luc_s64 opened, luc_s64 came,
		      luc_s64 late, luc_s64 waited_ns, luc_s64 commit_ns);

/* A batch that closed. */
struct luc_closed {
	luc_s64 now_ns;
	luc_s64 done;			/* calls served since the one before */
	luc_s64 unneeded;		/* of these, calls that needed no commit */
	luc_s64 handles;			/* its journal handles */
	luc_s64 events;			/* sync events that it got ... */
	luc_s64 events_wait_ns;		/* ... and how long they waited, summed up */
	luc_s64 commit_ns;		/* how long a commit takes */
};

/* Any values. */
void luc_trial_closed(struct luc_state *state, const struct luc_closed *closed);

#endif
