// SPDX-License-Identifier: GPL-2.0-only
/*
 * Harness of control/: bytes are a program. Its first byte chooses between
 *
 *   a module	that drives the controllers as kmod/ does, with tasks that sync,
 *		knobs within their bounds and a clock that runs: all documented
 *		bounds hold, the essay's limit of a hold among them, a hold ends
 *		by itself, and the same program an hour later gets the same
 *		answers an hour later
 *   a madman	that puts any numbers anywhere: no arithmetic goes wrong, and
 *		the bounds that depend on no number hold
 *
 * Both run twice and must do the same twice.
 */
#include "../control/luc_math.h"
#include "../control/luc_returns.h"
#include "control_check.h"

#define LOOK_NS 1000000LL	/* as kmod/commit.c */
#define TIME_MAX_NS (1LL << 60)	/* the clock stops there: an eighth of its range */
#define TASKS 256u	/* as many as a byte names */
#define ROUNDS_MAX 500u	/* of a steady load, which cost time */
#define HOUR_NS (3600 * LUC_NS_PER_S)

/* ---- The module ---- */

struct module {
	struct bytes in;
	luc_s64 now_ns;
	struct luc_params params;	/* of the administrator ... */
	struct luc_params params_now;	/* ... and what the controller was told */
	struct luc_state state;
	struct luc_returns returns;
	struct luc_input sensed;
	luc_u32 tid, batch_tid;
	luc_u32 waits[TASKS];
	luc_s64 batch_events, batch_wait_ns, last_event_ns;
	luc_s64 begun_ns;		/* the running transaction's begin */
	luc_u32 last_task;		/* the task that synced last */
	int same_task;
	luc_s64 arrivals, entries;	/* ever */
	luc_s64 commit_avg_ns;
	luc_s64 handles, writes_delayed, buffers_spared;
	int urgent;
	luc_s64 begin_ns;
	/* Under a steady load: rounds so far, tasks yet to come, how far apart. */
	unsigned int rounds, late;
	luc_s64 late_ns;
	luc_u64 sum;			/* of all answers */
};

static luc_s64 since_begin(const struct module *m, luc_s64 time_ns)
{
	return time_ns ? time_ns - m->begin_ns : 0;
}

static void pass_time(struct module *m, luc_s64 ns)
{
	if (m->now_ns < TIME_MAX_NS) {
		m->now_ns += ns;
		m->batch_wait_ns = luc_add(m->batch_wait_ns, luc_mul(m->batch_events, ns));
	}
}

/* The transaction that a task waits for; tasks beyond TASKS are not noted. */
static luc_u32 *waits_for(struct module *m, luc_u32 task)
{
	static luc_u32 nobody;

	nobody = m->tid - 1;
	return task < TASKS ? &m->waits[task ? task : 1] : &nobody;
}

static void enter(struct module *m, luc_u32 task)
{
	/* A task that waits for a commit begins no call before it is over. */
	if (*waits_for(m, task) == m->tid)
		return;
	m->entries++;
	luc_returns_enter(&m->returns, task, m->batch_tid);
}

static void arrive(struct module *m, luc_u32 task, luc_u32 tid)
{
	*waits_for(m, task) = tid;
	if (!luc_returns_arrive(&m->returns, task, tid))
		return;
	m->arrivals++;
	if (m->batch_tid != tid && (int)(tid - m->batch_tid) > 0) {
		m->batch_tid = tid;
		m->batch_events = 0;
		m->batch_wait_ns = 0;
		m->same_task = m->last_task == task;
	}
	if (m->batch_tid == tid) {
		m->batch_events++;
		m->last_event_ns = m->now_ns;
		m->last_task = task;
	}
}

static void set_knob(struct module *m)
{
#define KNOB_WITHIN(name, kind, min, max, dflt, help) \
	case LUC_KNOB_##name: \
		m->params.name = take_within(&m->in, min, max, dflt); \
		break;
	switch (take(&m->in) % LUC_KNOB_NR) {
	LUC_KNOBS(KNOB_WITHIN)
	}
}

