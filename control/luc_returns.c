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

static void came_back(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (c->known && c->tid == tid && c->out)
		c->out--;
}

static void join(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (!c->known || c->tid != tid) {
		c->known = 1;
		c->tid = tid;
		c->members = 0;
		c->out = 0;
	}
	c->members++;
	c->out++;
}

int luc_returns_arrive(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_slot *s;

	if (!task)
		task = 1;
	s = &r->slot[slot_of(task)];
	if (s->task == task) {
		if (s->tid == tid)
			return 0;
		came_back(r, s->tid);
	}
	s->task = task;
	s->tid = tid;
	join(r, tid);
	return 1;
}

luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid)
{
	luc_s64 out = 0;
	luc_u32 back;

	for (back = 1; back <= LUC_RETURNS_DEPTH; back++) {
		const struct luc_returns_cohort *c =
			&r->cohort[(tid - back) & (LUC_RETURNS_COHORTS - 1)];

		if (c->known && c->tid == tid - back)
			out += c->out;
	}
	return out;
}
