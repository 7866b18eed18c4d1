// SPDX-License-Identifier: GPL-2.0-only
/*
 * Harness of lab/disk/lucdisk_model.c: bytes are a disk and its requests. The
 * first byte chooses between
 *
 *   a driver	that queues, starts and ends requests as lab/disk/kmod/queue.c
 *		does: every request is done, in its time, no rate, queue or cache
 *		is exceeded, and the same program whole turns of the platter
 *		later takes as long
 *   a madman	that starts, ends and asks in any order, at any time: no
 *		arithmetic goes wrong, and no request is done before it began
 *
 * Each runs twice, the second time with the knobs put into their bounds.
 */
#include "disk_check.h"

#define WAITING_MAX 64u
#define RUNNING_MAX 1024u

struct running {
	struct lucdisk_request request;
	luc_u64 done_ns;
};

struct disk {
	struct bytes in;
	struct lucdisk_params raw;	/* for the model */
	struct lucdisk_params knobs;	/* the same, put into bounds */
	struct lucdisk_state model;
	luc_u64 now_ns, shift_ns;
	luc_u64 cursor;			/* of a sequential stream */
	luc_u64 random;			/* of a scattered one */
	unsigned int waiting_n, depth;
	unsigned int running_n;
	struct sums sums;
	luc_u64 submitted, done;
	int endless;			/* a time has saturated */
	luc_u64 sum;
	/* Not cleared: running_n and waiting_n count the valid ones. */
	struct lucdisk_request waiting[WAITING_MAX];
	struct running running[RUNNING_MAX];	/* by done_ns */
};

static struct disk *disk_new(struct bytes in)
{
	static struct disk disk;

	memset(&disk, 0, offsetof(struct disk, waiting));
	disk.in = in;
	return &disk;
}

/* ---- Bytes to disks and requests ---- */

/* A disk with an arm and a cache, one without either, a provisioned volume. */
static void some_device(unsigned int kind, struct lucdisk_params *p)
{
	lucdisk_params_init(p);
	p->link_per_s_bytes = 600000000;
	switch (kind) {
	case 0:
		p->rotation_ns = 8333333;
		p->seek_min_ns = 230000;
		p->seek_max_ns = 13673750;
		p->track_outer_bytes = 2206600;
		p->track_inner_bytes = 1055600;
		p->cache_bytes = 1 << 20;
		p->read_ahead_bytes = 1 << 20;
		p->age_limit_ns = 500000000;
		p->flush_exclusive = 1;
		break;
	case 1:
		p->read_latency_ns = 80000;
		p->cache_bytes = 1 << 20;
		p->flush_block_ns = 10000;
		p->flush_ns = 500000;
		p->command_ns = 2000;
		break;
	default:
		p->network_ns = 300000;
		p->requests_per_s_events = 3000;
		p->burst_events = 100;
		p->throttle_per_s_bytes = 125000000;
		p->burst_bytes = 1 << 20;
	}
}

static void take_knobs(struct bytes *in, struct lucdisk_params *p)
{
	uint8_t kind = take(in), n;
	luc_u64 chosen = kind & 4 ? take_number(in, 4) : 0;
	unsigned int bit = 0;

	if (kind & 3)
		some_device((kind & 3) - 1, p);
	else
		lucdisk_params_init(p);
	/* One bit a knob: is it another one? */
#define KNOB_TAKEN(name, min, max, dflt, help) \
	if (chosen >> bit++ & 1) \
		p->name = take_within(in, min, max, dflt);
	LUCDISK_KNOBS(KNOB_TAKEN)
	for (n = kind >> 3 & 3; n; n--)
		((luc_s64 *)p)[take(in) % LUCDISK_KNOB_NR] = take_wild(in);
}

static luc_u64 take_sectors(struct bytes *in)
{
	uint8_t kind = take(in);

	if (kind < 128)
		return take_scaled(in, 26);
	return kind < 192 ? take_scaled(in, 41) : (luc_u64)take_wild(in);
}

static struct lucdisk_request take_request(struct disk *d, uint8_t op)
{
	struct lucdisk_request r = { .arrived_ns = d->now_ns };

