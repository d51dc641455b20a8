/* The cold phases: what start-up, connecting and the first queries cost, before anything is warm. */
#ifndef PGPERF_COLD_H
#define PGPERF_COLD_H

#include "session.h"

/* Microseconds; NAN where not measured. In prepared mode a statement's first run includes preparing it. */
struct cold {
    double startup_us; /* from the spawn to the point where connecting could begin */
    double connect_us;
    double first_us;
    double second_us;
    double next_ten_us; /* the total of ten */
    double other_first_us;
    double other_second_us;
};

/* Nothing measured. */
struct cold cold_none(void);

/* Connects, as session_connect does, and fills in startup_us and connect_us. */
bool cold_connect(struct cold *cold, struct session *session, const struct spec *spec, struct failure *failure);

/* Runs the spec's statements twelve times and the other ones, if there are any, twice. */
bool cold_run(struct cold *cold, struct session *session, struct spec *spec, struct failure *failure);

#endif
