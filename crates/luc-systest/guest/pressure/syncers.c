// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that make files durable while something goes wrong, and who can say
 * afterwards what they were promised:
 *
 *	syncers load DIR THREADS SECONDS [ACKS [SIGNAL_US]]
 *		creates files, writes and fsyncs them; ACKS lists those whose
 *		fsync said yes. SIGNAL_US: how often each thread gets a SIGALRM.
 *		Two more threads change the folder, whose inode is in every
 *		commit: they are the writers whom commits delay. A thread whose
 *		files fail one after the other gives up; SIGTERM ends them all.
 *	syncers verify DIR ACKS [BEFORE_US]
 *		are they all there, byte for byte? What was acknowledged after
 *		that moment and is not there is counted apart, as late.
 *	syncers kill DIR TIMES
 *		kills a process in its fsync; how long does it take to die?
 *	syncers calls DIR THREADS SECONDS
 *		fsyncs files that have nothing to write: calls, and no commits
 *	syncers quota DEVICE	quotasync, and what user 0 uses
 *	syncers freeze DIR TIMES
 *		freezes and thaws; how long does a freeze take?
 *	syncers umount DIR	how long does it take?
 *	syncers hog		takes memory until there is none
 *
 * Results are words of the form name=value on one line. Times are those of the
 * monotonic clock, in microseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS 512		/* of a file: one block */
#define ACKS_MAX 16384
#define ERRNOS 256
#define WRITERS 2
#define TRIES 20		/* that fail before a thread gives up */

struct thread {
	pthread_t thread;
	unsigned int number;
	unsigned int turn;
	struct {
		unsigned int turn;
		int64_t at_us;
	} acks[ACKS_MAX];		/* what was acknowledged, and when */
	unsigned int acks_n;
	unsigned int errors[ERRNOS];	/* what calls failed with */
	unsigned int fsync_errors;
	unsigned int fsync_first;	/* errno of the first of these */
	unsigned int again_ok;		/* fsyncs that failed and then did not */
	unsigned int late;		/* acknowledged in the last second */
	int64_t max_us, sum_us;
};

static const char *dir;
static volatile int64_t until_us;
static long signal_us;
static volatile bool over;
static volatile sig_atomic_t signals;
static int64_t writer_max_us[WRITERS];

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* No two files are alike, and no block of zeros is like one of them. */
static void fill(uint64_t *words, unsigned int thread, unsigned int turn)
{
	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = ((uint64_t)(thread + 1) << 48 | (uint64_t)turn << 16 | i) *
			   0x9e3779b97f4a7c15ULL;
}

static void name_of(char *name, size_t size, unsigned int thread, unsigned int turn)
{
	snprintf(name, size, "%s/%u-%u", dir, thread, turn);
}

/* fsync and what it says; its time counts whatever that is. */
static bool sync_one(struct thread *t, int fd)
{
	int64_t begin_us = now_us(), took_us;
	int err = fsync(fd) ? errno : 0;

	took_us = now_us() - begin_us;
	t->sum_us += took_us;
	if (took_us > t->max_us)
		t->max_us = took_us;
	if (!err)
		return true;
	if (!t->fsync_errors++)
		t->fsync_first = (unsigned int)err;
	t->errors[err % ERRNOS]++;
	/* A second fsync may succeed or fail: the kernel chooses, not LUC. */
	t->again_ok += !fsync(fd);
	return false;
}

static bool turn_one(struct thread *t)
{
	static __thread uint64_t words[WORDS];
	char name[256];
	bool good;
	int fd;

	fill(words, t->number, t->turn);
	name_of(name, sizeof(name), t->number, t->turn);
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0) {
		t->errors[errno % ERRNOS]++;
		return false;
	}
	good = write(fd, words, sizeof(words)) == sizeof(words);
	if (!good)
		t->errors[errno % ERRNOS]++;
	good = good && sync_one(t, fd);
	close(fd);
	return good;
}

static void on_signal(int signal)
{
	(void)signal;
	signals = signals + 1;
}

static void on_end(int signal)
{
	(void)signal;
	until_us = 0;
}

static void storm(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
		._sigev_un._tid = gettid(),
	};
	struct itimerspec every = {
		.it_interval.tv_nsec = signal_us * 1000,
		.it_value.tv_nsec = signal_us * 1000,
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		die("timer");
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	int tries = TRIES;
	int64_t now;

	if (signal_us)
		storm();
	for (; (now = now_us()) < until_us && t->acks_n < ACKS_MAX && tries; t->turn++) {
		if (turn_one(t)) {
			tries = TRIES;
			t->acks[t->acks_n].turn = t->turn;
			t->acks[t->acks_n++].at_us = now_us();
			t->late += now > until_us - 1000000;
		} else {
			tries--;
			usleep(2000);
		}
	}
	return NULL;
}