	r.op = op & 3;
	r.fua = op >> 2 & 1;
	switch (op >> 3 & 7) {
	case 0:
	case 1:
		/* A stream of blocks. */
		r.sector = d->cursor;
		r.bytes = LUCDISK_BLOCK_BYTES << (take(&d->in) % 9);
		break;
	case 2:
		/* Scattered blocks, some of them in pairs. */
		mix(&d->random, r.op);
		r.sector = (d->random >> 32) * 8;
		r.bytes = LUCDISK_BLOCK_BYTES << (d->random % 8 == 0);
		break;
	case 3:
		r.sector = take_number(&d->in, 3) * 8;
		r.bytes = LUCDISK_BLOCK_BYTES * (1 + take(&d->in) % 3);
		break;
	case 4:
		r.sector = take_number(&d->in, 2);
		r.bytes = LUCDISK_SECTOR_BYTES * take(&d->in);
		break;
	case 5:
		r.sector = take_number(&d->in, 5);
		r.bytes = (luc_u32)take_scaled(&d->in, 32);
		break;
	case 6:
		r.sector = d->model.disk_bytes / LUCDISK_SECTOR_BYTES - take(&d->in);
		r.bytes = LUCDISK_SECTOR_BYTES * take(&d->in);
		break;
	default:
		r.sector = (luc_u64)take_wild(&d->in);
		r.bytes = (luc_u32)take_wild(&d->in);
		r.op = (luc_u32)take_wild(&d->in);
		r.fua = (luc_u32)take_wild(&d->in);
	}
	d->cursor = r.sector + (r.bytes + 511) / LUCDISK_SECTOR_BYTES;
	if (r.op == LUCDISK_FLUSH)
		r.sector = r.bytes = 0;
	return r;
}

/* ---- The driver ---- */

static void note(struct disk *d, luc_u64 done_ns)
{
	if (done_ns >= ENDLESS_NS || d->model.drained_ns >= ENDLESS_NS ||
	    d->model.arm_free_ns >= ENDLESS_NS || d->model.link_free_ns >= ENDLESS_NS ||
	    d->model.requests_due_ns >= ENDLESS_NS || d->model.peak_due_ns >= ENDLESS_NS ||
	    d->model.bytes_due_ns >= ENDLESS_NS || d->model.read_free_ns >= ENDLESS_NS ||
	    d->model.write_free_ns >= ENDLESS_NS)
		d->endless = 1;
	mix(&d->sum, done_ns - d->shift_ns);
}

static unsigned int count_running(const struct disk *d,
				  int (*is)(const struct lucdisk_params *,
					    const struct lucdisk_request *))
{
	unsigned int i, n = 0;

	for (i = 0; i < d->running_n; i++)
		n += !!is(&d->knobs, &d->running[i].request);
	return n;
}

static void check_service(const struct disk *d)
{
	must(d->model.active == d->running_n);
	must(d->running_n <= (luc_u64)d->knobs.channels);
	must(d->model.active_arm == count_running(d, uses_arm));
	must(d->model.active_arm <= 2);
	must(d->model.active_alone == count_running(d, is_alone));
	must(!d->model.active_alone || d->running_n == 1);
	check_disk_state(&d->knobs, &d->model);
}

static void check_choice(const struct disk *d, unsigned int chosen)
{
	const struct lucdisk_params *p = &d->knobs;
	const struct lucdisk_request *first = d->waiting;
	unsigned int i;

	must(chosen <= d->waiting_n);
	if (chosen == d->waiting_n) {
		/* Nothing can start, so something must be about to end. */
		must(d->running_n);
		return;
	}
	must(chosen < (luc_u64)p->queue_requests);
	/* No flush is overtaken, and none overtakes. */
	must(!chosen || !flush_works(p, &d->waiting[chosen]));
	for (i = 0; i < chosen; i++)
		must(!flush_works(p, &d->waiting[i]));
	/* The oldest request is next once it is too old, if the arm is free for it. */
	if (p->age_limit_ns && uses_arm(p, first) && !is_flush_of(first) &&
	    d->now_ns - first->arrived_ns > (luc_u64)p->age_limit_ns &&
	    d->model.active_arm < 2)
		must(!chosen);
}

static void run_until(struct disk *d, const struct lucdisk_request *r, luc_u64 done_ns)
{
	unsigned int at = d->running_n++;

	must(at < RUNNING_MAX);
	for (; at && d->running[at - 1].done_ns > done_ns; at--)
		d->running[at] = d->running[at - 1];
	d->running[at] = (struct running){ *r, done_ns };
}

static void start(struct disk *d)
{
	while (d->waiting_n && lucdisk_free_channels(&d->raw, &d->model)) {
		unsigned int i = lucdisk_choose(&d->raw, &d->model, d->waiting,
						d->waiting_n, d->now_ns);
		struct lucdisk_state before = d->model;
		struct lucdisk_request r;
		luc_u64 done_ns;

		check_choice(d, i);
		if (i >= d->waiting_n)
			return;
		r = d->waiting[i];
		done_ns = lucdisk_start(&d->raw, &d->model, &r, d->now_ns);
		must(done_ns >= d->now_ns);
		note(d, done_ns);
		d->waiting_n--;
		memmove(&d->waiting[i], &d->waiting[i + 1],
			(d->waiting_n - i) * sizeof(r));
		run_until(d, &r, done_ns);
		check_service(d);
		if (d->endless)
			return;
		if (!is_flush_of(&r))
			check_rates(&d->knobs, &d->model, &d->sums, &r, done_ns);
		check_cache(&d->knobs, &before, &d->model, &r, done_ns);
	}
}

