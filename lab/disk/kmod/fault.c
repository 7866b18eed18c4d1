// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults: a table of rules "OP FIRST_SECTOR LAST_SECTOR PER_MILLION eio|STALL_NS
 * [COUNT]". Every rule that matches a request is applied, in order; an error and
 * stalls add up. Each rule draws one number from the disk's own generator, so the
 * same requests in the same order get the same faults. A replica takes no time
 * and has only errors.
 *
 * Each request reads the rules; they change under io_mutex.
 */
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "lucdisk.h"

#define LUCDISK_MILLION 1000000
#define LUCDISK_FAULT_ANY 0xff
#define LUCDISK_FAULT_FUA 0xfe	/* a write with FUA */

static const struct {
	const char *name;
	u8 op;
} lucdisk_fault_op[] = {
	{ "read", LUCDISK_READ },
	{ "write", LUCDISK_WRITE },
	{ "flush", LUCDISK_FLUSH },
	{ "fua", LUCDISK_FAULT_FUA },
	{ "any", LUCDISK_FAULT_ANY },
};

/* One step of splitmix64: a good hash of its argument. */
u64 lucdisk_random(u64 seed)
{
	seed += 0x9e3779b97f4a7c15ULL;
	seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebULL;
	return seed ^ (seed >> 31);
}

void lucdisk_faults_init(struct lucdisk_faults *faults, u64 seed)
{
	faults->seed = seed;
	faults->random = lucdisk_random(seed);
}

static int lucdisk_fault_parse_op(const char *word, u8 *op)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(lucdisk_fault_op); i++) {
		if (!strcmp(word, lucdisk_fault_op[i].name)) {
			*op = lucdisk_fault_op[i].op;
			return 0;
		}
	}
	return -EINVAL;
}

static int lucdisk_fault_parse(char **word, int words, struct lucdisk_fault *fault)
{
	fault->left = U64_MAX;
	if (words < 5 || words > 6 || lucdisk_fault_parse_op(word[0], &fault->op) ||
	    kstrtou64(word[1], 10, &fault->first_sector) ||
	    kstrtou64(word[2], 10, &fault->last_sector) ||
	    kstrtou32(word[3], 10, &fault->per_million) ||
	    (words == 6 && kstrtou64(word[5], 10, &fault->left)))
		return -EINVAL;
	fault->error = !strcmp(word[4], "eio");
	if (!fault->error && (kstrtou64(word[4], 10, &fault->stall_ns) ||
			      !fault->stall_ns || fault->stall_ns > LUCDISK_STALL_NS_MAX))
		return -EINVAL;
	if (fault->first_sector > fault->last_sector || !fault->per_million ||
	    fault->per_million > LUCDISK_MILLION || !fault->left)
		return -EINVAL;
	return 0;
}

/* An empty line removes all rules, any other adds one. */
int lucdisk_fault_add(struct lucdisk *disk, const char *text)
{
	struct lucdisk_faults *faults = &disk->faults;
	struct lucdisk_fault fault = {};
	char **word;
	int words, err;

	word = argv_split(GFP_KERNEL, text, &words);
	if (!word)
		return -ENOMEM;
	err = words ? lucdisk_fault_parse(word, words, &fault) : 0;
	argv_free(word);
	if (err)
		return err;
	mutex_lock(&disk->io_mutex);
	if (!words)
		faults->n = 0;
	else if (faults->n < LUCDISK_FAULTS_MAX)
		faults->rule[faults->n++] = fault;
	else
		err = -ENOSPC;
	mutex_unlock(&disk->io_mutex);
	return err;
}

static const char *lucdisk_fault_op_name(u8 op)
{
	int i = 0;

	while (i < ARRAY_SIZE(lucdisk_fault_op) - 1 && lucdisk_fault_op[i].op != op)
		i++;
	return lucdisk_fault_op[i].name;
}

/* Prints the rules as they would be written, with the hits that are left. */
ssize_t lucdisk_fault_show(struct lucdisk *disk, char *page)
{
	ssize_t len = 0;
	u32 i;

	mutex_lock(&disk->io_mutex);
	for (i = 0; i < disk->faults.n; i++) {
		const struct lucdisk_fault *fault = &disk->faults.rule[i];

		len += sysfs_emit_at(page, len, "%s %llu %llu %u ",
				     lucdisk_fault_op_name(fault->op), fault->first_sector,
				     fault->last_sector, fault->per_million);
		len += fault->error ? sysfs_emit_at(page, len, "eio") :
				      sysfs_emit_at(page, len, "%llu", fault->stall_ns);
		if (fault->left != U64_MAX)
			len += sysfs_emit_at(page, len, " %llu", fault->left);
		len += sysfs_emit_at(page, len, "\n");
	}
	mutex_unlock(&disk->io_mutex);
	return len;
}

static bool lucdisk_fault_is_of(u8 op, const struct lucdisk_request *request)
{
	if (op == LUCDISK_FAULT_FUA)
		return request->op == LUCDISK_WRITE && request->fua;
	return op == LUCDISK_FAULT_ANY || op == request->op;
}

static bool lucdisk_fault_meets(const struct lucdisk_fault *fault,
				const struct lucdisk_request *request)
{
	u64 sectors = request->bytes / SECTOR_SIZE;

	if (!lucdisk_fault_is_of(fault->op, request))
		return false;
	if (request->op == LUCDISK_FLUSH)
		return true;
	return request->sector <= fault->last_sector &&
	       request->sector + sectors > fault->first_sector;
}

/* Applies the faults to a request; a discard counts as a write. */
void lucdisk_fault_apply(struct lucdisk *disk, struct lucdisk_cmd *cmd)
{
	struct lucdisk_faults *faults = &disk->faults;
	u32 i = 0;

	lockdep_assert_held(&disk->io_mutex);
	while (i < faults->n) {
		struct lucdisk_fault *fault = &faults->rule[i++];

		if (!lucdisk_fault_meets(fault, &cmd->request))
			continue;
		faults->random = lucdisk_random(faults->random);
		if (faults->random % LUCDISK_MILLION >= fault->per_million)
			continue;
		faults->hits++;
		if (fault->error)
			cmd->status = BLK_STS_IOERR;
		else
			cmd->stall_ns += fault->stall_ns;
		if (fault->left != U64_MAX && !--fault->left) {
			/* Used up: the table has room for another. */
			i--;
			memmove(fault, fault + 1, (--faults->n - i) * sizeof(*fault));
		}
	}
}
