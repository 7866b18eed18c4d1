// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where the C compiler puts the fields of a span, for a test of span.rs. */
#include <stddef.h>

#include "luc_span.h"

#define AT(field) offsetof(struct luc_span, field)

const size_t luc_span_offsets[] = {
	AT(begin_ns), AT(end_ns), AT(object), AT(amount), AT(marks_ns),
	AT(dev), AT(pid), AT(tgid), AT(tid), AT(done_tid),
	AT(result), AT(kind), AT(within), AT(flags),
};
