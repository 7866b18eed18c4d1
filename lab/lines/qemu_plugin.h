/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of QEMU's interface to plugins that lines.c uses.
 *
 * Distributions ship QEMU with that interface and without its header. These are
 * the functions and types of its version 4 (QEMU 9.2 to 10.0), by name and shape;
 * QEMU refuses a plugin whose qemu_plugin_version it does not serve.
 */
#ifndef LUC_QEMU_PLUGIN_H
#define LUC_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LUC_PLUGIN_VERSION 4

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct qemu_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_R = 1,
	QEMU_PLUGIN_MEM_W,
	QEMU_PLUGIN_MEM_RW,
};

typedef void (*qemu_plugin_tb_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_fn)(unsigned int vcpu, void *data);
typedef void (*qemu_plugin_mem_fn)(unsigned int vcpu, qemu_plugin_meminfo_t info,
				   uint64_t vaddr, void *data);
typedef void (*qemu_plugin_exit_fn)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_fn fn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_plugin_exec_fn fn,
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_fn fn,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_exit_fn fn, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t bytes);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *at);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *at);

#endif
