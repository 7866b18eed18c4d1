// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests through the disk.
 *
 * On its way in, in process context, a request meets the faults, its data is
 * copied, its entry is recorded, and the model may start it. All later events
 * happen in the model's own time: after a late interrupt a request completes
 * late, but the next one was started when this one was done, so timing does not
 * depend on how busy the processor is.
 *
 * One timer is armed for the next request to be done. It is a hard one, like a
 * disk's interrupt: it hands requests to the block layer, which completes them in
 * softirq as for any disk. (On PREEMPT_RT this mode makes it a soft one, where
 * spinlocks may sleep.)
 *
 * Requests done at the same moment complete in order of arrival.
 */
#include <linux/mm.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "lucdisk.h"

static struct request *lucdisk_rq(struct lucdisk_cmd *cmd)
{
	return blk_mq_rq_from_pdu(cmd);
}

static void lucdisk_queue_run(struct lucdisk_queue *queue, struct lucdisk_cmd *cmd, u64 done_ns)
{
	struct lucdisk_cmd *before;

	cmd->done_ns = done_ns;
	/* Search from the end: most requests are done last. */
	list_for_each_entry_reverse(before, &queue->running, list) {
		if (before->done_ns < done_ns ||
		    (before->done_ns == done_ns && before->arrival < cmd->arrival))
			break;
	}
	list_add(&cmd->list, &before->list);
}

static u64 lucdisk_add_ns(u64 a, u64 b)
{
	/* Timers count in signed 64 bits. */
	return min_t(u64, a, KTIME_MAX) > KTIME_MAX - b ? KTIME_MAX : a + b;
}

/* Starts the requests that the model starts at this moment. */
static void lucdisk_queue_start(struct lucdisk *disk, u64 now_ns)
{
	const struct lucdisk_params *params = &disk->params;
	struct lucdisk_queue *queue = &disk->queue;

	while (queue->waiting_n && lucdisk_free_channels(params, &queue->model)) {
		struct lucdisk_request *waiting = queue->waiting;
		u32 i = lucdisk_choose(params, &queue->model, waiting, queue->waiting_n, now_ns);
		struct lucdisk_cmd *cmd;
		u64 done_ns;
		u32 after;

		if (i >= queue->waiting_n)
			break;
		cmd = queue->waiting_cmd[i];
		cmd->modelled = true;
		done_ns = lucdisk_start(params, &queue->model, &waiting[i], now_ns);
		if (!queue->in_service++)
			queue->busy_since_ns = now_ns;
		after = --queue->waiting_n - i;
		memmove(&waiting[i], &waiting[i + 1], after * sizeof(*waiting));
		memmove(&queue->waiting_cmd[i], &queue->waiting_cmd[i + 1], after * sizeof(cmd));
		lucdisk_queue_run(queue, cmd, lucdisk_add_ns(done_ns, cmd->stall_ns));
	}
}

static void lucdisk_queue_count(struct lucdisk_queue *queue, const struct lucdisk_cmd *cmd)
{
	struct lucdisk_activity *done = &queue->done;

	switch (cmd->request.op) {
	case LUCDISK_READ:
		done->read_bytes += cmd->request.bytes;
		break;
	case LUCDISK_WRITE:
		done->written_bytes += cmd->request.bytes;
		break;
	case LUCDISK_FLUSH:
		done->flushes++;
		break;
	}
	if (!--queue->in_service)
		done->busy_ns += cmd->done_ns - queue->busy_since_ns;
}

void lucdisk_queue_advance(struct lucdisk *disk, u64 now_ns)
{
	struct lucdisk_queue *queue = &disk->queue;
	struct lucdisk_cmd *cmd;

	lockdep_assert_held(&queue->lock);
	while ((cmd = list_first_entry_or_null(&queue->running, struct lucdisk_cmd, list)) &&
	       cmd->done_ns <= now_ns) {
		list_move_tail(&cmd->list, &queue->finished);
		if (cmd->modelled) {
			lucdisk_end(&disk->params, &queue->model, &cmd->request, cmd->done_ns);
			lucdisk_queue_count(queue, cmd);
		}
		lucdisk_log_done(disk, cmd, cmd->done_ns);
		lucdisk_queue_start(disk, cmd->done_ns);
	}
}

