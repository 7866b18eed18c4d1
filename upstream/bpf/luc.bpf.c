// SPDX-License-Identifier: GPL-2.0-only
/*
 * LUC's controllers as jbd2's struct_ops jbd2_hold_ops: no module.
 *
 * jbd2 asks hold_ns() when a commit is requested, and again each time it has slept: the
 * steps OPEN and POLL of control/. When the commit begins, asked about or not, the batch
 * is closed: CLOSE. Before it writes metadata jbd2 asks copyout_buffers(): COPYOUT. jbd2
 * bounds all answers by the journal's max_batch_time and by urgent waiters, and counts
 * the tasks that the last two commits released and that are missing: no table of tasks
 * is needed here.
 *
 * bpftool attaches tracing programs with one command and a struct_ops with another, and
 * each loads the whole object. So the maps are pinned by their names: both loads use
 * the same.
 *
 * One commit runs at a time, so the state of a journal has one writer at a time.
 * Arrivals meanwhile are noted under a lock.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "control.h"

char LICENSE[] SEC("license") = "GPL";

/* The knobs, the same for all journals. Each load of the object has its own. */
#define KNOB(name, kind, min, max, dflt, help) .name = (dflt),
struct luc_params params = { LUC_KNOBS(KNOB) };

/* Input and output of a step. [the commit's task] */
struct luc_batch {
	struct luc_state state;
	struct luc_input in;
	struct luc_output out;
};

struct luc_journal {
	struct luc_batch b;
	/* [the commit's task] */
	luc_u64 asked;			/* transaction of the last OPEN, see key_of() */
	luc_u64 passed;			/* transaction that needs no CLOSE */
	luc_s64 delayed_seen;
	luc_s64 spared_seen;
	/* Counts [atomic] */
	luc_s64 syncing;		/* tasks inside a call that wait for no commit yet */
	luc_s64 delayed;
	luc_s64 spared;
	/* The batch that forms [lock] */
	struct bpf_spin_lock lock;
	luc_u32 last_task;
	luc_u64 batch;			/* its transaction */
	luc_s64 first_event_ns;
	luc_s64 last_event_ns;
	luc_s64 after_first_ns;		/* by how much all came later than the first */
	luc_s64 same_task;
	/* For `bpftool map dump` [the commit's task] */
	luc_s64 commits;
	luc_s64 commits_copying;
	luc_s64 reasons[LUC_REASON_NR];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, luc_u32);		/* device number, as the kernel has it */
	__type(value, struct luc_journal);
} journals SEC(".maps");

/* Device of the sync call that a task is in and that has waited for no commit yet. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, int);
	__type(value, luc_u64);
} calls SEC(".maps");

static const struct luc_journal nothing;

/* Tells a transaction from none, and from all others. */
static luc_u64 key_of(luc_u32 tid)
{
	return 1ULL << 32 | tid;
}

static __always_inline luc_u32 device(const struct journal_s *journal)
{
	return journal->j_fs_dev->bd_dev;
}

static __always_inline struct luc_journal *find(const struct journal_s *journal)
{
	luc_u32 dev = device(journal);

	return bpf_map_lookup_elem(&journals, &dev);
}

static __always_inline struct luc_journal *find_or_make(const struct journal_s *journal)
{
	struct luc_journal *j = find(journal);
	luc_u32 dev;

	if (j)
		return j;
	dev = device(journal);
	bpf_map_update_elem(&journals, &dev, &nothing, BPF_NOEXIST);
	j = bpf_map_lookup_elem(&journals, &dev);
	if (j)
		luc_state_init(&j->b.state);
	return j;
}

/* The batch as far as it has formed, in the words of control/. */
static __always_inline void sense_batch(struct luc_journal *j, luc_u32 tid, luc_s64 events)
{
	struct luc_input *in = &j->b.in;

	in->events = events;
	in->events_wait_ns = 0;
	in->last_event_ns = 0;
	in->same_task = 0;
	in->now_ns = bpf_ktime_get_ns();
	bpf_spin_lock(&j->lock);
	if (events && j->batch == key_of(tid)) {
		in->events_wait_ns = events * (in->now_ns - j->first_event_ns) -
				     j->after_first_ns;
		in->last_event_ns = j->last_event_ns;
		in->same_task = j->same_task;
	}
	bpf_spin_unlock(&j->lock);
}

