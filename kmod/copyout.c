// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copy-out: letting a commit write copies, so that writers do not wait.
 *
 * jbd2_journal_write_metadata_buffer() writes jh->b_frozen_data instead of the buffer if
 * there is such a copy, and do_get_write_access() checks for one before it checks whether
 * the buffer is being written. So it is enough to make the copy at the function's entry.
 * jbd2 frees it like its own.
 *
 * The copy must be what jbd2 itself would have made:
 *
 *   - allocated in a way that jbd2's own free can take back: pages or jbd2's slab before
 *     7.2 (kernel commit bbe9015f2343), kmalloc later; never vmalloc. If there is no
 *     memory, the buffer is written the stock way;
 *   - made under jh->b_state_lock, after rechecking that there is none yet, that no
 *     later transaction owns the buffer, and that it is on the metadata list and not
 *     being written;
 *   - made after calling the buffer's t_frozen trigger: ext4 puts checksums of orphan
 *     files into the data there, and the journal must contain them;
 *   - never for buffers with undo data (b_committed_data): their copy has a
 *     second meaning.
 *
 * Lock order in jbd2 is j_state_lock, b_state_lock, j_list_lock. Only the middle one is
 * taken here, with no other lock inside it.
 */
#include <linux/buffer_head.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/timekeeping.h>
#include <linux/wait_bit.h>

#include "luc.h"
#include "trace.h"

/* No direct reclaim: every fsync would wait for the task that does it. */
#define LUC_COPY_GFP (GFP_NOWAIT | __GFP_NOWARN)

#ifdef LUC_HAVE_JBD2_ALLOC
/*
 * Blocks smaller than a page come from jbd2's own slab. jbd2_alloc() is not exported; its
 * address is looked up by name (luc_address_of()). A static call reaches it by a direct
 * call: an indirect call needs a landing pad, which the kernel may have sealed.
 */
static void *luc_no_alloc(size_t size, gfp_t flags)
{
	return NULL;
}

DEFINE_STATIC_CALL(luc_jbd2_alloc, luc_no_alloc);
DEFINE_STATIC_CALL_NULL(luc_jbd2_free, jbd2_free);
static bool luc_jbd2_slab;

void luc_copyout_init(void)
{
	void *alloc = (void *)luc_address_of("jbd2_alloc");
	void *release = (void *)luc_address_of("jbd2_free");

	if (!alloc || !release)
		return;
	static_call_update(luc_jbd2_alloc, alloc);
	static_call_update(luc_jbd2_free, release);
	luc_jbd2_slab = true;
}

static char *luc_copy_alloc(size_t size)
{
	if (size >= PAGE_SIZE)
		return (char *)__get_free_pages(LUC_COPY_GFP, get_order(size));
	return luc_jbd2_slab ? static_call(luc_jbd2_alloc)(size, LUC_COPY_GFP) : NULL;
}

static void luc_copy_free(char *copy, size_t size)
{
	if (size >= PAGE_SIZE)
		free_pages((unsigned long)copy, get_order(size));
	else
		static_call_cond(luc_jbd2_free)(copy, size);
}
#else
/*
 * If the header declared these, jbd2_free() would free copies: this must then fail to
 * compile.
 */
static void __maybe_unused *jbd2_alloc(size_t size, gfp_t flags);
static void __maybe_unused jbd2_free(void *ptr, size_t size);

void luc_copyout_init(void)
{
}

static char *luc_copy_alloc(size_t size)
{
	return kmalloc(size, LUC_COPY_GFP);
}

static void luc_copy_free(char *copy, size_t size)
{
	kfree(copy);
}
#endif

/* Only the committing task and the last put of fs call this. */
void luc_copyout_set(struct luc_fs *fs, enum luc_copies copies)
{
	bool copied = fs->copy_now != LUC_COPY_NONE;
	bool copies_any = copies != LUC_COPY_NONE;

	WRITE_ONCE(fs->copy_now, copies);
	if (copied != copies_any)
		luc_entry_copying(copies_any);
}

/*
 * Marks of contended buffers, by block: a hash table without chains and without a lock. A
 * mark that another block overwrites costs one sleep, as does a mark that is lost because
 * two tasks change it at once.
 */
#define LUC_MARK_COPIES 31U	/* these bits count copies; the others identify the block */