/* The first of those in service is done. */
static void end(struct disk *d)
{
	struct running r = d->running[0];

	d->now_ns = r.done_ns;
	d->running_n--;
	memmove(&d->running[0], &d->running[1], d->running_n * sizeof(r));
	lucdisk_end(&d->raw, &d->model, &r.request, d->now_ns);
	d->done++;
	check_service(d);
	start(d);
}

static void advance(struct disk *d, luc_u64 ns)
{
	luc_u64 until_ns = d->now_ns + ns;

	while (!d->endless && d->running_n && d->running[0].done_ns <= until_ns)
		end(d);
	if (until_ns > d->now_ns && until_ns < ENDLESS_NS)
		d->now_ns = until_ns;
}

static void submit(struct disk *d, uint8_t op)
{
	while (!d->endless && d->waiting_n >= d->depth) {
		must(d->running_n);
		end(d);
	}
	if (d->endless)
		return;
	d->waiting[d->waiting_n++] = take_request(d, op);
	d->submitted++;
	start(d);
}

static luc_u64 driver_run(struct bytes in, int later, int *endless)
{
	struct disk *d = disk_new(in);
	luc_u64 sectors;

	take_knobs(&d->in, &d->raw);
	sectors = take_sectors(&d->in);
	d->knobs = bounded(&d->raw);
	if (later) {
		d->raw = d->knobs;
		d->shift_ns = d->knobs.rotation_ns ?
			      1000 * (luc_u64)d->knobs.rotation_ns : 12345678901ULL;
	}
	lucdisk_init(&d->model, &d->raw, sectors);
	check_geometry(&d->model);
	d->now_ns = 1 + d->shift_ns;
	d->sums.begin_ns = d->now_ns;
	d->random = sectors;
	d->depth = d->knobs.queue_requests < WAITING_MAX ?
		   (unsigned int)d->knobs.queue_requests : WAITING_MAX;
	while (!d->endless && bytes_left(&d->in)) {
		uint8_t op = take(&d->in), n;

		if (op < 128) {
			submit(d, op & 63);
		} else if (op < 192) {
			for (n = 1 + take(&d->in) % 64; n; n--)
				submit(d, op & 63);
		} else if (op < 240) {
			advance(d, take_scaled(&d->in, 36));
		} else {
			d->sums = (struct sums){ .begin_ns = d->now_ns };
		}
	}
	while (!d->endless && d->running_n)
		end(d);
	must(d->endless || (d->done == d->submitted && !d->waiting_n));
	*endless |= d->endless;
	return d->sum;
}

/* ---- The madman ---- */

static luc_u64 madman_run(struct bytes in, int again)
{
	struct disk *d = disk_new(in);
	struct lucdisk_state copy;
	luc_u64 done_ns;
	unsigned int i;

	take_knobs(&d->in, &d->raw);
	d->knobs = bounded(&d->raw);
	if (again)
		d->raw = d->knobs;
	lucdisk_init(&d->model, &d->raw, take_sectors(&d->in));
	check_geometry(&d->model);
	while (bytes_left(&d->in)) {
		uint8_t op = take(&d->in);
		struct lucdisk_request r = take_request(d, op & 63);

		if (op & 64) {
			luc_u64 ns = take_scaled(&d->in, 64);

			d->now_ns = d->now_ns + ns < ns ? ~0ULL : d->now_ns + ns;
		}
		if (op & 128)
			lucdisk_end(&d->raw, &d->model, &r, d->now_ns);
		for (i = 0; i < 3; i++)
			d->waiting[i] = i ? d->waiting[i - 1] : r;
		i = lucdisk_choose(&d->raw, &d->model, d->waiting, 3, d->now_ns);
		must(i <= 3);
		copy = d->model;
		done_ns = lucdisk_start(&d->raw, &d->model, &r, d->now_ns);
		must(done_ns >= d->now_ns);
		/* No memory but the state. */
		must(lucdisk_start(&d->raw, &copy, &r, d->now_ns) == done_ns);
		must(!memcmp(&copy, &d->model, sizeof(copy)));
		check_disk_state(&d->knobs, &d->model);
		mix(&d->sum, done_ns + i);
	}
	return d->sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, data + size };
	luc_u64 first, second;
	int endless = 0;

	if (take(&in) & 1) {
		must(madman_run(in, 0) == madman_run(in, 1));
		return 0;
	}
	first = driver_run(in, 0, &endless);
	second = driver_run(in, 1, &endless);
	must(endless || first == second);
	return 0;
}
