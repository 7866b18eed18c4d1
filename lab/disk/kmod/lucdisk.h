/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lucdisk: a disk for the lab's guest, in memory, with the timing of
 * ../lucdisk_model.c, faults on demand, and a record of everything that reached
 * it, from which other disks show possible states after a power cut.
 *
 *   main.c	module, /sys/kernel/config/lucdisk
 *   config.c	the attributes of a disk
 *   disk.c	power on and off: the block device comes and goes
 *   queue.c	requests in, model, one timer, requests out
 *   store.c	the content
 *   fault.c	errors and stalls
 *   log.c	the record
 *   marks.c	/dev/NAME-log and the record as text
 *   replica.c	power cuts
 *
 * Locks, outermost first:
 *
 *   disk->lock		mutex; configuration, power, the replica's state.
 *			Process context, may wait for I/O of this disk.
 *   disk->io_mutex	mutex; content, fault rules, growth of the log. Taken by
 *			every request on its way in, so what holds it may
 *			allocate memory only with GFP_NOIO.
 *   disk->queue.lock	spinlock, interrupts off; the model, the requests in
 *			the disk and the end of the log. The timer takes it in
 *			hard interrupt context: nothing is allocated or freed
 *			under it, and what the log needs for the completions to
 *			come is there before a request gets in.
 */
#ifndef LUCDISK_H
#define LUCDISK_H

#include <linux/blk-mq.h>
#include <linux/configfs.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "../lucdisk_model.h"

#define LUCDISK_NAME_PREFIX "lucdisk"
/* Room for "-log" in a name of the block layer's length. */
#define LUCDISK_NAME_BYTES_MAX 24
#define LUCDISK_LOG_SUFFIX "-log"
#define LUCDISK_SIZE_MIB_MAX (1U << 20)
#define LUCDISK_RECORD_MIB_MAX (1U << 20)
#define LUCDISK_MARK_BYTES_MAX 4096
#define LUCDISK_FAULTS_MAX 32
#define LUCDISK_STALL_NS_MAX 3600000000000ULL
#define LUCDISK_PAGE_SECTORS (PAGE_SIZE / SECTOR_SIZE)

/* ---- store.c: sparse pages, shared between stores until written to ---- */

struct lucdisk_store {
	struct xarray pages;		/* struct page, each holds a reference */
	struct lucdisk_store *below;	/* seen where this one has no page */
};

void lucdisk_store_init(struct lucdisk_store *store, struct lucdisk_store *below);
void lucdisk_store_clear(struct lucdisk_store *store);
/* Drops all pages but the first `pages`. */
void lucdisk_store_truncate(struct lucdisk_store *store, u64 pages);
/* The page to read, or NULL if it is all zero. */
struct page *lucdisk_store_look(struct lucdisk_store *store, u64 index);
/* The page to write to; its old content is not needed if it is overwritten whole. */
struct page *lucdisk_store_edit(struct lucdisk_store *store, u64 index, bool whole);
int lucdisk_store_share(struct lucdisk_store *store, u64 index, struct page *page);
int lucdisk_store_share_all(struct lucdisk_store *to, struct lucdisk_store *from);
int lucdisk_store_zero(struct lucdisk_store *store, u64 sector, u64 sectors);
int lucdisk_store_transfer(struct lucdisk_store *store, struct request *rq);

/* ---- log.c: the record ---- */

enum lucdisk_log_op {
	LUCDISK_LOG_NONE,
	LUCDISK_LOG_WRITE,	/* accepted; ref is its first page in the log */
	LUCDISK_LOG_WRITE_DONE,	/* ref of this and the next two is the accepting entry */
	LUCDISK_LOG_DISCARD_DONE,
	LUCDISK_LOG_FLUSH_DONE,
	LUCDISK_LOG_DISCARD,
	LUCDISK_LOG_FLUSH,
	LUCDISK_LOG_MARK,	/* ref is its number among the marks */
};

struct lucdisk_entry {
	u64 sector;
	u64 ref;
	u64 time_ns;
	u32 bytes;
	u8 op;			/* enum lucdisk_log_op */
	u8 fua;
};

