#include "timed.h"

#include <stddef.h>
#include <sys/mman.h>

#include "clock.h"
#include "open_loop.h"

#define SAMPLES_BYTES (TIMED_MAX_SAMPLES * sizeof(uint64_t))
#define FIRST_SAMPLES (1 << 14) /* 128 KiB; most slices have fewer samples */
#define PAGE_BYTES 4096         /* the smallest page size of any system */

uint64_t *timed_new_samples(void)
{
    void *samples = mmap(NULL, SAMPLES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (samples == MAP_FAILED)
        return NULL;
    madvise(samples, SAMPLES_BYTES, MADV_NOHUGEPAGE); /* a huge page would take 2 MiB at once; failure is harmless */
    timed_make_room(samples, FIRST_SAMPLES);
    return samples;
}

void timed_make_room(uint64_t *samples, int64_t ops)
{
    volatile uint64_t *touched = samples;
    int64_t end = ops < TIMED_MAX_SAMPLES ? ops : TIMED_MAX_SAMPLES;
    for (int64_t i = 0; i < end; i += PAGE_BYTES / (int64_t)sizeof *samples)
        touched[i] = touched[i];
}

uint64_t *timed_phase(uint64_t *samples, int phase)
{
    return samples + (int64_t)(phase + 1) * TIMED_MAX_PHASED;
}

void timed_free_samples(uint64_t *samples)
{
    if (samples)
        munmap(samples, SAMPLES_BYTES);
}

static bool run_whole(struct operation operation, int64_t *rows)
{
    if (!operation.connect)
        return operation.run(operation.self, rows);
    if (!operation.connect(operation.self) || !operation.run(operation.self, rows))
        return false;
    operation.close(operation.self);
    return true;
}

static int64_t room(struct operation operation)
{
    return operation.connect ? TIMED_MAX_PHASED : TIMED_MAX_SAMPLES;
}

/* Runs until both minima of the lead-in are reached. Returns false if an operation failed. */
static bool lead_in(const struct slice *slice, struct operation operation, uint64_t begin, struct timing *timing)
{
    uint64_t until = begin + (uint64_t)slice->lead_in_ns;
    int64_t ignored_rows = 0;
    timing->first_ns = clock_now_ns();
    while (timing->lead_in_ops < slice->lead_in_ops || timing->first_ns < until) {
        if (!run_whole(operation, &ignored_rows))
            return false;
        timing->first_ns = clock_now_ns();
        timing->lead_in_ops++;
    }
    return true;
}

/* Records until `close` has passed or `limit` samples are filled. One clock read and one store per operation. */
static bool record(struct operation operation, uint64_t close, int64_t limit, uint64_t *samples,
                   struct timing *timing)
{
    uint64_t before = timing->first_ns;
    int64_t ops = 0;
    while (before < close && ops < limit) {
        if (!operation.run(operation.self, &timing->rows))
            return false;
        uint64_t now = clock_now_ns();
        samples[ops++] = now - before;
        before = now;
    }
    timing->ops = ops;
    timing->capped = ops == TIMED_MAX_SAMPLES && before < close;
    return true;
}

/* The same with the parts that connect and close took. */
static bool record_phases(struct operation operation, uint64_t close, int64_t limit, uint64_t *samples,
                          struct timing *timing)
{
    uint64_t *connecting = timed_phase(samples, 0), *closing = timed_phase(samples, 1);
    uint64_t before = timing->first_ns;
    int64_t ops = 0;
    while (before < close && ops < limit) {
        if (!operation.connect(operation.self))
            return false;
        connecting[ops] = clock_now_ns() - before;
        if (!operation.run(operation.self, &timing->rows))
            return false;
        uint64_t operated = clock_now_ns();
        operation.close(operation.self);
        uint64_t now = clock_now_ns();
        closing[ops] = now - operated;
        samples[ops++] = now - before;
        before = now;
    }
    timing->ops = ops;
    timing->capped = ops == TIMED_MAX_PHASED && before < close;
    timing->phases = TIMED_PHASES;
    return true;
}

static bool record_any(struct operation operation, uint64_t close, int64_t limit, uint64_t *samples,
                       struct timing *timing)
{
    return operation.connect ? record_phases(operation, close, limit, samples, timing)
                             : record(operation, close, limit, samples, timing);
}

static bool record_by_count(int64_t count, struct operation operation, uint64_t *samples, struct timing *timing)
{
    bool too_many = count > room(operation);
    bool worked = record_any(operation, UINT64_MAX, too_many ? room(operation) : count, samples, timing);
    timing->capped = too_many;
    return worked;
}

/* The window of an armed slice is fixed by the runner. Otherwise it opens when the lead-in ends. */
static bool record_by_time(const struct slice *slice, struct operation operation, uint64_t *samples,
                           struct timing *timing)
{
    uint64_t open = slice->start_ns ? (uint64_t)(slice->start_ns + slice->lead_in_ns) : timing->first_ns;
    return record_any(operation, open + (uint64_t)slice->window_ns, room(operation), samples, timing);
}

static bool run_closed_loop(const struct slice *slice, struct operation operation, uint64_t begin,
                            uint64_t *samples, struct timing *timing)
{
    return lead_in(slice, operation, begin, timing) &&
           (slice->count ? record_by_count(slice->count, operation, samples, timing)
                         : record_by_time(slice, operation, samples, timing));
}

bool timed_run(const struct slice *slice, struct operation operation, uint64_t *samples, struct timing *timing)
{
    *timing = (struct timing){0};
    if (slice->start_ns)
        clock_sleep_until_ns((uint64_t)slice->start_ns);
    struct cpu_time before = clock_cpu();
    uint64_t begin = slice->start_ns ? (uint64_t)slice->start_ns : clock_now_ns();
    bool worked = slice->rate > 0 ? open_loop_run(slice, operation, begin, samples, timing)
                                  : run_closed_loop(slice, operation, begin, samples, timing);
    struct cpu_time after = clock_cpu();
    timing->user_ns = after.user_ns - before.user_ns;
    timing->sys_ns = after.sys_ns - before.sys_ns;
    return worked;
}