static void sense(struct module *m)
{
	const struct luc_returns *r = &m->returns;
	struct luc_input *in = &m->sensed;

	m->params_now = m->params;
	in->now_ns = m->now_ns;
	in->events = m->batch_tid == m->tid ? m->batch_events : 0;
	in->events_wait_ns = m->batch_tid == m->tid ? m->batch_wait_ns : 0;
	in->last_event_ns = in->events ? m->last_event_ns : 0;
	in->expected_events = luc_returns_expected(r, m->tid, &in->syncing_events);
	in->commit_avg_ns = m->commit_avg_ns;
	in->age_ns = m->now_ns - m->begun_ns;
	in->same_task = in->events && m->same_task;
	in->urgent = m->urgent;
	must(within(in->syncing_events, 0, LUC_RETURNS_SLOTS));
	must(in->syncing_events <= m->entries);
	must(within(in->expected_events, in->syncing_events, in->syncing_events + m->arrivals));
	must(r->needless <= 65536);
}

/* Tasks that waited for one of the last two transactions and are away are expected. */
static void check_expected(const struct module *m)
{
	luc_s64 away = 0, syncing, expected = luc_returns_expected(&m->returns, m->tid, &syncing);
	unsigned int i;

	for (i = 0; i < LUC_RETURNS_SLOTS; i++) {
		const struct luc_returns_slot *s = &m->returns.slot[i];
		luc_u32 age = m->tid - s->tid;

		away += s->task && !s->syncing && age >= 1 && age <= LUC_RETURNS_DEPTH;
	}
	/* Tasks that lost their slot to another one are expected on top. */
	must(expected - syncing >= away);
}

static void step(struct module *m, enum luc_step which, const struct luc_input *in,
		 struct luc_output *out)
{
	struct luc_state before = m->state;

	luc_control_step(which, &m->params_now, &m->state, in, out);
	check_answer(which, &m->params_now, &before, &m->state, in, out);
	check_state(&m->state);
	mix(&m->sum, (luc_u64)out->reason << 8 | (luc_u64)which);
	mix(&m->sum, (luc_u64)since_begin(m, out->wake_ns));
	mix(&m->sum, (luc_u64)m->state.limit_ns);
	mix(&m->sum, (luc_u64)out->u_ns);
	mix(&m->sum, (luc_u64)out->copy);
}

static void one_event(struct module *m, uint8_t op)
{
	uint8_t n;

	switch (op % 13) {
	case 0:
		enter(m, take(&m->in));
		break;
	case 1:
		arrive(m, take(&m->in), m->tid);
		break;
	case 2:
		n = take(&m->in);
		enter(m, n);
		arrive(m, n, m->tid);
		break;
	case 3:
		/* A crowd: up to 31 tasks, one after the other. */
		for (n = take(&m->in) % 32; n; n--) {
			enter(m, n);
			arrive(m, n, m->tid);
			pass_time(m, op);
		}
		break;
	case 4:
		arrive(m, (luc_u32)take_number(&m->in, 4) | TASKS, m->tid - take(&m->in) % 4);
		break;
	case 5:
	case 6:
		pass_time(m, (luc_s64)take_scaled(&m->in, 36));
		break;
	case 7:
		pass_time(m, 10000LL * take(&m->in));
		break;
	case 8:
		m->urgent = 1;
		break;
	case 9:
		set_knob(m);
		break;
	case 10:
		m->handles += take(&m->in);
		m->writes_delayed += take(&m->in) % 8;
		break;
	case 11:
		m->sensed.busy_permille = take(&m->in) * 1000LL / 255;
		break;
	default:
		m->handles += take(&m->in);
		m->buffers_spared += take(&m->in) % 8;
	}
}

/* Why a hold ended must be true. */
static void check_reason(const struct module *m, luc_s64 reason)
{
	const struct luc_state *s = &m->state;
	luc_s64 seen_ns = s->seen_event_ns > s->open_ns ? s->seen_event_ns : s->open_ns;

	switch (reason) {
	case LUC_REASON_LIMIT:
		must(m->now_ns - s->open_ns >= s->wait_ns);
		break;
	case LUC_REASON_IDLE:
		must(!by_returns(&m->params_now) || m->now_ns - seen_ns >= s->idle_ns);
		must(!by_returns(&m->params_now) || !m->sensed.syncing_events);
		break;
	case LUC_REASON_URGENT:
		must(m->urgent);
		break;
	default:
		must(reason == LUC_REASON_SETPOINT);
		must(m->sensed.events >= luc_complete_events(&m->params_now, s));
	}
}

