#include "open_loop.h"

#include "clock.h"
#include "schedule.h"

/* What each operation of the slice needs. */
struct open_loop {
    struct operation operation;
    uint64_t limit_ns; /* an operation that is later is skipped */
    uint64_t *samples;
    uint64_t *lag;
    uint64_t *connecting;
    uint64_t *closing;
};

static bool run_connected(const struct open_loop *loop, int64_t at, uint64_t began, int64_t *rows)
{
    if (!loop->operation.connect)
        return loop->operation.run(loop->operation.self, rows);
    if (!loop->operation.connect(loop->operation.self))
        return false;
    loop->connecting[at] = clock_now_ns() - began;
    if (!loop->operation.run(loop->operation.self, rows))
        return false;
    uint64_t operated = clock_now_ns();
    loop->operation.close(loop->operation.self);
    loop->closing[at] = clock_now_ns() - operated;
    return true;
}

static void skip(const struct open_loop *loop, int64_t at, struct timing *timing)
{
    loop->samples[at] = 0;
    if (loop->operation.connect)
        loop->connecting[at] = loop->closing[at] = 0;
    timing->skipped++;
}

/* Runs the operation that is due then, or skips it. `now` is the time. */
static bool serve(const struct open_loop *loop, int64_t at, uint64_t due, uint64_t now, struct timing *timing)
{
    if (now < due) {
        clock_sleep_until_ns(due);
        now = clock_now_ns();
    }
    loop->lag[at] = now - due;
    if (loop->lag[at] > loop->limit_ns) {
        skip(loop, at, timing);
        return true;
    }
    if (!run_connected(loop, at, now, &timing->rows))
        return false;
    loop->samples[at] = clock_now_ns() - due;
    timing->ops++;
    return true;
}

/* At most `most`: a schedule may have more than anybody can count. */
static int64_t due_before(struct schedule schedule, uint64_t close, int64_t most)
{
    int64_t found = 0;
    for (; found < most && schedule.due_ns < close; found++)
        schedule_advance(&schedule);
    return found;
}

static struct open_loop open_loop(const struct slice *slice, struct operation operation, uint64_t *samples)
{
    int lag = 0, connecting = 1, closing = 2;
    return (struct open_loop){operation,
                              slice->latency_limit_ns ? (uint64_t)slice->latency_limit_ns : UINT64_MAX,
                              samples,
                              timed_phase(samples, lag),
                              timed_phase(samples, connecting),
                              timed_phase(samples, closing)};
}

bool open_loop_run(const struct slice *slice, struct operation operation, uint64_t begin_ns, uint64_t *samples,
                   struct timing *timing)
{
    struct open_loop loop = open_loop(slice, operation, samples);
    struct schedule schedule = schedule_begin(slice->rate, slice->exponential, (uint64_t)slice->seed,
                                              begin_ns + (uint64_t)slice->offset_ns);
    uint64_t close = slice->count ? UINT64_MAX : begin_ns + (uint64_t)slice->lead_in_ns + (uint64_t)slice->window_ns;
    int64_t asked = slice->count ? slice->count : INT64_MAX;
    int64_t most = asked < TIMED_MAX_PHASED ? asked : TIMED_MAX_PHASED;
    int64_t taken = 0;
    uint64_t now;
    timing->first_ns = begin_ns;
    timing->phases = operation.connect ? TIMED_OPEN_PHASES : 1;
    for (; taken < most && schedule.due_ns < close && (now = clock_now_ns()) < close; taken++) {
        if (!serve(&loop, taken, schedule.due_ns, now, timing))
            return false;
        schedule_advance(&schedule);
    }
    timing->capped = taken == TIMED_MAX_PHASED && taken < asked && schedule.due_ns < close;
    if (!slice->count) {
        timing->backlog = due_before(schedule, close, TIMED_MAX_PHASED + 1 - taken);
        clock_sleep_until_ns(close);
    }
    return true;
}
