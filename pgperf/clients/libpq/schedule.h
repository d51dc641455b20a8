/* The schedule of an open loop: when each operation is due. pgperf/core/schedule.py computes the same numbers. */
#ifndef PGPERF_SCHEDULE_H
#define PGPERF_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
    bool exponential;
    uint64_t seed;
    double mean_ns;    /* of the gaps */
    uint64_t begin_ns; /* of the schedule */
    uint64_t number;   /* of the next operation, from 0 */
    uint64_t due_ns;   /* its intended start */
};

/* `rate` is in operations per second, above 0. `due_ns` is that of the first operation. */
struct schedule schedule_begin(double rate, bool exponential, uint64_t seed, uint64_t begin_ns);

/* Goes on to the next operation. */
void schedule_advance(struct schedule *schedule);

#endif
