/* Times an empty operation in a bare loop and in the C client's timed loop. See loop_cost.py.
 * Usage: loop_cost PAIRS OPERATIONS. Prints a line per pair: ns per operation, bare and timed. */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "timed.h"

static bool add_row(void *self, int64_t *rows)
{
    (void)self;
    ++*rows;
    return true;
}

/* Volatile, so that the bare loop calls through the pointer as the timed loop does. */
static bool (*volatile run)(void *self, int64_t *rows) = add_row;

static double bare(int64_t operations)
{
    struct operation operation = {.run = run};
    int64_t rows = 0;
    uint64_t before = clock_now_ns();
    for (int64_t i = 0; i < operations; i++)
        if (!operation.run(operation.self, &rows))
            abort();
    return (double)(clock_now_ns() - before) / (double)operations;
}

static double timed(int64_t operations, uint64_t *samples)
{
    struct slice slice = {.seq = 1, .count = operations};
    struct operation operation = {.run = run};
    struct timing timing;
    if (!timed_run(&slice, operation, samples, &timing) || timing.ops != operations)
        abort();
    uint64_t total_ns = 0;
    for (int64_t i = 0; i < operations; i++)
        total_ns += samples[i];
    return (double)total_ns / (double)operations;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return EXIT_FAILURE;
    int pairs = atoi(argv[1]);
    int64_t operations = atoll(argv[2]);
    uint64_t *samples = timed_new_samples();
    if (!samples || operations < 1 || operations > TIMED_MAX_SAMPLES)
        return EXIT_FAILURE;
    for (int i = 0; i < pairs; i++) {
        int bare_first = random() & 1;
        double first = bare_first ? bare(operations) : timed(operations, samples);
        double second = bare_first ? timed(operations, samples) : bare(operations);
        printf("%.3f %.3f\n", bare_first ? first : second, bare_first ? second : first);
    }
    timed_free_samples(samples);
    return EXIT_SUCCESS;
}
