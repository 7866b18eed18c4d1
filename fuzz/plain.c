// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a harness without a fuzzer:
 *
 *	plain RANDOM_RUNS SEED_FILE...
 *
 * First the seeds as they are, then RANDOM_RUNS inputs made from them by a fixed
 * sequence of random changes. The same arguments do the same on any machine. An input
 * that fails is printed in hexadecimal.
 */
#include <signal.h>
#include <unistd.h>

#include "harness.h"

#define SEEDS_MAX 1024u
#define BYTES_MAX 4096u

struct input {
	uint8_t byte[BYTES_MAX];
	size_t size;
};

static struct input seed[SEEDS_MAX];
static unsigned int seeds;
static struct input now;

static uint64_t random_state = 0x9e3779b97f4a7c15ULL;

/* Marsaglia's xorshift64*. */
static uint64_t random_number(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL >> 16;
}

static void show(const char *text, size_t length)
{
	ssize_t written = write(STDERR_FILENO, text, length);

	(void)written;
}

/* On a trap of the sanitizer, a division by zero, a failed check, an endless loop. */
static void failed(int number)
{
	static const char digit[] = "0123456789abcdef";
	size_t i;

	show("failing input: ", 15);
	for (i = 0; i < now.size; i++) {
		char pair[2] = { digit[now.byte[i] >> 4], digit[now.byte[i] & 15] };

		show(pair, sizeof(pair));
	}
	show("\n", 1);
	signal(number, SIG_DFL);
	raise(number);
}

static int read_seed(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct input *to = &seed[seeds];

	if (!file || seeds == SEEDS_MAX) {
		fprintf(stderr, "cannot read %s\n", path);
		return -1;
	}
	to->size = fread(to->byte, 1, BYTES_MAX, file);
	fclose(file);
	seeds++;
	return 0;
}

/* A seed, with some bytes changed, cut or continued with those of another one. */
static void make_input(void)
{
	unsigned int changes = (unsigned int)(random_number() % 8);
	const struct input *other;

	now = seed[random_number() % seeds];
	if (random_number() % 4 == 0) {
		size_t keep = random_number() % (now.size + 1), rest;

		other = &seed[random_number() % seeds];
		rest = other->size < BYTES_MAX - keep ? other->size : BYTES_MAX - keep;
		memcpy(now.byte + keep, other->byte, rest);
		now.size = keep + rest;
	}
	while (now.size && changes--) {
		size_t at = random_number() % now.size;

		if (random_number() % 2)
			now.byte[at] ^= (uint8_t)(1u << random_number() % 8);
		else
			now.byte[at] = (uint8_t)random_number();
	}
}

static void run_one(void)
{
	/* Seconds; a virtual processor of the lab needs a fraction of them. */
	alarm(20);
	LLVMFuzzerTestOneInput(now.byte, now.size);
}

int main(int argc, char **argv)
{
	static const int bad[] = { SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGSEGV, SIGBUS, SIGALRM };
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, run;
	unsigned int i;
	int arg;

	for (arg = 2; arg < argc; arg++)
		if (read_seed(argv[arg]))
			return 1;
	for (i = 0; i < NR_OF(bad); i++)
		signal(bad[i], failed);
	for (i = 0; i < seeds; i++) {
		now = seed[i];
		run_one();
	}
	for (run = 0; seeds && run < runs; run++) {
		make_input();
		run_one();
	}
	printf("%u seeds and %lu random inputs\n", seeds, run);
	return 0;
}
