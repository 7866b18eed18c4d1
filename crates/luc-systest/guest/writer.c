// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes to FILE until it is killed, and makes the bytes durable in a way of its own:
 *
 *	writer osync FILE	appends 100 bytes to a file with O_SYNC
 *	writer overwrite FILE	overwrites 4 KiB within 256, with O_DSYNC
 *	writer direct FILE	the same with direct I/O
 *	writer flag FILE	overwrites 4 KiB by pwritev2() with RWF_DSYNC
 *	writer syncfs FILE	appends 100 bytes and calls syncfs()
 *	writer uring FILE	appends 4 KiB and syncs by io_uring
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK 4096
#define FILE_BYTES (64 * BLOCK)

struct ring {
	int fd;
	unsigned int *tail, *mask, *array, *head;
	struct io_uring_sqe *entries;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *map_ring(int fd, off_t offset, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

static struct ring make_ring(void)
{
	struct io_uring_params is = { 0 };
	struct ring ring = { .fd = syscall(SYS_io_uring_setup, 1, &is) };
	char *asked, *done;

	if (ring.fd < 0)
		fail("io_uring_setup");
	asked = map_ring(ring.fd, IORING_OFF_SQ_RING,
			 is.sq_off.array + is.sq_entries * sizeof(unsigned int));
	done = map_ring(ring.fd, IORING_OFF_CQ_RING,
			is.cq_off.cqes + is.cq_entries * sizeof(struct io_uring_cqe));
	ring.tail = (void *)(asked + is.sq_off.tail);
	ring.mask = (void *)(asked + is.sq_off.ring_mask);
	ring.array = (void *)(asked + is.sq_off.array);
	ring.head = (void *)(done + is.cq_off.head);
	ring.entries = map_ring(ring.fd, IORING_OFF_SQES, is.sq_entries * sizeof(*ring.entries));
	return ring;
}

static void sync_by(struct ring *ring, int fd)
{
	unsigned int place = *ring->tail & *ring->mask;
	struct io_uring_sqe entry = { .opcode = IORING_OP_FSYNC, .fd = fd };

	ring->entries[place] = entry;
	ring->array[place] = place;
	__atomic_store_n(ring->tail, *ring->tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		fail("io_uring_enter");
	__atomic_store_n(ring->head, *ring->head + 1, __ATOMIC_RELEASE);
}

/* Overwrites need blocks that are allocated and written: no commit is about them then. */
static void fill(const char *name, const char *block)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	if (fd < 0)
		fail(name);
	for (off_t at = 0; at < FILE_BYTES; at += BLOCK)
		if (write(fd, block, BLOCK) != BLOCK)
			fail("write");
	if (fsync(fd) || close(fd))
		fail("fsync");
}

int main(int argc, char **argv)
{
	static char block[BLOCK] __attribute__((aligned(BLOCK))) = "written";
	struct iovec all = { block, BLOCK };
	struct ring ring;
	const char *how;
	int flags = O_WRONLY | O_CREAT, fd, overwrites;

	if (argc != 3)
		return 2;
	how = argv[1];
	if (!strcmp(how, "osync"))
		flags |= O_SYNC;
	else if (!strcmp(how, "overwrite"))
		flags |= O_DSYNC;
	else if (!strcmp(how, "direct"))
		flags |= O_DSYNC | O_DIRECT;
	else if (!strcmp(how, "uring"))
		ring = make_ring();
	else if (strcmp(how, "flag") && strcmp(how, "syncfs"))
		return 2;
	overwrites = !strcmp(how, "overwrite") || !strcmp(how, "direct") || !strcmp(how, "flag");
	if (overwrites)
		fill(argv[2], block);
	fd = open(argv[2], flags, 0600);
	if (fd < 0)
		fail(argv[2]);
	if (overwrites)
		for (off_t at = 0;; at = (at + BLOCK) % FILE_BYTES)
			if (pwritev2(fd, &all, 1, at, strcmp(how, "flag") ? 0 : RWF_DSYNC) < 0)
				fail("pwritev2");
	for (;;) {
		if (write(fd, block, strcmp(how, "uring") ? BLOCK : 100) < 0)
			fail("write");
		if (!strcmp(how, "uring"))
			sync_by(&ring, fd);
		else if (!strcmp(how, "syncfs") && syncfs(fd))
			fail("syncfs");
	}
}
