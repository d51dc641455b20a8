/* Times in nanoseconds of CLOCK_MONOTONIC, which is the runner's clock, too. */
#ifndef PGPERF_CLOCK_H
#define PGPERF_CLOCK_H

#include <stdint.h>
#include <time.h>

struct cpu_time {
    int64_t user_ns;
    int64_t sys_ns;
};

static inline uint64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps until `until_ns`; returns at once if that has passed. */
void clock_sleep_until_ns(uint64_t until_ns);

/* CPU time of this process so far, to the microsecond. */
struct cpu_time clock_cpu(void);

#endif