static void *writer_main(void *arg)
{
	int64_t *max_us = arg, begin_us, took_us;
	mode_t mode = 0700;

	while ((begin_us = now_us()) < until_us && !over) {
		/* The tasks that call fsync report failures. */
		chmod(dir, mode ^= 0055);
		took_us = now_us() - begin_us;
		if (took_us > *max_us)
			*max_us = took_us;
		usleep(300);
	}
	return NULL;
}

static void write_acks(const char *path, const struct thread *threads, unsigned int n)
{
	FILE *acks = fopen(path, "we");

	if (!acks)
		die(path);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int j = 0; j < threads[i].acks_n; j++)
			fprintf(acks, "%u %u %lld\n", i, threads[i].acks[j].turn,
				(long long)threads[i].acks[j].at_us);
	if (fclose(acks))
		die(path);
}

static void tell(const struct thread *threads, unsigned int n)
{
	unsigned int acked = 0, late = 0, failed = 0, again_ok = 0, errors[ERRNOS] = { 0 };
	int64_t max_us = 0, sum_us = 0;
	bool first[ERRNOS] = { false };
	const char *comma = "";

	for (unsigned int i = 0; i < n; i++) {
		const struct thread *t = &threads[i];

		acked += t->acks_n;
		late += t->late;
		failed += t->fsync_errors;
		again_ok += t->again_ok;
		sum_us += t->sum_us;
		max_us = t->max_us > max_us ? t->max_us : max_us;
		if (t->fsync_errors)
			first[t->fsync_first % ERRNOS] = true;
		for (unsigned int e = 0; e < ERRNOS; e++)
			errors[e] += t->errors[e];
	}
	printf("acked=%u late=%u failed=%u again_ok=%u max_us=%lld mean_us=%lld signals=%d",
	       acked, late, failed, again_ok, (long long)max_us,
	       acked + failed ? (long long)sum_us / (acked + failed) : 0, (int)signals);
	printf(" writer_max_us=%lld first=", (long long)(writer_max_us[0] > writer_max_us[1] ?
						     writer_max_us[0] : writer_max_us[1]));
	for (unsigned int e = 0; e < ERRNOS; e++) {
		if (first[e]) {
			printf("%s%u", comma, e);
			comma = ",";
		}
	}
	printf(" errors=");
	comma = "";
	for (unsigned int e = 0; e < ERRNOS; e++) {
		if (errors[e]) {
			printf("%s%u", comma, e);
			comma = ",";
		}
	}
	printf("\n");
}

static void load(unsigned int n, double seconds, const char *acks)
{
	struct sigaction action = { .sa_handler = on_signal }, end = { .sa_handler = on_end };
	struct thread *threads = calloc(n, sizeof(*threads));
	pthread_t writers[WRITERS];

	until_us = now_us() + (int64_t)(seconds * 1e6);
	if (!threads || sigaction(SIGALRM, &action, NULL) || sigaction(SIGTERM, &end, NULL))
		die("load");
	for (unsigned int i = 0; i < n; i++) {
		threads[i].number = i;
		if (pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]))
			die("thread");
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		if (pthread_create(&writers[i], NULL, writer_main, &writer_max_us[i]))
			die("thread");
	for (unsigned int i = 0; i < n; i++)
		pthread_join(threads[i].thread, NULL);
	over = true;
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	if (acks)
		write_acks(acks, threads, n);
	tell(threads, n);
}

static int verify(const char *path, long long before_us)
{
	unsigned int thread, turn, acked = 0, lost = 0, wrong = 0, late = 0;
	FILE *acks = fopen(path, "re");
	long long at_us;

	if (!acks)
		die(path);
	while (fscanf(acks, "%u %u %lld", &thread, &turn, &at_us) == 3) {
		uint64_t want[WORDS], got[WORDS + 1];
		bool good = false;
		char name[256];
		int fd;

		acked++;
		fill(want, thread, turn);
		name_of(name, sizeof(name), thread, turn);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			good = read(fd, got, sizeof(got)) == sizeof(want) &&
			       !memcmp(want, got, sizeof(want));
			close(fd);
		}
		if (!good && at_us >= before_us)
			late++;
		else if (!good && fd < 0)
			lost++;
		else if (!good)
			wrong++;
	}
	fclose(acks);
	printf("acked=%u lost=%u wrong=%u late=%u\n", acked, lost, wrong, late);
	return !acked || lost || wrong;
}

/* Appends to a file of its own and fsyncs it for ever. */
static void victim(unsigned int turn)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/victim-%u", dir, turn);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	while (fd >= 0 && write(fd, name, sizeof(name)) == sizeof(name) && !fsync(fd))
		;
	_exit(1);
}

