// SPDX-License-Identifier: GPL-2.0-only
/*
 * The load of the suite watch, and the terminal on which it shows a screen:
 *
 *	watched load NAME FILE FSYNCS FDATASYNCS PAUSE_US
 *		a process of that name writes FILE and syncs it, as often as told,
 *		with a pause before each; prints its number and stays until it is
 *		killed, so that its name can be looked up
 *	watched screen FILE SECONDS COMMAND...
 *		runs the command on a terminal of 120 columns and 40 lines, types $KEYS
 *		after half of SECONDS and q after all, and leaves in FILE what was
 *		written to the terminal
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define COLUMNS 120
#define LINES 40
/*
 * Before the last sync: the tracer adds what a thread did to the counts of its process when
 * it does something and 100 ms have passed since the last time.
 */
#define LAST_PAUSE_US 200000
/* From the key to the end of the view. */
#define PATIENCE_MS 20000

static void die(const char *what)
{
	fprintf(stderr, "watched: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void load(char **args)
{
	static const char block[4096];
	int fsyncs = atoi(args[2]), all = fsyncs + atoi(args[3]);
	int file = open(args[1], O_CREAT | O_WRONLY | O_TRUNC, 0644);

	if (file < 0)
		die(args[1]);
	prctl(PR_SET_NAME, args[0]);
	for (int i = 0; i < all; i++) {
		usleep(i + 1 < all ? atoi(args[4]) : LAST_PAUSE_US);
		if (write(file, block, sizeof(block)) != sizeof(block))
			die("write");
		if (i < fsyncs ? fsync(file) : fdatasync(file))
			die("sync");
	}
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The command, on a terminal whose other end this is. */
static int on_terminal(char **command, pid_t *child)
{
	struct winsize size = { .ws_row = LINES, .ws_col = COLUMNS };
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	if (master < 0 || grantpt(master) || unlockpt(master) ||
	    ioctl(master, TIOCSWINSZ, &size))
		die("no terminal");
	*child = fork();
	if (*child < 0)
		die("fork");
	if (*child == 0) {
		int terminal;

		setsid();
		terminal = open(ptsname(master), O_RDWR);
		for (int end = 0; end < 3; end++)
			dup2(terminal, end);
		execvp(command[0], command);
		die(command[0]);
	}
	return master;
}

static int screen(char **args)
{
	int file = open(args[0], O_CREAT | O_WRONLY | O_TRUNC, 0644), status;
	long begin_ms = now_ms(), half_ms = atol(args[1]) * 500;
	const char *keys[] = { getenv("KEYS") ?: "", "q" };
	int pressed = 0;
	char piece[4096];
	pid_t child;
	int master = on_terminal(args + 2, &child);

	for (;;) {
		struct pollfd ready = { .fd = master, .events = POLLIN };
		long next_ms = begin_ms + (pressed < 2 ? (pressed + 1) * half_ms
						       : 2 * half_ms + PATIENCE_MS);
		long at_ms = now_ms();
		ssize_t length;

		if (at_ms >= next_ms && pressed == 2) {
			kill(child, SIGKILL);
			errno = ETIMEDOUT;
			die("the view does not end");
		}
		if (at_ms >= next_ms) {
			length = strlen(keys[pressed]);
			if (write(master, keys[pressed], length) != length)
				die(keys[pressed]);
			pressed++;
			continue;
		}
		if (poll(&ready, 1, next_ms - at_ms) <= 0)
			continue;
		length = read(master, piece, sizeof(piece));
		if (length <= 0)
			break;	/* nobody has the other end open */
		if (write(file, piece, length) != length)
			die(args[0]);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int count, char **args)
{
	if (count == 7 && !strcmp(args[1], "load"))
		load(args + 2);
	if (count >= 5 && !strcmp(args[1], "screen"))
		return screen(args + 2);
	fprintf(stderr, "usage: watched load|screen ...\n");
	return 2;
}