/* As luc_hold_polling(), until the controller lets go. */
static luc_s64 hold(struct module *m, struct luc_output *out)
{
	wide limit_ns = hold_limit_ns(&m->params_now, &m->sensed);
	unsigned int polls = 0, polls_max = 2 * m->late + 2;
	luc_s64 sleep_ns;

	do {
		must(m->now_ns < out->wake_ns);
		must(out->wake_ns - m->state.open_ns <= limit_ns);
		sleep_ns = out->wake_ns - m->now_ns;
		if (sleep_ns > LOOK_NS && bytes_left(&m->in))
			sleep_ns = LOOK_NS;
		if (bytes_left(&m->in)) {
			uint8_t op = take(&m->in);

			/* Woken on time, late, or early by what happens then. */
			if (op < 64)
				pass_time(m, sleep_ns);
			else if (op < 80)
				pass_time(m, sleep_ns + (luc_s64)take_scaled(&m->in, 24));
			else
				pass_time(m, sleep_ns * (op % 16) / 16);
			if (op >= 80)
				one_event(m, op >> 3);
		} else if (m->late && m->late_ns < sleep_ns) {
			pass_time(m, m->late_ns);
			arrive(m, 100 + m->late--, m->tid);
		} else {
			pass_time(m, sleep_ns);
		}
		sense(m);
		step(m, LUC_STEP_POLL, &m->sensed, out);
		polls++;
		/* A holder that sleeps until wake_ns looks seldom. */
		if (bytes_left(&m->in))
			polls_max = polls + 2 * m->late + 2;
		must(polls <= polls_max);
	} while (out->reason == LUC_REASON_HOLD);
	check_reason(m, out->reason);
	return out->reason;
}

static void copyout(struct module *m)
{
	const struct luc_input in = {
		.now_ns = m->sensed.now_ns,
		.handles = m->handles,
		.writes_delayed = m->writes_delayed,
		.buffers_spared = m->buffers_spared,
	};
	struct luc_output out;

	m->handles = m->writes_delayed = m->buffers_spared = 0;
	/* The module leaves idle steps out; check_answer() shows that it may. */
	step(m, LUC_STEP_COPYOUT, &in, &out);
}

/* As luc_on_commit(), and what the journal does then. */
static void commit_for(struct module *m, int keeps, luc_s64 took_ns)
{
	int steers = m->params.mode == LUC_MODE_STEER;
	luc_s64 reason;
	struct luc_output out;

	sense(m);
	copyout(m);
	step(m, LUC_STEP_OPEN, &m->sensed, &out);
	reason = out.reason;
	if (reason == LUC_REASON_HOLD) {
		must(m->state.wait_ns <= hold_limit_ns(&m->params_now, &m->sensed));
		/* A lone stream waits for nobody. */
		must(!by_returns(&m->params_now) || !m->sensed.same_task ||
		     m->sensed.expected_events > 0);
		must(m->state.trial_phase != LUC_TRIAL_FREE || !by_returns(&m->params_now));
		if (steers && keeps)
			hold(m, &out);
	}
	step(m, LUC_STEP_CLOSE, &m->sensed, &out);
	if (m->params_now.batching == LUC_BATCHING_PUBLISHED)
		check_terms(&m->params_now, &out);
	pass_time(m, took_ns);
	m->commit_avg_ns = m->commit_avg_ns ? (took_ns + 3 * m->commit_avg_ns) / 4 : took_ns;
	m->tid++;
	m->begun_ns = m->now_ns;
	m->urgent = 0;
}

static void commit(struct module *m, int keeps)
{
	luc_s64 took_ns = (luc_s64)take_scaled(&m->in, 34);

	check_expected(m);
	commit_for(m, keeps, took_ns);
}

/*
 * A steady load, long enough for trials and for verdicts to grow old: some tasks ask
 * for each commit at once, and more come while it is held.
 */
static void steady(struct module *m, unsigned int rounds)
{
	uint8_t tasks = take(&m->in), late = tasks >> 4 & 3, task;
	luc_s64 away_ns = (luc_s64)take_scaled(&m->in, 26);
	luc_s64 took_ns = (luc_s64)take_scaled(&m->in, 30);
	struct bytes rest = m->in;

	m->in = (struct bytes){ 0 };
	m->late_ns = (luc_s64)take_scaled(&rest, 26);
	for (; rounds && m->rounds < ROUNDS_MAX; rounds--, m->rounds++) {
		for (task = 1; task <= tasks % 8; task++) {
			pass_time(m, away_ns);
			enter(m, task);
			arrive(m, task, m->tid);
		}
		m->late = late;
		commit_for(m, 1, took_ns);
	}
	m->late = 0;
	m->in = rest;
}