static void kill_some(unsigned int times)
{
	unsigned int killed = 0;
	int64_t max_us = 0;

	for (unsigned int i = 0; i < times; i++) {
		pid_t child = fork();
		int64_t begin_us;
		int status;

		if (child < 0)
			die("fork");
		if (!child)
			victim(i);
		/* Any moment of a commit and of a hold. */
		usleep(20000 + i * 7919 % 30000);
		begin_us = now_us();
		kill(child, SIGKILL);
		if (waitpid(child, &status, 0) != child)
			die("wait");
		if (now_us() - begin_us > max_us)
			max_us = now_us() - begin_us;
		killed += WIFSIGNALED(status);
	}
	printf("killed=%u max_us=%lld\n", killed, (long long)max_us);
}

static void freeze(unsigned int times)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t max_us = 0, begin_us;

	if (fd < 0)
		die(dir);
	for (unsigned int i = 0; i < times; i++) {
		/* As above. */
		usleep(20000 + i * 7919 % 30000);
		begin_us = now_us();
		if (ioctl(fd, FIFREEZE, 0))
			die("FIFREEZE");
		if (now_us() - begin_us > max_us)
			max_us = now_us() - begin_us;
		if (ioctl(fd, FITHAW, 0))
			die("FITHAW");
	}
	close(fd);
	printf("max_us=%lld\n", (long long)max_us);
}

static void unmount(void)
{
	int64_t begin_us = now_us();

	if (umount2(dir, 0))
		die("umount");
	printf("max_us=%lld\n", (long long)(now_us() - begin_us));
}

static void *caller_main(void *arg)
{
	struct thread *t = arg;
	char name[256];
	int fd;

	name_of(name, sizeof(name), t->number, 0);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		die(name);
	for (; now_us() < until_us; t->turn++)
		sync_one(t, fd);
	close(fd);
	return NULL;
}

static void call(unsigned int n, double seconds)
{
	struct thread *threads = calloc(n, sizeof(*threads));
	unsigned int calls = 0, failed = 0;

	if (!threads)
		die("calls");
	until_us = now_us() + (int64_t)(seconds * 1e6);
	for (unsigned int i = 0; i < n; i++) {
		threads[i].number = i;
		if (pthread_create(&threads[i].thread, NULL, caller_main, &threads[i]))
			die("thread");
	}
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(threads[i].thread, NULL);
		calls += threads[i].turn;
		failed += threads[i].fsync_errors;
	}
	printf("calls=%u failed=%u\n", calls, failed);
}

static void quota(const char *device)
{
	struct dqblk use;

	if (quotactl(QCMD(Q_SYNC, USRQUOTA), device, 0, NULL))
		die("Q_SYNC");
	if (quotactl(QCMD(Q_GETQUOTA, USRQUOTA), device, 0, (void *)&use))
		die("Q_GETQUOTA");
	printf("inodes=%llu bytes=%llu\n", (unsigned long long)use.dqb_curinodes,
	       (unsigned long long)use.dqb_curspace);
}

static void hog(void)
{
	const size_t piece = 1 << 20;
	FILE *score = fopen("/proc/self/oom_score_adj", "we");

	if (!score || fputs("1000", score) < 0 || fclose(score))
		die("oom_score_adj");
	for (;;) {
		char *p = mmap(NULL, piece, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p != MAP_FAILED)
			memset(p, 1, piece);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	dir = argc > 2 ? argv[2] : "";
	if (!strcmp(what, "load") && argc >= 5) {
		signal_us = argc > 6 ? atol(argv[6]) : 0;
		load((unsigned int)atoi(argv[3]), atof(argv[4]), argc > 5 ? argv[5] : NULL);
	} else if (!strcmp(what, "verify") && argc >= 4) {
		return verify(argv[3], argc > 4 ? atoll(argv[4]) : INT64_MAX);
	} else if (!strcmp(what, "kill") && argc == 4) {
		kill_some((unsigned int)atoi(argv[3]));
	} else if (!strcmp(what, "calls") && argc == 5) {
		call((unsigned int)atoi(argv[3]), atof(argv[4]));
	} else if (!strcmp(what, "freeze") && argc == 4) {
		freeze((unsigned int)atoi(argv[3]));
	} else if (!strcmp(what, "umount") && argc == 3) {
		unmount();
	} else if (!strcmp(what, "quota") && argc == 3) {
		quota(argv[2]);
	} else if (!strcmp(what, "hog")) {
		hog();
	} else {
		fputs("usage: syncers load|verify|kill|calls|freeze|umount|quota|hog ...\n", stderr);
		return 2;
	}
	return 0;
}
