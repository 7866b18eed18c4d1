// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Dispatches, and enforces bounds that hold for every controller.
 *
 * A controller says how long a batch may be held, when it looks idle, and how many
 * sync events complete it. A batch starts if, in this order of reasons, its commit is
 * urgent, it is complete, its time is up, or it looks idle; otherwise it is held. No
 * answer of a controller holds a commit beyond delay_limit_us.
 */
#include "luc_control.h"
#include "luc_controllers.h"
#include "luc_trial.h"

void luc_state_init(struct luc_state *state)
{
	*state = (struct luc_state){ .hold_ns = -1 };
	luc_trial_init(state);
}

#define KNOB_DEFAULT(name, kind, min, max, dflt, help) .name = (dflt),

void luc_params_init(struct luc_params *params)
{
	*params = (struct luc_params){ LUC_KNOBS(KNOB_DEFAULT) };
}

/* Direct calls: a table of pointers would cost the kernel a retpoline each. */
static void open_batch(const struct luc_params *p, struct luc_state *s,
		       const struct luc_input *in)
{
#define OPEN(NAME, name, knobs, help) \
	case LUC_BATCHING_##NAME: \
		luc_batching_##name##_open(p, s, in); \
		break;
	switch (p->batching) {
	LUC_BATCHINGS(OPEN)
	}
}

static luc_s64 idle_from(const struct luc_params *p, struct luc_state *s,
			 const struct luc_input *in)
{
#define POLL(NAME, name, knobs, help) \
	case LUC_BATCHING_##NAME: \
		return luc_batching_##name##_poll(p, s, in);
	switch (p->batching) {
	LUC_BATCHINGS(POLL)
	}
	return 0;
}

static void close_batch(const struct luc_params *p, struct luc_state *s,
			const struct luc_input *in, struct luc_output *out)
{
#define CLOSE(NAME, name, knobs, help) \
	case LUC_BATCHING_##NAME: \
		luc_batching_##name##_close(p, s, in, out); \
		break;
	switch (p->batching) {
	LUC_BATCHINGS(CLOSE)
	}
}

int luc_control_pass(const struct luc_params *params, struct luc_state *state,
		     const struct luc_input *in)
{
#define PASS(NAME, name, knobs, help) \
	case LUC_BATCHING_##NAME: \
		return luc_batching_##name##_pass(params, state, in);
	switch (params->batching) {
	LUC_BATCHINGS(PASS)
	}
	return 0;
}

luc_s64 luc_complete_events(const struct luc_params *params,
			    const struct luc_state *state)
{
#define COMPLETE(NAME, name, knobs, help) \
	case LUC_BATCHING_##NAME: \
		return luc_batching_##name##_complete(params, state);
	switch (params->batching) {
	LUC_BATCHINGS(COMPLETE)
	}
	return LUC_S64_MAX;
}

static enum luc_copies copy_next(const struct luc_params *p, struct luc_state *s,
				 const struct luc_input *in)
{
#define COPY(NAME, name, knobs, help) \
	case LUC_COPYOUT_##NAME: \
		return luc_copyout_##name##_step(p, s, in);
	switch (p->copyout) {
	LUC_COPYOUTS(COPY)
	}
	return LUC_COPY_NONE;
}

static void hold(const struct luc_state *s, luc_s64 idle_ns, struct luc_output *out)
{
	out->reason = LUC_REASON_HOLD;
	out->wake_ns = luc_min(idle_ns, luc_add(s->open_ns, s->wait_ns));
}

static void step_open(const struct luc_params *p, struct luc_state *s,
		      const struct luc_input *in, struct luc_output *out)
{
	luc_s64 idle_ns;

	s->open_ns = in->now_ns;
	s->opened_events = in->events;
	s->setpoint_now_events = 0;
	s->limit_ns = 0;
	s->wait_ns = 0;
	open_batch(p, s, in);
	if (!s->wait_ns || in->urgent) {
		/* Not held: CLOSE must not learn from the time allowed. */
		s->wait_ns = 0;
		out->reason = in->urgent ? LUC_REASON_URGENT : LUC_REASON_NOW;
		return;
	}
	s->seen_events = in->events;
	s->seen_event_ns = in->last_event_ns;
	s->resets = 0;
	s->wait_ns = luc_clamp(s->wait_ns, 0, luc_us_to_ns(p->delay_limit_us));
	idle_ns = idle_from(p, s, in);
	if (s->wait_ns && idle_ns > in->now_ns) {
		hold(s, idle_ns, out);
		return;
	}
	s->wait_ns = 0;
	out->reason = LUC_REASON_NOW;
}

static void step_poll(const struct luc_params *p, struct luc_state *s,
		      const struct luc_input *in, struct luc_output *out)
{
	luc_s64 idle_ns = idle_from(p, s, in);

	/* An administrator may have lowered the knob since OPEN. */
	s->wait_ns = luc_min(s->wait_ns, luc_us_to_ns(p->delay_limit_us));
	s->seen_events = luc_max(s->seen_events, in->events);
	if (in->urgent)
		out->reason = LUC_REASON_URGENT;
	else if (idle_ns == LUC_COMPLETE)
		out->reason = LUC_REASON_SETPOINT;
	else if (in->now_ns >= luc_add(s->open_ns, s->wait_ns) || in->now_ns < s->open_ns)
		out->reason = LUC_REASON_LIMIT;
	else if (in->now_ns >= idle_ns)
		out->reason = LUC_REASON_IDLE;
	else
		hold(s, idle_ns, out);
}

void luc_control_step(enum luc_step step, const struct luc_params *params,
		      struct luc_state *state, const struct luc_input *in,
		      struct luc_output *out)
{
	*out = (struct luc_output){ 0 };
	switch (step) {
	case LUC_STEP_OPEN:
		step_open(params, state, in, out);
		break;
	case LUC_STEP_POLL:
		step_poll(params, state, in, out);
		break;
	case LUC_STEP_COPYOUT:
		out->copy = copy_next(params, state, in);
		break;
	default:
		out->reason = LUC_REASON_NOW;
		close_batch(params, state, in, out);
		break;
	}
}

int luc_copyout_is_idle(const struct luc_params *params, const struct luc_state *state,
			const struct luc_input *in)
{
	return params->copyout == LUC_COPYOUT_OFF ||
	       (state->copy_left_commits <= 0 && in->writes_delayed <= 0 &&
		in->buffers_spared <= 0);
}