struct lucdisk_activity lucdisk_queue_activity(struct lucdisk *disk)
{
	struct lucdisk_queue *queue = &disk->queue;
	struct lucdisk_activity done;
	u64 now_ns;

	/* Interrupts off: the timer takes it too. */
	spin_lock_irq(&queue->lock);
	now_ns = ktime_get_ns();
	lucdisk_queue_advance(disk, now_ns);
	done = queue->done;
	if (queue->in_service)
		done.busy_ns += now_ns - queue->busy_since_ns;
	spin_unlock_irq(&queue->lock);
	return done;
}

static void lucdisk_queue_arm(struct lucdisk_queue *queue)
{
	struct lucdisk_cmd *cmd;

	/* If a request has finished, the timer is due already. */
	cmd = list_first_entry_or_null(&queue->running, struct lucdisk_cmd, list);
	if (cmd && list_empty(&queue->finished))
		hrtimer_start(&queue->timer, ns_to_ktime(cmd->done_ns), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart lucdisk_timer(struct hrtimer *timer)
{
	struct lucdisk_queue *queue = container_of(timer, struct lucdisk_queue, timer);
	struct lucdisk *disk = container_of(queue, struct lucdisk, queue);
	struct lucdisk_cmd *cmd, *next;
	unsigned long flags;
	LIST_HEAD(finished);

	spin_lock_irqsave(&queue->lock, flags);
	lucdisk_queue_advance(disk, ktime_get_ns());
	list_splice_init(&queue->finished, &finished);
	lucdisk_queue_arm(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
	/* Without the lock: the timer does not run twice at once. */
	list_for_each_entry_safe(cmd, next, &finished, list) {
		list_del(&cmd->list);
		blk_mq_complete_request(lucdisk_rq(cmd));
	}
	return HRTIMER_NORESTART;
}

static bool lucdisk_submit(struct lucdisk *disk, struct lucdisk_cmd *cmd)
{
	struct lucdisk_queue *queue = &disk->queue;
	bool is_discard = cmd->log_op == LUCDISK_LOG_DISCARD;
	bool accepted = false;
	u64 now_ns;

	/* Interrupts off: the timer takes it too. */
	spin_lock_irq(&queue->lock);
	now_ns = ktime_get_ns();
	lucdisk_queue_advance(disk, now_ns);
	if (!queue->dying && (is_discard || queue->waiting_n < queue->depth)) {
		accepted = true;
		cmd->arrival = queue->arrivals++;
		cmd->request.arrived_ns = now_ns;
		lucdisk_log_accept(disk, cmd, now_ns);
		if (is_discard) {
			/* The model has no such operation: it takes no time. */
			lucdisk_queue_run(queue, cmd, lucdisk_add_ns(now_ns, cmd->stall_ns));
		} else {
			queue->waiting[queue->waiting_n] = cmd->request;
			queue->waiting_cmd[queue->waiting_n++] = cmd;
			lucdisk_queue_start(disk, now_ns);
		}
		lucdisk_queue_arm(queue);
	}
	spin_unlock_irq(&queue->lock);
	return accepted;
}

static int lucdisk_describe(struct lucdisk_cmd *cmd, struct request *rq)
{
	*cmd = (struct lucdisk_cmd) {
		.request = {
			.sector = blk_rq_pos(rq),
			.bytes = blk_rq_bytes(rq),
			.fua = !!(rq->cmd_flags & REQ_FUA),
		},
		.status = BLK_STS_OK,
	};
	switch (req_op(rq)) {
	case REQ_OP_READ:
		cmd->request.op = LUCDISK_READ;
		cmd->log_op = LUCDISK_LOG_NONE;
		return 0;
	case REQ_OP_WRITE:
		cmd->request.op = LUCDISK_WRITE;
		cmd->log_op = LUCDISK_LOG_WRITE;
		return 0;
	case REQ_OP_FLUSH:
		cmd->request.op = LUCDISK_FLUSH;
		cmd->request.sector = 0;
		cmd->request.bytes = 0;
		cmd->log_op = LUCDISK_LOG_FLUSH;
		return 0;
	case REQ_OP_DISCARD:
		cmd->request.op = LUCDISK_WRITE;
		cmd->log_op = LUCDISK_LOG_DISCARD;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int lucdisk_do(struct lucdisk *disk, struct lucdisk_cmd *cmd)
{
	if (cmd->log_op == LUCDISK_LOG_FLUSH)
		return 0;
	if (cmd->log_op == LUCDISK_LOG_DISCARD)
		return lucdisk_store_zero(&disk->store, cmd->request.sector,
					  cmd->request.bytes / SECTOR_SIZE);
	return lucdisk_store_transfer(&disk->store, lucdisk_rq(cmd));
}

/* Process context, may sleep (BLK_MQ_F_BLOCKING): content takes memory. */
static blk_status_t lucdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				     const struct blk_mq_queue_data *bd)
{
	struct lucdisk *disk = hctx->queue->queuedata;
	struct lucdisk_cmd *cmd = blk_mq_rq_to_pdu(bd->rq);
	bool accepted = true;

	blk_mq_start_request(bd->rq);
	if (lucdisk_describe(cmd, bd->rq))
		return BLK_STS_NOTSUPP;
	/* One at a time: content, record and arrival have the same order. */
	mutex_lock(&disk->io_mutex);
	lucdisk_fault_apply(disk, cmd);
	if (!cmd->status && lucdisk_do(disk, cmd))
		cmd->status = BLK_STS_NOSPC;
	if (!disk->replica.log) {
		lucdisk_log_prepare(disk, cmd);
		accepted = lucdisk_submit(disk, cmd);
	}
	mutex_unlock(&disk->io_mutex);
	if (!accepted)
		return BLK_STS_IOERR;
	/* A replica takes no time: it is only there for inspection. */
	if (disk->replica.log)
		blk_mq_end_request(bd->rq, cmd->status);
	return BLK_STS_OK;
}

static void lucdisk_complete(struct request *rq)
{
	struct lucdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, cmd->status);
}

/* Never times out: a request takes as long as model and faults say. */
static enum blk_eh_timer_return lucdisk_timeout(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

const struct blk_mq_ops lucdisk_mq_ops = {
	.queue_rq = lucdisk_queue_rq,
	.complete = lucdisk_complete,
	.timeout = lucdisk_timeout,
};

int lucdisk_queue_init(struct lucdisk *disk)
{
	struct lucdisk_queue *queue = &disk->queue;

	queue->depth = disk->params.queue_requests;
	queue->waiting = kvcalloc(queue->depth, sizeof(*queue->waiting), GFP_KERNEL);
	queue->waiting_cmd = kvcalloc(queue->depth, sizeof(*queue->waiting_cmd), GFP_KERNEL);
	if (!queue->waiting || !queue->waiting_cmd) {
		kvfree(queue->waiting);
		kvfree(queue->waiting_cmd);
		return -ENOMEM;
	}
	lucdisk_init(&queue->model, &disk->params, disk->sectors);
	lucdisk_timer_init(&queue->timer, lucdisk_timer);
	queue->waiting_n = 0;
	queue->arrivals = 0;
	queue->in_service = 0;
	queue->done = (struct lucdisk_activity) {};
	queue->dying = false;
	return 0;
}

void lucdisk_queue_abort(struct lucdisk *disk)
{
	struct lucdisk_queue *queue = &disk->queue;
	struct lucdisk_cmd *cmd;
	u32 i;

	/* Interrupts off: the timer takes it too. */
	spin_lock_irq(&queue->lock);
	lucdisk_queue_advance(disk, ktime_get_ns());
	queue->dying = true;
	lucdisk_log_stop(disk->log);
	list_for_each_entry(cmd, &queue->running, list)
		cmd->status = BLK_STS_IOERR;
	list_splice_tail_init(&queue->running, &queue->finished);
	for (i = 0; i < queue->waiting_n; i++) {
		queue->waiting_cmd[i]->status = BLK_STS_IOERR;
		list_add_tail(&queue->waiting_cmd[i]->list, &queue->finished);
	}
	queue->waiting_n = 0;
	hrtimer_start(&queue->timer, ktime_get(), HRTIMER_MODE_ABS);
	spin_unlock_irq(&queue->lock);
}

void lucdisk_queue_exit(struct lucdisk *disk)
{
	hrtimer_cancel(&disk->queue.timer);
	kvfree(disk->queue.waiting);
	kvfree(disk->queue.waiting_cmd);
	disk->queue.waiting = NULL;
	disk->queue.waiting_cmd = NULL;
}
