// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts the cache lines that move between processors, in QEMU.
 *
 * A load on several processors scales only if its calls do not touch memory that calls on
 * other processors write: a line of memory that one processor wrote must travel before
 * another one can use it, and caches do not report how often that happens. An emulator
 * sees every access, so here it can be counted. The emulated machine has no caches: the
 * plugin counts the accesses that would make a line move.
 *
 * 1. Calls. The program in the guest executes one marked no-op before each call and
 * another one after it (MARK_BEGIN, MARK_END). Everything that a virtual processor loads
 * or stores between these two, in the program, in the kernel and in interrupts, belongs
 * to the call. A third mark (MARK_GROUP) ends a group: calls of one load under one
 * condition, which are counted together.
 *
 * 2. Usual lines. For each group, processor and line of 64 bytes of physical memory, the
 * plugin counts the processor's calls that loaded from or stored to the line, and those
 * that stored to it. The processor touches, or writes, the line if more than half of its
 * calls did. This filters out interrupts and occasional work of the kernel, and makes the
 * figures integers.
 *
 * 3. Moves. A line moves to a processor at each call if the processor touches it and
 * another one writes it, or if the processor writes it and another one touches it. That
 * is the cost of coherence when the processors' calls take turns: then each call finds
 * such a line where another processor left it. The order in which the emulator ran the
 * calls does not matter: the figures follow from footprints alone.
 *
 * So the number of moves is an integer that repeats, although nothing else in such a run
 * does: QEMU tells a plugin which processor runs only if every processor has a thread of
 * its own, and then it runs in host time. (With one thread for all, as in virtual time,
 * version 10.0 compiles one number into the code that all of them share.) The other two
 * sums may differ by a line or two, for code that half of the calls run through.
 *
 * A processor that waits for a lock touches more lines than one that does not. Where most
 * calls wait, that is part of their cost; a few waiting calls do not show.
 *
 * The plugin writes a line of JSON for each group: sums over the processors, and the
 * lines that move, each with its address and the instruction that was first seen to write
 * it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin.h"

#define EXPORTED __attribute__((visibility("default")))

#define LINE_SHIFT 6
#define CPUS_MAX 64u			/* virtual processors of one machine */

/* nopl DISPLACEMENT(%rax): seven bytes that do nothing on any x86-64 processor. */
static const uint8_t mark_code[] = { 0x0f, 0x1f, 0x80 };
#define MARK_BYTES (sizeof(mark_code) + sizeof(uint32_t))
enum {
	MARK_BEGIN = 0x4c554301,
	MARK_END = 0x4c554302,
	MARK_GROUP = 0x4c554303,
};

/*
 * The most lines that one call can touch, and the most lines of one group. An fsync
 * touches some 200. Accesses that do not fit are counted and reported.
 */
#define CALL_LINES (1u << 13)
#define GROUP_LINES (1u << 16)
#define GROUP_INDEX (GROUP_LINES * 2)

struct call_line {
	uint64_t line;
	uint64_t vaddr;
	uint64_t writer;		/* address of a storing instruction, or 0 */
	uint64_t call;			/* the entry is empty for any other call */
};

struct cpu {
	bool inside;			/* between MARK_BEGIN and MARK_END */
	uint64_t call;			/* number of the call, from 1 */
	uint64_t calls;			/* in this group */
	uint64_t lost;			/* accesses that did not fit */
	unsigned int used;
	struct call_line lines[CALL_LINES];
	unsigned int order[CALL_LINES];
};

struct group_line {
	uint64_t line;
	uint64_t vaddr;
	uint64_t writer;
	uint32_t touched[CPUS_MAX];	/* calls */
	uint32_t written[CPUS_MAX];
};

static struct cpu *cpus[CPUS_MAX];
/* Guards the group; a call belongs to its own processor. */
static pthread_mutex_t group_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct group_line *group_lines;
static unsigned int group_used;
static uint32_t group_index[GROUP_INDEX];	/* 1 + number of the line, or 0 */
static uint64_t group_lost;
static FILE *out;

/* Multiplicative hashing: lines come in runs. */
static uint64_t hash_of(uint64_t line)
{
	return line * 0x9e3779b97f4a7c15u >> 32;
}

