/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The decision record: all inputs, intermediate terms and answers of one step of a
 * controller. It is the payload of the tracepoint luc_decision, and enough for `luc
 * replay` to repeat the step in user space bit for bit.
 *
 * A commit makes several steps: OPEN when it is requested, POLL each time the held
 * commit is rechecked, CLOSE once the batch is closed (here controllers learn),
 * COPYOUT once its writes are counted. Fields that a step does not use are 0.
 *
 *   LUC_FIELD(name, help)
 */
#ifndef LUC_DECISION_H
#define LUC_DECISION_H

#include "luc_knobs.h"

enum luc_step {
	LUC_STEP_OPEN,
	LUC_STEP_POLL,
	LUC_STEP_CLOSE,
	LUC_STEP_COPYOUT,
	LUC_STEP_NR,
};

/* Why a batch was closed. HOLD is the answer "not yet". */
#define LUC_REASONS(LUC_REASON) \
	LUC_REASON(HOLD, "hold") \
	LUC_REASON(NOW, "now") \
	LUC_REASON(SETPOINT, "setpoint") \
	LUC_REASON(IDLE, "idle") \
	LUC_REASON(LIMIT, "limit") \
	LUC_REASON(URGENT, "urgent")

#define LUC_REASON_ENUMERATOR(name, text) LUC_REASON_##name,
enum luc_reason { LUC_REASONS(LUC_REASON_ENUMERATOR) LUC_REASON_NR };

/* Which metadata buffers of a commit are written as copies. */
#define LUC_COPIES(LUC_COPY) \
	LUC_COPY(NONE, "none") \
	LUC_COPY(ALL, "all") \
	LUC_COPY(CONTENDED, "contended")

#define LUC_COPY_ENUMERATOR(name, text) LUC_COPY_##name,
enum luc_copies { LUC_COPIES(LUC_COPY_ENUMERATOR) LUC_COPY_NR };

/* A buffer is contended until no operation needed this many copies of it in a row. */
#define LUC_COPIES_UNUSED_MAX 16

/* Phases of a trial of holding: no trial, a window, or a verdict. */
enum luc_trial_phase {
	LUC_TRIAL_OFF,
	LUC_TRIAL_FREE,
	LUC_TRIAL_HELD,
	LUC_TRIAL_STAY_FREE,
	LUC_TRIAL_STAY_HELD,
};

/* The input. */
#define LUC_INPUT_FIELDS(LUC_FIELD) \
	LUC_FIELD(now_ns, "monotonic time of the step") \
	LUC_FIELD(events, "sync events that wait for this commit so far (d)") \
	LUC_FIELD(events_wait_ns, "how long these have waited, summed up") \
	LUC_FIELD(expected_events, "tasks that may still come: released by recent commits and not back, or syncing") \
	LUC_FIELD(syncing_events, "of these, tasks inside a sync call that have not asked for a commit yet") \
	LUC_FIELD(last_event_ns, "time of the latest sync event, 0 if none") \
	LUC_FIELD(commit_avg_ns, "average duration of a commit, 0 if unknown") \
	LUC_FIELD(age_ns, "how long ago the transaction was begun") \
	LUC_FIELD(same_task, "1 if the task that asked for this commit is the one that synced last before it") \
	LUC_FIELD(busy_permille, "share of their time for which processors were busy lately, 0 if unknown") \
	LUC_FIELD(urgent, "1 if something cannot wait") \
	LUC_FIELD(handles, "journal handles of the transaction so far: operations that change metadata") \
	LUC_FIELD(writes_delayed, "operations delayed by that commit's metadata") \
	LUC_FIELD(buffers_spared, "buffers that would have delayed an operation but for copy-out")