static luc_u64 module_run(struct bytes in, luc_s64 begin_ns)
{
	struct module m = { .in = in, .begin_ns = begin_ns, .now_ns = begin_ns,
			    .begun_ns = begin_ns, .tid = 2 };
	uint8_t start = take(&m.in);

	luc_params_init(&m.params);
	luc_state_init(&m.state);
	if (start & 1)
		m.tid = 0xfffffff0u;	/* about to wrap */
	m.batch_tid = m.tid - 1;
	if (start & 2) {
		m.params.batching = take(&m.in) % LUC_BATCHING_NR;
		m.params.copyout = take(&m.in) % LUC_COPYOUT_NR;
	}
	while (bytes_left(&m.in)) {
		uint8_t op = take(&m.in);

		if (op < 128)
			one_event(&m, op);
		else if (op < 240)
			commit(&m, op & 8);
		else
			steady(&m, 16u << (op & 7));
	}
	commit(&m, 1);
	mix(&m.sum, (luc_u64)since_begin(&m, m.state.open_ns));
	mix(&m.sum, (luc_u64)since_begin(&m, m.state.closed_ns));
	mix(&m.sum, (luc_u64)m.state.hold_ns);
	mix(&m.sum, (luc_u64)m.state.gap_ns);
	mix(&m.sum, (luc_u64)m.state.trial_left);
	return m.sum;
}

/* ---- The madman ---- */

static void any_values(struct bytes *in, luc_s64 *field, size_t n)
{
	while (n--)
		*field++ = take_wild(in);
}

/* Changes one number of anything. */
static void change(struct bytes *in, struct luc_params *p, struct luc_state *s,
		   struct luc_input *input)
{
	enum {
		PARAMS = sizeof(*p) / sizeof(luc_s64),
		STATE = sizeof(*s) / sizeof(luc_s64),
		INPUT = sizeof(*input) / sizeof(luc_s64),
	};
	unsigned int at = take(in) % (PARAMS + STATE + INPUT);
	luc_s64 value = take_wild(in);

	if (at < INPUT)
		((luc_s64 *)input)[at] = value;
	else if (at < INPUT + PARAMS)
		((luc_s64 *)p)[at - INPUT] = value;
	else
		((luc_s64 *)s)[at - INPUT - PARAMS] = value;
}

static luc_u64 madman_run(struct bytes in)
{
	struct luc_returns returns = { 0 };
	struct luc_input input = { 0 };
	struct luc_params params;
	struct luc_state state;
	luc_u64 sum = 0;
	uint8_t start = take(&in);

	luc_params_init(&params);
	luc_state_init(&state);
	if (start & 1)
		any_values(&in, (luc_s64 *)&params, LUC_KNOB_NR);
	if (start & 2)
		any_values(&in, (luc_s64 *)&state, sizeof(state) / sizeof(luc_s64));
	if (start & 4)
		any_values(&in, (luc_s64 *)&input, sizeof(input) / sizeof(luc_s64));
	if (start & 8)
		returns.needless = (luc_u32)take_number(&in, 2);
	/* Few wild numbers name a controller. */
	if (start & 16)
		params.batching = take(&in) % LUC_BATCHING_NR;
	while (bytes_left(&in)) {
		uint8_t op = take(&in), n;
		struct luc_state before;
		struct luc_output out;

		for (n = op >> 2 & 3; n; n--)
			change(&in, &params, &state, &input);
		if (op & 16)
			luc_returns_enter(&returns, (luc_u32)take_number(&in, 4),
					  (luc_u32)take_number(&in, 4));
		if (op & 32)
			luc_returns_arrive(&returns, (luc_u32)take_wild(&in), take(&in));
		if (op & 64)
			input.expected_events = luc_returns_expected(&returns, take(&in),
								     &input.syncing_events);
		before = state;
		luc_control_step(op & 3, &params, &state, &input, &out);
		check_answer(op & 3, &params, &before, &state, &input, &out);
		mix(&sum, (luc_u64)out.reason);
		mix(&sum, (luc_u64)out.wake_ns);
		mix(&sum, (luc_u64)out.u_milli);
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, data + size };

	if (take(&in) & 1)
		must(madman_run(in) == madman_run(in));
	else
		must(module_run(in, HOUR_NS) == module_run(in, 2 * HOUR_NS));
	return 0;
}
