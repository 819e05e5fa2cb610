#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned char *near_memory, *far_memory;
bool chained;

static bool ticks, yields;
static const struct way *way;

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

unsigned char *region(void)
{
	unsigned char *memory = aligned_alloc(4096, REGION);
	if (!memory)
		fail("memory");
	return memset(memory, 0, REGION);
}

/* Where the guest counts instructions, the time stamp counter advances by one with each. */
static uint64_t now(void)
{
	if (ticks)
		return __builtin_ia32_rdtsc();
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int take(struct ibv_wc *wc, int room)
{
	int got = way->poll(wc, room);
	for (int i = 0; i < got; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "a completion says %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
	}
	return got;
}

static int take_some(struct ibv_wc *wc, int room)
{
	int got;
	while (!(got = take(wc, room)))
		if (yields)
			sched_yield();
	return got;
}

static void pause_for(uint64_t ns)
{
	struct timespec start, time;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (yields)
			sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &time);
	} while ((uint64_t)((time.tv_sec - start.tv_sec) * 1000000000 + time.tv_nsec - start.tv_nsec) < ns);
}

/* Long enough for a completion to be there, where an instruction takes a nanosecond. */
#define READY_NS 1000000

/* How often each case is done before it is timed; benches/guest/measure knows it too. */
#define WARM_UP 10

enum how { POLL, FLIGHT, EVENT, READY };

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void one_by_one(enum what what, enum how how, uint32_t size, unsigned n, uint64_t *whole, uint64_t *submit)
{
	struct ibv_wc wc[DEPTH];
	for (unsigned i = 0; i < n; i++) {
		uint64_t start = now();
		way->post(what, 1, size);
		uint64_t posted = now();
		switch (how) {
		case READY:
			pause_for(READY_NS);
			/* fall through */
		case EVENT:
			do {
				way->wait();
			} while (!take(wc, DEPTH));
			break;
		default:
			take_some(wc, DEPTH);
		}
		whole[i] = now() - start;
		submit[i] = posted - start;
	}
}

static void in_flight(enum what what, uint32_t size, unsigned n)
{
	struct ibv_wc wc[DEPTH];
	unsigned posted = 0, done = 0;
	while (done < n) {
		unsigned room = DEPTH - (posted - done), left = n - posted;
		if (room > left)
			room = left;
		if (room) {
			way->post(what, room, size);
			posted += room;
		}
		done += (unsigned)take_some(wc, DEPTH);
	}
}

/* What was measured must have happened. */
static void check(enum what what, uint32_t size)
{
	const unsigned char *from = what == READ ? far_memory : near_memory;
	const unsigned char *to = what == READ ? near_memory + LANDING : far_memory;
	if (memcmp(from, to, size)) {
		fprintf(stderr, "the bytes did not arrive\n");
		exit(1);
	}
}

static void run(const char *text)
{
	static const char *const whats[] = { "write", "read", "pair", "sixteen" };
	static const char *const hows[] = { "poll", "flight", "event", "ready" };
	char what_name[16] = "", how_name[16] = "poll";
	unsigned size = 0, n = 0, what = 0, how = 0;
	if (sscanf(text, "%15[a-z]@%u*%u/%15[a-z]", what_name, &size, &n, how_name) < 3)
		fail(text);
	while (what < 4 && strcmp(what_name, whats[what]))
		what++;
	while (how < 4 && strcmp(how_name, hows[how]))
		how++;
	if (what == 4 || how == 4 || !size || size > LANDING || !n || (what == SIXTEEN && how == FLIGHT)) {
		fprintf(stderr, "no such case: %s\n", text);
		exit(2);
	}

	uint64_t *whole = calloc(n, sizeof(*whole)), *submit = calloc(n, sizeof(*submit));
	if (!whole || !submit)
		fail("memory");
	/* Neither the warm-up nor the pages of the results shall count. */
	memset(whole, 1, n * sizeof(*whole));
	memset(submit, 1, n * sizeof(*submit));
	unsigned char mark = (unsigned char)(what * 16 + how + 1);
	memset(what == READ ? far_memory : near_memory, mark, size);
	unsigned warm = n < WARM_UP ? n : WARM_UP;
	uint64_t start, end;
	if (how == FLIGHT) {
		in_flight(what, size, warm);
		start = now();
		in_flight(what, size, n);
		end = now();
	} else {
		one_by_one(what, how, size, warm, whole, submit);
		start = now();
		one_by_one(what, how, size, n, whole, submit);
		end = now();
	}
	check(what, size);
	double mean = (double)(end - start) / n;
	if (how == FLIGHT) {
		printf("%s/%s %u - - %.1f -\n", what_name, how_name, size, mean);
		free(whole);
		free(submit);
		return;
	}
	qsort(whole, n, sizeof(*whole), by_value);
	qsort(submit, n, sizeof(*submit), by_value);
	printf("%s/%s %u %llu %llu %.1f %llu\n", what_name, how_name, size, (unsigned long long)whole[n / 2],
	       (unsigned long long)whole[(uint64_t)n * 99 / 100], mean, (unsigned long long)submit[n / 2]);
	free(whole);
	free(submit);
}

int bench_main(int argc, char **argv, const struct way *the_way)
{
	const char *address = getenv("RPMA_TEST_ADDR");
	int option;
	way = the_way;
	while ((option = getopt(argc, argv, "tyc")) != -1) {
		switch (option) {
		case 't': ticks = true; break;
		case 'y': yields = true; break;
		case 'c': chained = true; break;
		default: return 2;
		}
	}
	if (!address || optind == argc) {
		fprintf(stderr, "usage: RPMA_TEST_ADDR=… %s [-t] [-y] [-c] WHAT@SIZE*N[/HOW]…; see benches/guest/measure\n", argv[0]);
		return 2;
	}
	/* Each line by itself: who traces the program knows where it is. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	way->connect(address);
	for (int i = optind; i < argc; i++)
		run(argv[i]);
	return 0;
}
