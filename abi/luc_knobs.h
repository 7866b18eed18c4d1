/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The knob table: one row per knob of an attached file system.
 *
 * These rows generate the parameter struct of control/, the sysfs files of the module,
 * the checks of `luc set`, the help texts and the man page.
 *
 *   LUC_KNOB(name, kind, min, max, default, help)
 *
 * kind: ENUM (the value is an index into the enumerators below), BOOL, INT, CGROUP (the
 * id of a control group of version 2, which is its directory's inode number; 0: none).
 * Bounds are inclusive; 1000000 is a second, or more events than there are tasks. The
 * unit is the last word of the name. Sources of the defaults:
 *
 *   kp, ki, kd, idle_timeout	published (5.3.1)
 *   delay_limit_us		chosen: the longest that any task can delay others (SECURITY.md)
 *   static_idle_us		published for Metarates (4.6); 16 ms for IOzone
 *   static_resets_max		not published; never binds before delay_limit_us
 *   age_limit_us		jbd2's default of max_batch_time
 *   copyout_threshold, _clean_runs	published (5.3.2)
 *   copyout_buffers_max	chosen: 8 MiB of 4 KiB copies
 */
#ifndef LUC_KNOBS_H
#define LUC_KNOBS_H

#include "luc_controllers.h"
#include "luc_types.h"

#define LUC_MODES(LUC_MODE) \
	LUC_MODE(OBSERVE, "observe", "decide and record, change nothing") \
	LUC_MODE(STEER, "steer", "carry the decisions out")

#define LUC_MODE_ENUMERATOR(name, text, help) LUC_MODE_##name,

enum luc_mode { LUC_MODES(LUC_MODE_ENUMERATOR) LUC_MODE_NR };

#define LUC_KNOBS(LUC_KNOB) \
	LUC_KNOB(batching, ENUM, 0, LUC_BATCHING_NR - 1, LUC_BATCHING_RETURNS, \
		 "which controller decides when a commit starts") \
	LUC_KNOB(copyout, ENUM, 0, LUC_COPYOUT_NR - 1, LUC_COPYOUT_CONTENDED, \
		 "which controller decides whether commits write copies of metadata") \
	LUC_KNOB(mode, ENUM, 0, LUC_MODE_NR - 1, LUC_MODE_STEER, \
		 "observe only measures, steer acts") \
	LUC_KNOB(setpoint_events, INT, 0, 1000000, 0, \
		 "batching published: sync events per commit to aim for; 0: no set point") \
	LUC_KNOB(kp_milli, INT, 0, 100000, 800, \
		 "batching published: proportional gain of the PID controller, thousandths") \
	LUC_KNOB(ki_milli, INT, 0, 100000, 250, \
		 "batching published: integral gain of the PID controller, thousandths") \
	LUC_KNOB(kd_milli, INT, 0, 100000, 250, \
		 "batching published: derivative gain of the PID controller, thousandths") \
	LUC_KNOB(idle_timeout_us, INT, 0, 1000000, 1000, \
		 "batching published: a held commit starts when no sync event has come for this long") \
	LUC_KNOB(delay_limit_us, INT, 0, 1000000, 50000, \
		 "longest time that any controller may hold a commit") \
	LUC_KNOB(static_idle_us, INT, 0, 1000000, 1000, \
		 "batching static: a held commit starts when no sync event has come for this long") \
	LUC_KNOB(static_resets_max, INT, 0, 1000000, 1000, \
		 "batching static: largest number of sync events that restart the idle timer of one commit") \
	LUC_KNOB(age_limit_us, INT, 0, 1000000, 15000, \
		 "batching age: upper bound on the average commit time, as jbd2's max_batch_time") \
	LUC_KNOB(copyout_threshold_permille, INT, 0, 1000, 50, \
		 "copyout published: starts when more than this share of a commit's writes was delayed") \
	LUC_KNOB(copyout_clean_runs, INT, 1, 1000000, 4, \
		 "copyout published: stops after this many commits in a row without a delayed write") \
	LUC_KNOB(copyout_buffers_max, INT, 0, 1000000, 2048, \
		 "largest number of metadata buffers that one commit copies out") \
	LUC_KNOB(priority_cgroup, CGROUP, 0, 4611686018427387904, 0, \
		 "control group for whose sync events no commit is held: they start it at once; 0: none")

#define LUC_KNOB_FIELD(name, kind, min, max, dflt, help) luc_s64 name;
/* Every knob is an luc_s64, so the struct is also an array in table order. */
struct luc_params {
	LUC_KNOBS(LUC_KNOB_FIELD)
};

#define LUC_KNOB_INDEX(name, kind, min, max, dflt, help) LUC_KNOB_##name,
enum luc_knob_index { LUC_KNOBS(LUC_KNOB_INDEX) LUC_KNOB_NR };

_Static_assert(sizeof(struct luc_params) == LUC_KNOB_NR * sizeof(luc_s64),
	       "knobs must form an array");

#endif
