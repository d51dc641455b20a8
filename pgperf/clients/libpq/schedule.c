#include "schedule.h"

#include <math.h>

/* Output `number` (1, 2, ..) of SplitMix64 from the seed, as a number above 0, up to 1. */
static double uniform(uint64_t seed, uint64_t number)
{
    uint64_t mixed = seed + number * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    mixed ^= mixed >> 31;
    return (double)((mixed >> 11) + 1) * 0x1p-53;
}

/* From the operation before, or from the begin of the schedule. */
static uint64_t gap_ns(const struct schedule *schedule)
{
    return (uint64_t)llrint(-log(uniform(schedule->seed, schedule->number + 1)) * schedule->mean_ns);
}

struct schedule schedule_begin(double rate, bool exponential, uint64_t seed, uint64_t begin_ns)
{
    struct schedule schedule = {exponential, seed, 1e9 / rate, begin_ns, 0, begin_ns};
    if (exponential)
        schedule.due_ns += gap_ns(&schedule);
    return schedule;
}

void schedule_advance(struct schedule *schedule)
{
    schedule->number++;
    if (schedule->exponential)
        schedule->due_ns += gap_ns(schedule);
    else
        schedule->due_ns = schedule->begin_ns + (uint64_t)llrint((double)schedule->number * schedule->mean_ns);
}
