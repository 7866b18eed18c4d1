// SPDX-License-Identifier: GPL-2.0-only
/* Shuts down a file system by force: shutdown FLAGS MOUNT_POINT */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define EXT4_IOC_SHUTDOWN _IOR('X', 125, uint32_t)

int main(int argc, char **argv)
{
	uint32_t flags = argc == 3 ? (uint32_t)atoi(argv[1]) : 0;
	int fd = argc == 3 ? open(argv[2], O_RDONLY) : -1;

	if (fd < 0 || ioctl(fd, EXT4_IOC_SHUTDOWN, &flags)) {
		perror("shutdown");
		return 1;
	}
	return 0;
}
