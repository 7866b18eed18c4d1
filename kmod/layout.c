// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ties this module to the jbd2 that it was built for.
 *
 * LUC reads journal_t, transaction_t and journal_head with the layout of the headers.
 * Three checks ensure that the running jbd2 has that layout:
 *
 *   - symbols of jbd2 are imported. With CONFIG_MODVERSIONS their checksums cover all
 *     types that their prototypes refer to (journal_t, through it transaction_t and
 *     journal_head), and the kernel refuses a module whose sums differ. The import also
 *     keeps jbd2 loaded: addresses in its text stay valid;
 *   - the prototypes of hooked functions are asserted where a header declares them: a
 *     hook reads arguments from registers, by position. wait_transaction_locked() is
 *     static: a system test compares its prototype with the type information of each
 *     kernel, and a compiler that changes its parameters renames it;
 *   - a kernel series that LUC was not tested on is refused, unless the administrator
 *     says otherwise.
 */
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/jbd2.h>
#include <linux/module.h>
#include <linux/utsname.h>
#include <linux/version.h>
#include <linux/wait_bit.h>

#include "kernels.h"
#include "luc.h"

#define LUC_IS(function, prototype) \
	static_assert(__builtin_types_compatible_p(typeof(function), prototype))

LUC_IS(jbd2_complete_transaction, int(journal_t *, tid_t));
LUC_IS(jbd2_log_wait_commit, int(journal_t *, tid_t));
LUC_IS(jbd2_journal_commit_transaction, void(journal_t *));
LUC_IS(jbd2_journal_write_metadata_buffer,
       int(transaction_t *, struct journal_head *, struct buffer_head **, sector_t));
LUC_IS(jbd2_journal_file_buffer, void(struct journal_head *, transaction_t *, int));
LUC_IS(jbd2_fc_end_commit, int(journal_t *));
LUC_IS(jbd2_journal_destroy, int(journal_t *));
/* ext4_sync_file() is declared in fs/ext4/ alone, but ext4 stores it here. */
LUC_IS(((struct file_operations *)0)->fsync, int (*)(struct file *, loff_t, loff_t, int));
/* The first parameter became unsigned long * in 6.13 (kernel commit 2382d68d7d43). */
static_assert(__builtin_types_compatible_p(typeof(out_of_line_wait_on_bit),
					   int(void *, int, wait_bit_action_f *, unsigned int)) ||
	      __builtin_types_compatible_p(typeof(out_of_line_wait_on_bit),
					   int(unsigned long *, int, wait_bit_action_f *,
					       unsigned int)));

/* Importing these brings in their checksums; nothing is called through here. */
static const void *const luc_seal[] __used = {
	jbd2_complete_transaction,
	jbd2_log_wait_commit,
	jbd2_journal_destroy,
};

/*
 * Cache lines that every processor reads at each hooked call contain nothing that a sync
 * or a commit writes.
 */
#define LUC_LINE(field) (offsetof(struct luc_fs, field) / SMP_CACHE_BYTES)
static_assert(!IS_ENABLED(CONFIG_SMP) ||
	      (LUC_LINE(node) == LUC_LINE(dev) && LUC_LINE(dev) == LUC_LINE(gone) &&
	       LUC_LINE(dev) < LUC_LINE(lock) &&
	       offsetof(struct luc_fs, counters) % SMP_CACHE_BYTES == 0 &&
	       offsetof(struct luc_fs, returns.slot) % sizeof(struct luc_returns_slot) == 0));

static bool untested_kernel;
module_param(untested_kernel, bool, 0444);
MODULE_PARM_DESC(untested_kernel, "load on a kernel that LUC was not tested on");

struct luc_series {
	unsigned int major, minor;
};

#define LUC_SERIES(major, minor) { major, minor },
static const struct luc_series luc_tested[] = { LUC_KERNELS(LUC_SERIES) };

static bool luc_is_tested(unsigned int major, unsigned int minor)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(luc_tested); i++) {
		if (luc_tested[i].major == major && luc_tested[i].minor == minor)
			return true;
	}
	return false;
}

/*
 * Returns why this kernel counts as not tested; NULL if it was tested. A release such as
 * 6.12.0-55.el10 does not show which 6.12 it is, or whether it is one at all: Debian's
 * 6.1.0-56 is the stable 6.1.192, while other branches stay at .0 and backport as they
 * please from later series. The headers have the true number.
 */
static const char *luc_untested(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2 || !luc_is_tested(major, minor))
		return "";
	if (major != LINUX_VERSION_MAJOR || minor != LINUX_VERSION_PATCHLEVEL)
		return " with a module built for another series";
	if (!LINUX_VERSION_SUBLEVEL)
		return ", which is no stable release but a branch of somebody's own";
	return NULL;
}

int luc_layout_check(void)
{
	const char *release = init_utsname()->release;
	const char *why = luc_untested(release);

	/*
	 * On PREEMPT_RT spinlocks sleep, so every hook may sleep. Only hooks that also
	 * sleep on other kernels are counted: a task in another could outlive the module.
	 */
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("luc: kernels with PREEMPT_RT are not supported\n");
		return -EOPNOTSUPP;
	}
	if (untested_kernel || !why)
		return 0;
	pr_err("luc: not tested on kernel %s%s; untested_kernel=1 loads it all the same\n",
	       release, why);
	return -EOPNOTSUPP;
}