static __always_inline void sense(struct luc_journal *j, const struct journal_s *journal,
				  const struct transaction_s *transaction,
				  luc_s64 events, luc_s64 missing)
{
	struct luc_input *in = &j->b.in;
	luc_s64 syncing = j->syncing;

	sense_batch(j, transaction->t_tid, events);
	in->syncing_events = syncing;
	/* A released task may be inside its next call: count it once. */
	in->expected_events = missing > syncing ? missing : syncing;
	in->commit_avg_ns = journal->j_average_commit_time;
	in->age_ns = in->now_ns - transaction->t_start_time;
	in->handles = transaction->t_handle_count.counter;
	in->urgent = 0;
}

/*
 * A step, and luc_control_pass(). Global, so that the verifier walks each once; it then
 * takes the pointer for one that may be NULL.
 */
#define STEP(name, WHAT) \
	__noinline int name(struct luc_batch *b) \
	{ \
		if (!b) \
			return 0; \
		luc_control_step(WHAT, &params, &b->state, &b->in, &b->out); \
		return 0; \
	}

STEP(luc_step_open, LUC_STEP_OPEN)
STEP(luc_step_poll, LUC_STEP_POLL)
STEP(luc_step_close, LUC_STEP_CLOSE)
STEP(luc_step_copyout, LUC_STEP_COPYOUT)

__noinline int luc_passes(struct luc_batch *b)
{
	return b ? luc_control_pass(&params, &b->state, &b->in) : 0;
}

SEC("struct_ops/hold_ns")
long BPF_PROG(luc_hold_ns, struct jbd2_hold *hold)
{
	struct luc_journal *j = find_or_make(hold->journal);
	luc_u32 tid = hold->transaction->t_tid;
	luc_s64 left_ns;

	if (!j)
		return 0;
	sense(j, hold->journal, hold->transaction, hold->waiters, hold->missing);
	if (hold->held_ns) {
		luc_step_poll(&j->b);
	} else {
		j->asked = key_of(tid);
		if (luc_passes(&j->b)) {
			j->passed = key_of(tid);
			return -1;
		}
		luc_step_open(&j->b);
	}
	if (j->b.out.reason != LUC_REASON_HOLD)
		return -1;
	left_ns = j->b.out.wake_ns - j->b.in.now_ns;
	return left_ns > 0 ? left_ns : 1;
}

static __always_inline void enter(struct luc_journal *j, luc_u32 tid, luc_u32 task, luc_s64 now_ns)
{
	bpf_spin_lock(&j->lock);
	if (j->batch != key_of(tid)) {
		j->batch = key_of(tid);
		j->same_task = j->last_task == task;
		j->first_event_ns = now_ns;
		j->after_first_ns = 0;
	}
	j->last_event_ns = now_ns;
	j->last_task = task;
	j->after_first_ns += now_ns - j->first_event_ns;
	bpf_spin_unlock(&j->lock);
}

/* The call that this task is in has begun to wait, or is over. */
static __always_inline void leave_call(struct luc_journal *j, struct task_struct *task)
{
	luc_u64 *call = bpf_task_storage_get(&calls, task, NULL, 0);

	if (!call || !*call)
		return;
	*call = 0;
	__sync_fetch_and_add(&j->syncing, -1);
}

SEC("struct_ops/arrived")
int BPF_PROG(luc_arrived, struct journal_s *journal, struct transaction_s *transaction,
	     luc_u32 waiters)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct luc_journal *j = find(journal);
	luc_u32 tid = transaction->t_tid;

	if (!j)
		return 0;
	leave_call(j, task);
	enter(j, tid, task->pid, bpf_ktime_get_ns());
	if (j->asked != key_of(tid))
		return -1;
	return waiters >= luc_complete_events(&params, &j->b.state) ? 1 : -1;
}

/* Sync calls that wait for the transaction, by the counts of jbd2. */
static __always_inline luc_u32 waiters_of(const struct journal_s *journal, luc_u32 tid)
{
	luc_u32 even = journal->j_sync_arrived[0].counter - journal->j_sync_base[0];
	luc_u32 odd = journal->j_sync_arrived[1].counter - journal->j_sync_base[1];

	return tid & 1 ? odd : even;
}

