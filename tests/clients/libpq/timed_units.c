/* timed.c: lead-in, window, count and cap, with an operation that counts its calls and may fail. */
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "clock.h"
#include "timed.h"

struct counter {
    int64_t calls;
    int64_t fails_at; /* 0: never */
};

static bool count_call(void *self, int64_t *rows)
{
    struct counter *counter = self;
    *rows += 3;
    return ++counter->calls != counter->fails_at;
}

static uint64_t *samples;

static bool run(const struct slice *slice, struct counter *counter, struct timing *timing)
{
    return timed_run(slice, (struct operation){count_call, counter, NULL, NULL}, samples, timing);
}

static uint64_t end_of(const struct timing *timing)
{
    uint64_t end = timing->first_ns;
    for (int64_t i = 0; i < timing->ops; i++)
        end += samples[i];
    return end;
}

static void by_count(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.seq = 1, .lead_in_ops = 7, .count = 1000};
    uint64_t before = clock_now_ns();
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.ops == 1000 && timing.rows == 3000 && timing.lead_in_ops == 7 && counter.calls == 1007);
    CHECK(timing.first_ns >= before && end_of(&timing) <= clock_now_ns() && !timing.capped);
    CHECK(timing.user_ns >= 0 && timing.sys_ns >= 0);
}

static void both_minima_of_the_lead_in(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.lead_in_ops = 10, .lead_in_ns = 2000000, .count = 1};
    uint64_t before = clock_now_ns();
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.first_ns >= before + 2000000 && timing.lead_in_ops > 10);
    slice.lead_in_ops = 0;
    slice.lead_in_ns = 0;
    CHECK(run(&slice, &counter, &timing) && timing.lead_in_ops == 0);
}

static void by_time(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.lead_in_ops = 1, .window_ns = 1000000};
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.ops > 0 && end_of(&timing) >= timing.first_ns + 1000000);
    CHECK(end_of(&timing) - samples[timing.ops - 1] < timing.first_ns + 1000000);
}

static void armed(void)
{
    struct counter counter = {0};
    struct timing timing;
    int64_t start = (int64_t)clock_now_ns() + 5000000;
    struct slice slice = {.start_ns = start, .lead_in_ops = 1, .lead_in_ns = 1000000, .window_ns = 2000000};
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.first_ns >= (uint64_t)start + 1000000 && end_of(&timing) >= (uint64_t)start + 3000000);
}

static void armed_too_late(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.start_ns = 1, .lead_in_ops = 10, .lead_in_ns = 1, .window_ns = 1};
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.ops == 0 && timing.rows == 0 && timing.lead_in_ops == 10);
}

static void capped(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.window_ns = INT64_MAX / 4};
    CHECK(run(&slice, &counter, &timing) && timing.ops == TIMED_MAX_SAMPLES && timing.capped);
    slice = (struct slice){.count = TIMED_MAX_SAMPLES};
    CHECK(run(&slice, &counter, &timing) && timing.ops == TIMED_MAX_SAMPLES && !timing.capped);
    slice.count++;
    CHECK(run(&slice, &counter, &timing) && timing.ops == TIMED_MAX_SAMPLES && timing.capped);
}

static void open_loop_by_count(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.count = 50, .rate = 1e6, .exponential = true, .seed = 7};
    uint64_t before = clock_now_ns();
    CHECK(run(&slice, &counter, &timing));
    CHECK(timing.ops == 50 && timing.rows == 150 && timing.skipped == 0 && timing.backlog == 0 && counter.calls == 50);
    CHECK(timing.first_ns >= before && timing.phases == 1 && timing.lead_in_ops == 0 && !timing.capped);
    for (int i = 0; i < 50; i++)
        CHECK(timed_phase(samples, 0)[i] <= samples[i] && samples[i] > 0);
}

static void open_loop_by_time(void)
{
    struct counter counter = {0};
    struct timing timing;
    int64_t start = (int64_t)clock_now_ns() + 2000000;
    struct slice slice = {.start_ns = start, .lead_in_ns = 1000000, .window_ns = 4000000, .rate = 1000};
    CHECK(run(&slice, &counter, &timing) && clock_now_ns() >= (uint64_t)start + 5000000);
    CHECK(timing.ops + timing.backlog == 5 && timing.first_ns == (uint64_t)start);
}

static void open_loop_too_late(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.start_ns = 1, .window_ns = 5000000, .rate = 1000};
    CHECK(run(&slice, &counter, &timing) && timing.ops == 0 && timing.backlog == 5 && counter.calls == 0);
    slice = (struct slice){.start_ns = 1, .count = 6, .rate = 1000, .latency_limit_ns = 1};
    CHECK(run(&slice, &counter, &timing) && timing.ops == 0 && timing.skipped == 6 && counter.calls == 0);
    CHECK(samples[0] == 0 && samples[5] == 0 && timed_phase(samples, 0)[5] > 1);
}

static void open_loop_capped_and_failing(void)
{
    struct counter counter = {0};
    struct timing timing;
    struct slice slice = {.start_ns = 1, .count = TIMED_MAX_PHASED + 1, .rate = 1e6};
    CHECK(run(&slice, &counter, &timing) && timing.ops == TIMED_MAX_PHASED && timing.capped);
    counter = (struct counter){.fails_at = 3};
    CHECK(!run(&slice, &counter, &timing) && counter.calls == 3);
}

static void failing(void)
{
    struct counter counter = {.fails_at = 2};
    struct timing timing;
    struct slice slice = {.lead_in_ops = 3, .count = 5};
    CHECK(!run(&slice, &counter, &timing) && counter.calls == 2);
    counter = (struct counter){.fails_at = 6};
    CHECK(!run(&slice, &counter, &timing) && counter.calls == 6);
}

/* Pages of the samples that have memory. */
static int pages(void)
{
    static unsigned char there[TIMED_MAX_SAMPLES * sizeof *samples / 4096];
    int found = 0;
    CHECK(mincore(samples, TIMED_MAX_SAMPLES * sizeof *samples, there) == 0);
    for (size_t i = 0; i < sizeof there; i++)
        found += there[i] & 1;
    return found;
}

static void memory_grows_with_use(void)
{
    CHECK(pages() == 32);
    samples[0] = 17;
    timed_make_room(samples, 512 * 40);
    CHECK(pages() == 40 && samples[0] == 17);
    timed_make_room(samples, 1);
    CHECK(pages() == 40);
    timed_make_room(samples, INT64_MAX / 2);
    CHECK(pages() == TIMED_MAX_SAMPLES / 512);
}

int main(void)
{
    samples = timed_new_samples();
    CHECK(samples != NULL);
    memory_grows_with_use();
    by_count();
    both_minima_of_the_lead_in();
    by_time();
    armed();
    armed_too_late();
    capped();
    open_loop_by_count();
    open_loop_by_time();
    open_loop_too_late();
    open_loop_capped_and_failing();
    failing();
    timed_free_samples(samples);
    return CHECK_RESULT;
}
