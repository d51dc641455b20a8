/* The timed loop: runs one slice of an operation. */
#ifndef PGPERF_TIMED_H
#define PGPERF_TIMED_H

#include <stdbool.h>
#include <stdint.h>

#define TIMED_MAX_SAMPLES (1 << 20)
#define TIMED_MAX_PHASED (1 << 18) /* up to four samples for each operation */
#define TIMED_PHASES 2             /* connect and close */
#define TIMED_OPEN_PHASES 3        /* lag, connect and close */

/* One operation. `run` adds the number of its rows to `*rows`; false fails the slice.
 * `connect` and `close` come before and after it, and are timed by themselves; NULL: it has a connection. */
struct operation {
    bool (*run)(void *self, int64_t *rows);
    void *self;
    bool (*connect)(void *self);
    void (*close)(void *self);
};

/* A slice, as in the Slice message. Nanoseconds, not negative; their sum fits an int64_t. */
struct slice {
    int64_t seq;
    int64_t start_ns; /* CLOCK_MONOTONIC; 0: start at once */
    int64_t lead_in_ops;
    int64_t lead_in_ns;
    int64_t window_ns; /* 0: by count */
    int64_t count;     /* 0: by time */
    int64_t statement; /* the number of the only one to run; 0: all */
    double rate;       /* operations/s of an open loop; 0: closed loop */
    bool exponential;  /* its gaps; else they are equal */
    int64_t seed;      /* of exponential gaps */
    int64_t offset_ns; /* from the start to the begin of the schedule */
    int64_t latency_limit_ns; /* an operation that would begin later after its intended start is skipped; 0: none */
};

struct timing {
    int64_t lead_in_ops;
    int64_t ops; /* the number of recorded samples */
    int64_t rows;
    uint64_t first_ns; /* start of the first recorded operation */
    int64_t user_ns;   /* of lead-in and window */
    int64_t sys_ns;
    bool capped; /* the slice ended early, with as many samples as there is room for */
    int phases;  /* how many there are for each sample, from timed_phase: connect and close, lag before them */
    int64_t skipped; /* of an open loop: their samples are 0, among the others */
    int64_t backlog; /* of an open loop: operations that were due and had not begun when the window closed */
};

/* Reserves address space for TIMED_MAX_SAMPLES durations in nanoseconds, and allocates memory for a few of them.
 * NULL if there is no address space. Free it with timed_free_samples. */
uint64_t *timed_new_samples(void);
void timed_free_samples(uint64_t *samples);

/* Allocates memory for the first `ops` samples, which keep their values. Called between slices, so that no slice
 * includes the time of it. */
void timed_make_room(uint64_t *samples, int64_t ops);

/* The samples of a phase (0 for the first), of as many operations as the durations. */
uint64_t *timed_phase(uint64_t *samples, int phase);

/* Waits for the start, runs the lead-in, and fills `samples`. False if an operation failed; `timing` is then
 * undefined. */
bool timed_run(const struct slice *slice, struct operation operation, uint64_t *samples, struct timing *timing);

#endif
