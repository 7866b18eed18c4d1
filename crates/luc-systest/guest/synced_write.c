// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes 512 bytes at OFFSET of FILE, made if it is missing:
 *
 *	synced_write plain|osync|odsync|fsync FILE OFFSET
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const char bytes[512] = "written";
	int flags = O_WRONLY | O_CREAT;
	int fd;

	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "osync"))
		flags |= O_SYNC;
	else if (!strcmp(argv[1], "odsync"))
		flags |= O_DSYNC;
	fd = open(argv[2], flags, 0600);
	if (fd < 0 || pwrite(fd, bytes, sizeof(bytes), atol(argv[3])) != sizeof(bytes) ||
	    (!strcmp(argv[1], "fsync") && fsync(fd))) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
