/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Integer types shared by kernel and user space.
 *
 * control/ may include neither kernel headers nor libc, so the contracts define their
 * own types. Everything that crosses a boundary is 64 bits wide: a record is an array
 * of values, and no product of two knobs overflows before it is widened.
 */
#ifndef LUC_TYPES_H
#define LUC_TYPES_H

typedef long long luc_s64;
typedef unsigned long long luc_u64;
typedef unsigned int luc_u32;

_Static_assert(sizeof(luc_s64) == 8 && sizeof(luc_u32) == 4,
	       "LUC needs 64-bit long long and 32-bit int");

#define LUC_NS_PER_US 1000LL
#define LUC_NS_PER_S 1000000000LL

#endif