static_assert(LUC_COPIES_UNUSED_MAX <= LUC_MARK_COPIES);

static u32 *luc_mark_of(struct luc_fs *fs, sector_t block, u32 *tag)
{
	u64 hash = block * GOLDEN_RATIO_64;

	*tag = (u32)(hash >> (32 - LUC_MARKS_BITS)) & ~LUC_MARK_COPIES;
	return &fs->marks[hash >> (64 - LUC_MARKS_BITS)];
}

/* Marks the next block, too: inode tables and directories fill one block after the other. */
static void luc_mark_contended(struct luc_fs *fs, const struct buffer_head *bh)
{
	sector_t block;
	u32 *mark, tag;

	for (block = bh->b_blocknr; block <= bh->b_blocknr + 1; block++) {
		mark = luc_mark_of(fs, block, &tag);
		WRITE_ONCE(*mark, tag | LUC_COPIES_UNUSED_MAX);
	}
}

/* Uses up one of the copies that the mark allows. */
static bool luc_take_mark(struct luc_fs *fs, const struct buffer_head *bh)
{
	u32 tag;
	u32 *mark = luc_mark_of(fs, bh->b_blocknr, &tag);
	u32 value = READ_ONCE(*mark);

	if ((value & ~LUC_MARK_COPIES) != tag || !(value & LUC_MARK_COPIES))
		return false;
	WRITE_ONCE(*mark, value - 1);
	return true;
}

static bool luc_wants_copy(struct luc_fs *fs, const struct buffer_head *bh)
{
	switch (READ_ONCE(fs->copy_now)) {
	case LUC_COPY_ALL:
		return true;
	case LUC_COPY_CONTENDED:
		return luc_take_mark(fs, bh);
	default:
		return false;
	}
}

static bool luc_may_freeze(struct journal_head *jh,
			   const transaction_t *transaction)
{
	return jh->b_transaction == transaction && !jh->b_next_transaction &&
	       !jh->b_frozen_data && !jh->b_committed_data &&
	       jh->b_jlist == BJ_Metadata && !buffer_shadow(jh2bh(jh));
}

static void luc_fill_copy(struct journal_head *jh, char *copy)
{
	struct jbd2_buffer_trigger_type *triggers = jh->b_triggers;
	struct buffer_head *bh = jh2bh(jh);

	if (triggers && triggers->t_frozen)
		triggers->t_frozen(triggers, bh, bh->b_data, bh->b_size);
	memcpy(copy, bh->b_data, bh->b_size);
	jh->b_frozen_triggers = triggers;
	jh->b_frozen_data = copy;
}

static void luc_copy_out(struct luc_fs *fs, transaction_t *transaction,
			 struct journal_head *jh)
{
	size_t size = jh2bh(jh)->b_size;
	u64 begin = ktime_get_ns();
	bool used = false;
	char *copy;

	/* Only the committing task gets here: no lock needed. */
	if (fs->copies_left <= 0) {
		luc_count(fs, copies_over_max, 1);
		return;
	}
	fs->copies_left--;
	/* Allocate first: b_state_lock is a spinlock. */
	copy = luc_copy_alloc(size);
	if (!copy) {
		luc_count(fs, copies_failed, 1);
		return;
	}
	spin_lock(&jh->b_state_lock);
	if (luc_may_freeze(jh, transaction)) {
		luc_fill_copy(jh, copy);
		used = true;
	}
	spin_unlock(&jh->b_state_lock);
	if (used)
		luc_count(fs, copies, 1);
	else
		luc_copy_free(copy, size);
	luc_count(fs, copy_ns, ktime_get_ns() - begin);
}

void luc_on_write_buffer(transaction_t *transaction, struct journal_head *jh)
{
	journal_t *journal = transaction->t_journal;
	struct luc_fs *fs;

	rcu_read_lock_sched();
	fs = luc_fs_find(luc_dev_of(journal));
	/* copy_now and the marks' copies apply to commits of the journal's own thread. */
	if (fs && (READ_ONCE(fs->gone) || current != READ_ONCE(journal->j_task) ||
		   is_journal_aborted(journal) || !luc_wants_copy(fs, jh2bh(jh))))
		fs = NULL;
	fs = luc_fs_keep(fs);
	/* Counted before a detach can proceed: it waits for this RCU section. */
	if (fs)
		luc_hook_enter();
	rcu_read_unlock_sched();
	if (!fs)
		return;
	luc_copy_out(fs, transaction, jh);
	luc_fs_put(fs);
	/* Last: after this the module may be freed, and luc_fs_put() runs the module's code. */
	luc_hook_leave();
}

