// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Fed to the preprocessor by build.rs, never compiled. Expanded it is Rust: the
 * rows of abi/ as records, enums and tables. What follows "@part NAME" goes to
 * NAME.rs; @NO_SPACE becomes NoSpace.
 */
#define LUC_TYPES_H /* the types are C; only the rows matter here */
#define _Static_assert(...)
#include "luc_counters.h"
#include "luc_decision.h"
#include "luc_hooks.h"

#define FIELD(field, doc) doc field,
#define FIELD_OF_KNOB(field, k, lo, hi, dflt, doc) doc field,
#define VARIANT_OF_CONTROLLER(NAME, word, reads, doc) @NAME #word => doc,
#define VARIANT_OF_MODE(NAME, word, doc) @NAME word => doc,
#define VARIANT_OF_REASON(NAME, word) @NAME word => word,
#define VARIANT_OF_COPIES(NAME, word) @NAME word => word,

@part records
record! { "The knobs: `struct luc_params`." Params LUC_KNOBS(FIELD_OF_KNOB) }
record! { "What a controller is told: `struct luc_input`." Input LUC_INPUT_FIELDS(FIELD) }
record! { "What it remembers: `struct luc_state`." State LUC_STATE_FIELDS(FIELD) }
record! { "What it answers: `struct luc_output`." Output LUC_OUTPUT_FIELDS(FIELD) }
enumeration! { "`enum luc_batching`: when a commit starts." Batching
	LUC_BATCHINGS(VARIANT_OF_CONTROLLER) }
enumeration! { "`enum luc_copyout`: whether a commit writes copies." Copyout
	LUC_COPYOUTS(VARIANT_OF_CONTROLLER) }
enumeration! { "`enum luc_mode`: whether decisions are carried out." Mode
	LUC_MODES(VARIANT_OF_MODE) }
enumeration! { "`enum luc_reason`: why a batch was closed." Reason
	LUC_REASONS(VARIANT_OF_REASON) }
enumeration! { "`enum luc_copies`: what a commit writes as copies." Copies
	LUC_COPIES(VARIANT_OF_COPIES) }

/* The bounds of ENUM knobs name these. */
#define VALUE_OF_CONTROLLER(axis, Axis, NAME) \
	const LUC_##axis##_##NAME: i64 = Axis::@NAME as i64;
#define VALUE_OF_BATCHING(NAME, word, reads, doc) VALUE_OF_CONTROLLER(BATCHING, Batching, NAME)
#define VALUE_OF_COPYOUT(NAME, word, reads, doc) VALUE_OF_CONTROLLER(COPYOUT, Copyout, NAME)
#define VALUE_OF_MODE(NAME, word, doc) VALUE_OF_CONTROLLER(MODE, Mode, NAME)
#define WORD_OF_CONTROLLER(NAME, word, reads, doc) \
	Enumerator { text: #word, help: doc, knobs: reads },
#define WORD_OF_MODE(NAME, word, doc) Enumerator { text: word, help: doc, knobs: "" },
#define KIND_ENUM(knob) KnobKind::Enum(words_##knob)
#define KIND_BOOL(knob) KnobKind::Bool
#define KIND_INT(knob) KnobKind::Int
#define KIND_CGROUP(knob) KnobKind::Cgroup
#define KNOB(knob, k, lo, hi, dflt, doc) \
	Knob { name: #knob, kind: KIND_##k(knob), min: lo, max: hi, default: dflt, help: doc },
#define COUNTER(counter, k, doc) Counter { name: #counter, kind: CounterKind::@k, help: doc },
#define POLICY(word, knobs, doc) (word, knobs, doc),
#define HOOKED(function, need) HookedFunction { name: #function, needed: need },

@part tables
LUC_BATCHINGS(VALUE_OF_BATCHING)
LUC_COPYOUTS(VALUE_OF_COPYOUT)
LUC_MODES(VALUE_OF_MODE)
const LUC_BATCHING_NR: i64 = Batching::ALL.len() as i64;
const LUC_COPYOUT_NR: i64 = Copyout::ALL.len() as i64;
const LUC_MODE_NR: i64 = Mode::ALL.len() as i64;
const words_batching: &[Enumerator] = &[ LUC_BATCHINGS(WORD_OF_CONTROLLER) ];
const words_copyout: &[Enumerator] = &[ LUC_COPYOUTS(WORD_OF_CONTROLLER) ];
const words_mode: &[Enumerator] = &[ LUC_MODES(WORD_OF_MODE) ];
static KNOBS: &[Knob] = &[ LUC_KNOBS(KNOB) ];
static COUNTERS: &[Counter] = &[ LUC_COUNTERS(COUNTER) ];
static HOOKED: &[HookedFunction] = &[ LUC_HOOKS(HOOKED) ];
pub(crate) static POLICIES: &[(&str, &str, &str)] = &[ LUC_POLICIES(POLICY) ];
