// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "luc_returns.h"

/* Multiplicative hashing: task numbers come in runs, slots must not. */
static luc_u32 slot_of(luc_u32 task)
{
	return (task * 2654435761u) >> 22 & (LUC_RETURNS_SLOTS - 1);
}

static struct luc_returns_cohort *cohort_of(struct luc_returns *r, luc_u32 tid)
{
	return &r->cohort[tid & (LUC_RETURNS_COHORTS - 1)];
}

static struct luc_returns_cohort *known_cohort(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (!c->known || c->tid != tid)
		*c = (struct luc_returns_cohort){ .known = 1, .tid = tid };
	return c;
}

static void came_back(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (c->known && c->tid == tid && c->out)
		c->out--;
}

static void left_call(struct luc_returns *r, struct luc_returns_slot *s)
{
	struct luc_returns_cohort *c = cohort_of(r, s->entered);

	if (c->known && c->tid == s->entered && c->syncing)
		c->syncing--;
	s->syncing = 0;
}

#define WHOLE 65536u		/* a share of one */
#define LEARN_SHIFT 4		/* a call changes the share by a sixteenth */

/* One more sync call ended: with a wait for a commit, or without any. */
static void learn(struct luc_returns *r, int waited)
{
	if (waited)
		r->needless -= r->needless >> LEARN_SHIFT;
	else
		r->needless += (WHOLE - r->needless) >> LEARN_SHIFT;
}

static void join(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = known_cohort(r, tid);

	c->members++;
	c->out++;
}

/* The slot of this task; *known tells whether it was its own already. */
static struct luc_returns_slot *take_slot(struct luc_returns *r, luc_u32 task,
					  int *known)
{
	struct luc_returns_slot *s;

	if (!task)
		task = 1;
	s = &r->slot[slot_of(task)];
	*known = s->task == task;
	if (!*known && s->syncing)
		left_call(r, s);
	s->task = task;
	return s;
}

void luc_returns_enter(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_slot *s;
	int known;

	s = take_slot(r, task, &known);
	if (s->syncing) {
		left_call(r, s);
		learn(r, 0);
	} else if (known) {
		came_back(r, s->tid);
	}
	/* Released by a transaction that nobody counts: it has come back. */
	if (!known)
		s->tid = tid - LUC_RETURNS_COHORTS;
	s->entered = tid;
	s->syncing = 1;
	known_cohort(r, tid)->syncing++;
}

int luc_returns_arrive(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_slot *s;
	int known;

	s = take_slot(r, task, &known);
	if (s->syncing) {
		left_call(r, s);
		learn(r, 1);
	} else if (known) {
		if (s->tid == tid)
			return 0;
		came_back(r, s->tid);
	}
	if (known && s->tid == tid)
		return 0;
	s->tid = tid;
	join(r, tid);
	return 1;
}

luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid,
			     luc_s64 *syncing)
{
	luc_s64 out = 0, in_call = 0;
	luc_u32 back;

	for (back = 0; back <= LUC_RETURNS_DEPTH; back++) {
		const struct luc_returns_cohort *c =
			&r->cohort[(tid - back) & (LUC_RETURNS_COHORTS - 1)];

		if (!c->known || c->tid != tid - back)
			continue;
		in_call += c->syncing;
		if (back)
			out += c->out;
	}
	in_call = (in_call * (WHOLE - r->needless) + WHOLE / 2) / WHOLE;
	*syncing = in_call;
	return out + in_call;
}