static struct call_line *call_line_of(struct cpu *cpu, uint64_t line)
{
	unsigned int at = hash_of(line) % CALL_LINES;

	/* At most half full: searches stay short, and end. */
	while (cpu->lines[at].call == cpu->call && cpu->lines[at].line != line)
		at = (at + 1) % CALL_LINES;
	if (cpu->lines[at].call == cpu->call)
		return &cpu->lines[at];
	if (cpu->used == CALL_LINES / 2)
		return NULL;
	cpu->order[cpu->used++] = at;
	cpu->lines[at] = (struct call_line){ .line = line, .call = cpu->call };
	return &cpu->lines[at];
}

static struct group_line *group_line_of(uint64_t line)
{
	unsigned int at = hash_of(line) % GROUP_INDEX;

	while (group_index[at] && group_lines[group_index[at] - 1].line != line)
		at = (at + 1) % GROUP_INDEX;
	if (group_index[at])
		return &group_lines[group_index[at] - 1];
	if (group_used == GROUP_LINES)
		return NULL;
	group_lines[group_used] = (struct group_line){ .line = line };
	group_index[at] = ++group_used;
	return &group_lines[group_used - 1];
}

static void note(struct cpu *cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t pc)
{
	struct qemu_plugin_hwaddr *at = qemu_plugin_get_hwaddr(info, vaddr);
	struct call_line *line;

	/* Device registers are not memory. */
	if (!at || qemu_plugin_hwaddr_is_io(at))
		return;
	line = call_line_of(cpu, qemu_plugin_hwaddr_phys_addr(at) >> LINE_SHIFT);
	if (!line) {
		cpu->lost++;
		return;
	}
	line->vaddr = vaddr;
	if (qemu_plugin_mem_is_store(info) && !line->writer)
		line->writer = pc;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	uint64_t last = vaddr + (1u << qemu_plugin_mem_size_shift(info)) - 1;
	struct cpu *cpu = cpus[vcpu];

	if (!cpu->inside)
		return;
	note(cpu, info, vaddr, (uintptr_t)pc);
	if (vaddr >> LINE_SHIFT != last >> LINE_SHIFT)
		note(cpu, info, last, (uintptr_t)pc);
}

static void begin_call(struct cpu *cpu)
{
	cpu->inside = true;
	cpu->call++;
	cpu->used = 0;
}

static void end_call(struct cpu *cpu, unsigned int vcpu)
{
	unsigned int i;

	if (!cpu->inside)
		return;
	cpu->inside = false;
	cpu->calls++;
	group_lost += cpu->lost;
	cpu->lost = 0;
	for (i = 0; i < cpu->used; i++) {
		const struct call_line *seen = &cpu->lines[cpu->order[i]];
		struct group_line *line = group_line_of(seen->line);

		if (!line) {
			group_lost++;
			continue;
		}
		line->vaddr = seen->vaddr;
		line->touched[vcpu]++;
		if (!seen->writer)
			continue;
		line->written[vcpu]++;
		if (!line->writer)
			line->writer = seen->writer;
	}
}

/* Processors that touch a line, and those of them that write it. */
struct users {
	uint64_t touch, write;
};

static struct users users_of(const struct group_line *line)
{
	struct users users = { 0, 0 };
	unsigned int i;

	for (i = 0; i < CPUS_MAX; i++) {
		if (!cpus[i])
			continue;
		if (line->touched[i] > cpus[i]->calls / 2)
			users.touch |= UINT64_C(1) << i;
		if (line->written[i] > cpus[i]->calls / 2)
			users.write |= UINT64_C(1) << i;
	}
	return users;
}

/* Sums over the processors. */
struct sums {
	unsigned int touched, written, moved;
};

static unsigned int count_of(uint64_t set)
{
	return (unsigned int)__builtin_popcountll(set);
}

/* A line with a writer moves to each of its users, unless only one processor uses it. */
static unsigned int moves_of(struct users users)
{
	return users.write && count_of(users.touch) > 1 ? count_of(users.touch) : 0;
}

