// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "luc_returns.h"
#include "luc_math.h"

/*
 * Multiplicative hashing by 2^32 over the golden ratio (Knuth): task numbers come in
 * runs, slots should not. 1024 slots use the product's top ten bits.
 */
static luc_u32 slot_of(luc_u32 task)
{
	return (task * 2654435761u) >> 22 & (LUC_RETURNS_SLOTS - 1);
}

static struct luc_returns_cohort *cohort_of(struct luc_returns *r, luc_u32 tid)
{
	return &r->cohort[tid & (LUC_RETURNS_COHORTS - 1)];
}

/* The key tells a cohort from an empty one and from all others, in one comparison. */
static luc_u64 key_of(luc_u32 tid)
{
	return 1ULL << 32 | tid;
}

static struct luc_returns_cohort *known_cohort(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (c->key != key_of(tid)) {
		r->away -= c->out + c->syncing;
		*c = (struct luc_returns_cohort){ .key = key_of(tid) };
	}
	return c;
}

static void came_back(struct luc_returns *r, luc_u32 tid)
{
	struct luc_returns_cohort *c = cohort_of(r, tid);

	if (c->key == key_of(tid) && c->out) {
		c->out--;
		r->away--;
	}
}

static void left_call(struct luc_returns *r, struct luc_returns_slot *s)
{
	struct luc_returns_cohort *c = cohort_of(r, s->entered);

	if (c->key == key_of(s->entered) && c->syncing) {
		c->syncing--;
		r->away--;
	}
	s->syncing = 0;
}

/* If the only task that is away owns s, it becomes lone: no cohort counts it any more. */
static void begin_lone(struct luc_returns *r, struct luc_returns_slot *s, luc_u32 *count)
{
	if (r->away != 1)
		return;
	(*count)--;
	r->away = 0;
	r->lone = s->task;
}

/* Another task has come: both are counted. */
static void end_lone(struct luc_returns *r)
{
	const struct luc_returns_slot *s = &r->slot[slot_of(r->lone)];

	if (!r->lone)
		return;
	if (s->syncing)
		known_cohort(r, s->entered)->syncing++;
	else
		known_cohort(r, s->tid)->out++;
	r->away++;
	r->lone = 0;
}

#define WHOLE 65536u		/* the whole as a share: 2^16 */
#define LEARN_SHIFT 4		/* the weight of a call, a sixteenth: chosen, not measured */
_Static_assert((WHOLE - LUC_RETURNS_ALL_NEEDLESS) >> LEARN_SHIFT == 0 &&
	       (WHOLE - LUC_RETURNS_ALL_NEEDLESS + 1) >> LEARN_SHIFT == 1,
	       "it is the least share that one more such call does not change");

/* Learns from one more sync call that ended, with a wait for a commit or without. */
static void learn(struct luc_returns *r, int waited)
{
	if (waited)
		r->needless -= r->needless >> LEARN_SHIFT;
	else
		r->needless += (WHOLE - r->needless) >> LEARN_SHIFT;
}

/* The slot of this task; *known tells whether the task owned it already. */
static struct luc_returns_slot *take_slot(struct luc_returns *r, luc_u32 task,
					  int *known)
{
	struct luc_returns_slot *s = &r->slot[slot_of(task)];

	*known = s->task == task;
	if (!*known && s->syncing)
		left_call(r, s);
	s->task = task;
	return s;
}

static void LUC_RARE enter(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_cohort *c;
	struct luc_returns_slot *s;
	int known;

	end_lone(r);
	s = take_slot(r, task, &known);
	if (s->syncing) {
		left_call(r, s);
		learn(r, 0);
	} else if (known) {
		came_back(r, s->tid);
	}
	/* As if released by a transaction that no cohort counts. */
	if (!known)
		s->tid = tid - LUC_RETURNS_COHORTS;
	s->entered = tid;
	s->syncing = 1;
	c = known_cohort(r, tid);
	c->syncing++;
	r->away++;
	begin_lone(r, s, &c->syncing);
}

void luc_returns_enter(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_slot *s;

	if (!task)
		task = 1;
	if (r->lone != task) {
		enter(r, task, tid);
		return;
	}
	s = &r->slot[slot_of(task)];
	if (s->syncing)
		learn(r, 0);
	s->entered = tid;
	s->syncing = 1;
}

int luc_returns_repeats(const struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	const struct luc_returns_slot *s;
	const struct luc_returns_cohort *c = &r->cohort[tid & (LUC_RETURNS_COHORTS - 1)];

	if (!task)
		task = 1;
	s = &r->slot[slot_of(task)];
	if (!luc_returns_all_needless(r) || s->task != task || !s->syncing ||
	    s->entered != tid)
		return 0;
	if (r->lone)
		return r->lone == task;
	/* Its cohort counts it, and other tasks are away: no task becomes lone. */
	return c->key == key_of(tid) && c->syncing && r->away != 1;
}

static int LUC_RARE arrive(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_cohort *c;
	struct luc_returns_slot *s;
	int known;

	end_lone(r);
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
	c = known_cohort(r, tid);
	c->out++;
	r->away++;
	begin_lone(r, s, &c->out);
	return 1;
}

int luc_returns_arrive(struct luc_returns *r, luc_u32 task, luc_u32 tid)
{
	struct luc_returns_slot *s;

	if (!task)
		task = 1;
	s = &r->slot[slot_of(task)];
	if (r->lone != task || s->tid == tid)
		return arrive(r, task, tid);
	if (s->syncing)
		learn(r, 1);
	s->syncing = 0;
	s->tid = tid;
	return 1;
}

enum luc_returns_seen luc_returns_seen(const struct luc_returns *r, luc_u32 task,
				       luc_u32 tid)
{
	const struct luc_returns_slot *s;

	if (!task)
		task = 1;
	s = &r->slot[slot_of(task)];
	if (s->task != task)
		return LUC_RETURNS_UNSEEN;
	if (s->syncing)
		return LUC_RETURNS_SYNCING;
	return s->tid == tid ? LUC_RETURNS_ARRIVED : LUC_RETURNS_UNSEEN;
}

static luc_s64 weigh(const struct luc_returns *r, luc_s64 in_call)
{
	return (in_call * (WHOLE - r->needless) + WHOLE / 2) / WHOLE;
}

static luc_s64 LUC_RARE expected(const struct luc_returns *r, luc_u32 tid, luc_s64 *syncing)
{
	luc_s64 out = 0, in_call = 0;
	luc_u32 back;

	for (back = 0; back <= LUC_RETURNS_DEPTH; back++) {
		const struct luc_returns_cohort *c =
			&r->cohort[(tid - back) & (LUC_RETURNS_COHORTS - 1)];

		if (c->key != key_of(tid - back))
			continue;
		in_call += c->syncing;
		if (back)
			out += c->out;
	}
	*syncing = weigh(r, in_call);
	return out + *syncing;
}

luc_s64 luc_returns_expected(const struct luc_returns *r, luc_u32 tid,
			     luc_s64 *syncing)
{
	const struct luc_returns_slot *s;

	if (!r->lone)
		return expected(r, tid, syncing);
	s = &r->slot[slot_of(r->lone)];
	*syncing = 0;
	if (s->syncing) {
		if (tid - s->entered <= LUC_RETURNS_DEPTH)
			*syncing = weigh(r, 1);
		return *syncing;
	}
	return tid - s->tid - 1 < LUC_RETURNS_DEPTH;
}