/* The state that a controller keeps between steps. */
#define LUC_STATE_FIELDS(LUC_FIELD) \
	LUC_FIELD(open_ns, "when the current batch was opened") \
	LUC_FIELD(setpoint_now_events, "set point r of the current batch") \
	LUC_FIELD(limit_ns, "longest time the current batch may be held, 0 if it was complete at once") \
	LUC_FIELD(wait_ns, "time the current batch may be held") \
	LUC_FIELD(idle_ns, "idle timeout of the current batch") \
	LUC_FIELD(complete_events, "batching returns: sync events with which the held batch is worth a look") \
	LUC_FIELD(resets, "batching static: restarts of the idle timer") \
	LUC_FIELD(seen_events, "sync events at the last look") \
	LUC_FIELD(seen_event_ns, "latest sync event at the last look") \
	LUC_FIELD(opened_events, "sync events when the batch was opened") \
	LUC_FIELD(hold_ns, "batching published: time that a commit may be held, -1 before the first step") \
	LUC_FIELD(gap_ns, "average time between sync events of a batch, 0 if unknown") \
	LUC_FIELD(closed_ns, "when the last batch was closed, 0 if never") \
	LUC_FIELD(probing, "1 if no task is expected: a hold waits for tasks that nothing announced") \
	LUC_FIELD(debt_ns, "what holds lost by task; no commit is held that can win less than 16 times as much") \
	LUC_FIELD(paid_ns, "when debts were last paid off") \
	LUC_FIELD(trial_phase, "enum luc_trial_phase: is holding being tried against not holding") \
	LUC_FIELD(trial_left, "holds until the next pair of windows, or commits that a window begins with and does not count") \
	LUC_FIELD(trial_pairs, "pairs begun since the attach: draws which window of a pair comes first") \
	LUC_FIELD(trial_is_second, "1 in the second window of a pair") \
	LUC_FIELD(trial_commits, "commits counted in this window") \
	LUC_FIELD(trial_events, "sync events counted in this window") \
	LUC_FIELD(trial_handles, "journal handles counted in this window") \
	LUC_FIELD(trial_wait_ns, "how long its events waited for their commit to start and end, summed up") \
	LUC_FIELD(trial_begin_ns, "when counting began in this window") \
	LUC_FIELD(trial_first_events, "sync events of the pair's first window") \
	LUC_FIELD(trial_first_handles, "its journal handles") \
	LUC_FIELD(trial_first_wait_ns, "how long its events waited, summed up") \
	LUC_FIELD(trial_first_ns, "its length") \
	LUC_FIELD(trial_since_ns, "when this trial's first pair began") \
	LUC_FIELD(trial_until_ns, "when the verdict is old") \
	LUC_FIELD(trial_winner, "enum luc_trial_phase: the last verdict") \
	LUC_FIELD(trial_stay_ns, "how long the last verdict holds for") \
	LUC_FIELD(rate_pairs, "bets on throughput: pairs heard") \
	LUC_FIELD(rate_sum, "of ln(held / free) above the limit, cut") \
	LUC_FIELD(rate_squares, "of their squares around the mean") \
	LUC_FIELD(rate_wide_squares, "of squares of what was cut less") \
	LUC_FIELD(rate_certificate, "logarithm of the capital that bets on holding made") \
	LUC_FIELD(rate_harm, "the same for bets against holding") \
	LUC_FIELD(wait_pairs, "bets on waiting: the same six") \
	LUC_FIELD(wait_sum, "as rate_sum, of ln(free / held)") \
	LUC_FIELD(wait_squares, "as rate_squares") \
	LUC_FIELD(wait_wide_squares, "as rate_wide_squares") \
	LUC_FIELD(wait_certificate, "as rate_certificate") \
	LUC_FIELD(wait_harm, "as rate_harm") \
	LUC_FIELD(integral_milli, "batching published: sum of errors") \
	LUC_FIELD(error_milli, "error of the last step") \
	LUC_FIELD(error_known, "1 once error_milli means something") \
	LUC_FIELD(copy_left_commits, "commits left that are copied if no more operations are delayed")

/* The computed terms, and the answer. */
#define LUC_OUTPUT_FIELDS(LUC_FIELD) \
	LUC_FIELD(reason, "enum luc_reason; HOLD: wait until wake_ns") \
	LUC_FIELD(wake_ns, "when to look again at the latest") \
	LUC_FIELD(e_milli, "error r - d, thousandths of a sync event") \
	LUC_FIELD(dt_milli, "length of this step in average steps, thousandths") \
	LUC_FIELD(p_milli, "proportional term") \
	LUC_FIELD(i_milli, "integral term") \
	LUC_FIELD(d_milli, "derivative term") \
	LUC_FIELD(u_milli, "output u: change of the batch wanted, thousandths of a sync event") \
	LUC_FIELD(u_ns, "output as time: u times the arrival gap") \
	LUC_FIELD(copy, "enum luc_copies: what the next commit writes as copies")

#define LUC_STRUCT_FIELD(name, help) luc_s64 name;

struct luc_input {
	LUC_INPUT_FIELDS(LUC_STRUCT_FIELD)
};

struct luc_state {
	LUC_STATE_FIELDS(LUC_STRUCT_FIELD)
};

struct luc_output {
	LUC_OUTPUT_FIELDS(LUC_STRUCT_FIELD)
};

/* step, then the params, the input, the state before and the output. */
struct luc_decision {
	luc_s64 step;
	struct luc_params params;
	struct luc_input in;
	struct luc_state state;
	struct luc_output out;
};

#endif
