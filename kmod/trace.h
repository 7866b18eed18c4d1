/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM luc

#if !defined(LUC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LUC_TRACE_H

#include <linux/kdev_t.h>
#include <linux/tracepoint.h>

#include "../abi/luc_decision.h"

#ifndef LUC_TRACE_ONCE
#define LUC_TRACE_ONCE
#define LUC_REASON_SYMBOL(name, text) { LUC_REASON_##name, text },
/* Ends the list that __print_symbolic() wants without a trailing comma. */
#define LUC_REASON_SYMBOLS LUC_REASONS(LUC_REASON_SYMBOL) { -1, "?" }

struct trace_seq;
const char *luc_trace_values(struct trace_seq *p, const s64 *values);
#endif

TRACE_EVENT(luc_commit,
	TP_PROTO(dev_t dev, u32 tid, s64 events, s64 setpoint_events, s64 held_ns,
		 int reason, bool steer),
	TP_ARGS(dev, tid, events, setpoint_events, held_ns, reason, steer),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, tid)
		__field(s64, events)
		__field(s64, setpoint_events)
		__field(s64, held_ns)
		__field(int, reason)
		__field(bool, steer)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->tid = tid;
		__entry->events = events;
		__entry->setpoint_events = setpoint_events;
		__entry->held_ns = held_ns;
		__entry->reason = reason;
		__entry->steer = steer;
	),
	TP_printk("dev=%u:%u tid=%u events=%lld setpoint_events=%lld held_ns=%lld reason=%s steer=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->tid,
		  __entry->events, __entry->setpoint_events, __entry->held_ns,
		  __print_symbolic(__entry->reason, LUC_REASON_SYMBOLS),
		  __entry->steer)
);

TRACE_EVENT(luc_write_delay,
	TP_PROTO(dev_t dev, u64 block, s64 delay_ns),
	TP_ARGS(dev, block, delay_ns),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, block)
		__field(s64, delay_ns)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->block = block;
		__entry->delay_ns = delay_ns;
	),
	TP_printk("dev=%u:%u block=%llu delay_ns=%lld",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->block,
		  __entry->delay_ns)
);

/*
 * The whole record of abi/luc_decision.h, each field under its own name. All of
 * them are s64, and therefore an array for luc_trace_values().
 */
#undef LUC_TP_FIELD
#undef LUC_TP_KNOB
#define LUC_TP_FIELD(name, help) __field(s64, name)
#define LUC_TP_KNOB(name, kind, min, max, dflt, help) __field(s64, name)
#undef LUC_TP_SET_KNOB
#undef LUC_TP_SET_IN
#undef LUC_TP_SET_STATE
#undef LUC_TP_SET_OUT
#define LUC_TP_SET_KNOB(name, kind, min, max, dflt, help) \
	__entry->name = d->params.name;
#define LUC_TP_SET_IN(name, help) __entry->name = d->in.name;
#define LUC_TP_SET_STATE(name, help) __entry->name = d->state.name;
#define LUC_TP_SET_OUT(name, help) __entry->name = d->out.name;

TRACE_EVENT(luc_decision,
	TP_PROTO(dev_t dev, u32 tid, const struct luc_decision *d),
	TP_ARGS(dev, tid, d),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, tid)
		__field(s64, step)
		LUC_KNOBS(LUC_TP_KNOB)
		LUC_INPUT_FIELDS(LUC_TP_FIELD)
		LUC_STATE_FIELDS(LUC_TP_FIELD)
		LUC_OUTPUT_FIELDS(LUC_TP_FIELD)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->tid = tid;
		__entry->step = d->step;
		LUC_KNOBS(LUC_TP_SET_KNOB)
		LUC_INPUT_FIELDS(LUC_TP_SET_IN)
		LUC_STATE_FIELDS(LUC_TP_SET_STATE)
		LUC_OUTPUT_FIELDS(LUC_TP_SET_OUT)
	),
	/* There are more values than the 64 arguments that a format may have. */
	TP_printk("dev=%u:%u tid=%u step=%lld%s",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->tid,
		  __entry->step, luc_trace_values(p, &__entry->batching))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
