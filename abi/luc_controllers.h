/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The controllers, one row each, and the names of their combinations.
 *
 * A policy has two axes: when a commit starts (batching), and whether it writes copies
 * of its metadata (copyout). One controller acts on each. To add one, write
 * control/batching_NAME.c or control/copyout_NAME.c with the functions that
 * control/luc_controllers.h declares, and add its row here. These rows generate the
 * dispatch (control/luc_control.c), the knobs' words, the help texts, the bounds that
 * the fuzzer checks, and the names in the decision records.
 *
 *   LUC_CONTROLLER(ENUMERATOR, name, knobs, help)
 *
 * knobs: the knobs that this controller reads in addition to the shared ones; a test
 * looks each up in abi/luc_knobs.h. Append rows, do not insert them: recordings
 * contain the numbers.
 */
#ifndef LUC_ABI_CONTROLLERS_H
#define LUC_ABI_CONTROLLERS_H

#define LUC_BATCHINGS(LUC_CONTROLLER) \
	LUC_CONTROLLER(OFF, off, "", \
		"start each commit when jbd2 asks for it") \
	LUC_CONTROLLER(STATIC, static, "static_idle_us static_resets_max", \
		"hold each commit until sync requests pause for static_idle_us") \
	LUC_CONTROLLER(RETURNS, returns, "", \
		"hold each commit for the tasks that are expected back, where holding pays") \
	LUC_CONTROLLER(PUBLISHED, published, "setpoint_events kp_milli ki_milli kd_milli " \
		"idle_timeout_us", \
		"PID control exactly as published: fixed set point, no early close, no trial") \
	LUC_CONTROLLER(AGE, age, "age_limit_us", \
		"hold until the transaction's age is the average commit time, as jbd2 does for O_SYNC handles")

#define LUC_COPYOUTS(LUC_CONTROLLER) \
	LUC_CONTROLLER(OFF, off, "", \
		"write metadata as jbd2 does") \
	LUC_CONTROLLER(PUBLISHED, published, "copyout_threshold_permille copyout_clean_runs", \
		"copy metadata out exactly as published: threshold and clean runs, every buffer") \
	LUC_CONTROLLER(CONTENDED, contended, "", \
		"copy out the buffers on which operations have recently slept")

/*
 * Policies: settings under one name, for the command line; the module knows only the
 * two axes. Settings that match no row are "custom"; the first row that matches
 * counts.
 *
 *   LUC_POLICY(text, settings, help)
 */
#define LUC_POLICIES(LUC_POLICY) \
	LUC_POLICY("stock", "batching=off copyout=off", \
		"leave the file system as a stock kernel runs it") \
	LUC_POLICY("static-16ms", "batching=static copyout=off static_idle_us=16000", \
		"static with the settings published for IOzone") \
	LUC_POLICY("static", "batching=static copyout=off", \
		"hold each commit until sync requests pause for static_idle_us") \
	LUC_POLICY("static-1ms", "batching=static copyout=off static_idle_us=1000", \
		"static with the settings published for Metarates") \
	LUC_POLICY("age", "batching=age copyout=off", \
		"jbd2's own batching by age, for all syncs") \
	LUC_POLICY("published", "batching=published copyout=published", \
		"both controllers exactly as published; needs setpoint_events") \
	LUC_POLICY("batching", "batching=returns copyout=off", \
		"hold each commit for the tasks that are expected back, where holding pays") \
	LUC_POLICY("copyout", "batching=off copyout=contended", \
		"copy out the metadata on which operations have recently slept") \
	LUC_POLICY("luc", "batching=returns copyout=contended", \
		"batching and copyout together")

#define LUC_BATCHING_ENUMERATOR(NAME, name, knobs, help) LUC_BATCHING_##NAME,
#define LUC_COPYOUT_ENUMERATOR(NAME, name, knobs, help) LUC_COPYOUT_##NAME,
enum luc_batching { LUC_BATCHINGS(LUC_BATCHING_ENUMERATOR) LUC_BATCHING_NR };
enum luc_copyout { LUC_COPYOUTS(LUC_COPYOUT_ENUMERATOR) LUC_COPYOUT_NR };

#endif
