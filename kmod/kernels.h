/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel series that LUC was tested on: status "works" in kernels.toml. A test
 * compares the two, and dkms.conf with both.
 *
 *   LUC_KERNEL(major, minor)
 */
#ifndef LUC_KERNELS_H
#define LUC_KERNELS_H

#define LUC_KERNELS(LUC_KERNEL) \
	LUC_KERNEL(6, 1) \
	LUC_KERNEL(6, 12) \
	LUC_KERNEL(7, 2) \
	LUC_KERNEL(7, 3)

#endif
