#include "cold.h"

#include <math.h>

#include "bulk.h"
#include "clock.h"

#define SLOW_US 1e6 /* ten more operations that are slower would only delay the run */

static double microseconds_since(uint64_t before_ns)
{
    return (double)(int64_t)(clock_now_ns() - before_ns) / 1000.0;
}

struct cold cold_none(void)
{
    return (struct cold){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

bool cold_connect(struct cold *cold, struct session *session, const struct spec *spec, struct failure *failure)
{
    if (spec->spawned_ns)
        cold->startup_us = microseconds_since((uint64_t)spec->spawned_ns);
    uint64_t before = clock_now_ns();
    bool worked = session_connect(session, spec, failure);
    cold->connect_us = microseconds_since(before);
    return worked;
}

static bool run_times(int times, double *total_us, struct session *session, struct spec *spec, bool other,
                      struct failure *failure)
{
    int64_t ignored_rows = 0;
    uint64_t before = clock_now_ns();
    for (int i = 0; i < times; i++)
        if (other ? !session_run(session, &spec->other, &ignored_rows, failure)
                  : !bulk_or_statements(session, spec, &ignored_rows, failure))
            return false;
    *total_us = microseconds_since(before);
    return true;
}

static bool run_next_ten(struct cold *cold, struct session *session, struct spec *spec, struct failure *failure)
{
    return cold->second_us > SLOW_US || run_times(10, &cold->next_ten_us, session, spec, false, failure);
}

bool cold_run(struct cold *cold, struct session *session, struct spec *spec, struct failure *failure)
{
    if (!run_times(1, &cold->first_us, session, spec, false, failure) ||
        !run_times(1, &cold->second_us, session, spec, false, failure) ||
        !run_next_ten(cold, session, spec, failure))
        return false;
    return spec->other.count == 0 ||
           (run_times(1, &cold->other_first_us, session, spec, true, failure) &&
            run_times(1, &cold->other_second_us, session, spec, true, failure));
}
