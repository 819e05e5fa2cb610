/*
 * Prints the frequency of this processor's time stamp counter in kHz. An emulated guest sees this very counter,
 * but measures it against emulated timers, and on a busy machine it can be wrong fifteenfold: its clock then
 * runs that much too fast or too slow.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
    uint64_t ns, ticks;
};

/* Both clocks as close together as a few tries get them: the process can lose the processor between the two reads. */
static struct moment now(void)
{
    struct moment best = {0, 0};
    uint64_t narrowest = UINT64_MAX;

    for (int i = 0; i < 50; i++) {
        struct timespec t;
        uint64_t before = __rdtsc();
        clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        uint64_t after = __rdtsc();
        if (after - before < narrowest) {
            narrowest = after - before;
            best.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
            best.ticks = before + (after - before) / 2;
        }
    }
    return best;
}

int main(void)
{
    struct timespec pause = {0, 50000000};
    struct moment start = now();
    nanosleep(&pause, NULL);
    struct moment end = now();

    printf("%.0f\n", (double)(end.ticks - start.ticks) * 1e6 / (double)(end.ns - start.ns));
    return 0;
}
