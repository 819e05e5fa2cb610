/*
 * What the two C programs of benches/guest have in common: the patterns, the clock, and what is printed. benches/guest/main.rs is the same in Rust.
 */
#ifndef BENCH_H
#define BENCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The memory of each end, and where in the near one the reads arrive. */
#define REGION (256 * 1024)
#define LANDING (128 * 1024)
/* Units outstanding where a pattern keeps several in flight. */
#define DEPTH 16
/* What both queues of a connection hold. */
#define QUEUE 64

enum what {
	WRITE,   /* a write */
	READ,    /* a read */
	PAIR,    /* a write, and a flush of it */
	SIXTEEN, /* 16 writes, and a flush of them */
};

/* One way to do it. Each unit ends in one completion. */
struct way {
	/* Connects both ends and registers the memory; the bytes of the near end are `near`. */
	void (*connect)(const char *address);
	/* Posts so many units of `size` bytes each. */
	void (*post)(enum what what, unsigned units, uint32_t size);
	/* Takes completions; their number. */
	int (*poll)(struct ibv_wc *wc, int room);
	/* Blocks until the queue has news. */
	void (*wait)(void);
};

extern unsigned char *near_memory, *far_memory;
/* For `raw`: one list for what belongs together. */
extern bool chained;

_Noreturn void fail(const char *what);
unsigned char *region(void);
int bench_main(int argc, char **argv, const struct way *way);

#endif