/* A mark as read(2) returns it, in a file of all marks; pos is where it begins. */
struct lucdisk_mark {
	u64 pos;
	u64 index;
	struct {
		__le32 bytes;
		__le64 index;
	} __packed head;
	u8 data[];
};

enum lucdisk_log_state {
	LUCDISK_LOG_RUNNING,
	LUCDISK_LOG_FULL,	/* later requests are counted as lost */
	LUCDISK_LOG_STOPPED,
};

/*
 * Entries below len, and marks below marks, never change again: they are read
 * without a lock. The state and these two change under the lock of the recorded
 * disk's queue, everything else under its io_mutex.
 */
struct lucdisk_log {
	struct kref kref;
	struct lucdisk_store base;	/* content when recording began */
	u64 sectors;
	bool is_volatile;
	enum lucdisk_log_state state;
	u64 len;
	u64 lost;
	u64 marks;
	u64 marks_bytes;		/* as read(2) gives them */
	u64 promised;			/* entries in the log and entries sure to come */
	u64 room;			/* entries that there is memory for */
	u64 pages;			/* pages of data */
	u64 used_bytes;
	u64 limit_bytes;
	struct xarray chunks;		/* pages of entries */
	struct xarray data;		/* pages as they were after each write */
	struct xarray mark;		/* struct lucdisk_mark */
};

struct lucdisk;
struct lucdisk_cmd;

struct lucdisk_log *lucdisk_log_new(struct lucdisk *disk);
void lucdisk_log_put(struct lucdisk_log *log);
u64 lucdisk_log_len(const struct lucdisk_log *log);
const struct lucdisk_entry *lucdisk_log_entry(struct lucdisk_log *log, u64 index);
/* Under io_mutex: makes room for a request's entries, and keeps its data. */
void lucdisk_log_prepare(struct lucdisk *disk, struct lucdisk_cmd *cmd);
/* Under queue.lock: records that the request was accepted, and that it is done. */
void lucdisk_log_accept(struct lucdisk *disk, struct lucdisk_cmd *cmd, u64 now_ns);
void lucdisk_log_done(struct lucdisk *disk, struct lucdisk_cmd *cmd, u64 now_ns);
/* Under io_mutex. Takes over the mark if it returns 0. */
int lucdisk_log_mark(struct lucdisk *disk, struct lucdisk_mark *mark);
int lucdisk_record(struct lucdisk *disk, bool on);
/* Under queue.lock. */
void lucdisk_log_stop(struct lucdisk_log *log);

/* ---- fault.c ---- */

struct lucdisk_fault {
	u8 op;			/* LUCDISK_FAULT_ANY or enum lucdisk_op */
	bool error;		/* else a stall */
	u32 per_million;
	u64 first_sector, last_sector;
	u64 stall_ns;
	u64 left;		/* hits until it ends; U64_MAX means forever */
};

struct lucdisk_faults {
	struct lucdisk_fault rule[LUCDISK_FAULTS_MAX];
	u32 n;
	u64 seed;
	u64 random;		/* state of the generator */
	u64 hits;
};

void lucdisk_faults_init(struct lucdisk_faults *faults, u64 seed);
int lucdisk_fault_add(struct lucdisk *disk, const char *text);
ssize_t lucdisk_fault_show(struct lucdisk *disk, char *page);
void lucdisk_fault_apply(struct lucdisk *disk, struct lucdisk_cmd *cmd);
u64 lucdisk_random(u64 seed);

/* ---- queue.c ---- */

/* A request in the disk; lives in the block layer's request. */
struct lucdisk_cmd {
	struct list_head list;
	struct lucdisk_request request;
	u64 arrival;		/* order of arrival */
	u64 done_ns;
	u64 stall_ns;
	u64 log_ref;		/* before it is accepted: page, after: entry */
	u8 log_op;
	bool recorded;
	bool modelled;		/* the model has started it */
	blk_status_t status;
};

/* Activity of a disk, which is busy while at least one request is in service. */
struct lucdisk_activity {
	u64 busy_ns;
	u64 read_bytes;
	u64 written_bytes;
	u64 flushes;
};

