/* The timed loop: one slice of one operation, whatever the operation is. */
#ifndef PGPERF_TIMED_H
#define PGPERF_TIMED_H

#include <stdbool.h>
#include <stdint.h>

#define TIMED_MAX_SAMPLES (1 << 20)

/* One operation: adds the rows it read to `*rows`; false ends the slice as failed. */
struct operation {
    bool (*run)(void *self, int64_t *rows);
    void *self;
};

/* One stretch, as wire.Slice has it. Nanoseconds; none of them negative, their sum fits an int64_t. */
struct slice {
    int64_t seq;
    int64_t start_ns; /* CLOCK_MONOTONIC; 0: at once */
    int64_t lead_in_ops;
    int64_t lead_in_ns;
    int64_t window_ns; /* 0: by count */
    int64_t count;     /* 0: by time */
};

struct timing {
    int64_t lead_in_ops;
    int64_t ops; /* so many samples are filled */
    int64_t rows;
    uint64_t first_ns; /* when the first recorded operation began */
    int64_t user_ns;   /* of lead-in and window */
    int64_t sys_ns;
    bool capped; /* TIMED_MAX_SAMPLES ended it early */
};

/* Room for TIMED_MAX_SAMPLES durations in nanoseconds; memory is taken for a few of them, and grows with use.
 * NULL if there is no address space; to be given back with timed_free_samples. */
uint64_t *timed_new_samples(void);
void timed_free_samples(uint64_t *samples);

/* Between slices: takes the memory for the first `ops` samples, which keep their values, so that no slice pays for it. */
void timed_make_room(uint64_t *samples, int64_t ops);

/* Waits for the start, leads in, fills `samples`. False if an operation failed; `timing` then means nothing. */
bool timed_run(const struct slice *slice, struct operation operation, uint64_t *samples, struct timing *timing);

#endif
