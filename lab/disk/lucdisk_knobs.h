/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The knob table of the lab's disk: one row per parameter of its service model.
 * These rows generate the parameter struct, the configfs attributes of the
 * driver, the checks of every disk that a user names, and the help.
 *
 *   LUCDISK_KNOB(name, min, max, default, help)
 *
 * Bounds are inclusive, no value is negative. The unit is the last word of the
 * name; a name without one is a switch, 0 or 1, or a plain number. A disk with
 * all defaults takes no time at all and has no cache. lucdisk_model.c explains
 * how the knobs act together; the presets of crates/luc-disk have the figures
 * of real devices, with their sources.
 */
#ifndef LUCDISK_KNOBS_H
#define LUCDISK_KNOBS_H

#define LUCDISK_TIME_MAX 10000000000LL	/* 10 s, for every single latency */
#define LUCDISK_TURN_MAX 1000000000LL	/* 1 s, for movements of arm and platter */
#define LUCDISK_RATE_MAX 16000000000LL	/* 16 GB/s; times 1e9 it fits 64 bits */

#define LUCDISK_KNOBS(LUCDISK_KNOB) \
	LUCDISK_KNOB(queue_requests, 1, 1024, 32, \
		     "waiting requests among which the disk chooses the next, the oldest ones; queue depth of its data sheet (SATA 32)") \
	LUCDISK_KNOB(channels, 1, 1024, 64, \
		     "requests served at the same time; those of a rotating disk share one arm all the same") \
	LUCDISK_KNOB(read_latency_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "fixed time of a read: flash access and controller, or command overhead of a rotating disk") \
	LUCDISK_KNOB(write_latency_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "fixed time of a write that goes to the medium; writes into the cache take cache_write_ns instead") \
	LUCDISK_KNOB(read_per_s_bytes, 0, LUCDISK_RATE_MAX, 0, \
		     "sequential read rate of a medium that does not rotate; 0 is unlimited") \
	LUCDISK_KNOB(write_per_s_bytes, 0, LUCDISK_RATE_MAX, 0, \
		     "sequential write rate of a medium that does not rotate, cache drain included; 0 is unlimited") \
	LUCDISK_KNOB(link_per_s_bytes, 0, LUCDISK_RATE_MAX, 0, \
		     "rate of the interface, shared by both directions; 0 is unlimited") \
	LUCDISK_KNOB(command_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "time a read or write occupies the interface besides its bytes: its inverse bounds the requests per second") \
	LUCDISK_KNOB(seek_min_ns, 0, LUCDISK_TURN_MAX, 0, \
		     "seek to the neighbouring track, data sheet's track-to-track seek time") \
	LUCDISK_KNOB(seek_max_ns, 0, LUCDISK_TURN_MAX, 0, \
		     "seek across all tracks; data sheet's full stroke, or what makes the average seek right") \
	LUCDISK_KNOB(write_settle_ns, 0, LUCDISK_TURN_MAX, 0, \
		     "how much longer a seek takes before a write, data sheet's write less read seek time") \
	LUCDISK_KNOB(rotation_ns, 0, LUCDISK_TURN_MAX, 0, \
		     "one turn of the platter, 60 s divided by turns per minute; 0 is a medium without moving parts") \
	LUCDISK_KNOB(track_outer_bytes, 4096, 1073741824, 1048576, \
		     "bytes of the first track; data sheet's highest sustained rate times rotation_ns") \
	LUCDISK_KNOB(track_inner_bytes, 4096, 1073741824, 1048576, \
		     "bytes of the last track; lowest sustained rate times rotation_ns") \
	LUCDISK_KNOB(stroke_permille, 1, 1000, 1000, \
		     "share of the drive's tracks, from the first on, that this disk stands for; 1000 makes it a scaled image of a whole drive") \
	LUCDISK_KNOB(read_ahead_bytes, 0, 1073741824, 0, \
		     "how far a rotating disk reads on after a read, for the one that continues there") \
	LUCDISK_KNOB(age_limit_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "an arm serves a request that has waited longer than this before nearer ones; 0 is no limit") \
	LUCDISK_KNOB(cache_bytes, 0, 1099511627776LL, 0, \
		     "write cache; 0 writes through to the medium") \
	LUCDISK_KNOB(cache_volatile, 0, 1, 1, \
		     "1: the cache is lost with the power, so flush and FUA matter; 0: it is protected, they cost nothing") \
	LUCDISK_KNOB(cache_write_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "fixed time of a write into the cache") \
	LUCDISK_KNOB(flush_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "fixed time of a flush once the cache is clean") \
	LUCDISK_KNOB(flush_block_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "time per dirty 4 KiB block that the cache drains, beyond positioning and transfer") \
	LUCDISK_KNOB(flush_exclusive, 0, 1, 0, \
		     "1: a flush runs alone, as ATA's non-queued FLUSH CACHE does; 0: beside other requests, as with NVMe and SAS") \
	LUCDISK_KNOB(network_ns, 0, LUCDISK_TIME_MAX, 0, \
		     "way to the disk and back, added to every request and occupying nothing") \
	LUCDISK_KNOB(requests_per_s_events, 0, 10000000, 0, \
		     "provisioned requests per second; 0 is unlimited") \
	LUCDISK_KNOB(burst_events, 0, 1000000000, 1, \
		     "requests that may come ahead of requests_per_s_events, a full token bucket") \
	LUCDISK_KNOB(peak_per_s_events, 0, 10000000, 0, \
		     "requests per second while the bucket holds tokens; 0 is unlimited") \
	LUCDISK_KNOB(request_unit_bytes, 0, 1073741824, 0, \
		     "bytes that count as one request; 0: every request counts as one") \
	LUCDISK_KNOB(throttle_per_s_bytes, 0, LUCDISK_RATE_MAX, 0, \
		     "provisioned throughput; 0 is unlimited") \
	LUCDISK_KNOB(burst_bytes, 0, 1099511627776LL, 0, \
		     "bytes that may come ahead of throttle_per_s_bytes, a full token bucket")

#endif