struct lucdisk_queue {
	spinlock_t lock;
	struct lucdisk_state model;
	struct lucdisk_request *waiting;	/* by arrival, as the model wants them */
	struct lucdisk_cmd **waiting_cmd;
	u32 waiting_n;
	u32 depth;
	u64 arrivals;
	struct list_head running;	/* by done_ns, then arrival */
	struct list_head finished;	/* the timer hands them to the block layer */
	struct hrtimer timer;
	bool dying;
	u32 in_service;			/* requests that the model has started */
	u64 busy_since_ns;		/* when in_service became more than 0 */
	struct lucdisk_activity done;	/* since power on, all requests that ended */
};

extern const struct blk_mq_ops lucdisk_mq_ops;
int lucdisk_queue_init(struct lucdisk *disk);
/* Fails all requests in the disk at once, and all later ones. */
void lucdisk_queue_abort(struct lucdisk *disk);
void lucdisk_queue_exit(struct lucdisk *disk);
/* Under queue.lock: advances model and log to now. */
void lucdisk_queue_advance(struct lucdisk *disk, u64 now_ns);
/* The disk's activity since it was switched on, up to now. */
struct lucdisk_activity lucdisk_queue_activity(struct lucdisk *disk);

/* ---- replica.c ---- */

enum lucdisk_cut_mode {
	LUCDISK_CUT_NONE,
	LUCDISK_CUT_ALL,
	LUCDISK_CUT_RANDOM,
	LUCDISK_CUT_RANDOM_WHOLE,
	LUCDISK_CUT_LATEST_LOST,
	LUCDISK_CUT_EARLIEST_LOST,
	LUCDISK_CUT_NR,
};

struct lucdisk_replica {
	struct lucdisk_log *log;	/* NULL: an ordinary disk */
	char name[LUCDISK_NAME_BYTES_MAX + 1];
	struct lucdisk_store durable;	/* base and all durable writes */
	struct xarray versions;		/* of each durable sector, by page */
	struct xarray pending;		/* writes that may survive, by entry */
	u64 at;				/* entries that have been replayed */
	u64 cut;
	enum lucdisk_cut_mode mode;
	u64 seed;
};

void lucdisk_replica_init(struct lucdisk_replica *replica);
/* Takes over a reference to the log, which may be NULL. */
int lucdisk_replica_set(struct lucdisk *disk, struct lucdisk_log *log, const char *name);
void lucdisk_replica_clear(struct lucdisk *disk);
int lucdisk_replica_cut(struct lucdisk *disk, const char *text);
ssize_t lucdisk_replica_show(struct lucdisk *disk, char *page);

/* ---- marks.c ---- */

int lucdisk_marks_register(struct lucdisk *disk);
ssize_t lucdisk_log_text(struct lucdisk_log *log, char *buf, size_t size);
ssize_t lucdisk_log_flush_text(struct lucdisk_log *log, char *buf, size_t size);

/* ---- disk.c, config.c, main.c ---- */

struct lucdisk {
	struct config_item item;
	struct mutex lock;
	struct lucdisk_params params;
	u32 size_mib;
	u32 record_mib;
	bool partitions;		/* whether to look for a partition table */
	bool powered;
	u64 sectors;			/* while powered */
	struct gendisk *gendisk;	/* while powered */
	struct blk_mq_tag_set tag_set;
	struct miscdevice marks;
	char marks_name[LUCDISK_NAME_BYTES_MAX + sizeof(LUCDISK_LOG_SUFFIX)];

	struct mutex io_mutex;
	struct lucdisk_store store;
	struct lucdisk_faults faults;
	struct lucdisk_log *log;	/* changes under all three locks */

	struct lucdisk_queue queue;
	struct lucdisk_replica replica;
};

static inline struct lucdisk *lucdisk_of(struct config_item *item)
{
	return container_of(item, struct lucdisk, item);
}

int lucdisk_power_on(struct lucdisk *disk);
void lucdisk_power_off(struct lucdisk *disk);
struct lucdisk *lucdisk_new(const char *name);
struct config_item *lucdisk_find(const char *name);
extern const struct config_item_type lucdisk_item_type;

#endif
