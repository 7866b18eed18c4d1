// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fed to the preprocessor by build.rs, never compiled: it spells the rows of
 * abi/ out, one '@' each, so that the Rust structs come from the same tables
 * as the C ones.
 */
#define LUC_TYPES_H /* the types are C; only the rows matter here */
#define _Static_assert(...)
#include "luc_counters.h"
#include "luc_decision.h"

#define ROW_KNOB(name, kind, min, max, dflt, help) @params name help
#define ROW_INPUT(name, help) @input name help
#define ROW_STATE(name, help) @state name help
#define ROW_OUTPUT(name, help) @output name help
#define ROW_BATCHING(NAME, name, knobs, help) @batching NAME #name help
#define ROW_COPYOUT(NAME, name, knobs, help) @copyout NAME #name help
#define ROW_MODE(name, text, help) @mode name text help
#define ROW_REASON(name, text) @reason name text text

@rows
LUC_KNOBS(ROW_KNOB)
LUC_INPUT_FIELDS(ROW_INPUT)
LUC_STATE_FIELDS(ROW_STATE)
LUC_OUTPUT_FIELDS(ROW_OUTPUT)
LUC_BATCHINGS(ROW_BATCHING)
LUC_COPYOUTS(ROW_COPYOUT)
LUC_MODES(ROW_MODE)
LUC_REASONS(ROW_REASON)
