// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/trace_seq.h>
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Names of the fields of luc_decision after step, in their order. */
#define LUC_NAME(name, help) #name,
#define LUC_KNOB_NAME(name, kind, min, max, dflt, help) #name,
static const char *const luc_trace_names[] = {
	LUC_KNOBS(LUC_KNOB_NAME)
	LUC_INPUT_FIELDS(LUC_NAME)
	LUC_STATE_FIELDS(LUC_NAME)
	LUC_OUTPUT_FIELDS(LUC_NAME)
};

/*
 * Prints " name=value" for each field into the buffer that the event is printed
 * to.
 */
const char *luc_trace_values(struct trace_seq *p, const s64 *values)
{
	const char *text = trace_seq_buffer_ptr(p);
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_trace_names); i++)
		trace_seq_printf(p, " %s=%lld", luc_trace_names[i], values[i]);
	trace_seq_putc(p, 0);
	return text;
}