/*
 * A commit files a buffer as BJ_Forget once its journal write has ended. If only a copy
 * was written and the running transaction owns the buffer by now, the copy spared a
 * writer the wait.
 */
void luc_on_file_buffer(struct journal_head *jh, transaction_t *transaction,
			int jlist)
{
	struct luc_fs *fs;

	if (jlist != BJ_Forget || !READ_ONCE(jh->b_frozen_data) ||
	    !READ_ONCE(jh->b_next_transaction))
		return;
	rcu_read_lock_sched();
	fs = luc_fs_find(luc_dev_of(transaction->t_journal));
	if (fs && READ_ONCE(fs->copy_now) != LUC_COPY_NONE) {
		luc_mark_contended(fs, jh2bh(jh));
		luc_count(fs, buffers_spared, 1);
		luc_copyout_news(fs);
	}
	rcu_read_unlock_sched();
}

/*
 * Tells whether out_of_line_wait_on_bit() waits for a buffer's journal write. Only for
 * this caller does the word belong to a buffer head. There are few return addresses: each
 * is looked up by name once.
 */
static bool luc_waits_for_shadow(unsigned long caller)
{
	static unsigned long yes, no;
	char name[KSYM_SYMBOL_LEN];

	if (caller == READ_ONCE(yes))
		return true;
	if (caller == READ_ONCE(no))
		return false;
	sprint_symbol(name, caller);
	if (str_has_prefix(name, "do_get_write_access")) {
		WRITE_ONCE(yes, caller);
		return true;
	}
	WRITE_ONCE(no, caller);
	return false;
}

/*
 * Sleeps like the function itself, for as long as it takes: the watchdog for hung tasks
 * must see a task that a dead disk blocks. A detach wakes the task to make it leave the
 * hook; the function itself then goes on waiting.
 */
static void luc_shadow_wait(struct luc_fs *fs, struct buffer_head *bh)
{
	wait_queue_head_t *queue = bit_waitqueue(&bh->b_state, BH_Shadow);
	DEFINE_WAIT_BIT(written, &bh->b_state, BH_Shadow);
	DECLARE_WAITQUEUE(detached, current);

	add_wait_queue(&fs->writers, &detached);
	for (;;) {
		prepare_to_wait(queue, &written.wq_entry, TASK_UNINTERRUPTIBLE);
		/* After setting the task state: luc_fs_unlink() sets gone, then wakes. */
		if (!buffer_shadow(bh) || READ_ONCE(fs->gone))
			break;
		io_schedule();
	}
	finish_wait(queue, &written.wq_entry);
	remove_wait_queue(&fs->writers, &detached);
}

static void luc_shadow_delayed(struct luc_fs *fs, struct buffer_head *bh)
{
	u64 begin = ktime_get_ns();
	s64 delay_ns;

	luc_mark_contended(fs, bh);
	/* The function then finds the bit clear and returns at once. */
	luc_shadow_wait(fs, bh);
	delay_ns = ktime_get_ns() - begin;
	luc_count(fs, writes_delayed, 1);
	luc_count(fs, write_delay_ns, delay_ns);
	luc_copyout_news(fs);
	luc_count_max(&fs->counters[LUC_COUNTER_write_delay_max_ns], delay_ns);
	trace_luc_write_delay(fs->dev, bh->b_blocknr, delay_ns);
}

void luc_on_wait_bit(unsigned long *word, int bit, unsigned int mode,
		     unsigned long caller)
{
	struct buffer_head *bh;
	struct luc_fs *fs;

	if (bit != BH_Shadow || mode != TASK_UNINTERRUPTIBLE ||
	    !luc_waits_for_shadow(caller))
		return;
	bh = container_of(word, struct buffer_head, b_state);
	rcu_read_lock_sched();
	fs = luc_fs_keep(luc_fs_find(bh->b_bdev->bd_dev));
	if (fs)
		luc_hook_enter();
	rcu_read_unlock_sched();
	if (!fs)
		return;
	if (buffer_shadow(bh))
		luc_shadow_delayed(fs, bh);
	luc_fs_put(fs);
	luc_hook_leave();
}
