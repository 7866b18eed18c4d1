/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controllers of control/, as one piece of BPF.
 *
 * The verifier walks every path through a function, and drops a path only where it
 * meets one that knows as much. Saturating arithmetic doubles the paths at each sum. So
 * the operations are global functions here: the verifier walks each once, and at a call
 * knows only that a number comes back. So are the steps, see luc.bpf.c. The controllers
 * are inlined into the steps: a BPF function takes five arguments at most, returns no
 * struct, and on its own must take every pointer for NULL. BPF has no 128-bit product,
 * which the compiler's check for overflow wants, so a check is here.
 */
#ifndef LUC_UPSTREAM_CONTROL_H
#define LUC_UPSTREAM_CONTROL_H

#include "../../abi/luc_types.h"

#define LUC_BPF_MOST 0x7fffffffffffffffULL

/* 1 if a product does not fit. -2^63 counts as such: saturated, it is the same. */
static inline int luc_bpf_mul_overflow(luc_s64 a, luc_s64 b, luc_s64 *product)
{
	luc_u64 x = a < 0 ? -(luc_u64)a : (luc_u64)a;
	luc_u64 y = b < 0 ? -(luc_u64)b : (luc_u64)b;

	*product = (luc_s64)((luc_u64)a * (luc_u64)b);
	return y && x > LUC_BPF_MOST / y;
}

#define __builtin_mul_overflow(a, b, product) luc_bpf_mul_overflow(a, b, product)

#define luc_min luc_inline_min
#define luc_max luc_inline_max
#define luc_clamp luc_inline_clamp
#define luc_add luc_inline_add
#define luc_sub luc_inline_sub
#define luc_mul luc_inline_mul
#define luc_average luc_inline_average
#include "../../control/luc_math.h"
#undef luc_min
#undef luc_max
#undef luc_clamp
#undef luc_add
#undef luc_sub
#undef luc_mul
#undef luc_average

#define LUC_BPF_ONCE(name) \
	__attribute__((noinline)) luc_s64 luc_##name(luc_s64 a, luc_s64 b) \
	{ \
		return luc_inline_##name(a, b); \
	}

LUC_BPF_ONCE(min)
LUC_BPF_ONCE(max)
LUC_BPF_ONCE(add)
LUC_BPF_ONCE(sub)
LUC_BPF_ONCE(mul)

__attribute__((noinline)) luc_s64 luc_clamp(luc_s64 v, luc_s64 lo, luc_s64 hi)
{
	return luc_inline_clamp(v, lo, hi);
}

__attribute__((noinline)) luc_s64 luc_average(luc_s64 average, luc_s64 sample, int shift)
{
	return luc_inline_average(average, sample, shift);
}

#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "../../control/luc_pid.c"
#include "../../control/luc_hold.c"
#include "../../control/luc_log.c"
#include "../../control/luc_bets.c"
#include "../../control/luc_trial.c"
#include "../../control/batching_off.c"
#include "../../control/batching_age.c"
#include "../../control/batching_static.c"
#include "../../control/batching_published.c"
#include "../../control/batching_returns.c"
#include "../../control/copyout_off.c"
#include "../../control/copyout_published.c"
#include "../../control/copyout_contended.c"
#include "../../control/luc_control.c"
#pragma clang attribute pop
#pragma clang attribute pop

#endif
