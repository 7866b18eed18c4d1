/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the harnesses: bytes read as numbers, and a check that is never compiled
 * out. A harness is one function, LLVMFuzzerTestOneInput(): libFuzzer calls it with
 * bytes that reach new code, plain.c with seeds and random bytes.
 *
 * seeds/: the numbered ones were picked from a long run, each for code that only it
 * reached; the named ones once failed. A change to how a harness reads its bytes gives
 * all of them another meaning: pick anew from target/fuzz/.
 */
#ifndef LUC_FUZZ_HARNESS_H
#define LUC_FUZZ_HARNESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../abi/luc_types.h"

#define NR_OF(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Products of two 64-bit numbers, for checks that must not overflow themselves. */
typedef __int128 wide;

#define must(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", \
				__FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

/* Where there are no more bytes, zeros follow. */
struct bytes {
	const uint8_t *at;
	const uint8_t *end;
};

static inline int bytes_left(const struct bytes *b)
{
	return b->at < b->end;
}

static inline uint8_t take(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

static inline luc_u64 take_number(struct bytes *b, unsigned int bytes)
{
	luc_u64 value = 0;

	while (bytes--)
		value = value << 8 | take(b);
	return value;
}

/* 0 to 2^bits_max - 1, small and large ones alike: a length, then the bits. */
static inline luc_u64 take_scaled(struct bytes *b, unsigned int bits_max)
{
	unsigned int bits = take(b) % (bits_max + 1);
	luc_u64 value;

	if (!bits)
		return 0;
	value = take_number(b, (bits + 7) / 8);
	return (value & (~0ULL >> (64 - bits))) | 1ULL << (bits - 1);
}

/* Any number; edges more often. */
static inline luc_s64 take_wild(struct bytes *b)
{
	static const luc_s64 edge[] = {
		INT64_MIN, INT64_MIN + 1, INT64_MIN / 1000, -1000000001, -1, 0, 1,
		999, 1000, 1000000000, UINT32_MAX, INT64_MAX / 1000000,
		INT64_MAX / 1000, INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX,
	};
	uint8_t kind = take(b);

	switch (kind >> 6) {
	case 0:
		return kind;
	case 1:
		return edge[kind % NR_OF(edge)];
	case 2:
		return (luc_s64)take_scaled(b, 62);
	default:
		return (luc_s64)take_number(b, 8);
	}
}

/* From min to max; both ends and the default more often. */
static inline luc_s64 take_within(struct bytes *b, luc_s64 min, luc_s64 max,
				  luc_s64 dflt)
{
	luc_u64 span = (luc_u64)max - (luc_u64)min;

	switch (take(b) % 8) {
	case 0:
		return min;
	case 1:
		return max;
	case 2:
	case 3:
		return dflt;
	default:
		return min + (luc_s64)(take_scaled(b, 42) % (span + 1));
	}
}

/* A running checksum (FNV-1a over words) to compare two runs by. */
static inline void mix(luc_u64 *sum, luc_u64 value)
{
	*sum = (*sum ^ value) * 0x100000001b3ULL;
	*sum ^= *sum >> 29;
}

#endif
