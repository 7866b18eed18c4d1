// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Things that Rust cannot read from C by itself: the knob table as an array,
 * and sizes. Pins the layouts that src/ spells out by hand.
 */
#include "lucdisk_model.h"

struct lucdisk_shim_knob {
	const char *name;
	const char *help;
	luc_s64 min;
	luc_s64 max;
	luc_s64 dflt;
};

#define KNOB(name, min, max, dflt, help) { #name, help, min, max, dflt },
static const struct lucdisk_shim_knob knobs[] = { LUCDISK_KNOBS(KNOB) };

#define KNOB_CHECK(name, min, max, dflt, help) \
	_Static_assert(0 <= (min) && (min) <= (dflt) && (dflt) <= (max), \
		       "default of " #name " is out of its bounds");
LUCDISK_KNOBS(KNOB_CHECK)

const struct lucdisk_shim_knob *lucdisk_shim_knobs(luc_s64 *nr)
{
	*nr = LUCDISK_KNOB_NR;
	return knobs;
}

luc_s64 lucdisk_shim_state_bytes(void)
{
	return sizeof(struct lucdisk_state);
}

_Static_assert(LUCDISK_READ == 0 && LUCDISK_WRITE == 1 && LUCDISK_FLUSH == 2,
	       "enum Op");
#define OFFSET(field, at) \
	_Static_assert(__builtin_offsetof(struct lucdisk_request, field) == (at), \
		       "struct Request")
OFFSET(sector, 0);
OFFSET(bytes, 8);
OFFSET(op, 12);
OFFSET(fua, 16);
OFFSET(arrived_ns, 24);
_Static_assert(sizeof(struct lucdisk_request) == 32, "struct Request");
_Static_assert(_Alignof(struct lucdisk_state) <= 8, "the state is kept in u64");