/* Sync calls that the last two commits released and that have not come back. */
static __always_inline luc_u32 missing_of(const struct journal_s *journal)
{
	luc_u32 released = journal->j_sync_missing[0] + journal->j_sync_missing[1];
	luc_u32 came = journal->j_sync_arrived[0].counter +
		       journal->j_sync_arrived[1].counter - journal->j_sync_seen;

	return released > came ? released - came : 0;
}

/* A commit begins. Recheck how its batch stands: it may have been urged on. */
SEC("tp_btf/jbd2_start_commit")
int BPF_PROG(luc_start_commit, struct journal_s *journal, struct transaction_s *transaction)
{
	struct luc_journal *j;
	luc_u64 key;

	if (!journal || !transaction || !(journal->j_hold || journal->j_copyout_max))
		return 0;
	j = find_or_make(journal);
	if (!j)
		return 0;
	key = key_of(transaction->t_tid);
	j->commits++;
	if (j->passed != key) {
		sense(j, journal, transaction, waiters_of(journal, transaction->t_tid),
		      missing_of(journal));
		if (j->asked != key) {
			/* jbd2 did not ask: an urgent waiter. */
			j->b.in.urgent = 1;
			luc_step_open(&j->b);
		} else if (j->b.out.reason == LUC_REASON_HOLD) {
			j->b.in.urgent = j->b.in.now_ns < j->b.state.open_ns + j->b.state.wait_ns;
			luc_step_poll(&j->b);
		}
		if (j->b.out.reason >= 0 && j->b.out.reason < LUC_REASON_NR)
			j->reasons[j->b.out.reason]++;
		luc_step_close(&j->b);
	}
	return 0;
}

/* By how much a count has grown since it was last seen. */
static __always_inline luc_s64 news_of(luc_s64 count, luc_s64 *seen)
{
	luc_s64 news = count - *seen;

	*seen = count;
	return news;
}

SEC("struct_ops/copyout_buffers")
int BPF_PROG(luc_copyout_buffers, struct journal_s *journal, struct transaction_s *transaction)
{
	struct luc_journal *j = find_or_make(journal);

	if (!j)
		return 0;
	j->b.in.now_ns = bpf_ktime_get_ns();
	j->b.in.handles = transaction->t_handle_count.counter;
	j->b.in.writes_delayed = news_of(j->delayed, &j->delayed_seen);
	j->b.in.buffers_spared = news_of(j->spared, &j->spared_seen);
	luc_step_copyout(&j->b);
	if (!j->b.out.copy)
		return -1;
	j->commits_copying++;
	return params.copyout_buffers_max;
}

SEC("tp_btf/jbd2_shadow_wait")
int BPF_PROG(luc_shadow_wait, struct journal_s *journal, struct buffer_head *bh,
	     luc_u32 tid, luc_u64 wait_ns)
{
	struct luc_journal *j = journal ? find(journal) : NULL;

	if (!j)
		return 0;
	__sync_fetch_and_add(&j->delayed, 1);
	return 0;
}

SEC("tp_btf/jbd2_copyout")
int BPF_PROG(luc_copyout, struct journal_s *journal, luc_u32 tid, luc_u32 copied, luc_u32 spared)
{
	struct luc_journal *j = journal ? find(journal) : NULL;

	if (!j)
		return 0;
	__sync_fetch_and_add(&j->spared, spared);
	return 0;
}

static __always_inline luc_u32 device_of_file(const struct file *file)
{
	return file->f_inode->i_sb->s_dev;
}

SEC("fentry/ext4_sync_file")
int BPF_PROG(luc_sync_begin, struct file *file)
{
	luc_u32 dev = device_of_file(file);
	struct luc_journal *j = bpf_map_lookup_elem(&journals, &dev);
	luc_u64 *call;

	if (!j)
		return 0;
	call = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call)
		return 0;
	*call = dev;
	__sync_fetch_and_add(&j->syncing, 1);
	return 0;
}

/* A call that needed no commit ends without having waited for one. */
SEC("fexit/ext4_sync_file")
int BPF_PROG(luc_sync_end, struct file *file)
{
	luc_u32 dev = device_of_file(file);
	struct luc_journal *j = bpf_map_lookup_elem(&journals, &dev);

	if (j)
		leave_call(j, bpf_get_current_task_btf());
	return 0;
}

SEC(".struct_ops.link")
struct jbd2_hold_ops luc = {
	.hold_ns = (void *)luc_hold_ns,
	.arrived = (void *)luc_arrived,
	.copyout_buffers = (void *)luc_copyout_buffers,
};
