/* The gauge of cpu_gauge.py: writes the time of the same work every few milliseconds, until its reader ends. A sample
 * is two numbers of 64 bits, the moment (CLOCK_MONOTONIC) and the time of the work, both in ns. The work fits into the
 * registers, so that it takes as long after a program that fills the caches. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* Not a multiple of the kernel's ticks (1, 4 or 10 ms), so that samples do not fall together with them. */
#define PERIOD_NS 5300000u
#define STEPS 1500 /* of one piece of work, about half a microsecond */
#define WARM_UP 4  /* pieces before the timed ones: the CPU has run something else */
#define PIECES 15  /* timed; their median is the sample, so that no interrupt counts */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Independent chains, so that the work also slows where another thread shares the core's units. */
static uint64_t work(uint64_t seed)
{
    uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
    for (unsigned step = 0; step < STEPS; step += 4) {
        a = a * 3 + step;
        b = (b ^ (b << 7)) + step;
        c = (c + (c >> 3)) ^ step;
        d = d * 5 + 1;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return a ^ b ^ c ^ d;
}

static uint64_t median(uint64_t *times, int count)
{
    for (int end = 1; end < count; end++)
        for (int at = end; at > 0 && times[at - 1] > times[at]; at--) {
            uint64_t greater = times[at - 1];
            times[at - 1] = times[at];
            times[at] = greater;
        }
    return times[count / 2];
}

static uint64_t sample(uint64_t *seed)
{
    uint64_t times[PIECES];
    for (int piece = -WARM_UP; piece < PIECES; piece++) {
        uint64_t begin_ns = now_ns();
        *seed = work(*seed);
        if (piece >= 0)
            times[piece] = now_ns() - begin_ns;
    }
    return median(times, PIECES);
}

int main(void)
{
    struct timespec pause = {0, PERIOD_NS};
    for (uint64_t seed = 1;;) {
        uint64_t work_ns = sample(&seed);
        uint64_t record[] = {now_ns(), work_ns};
        if (write(STDOUT_FILENO, record, sizeof record) != sizeof record)
            return 0;
        nanosleep(&pause, NULL);
    }
}