static void write_moving(const struct group_line *line, struct users users, bool first)
{
	fprintf(out, "%s{\"at\":\"0x%" PRIx64 "\",\"by\":\"0x%" PRIx64
		"\",\"touch\":%u,\"write\":%u}", first ? "" : ",",
		line->vaddr >> LINE_SHIFT << LINE_SHIFT, line->writer,
		count_of(users.touch), count_of(users.write));
}

static void write_group(uint64_t calls, unsigned int processors)
{
	struct sums sums = { 0, 0, 0 };
	bool first = true;
	unsigned int i;

	fprintf(out, "{\"processors\":%u,\"calls\":%" PRIu64 ",\"moving\":[", processors, calls);
	for (i = 0; i < group_used; i++) {
		struct users users = users_of(&group_lines[i]);

		sums.touched += count_of(users.touch);
		sums.written += count_of(users.write);
		sums.moved += moves_of(users);
		if (!moves_of(users))
			continue;
		write_moving(&group_lines[i], users, first);
		first = false;
	}
	fprintf(out, "],\"touched\":%u,\"written\":%u,\"moved\":%u,\"lost\":%" PRIu64 "}\n",
		sums.touched, sums.written, sums.moved, group_lost);
	fflush(out);
}

/* Writes the counts since the last group, if there are any, and clears them. */
static void end_group(void)
{
	unsigned int processors = 0, i;
	uint64_t calls = 0;

	for (i = 0; i < CPUS_MAX; i++) {
		if (!cpus[i] || !cpus[i]->calls)
			continue;
		processors++;
		calls += cpus[i]->calls;
	}
	if (calls)
		write_group(calls, processors);
	for (i = 0; i < CPUS_MAX; i++) {
		if (cpus[i])
			cpus[i]->calls = 0;
	}
	memset(group_index, 0, sizeof(group_index));
	group_used = 0;
	group_lost = 0;
}

static void on_mark(unsigned int vcpu, void *mark)
{
	if ((uintptr_t)mark == MARK_BEGIN) {
		begin_call(cpus[vcpu]);
		return;
	}
	pthread_mutex_lock(&group_mutex);
	if ((uintptr_t)mark == MARK_END)
		end_call(cpus[vcpu], vcpu);
	else
		end_group();
	pthread_mutex_unlock(&group_mutex);
}

/* Returns the instruction's mark, or 0 if it is none. */
static uint32_t mark_of(const struct qemu_plugin_insn *insn)
{
	uint8_t code[MARK_BYTES];
	uint32_t mark;

	if (qemu_plugin_insn_data(insn, code, sizeof(code)) != sizeof(code) ||
	    memcmp(code, mark_code, sizeof(mark_code)))
		return 0;
	memcpy(&mark, code + sizeof(mark_code), sizeof(mark));
	return mark >= MARK_BEGIN && mark <= MARK_GROUP ? mark : 0;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i;

	(void)id;
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t mark = mark_of(insn);
		uintptr_t pc = qemu_plugin_insn_vaddr(insn);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)mark);
		else
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, (void *)pc);
	}
}

static void on_end(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	end_group();
	fclose(out);
}

EXPORTED int qemu_plugin_version = LUC_PLUGIN_VERSION;

static int fail(const char *why)
{
	fprintf(stderr, "lines: %s\n", why);
	return -1;
}

/* The one argument is out=FILE. */
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				 char **argv)
{
	static const char option[] = "out=";
	unsigned int i;

	if (argc != 1 || strncmp(argv[0], option, strlen(option)))
		return fail("one argument is needed, out=FILE");
	if (info->system.smp_vcpus < 1 || info->system.smp_vcpus > (int)CPUS_MAX)
		return fail("too many processors");
	group_lines = malloc(GROUP_LINES * sizeof(*group_lines));
	if (!group_lines)
		return fail("no memory");
	for (i = 0; i < (unsigned int)info->system.smp_vcpus; i++) {
		cpus[i] = calloc(1, sizeof(*cpus[i]));
		if (!cpus[i])
			return fail("no memory");
	}
	out = fopen(argv[0] + strlen(option), "w");
	if (!out)
		return fail("the file for the results cannot be opened");
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
